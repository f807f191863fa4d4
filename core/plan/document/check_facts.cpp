// SPDX-License-Identifier: Apache-2.0
// Collects the input of the checker from the document and the folders that it references.
#include "core/base/files.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/request/lengths.h"
#include "core/plan/request/refusals.h"
#include "core/train/settings.h"

namespace mw::plan {
namespace fs = std::filesystem;
namespace {

// Parses "name==version" or "field=value" entries into a map; ignores other entries.
std::map<std::string, std::string> pairs(const std::vector<std::string>& lines, std::string_view between) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines) {
    const size_t at = line.find(between);
    if (at == std::string::npos || at == 0) continue;
    std::string name = line.substr(0, at);
    if (name == "tunix") name = "google-tunix";
    out[name] = line.substr(at + between.size());
  }
  return out;
}

lint::LoraInput lora_facts(const options::Lora& lora) {
  lint::LoraInput l{.options = lora, .targets = experiment::lora_targets(lora)};
  if (lora.adapter.empty()) return l;
  try {
    l.adapter_tensors.emplace();
    const formats::SafetensorsFile adapter(lora.adapter / "adapter_model.safetensors");
    for (const formats::TensorInfo& t : adapter.tensors()) l.adapter_tensors->push_back(t.name);
  } catch (const Error&) {
    l.adapter_tensors.reset();
  }
  return l;
}

std::optional<lint::CheckpointInput> checkpoint_facts(const fs::path& folder, const model::TensorInventory& inventory) {
  if (folder.empty()) return std::nullopt;
  try {
    formats::FolderContent c = formats::compare_folder(folder, inventory);
    return lint::CheckpointInput{.prefix = std::move(c.prefix),
                                 .unmatched = std::move(c.unexpected),
                                 .missing = std::move(c.missing),
                                 .embedding_rows = c.embedding_rows,
                                 .files = c.files,
                                 .shared_kv = c.shared_kv,
                                 .any_f16 = c.any_f16};
  } catch (const Error&) {
    return std::nullopt;  // the folder has only a config, or its files cannot be read
  }
}

// Whether a conversation is trained as a server with the folder's template renders it; what is trained where it is not.
std::string not_served(const data::ChatTemplate& trained, const data::ChatTemplate& served) {
  const auto text = [](const data::ChatTemplate& chat) {
    std::string out;
    for (const data::ChatSpan& span : data::render_chat(chat, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}))
      out += span.text;
    return out;
  };
  if (trained == served || trained.is_none()) return {};  // text without a template is not served as a chat
  const std::string here = text(trained);
  try {
    return here == text(served) ? std::string() : here;
  } catch (const Error&) {
    return here;
  }
}

void add_folder_template(const experiment::BoundExperiment& config, model::Family family, lint::ChatInput& out) try {
  const data::ChatTemplate served = train::served_template(config.model, family);
  if (!served.folder()) return;
  if (served.folder()->published_as().empty()) out.unknown_template = served.folder()->sha256();
  out.not_served = not_served(train::chat_template(config, family), served);
} catch (const Error&) {  // training reports it
}

lint::ChatInput template_facts(const experiment::BoundExperiment& config, model::Family family,
                               const DiagnosticFacts& facts) {
  lint::ChatInput out{.chat = train::chat_format(config.data, family),
                      .add_bos = config.stack.add_bos,
                      .rendering = config.stack.rendering,
                      .system_turns = config.data.columns.contains("system") ? true : facts.system_turns};
  add_folder_template(config, family, out);
  return out;
}

// Sets the memory of the fullest device and the share of real tokens in a padded batch, if the plan has them.
void add_plan(const Request& r, const Plan& plan, lint::CheckInput& facts) {
  facts.memory = lint::MemoryInput{.capacity = plan.memory.capacity,
                                   .total = plan.memory.at_peak.total(),
                                   .logits = plan.memory.at_peak[MemoryCategory::logits]};
  if (facts.server && plan.memory.fits()) facts.server->longest_request = plan.serve->longest_request;
  if (r.engine || (r.lengths.histogram.empty() && r.lengths.mean <= 0)) return;  // the engine computes no padding
  facts.real_share = plan.run.real_share;
  const RowStatistics rows = row_statistics(r.lengths, 1);
  if (rows.rows > 0 && rows.packed_rows > 0)
    facts.packed = lint::PackingInput{.rows = rows.packed_rows / rows.rows, .steps = r.train.steps};
}

}  // namespace

lint::CheckInput check_facts(const experiment::BoundExperiment& config, const Request& r,
                             const DiagnosticFacts& known) {
  lint::CheckInput facts = check_input(r);
  // A training here that names other software is checked for the recipe of that software.
  if (r.engine && r.work == Work::train) facts.stack = config.train.stack.value_or(r.stack);
  facts.inventory = model::TensorInventory(r.model);
  if (r.method == model::TrainMethod::lora) facts.lora = lora_facts(config.lora);
  facts.dtype_stated = config.train.sets_dtype;
  facts.real_share = known.real_share;
  facts.memory = known.memory;
  if (known.plan) add_plan(r, *known.plan, facts);
  facts.versions = pairs(config.stack.versions, "==");
  facts.model_config = pairs(config.stack.model_config, "=");
  facts.checkpoint = checkpoint_facts(config.model.path, facts.inventory);
  facts.chat = template_facts(config, r.model.family, known);
  facts.exported = config.exported;
  facts.export_folder_used = !config.exported.out.empty() && !is_missing_or_empty(config.exported.out);
  return facts;
}

}  // namespace mw::plan
