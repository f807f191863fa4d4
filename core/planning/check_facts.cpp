// SPDX-License-Identifier: Apache-2.0
// Collects the input of the checker from the document and the folders that it references.
#include <algorithm>
#include <array>

#include "core/base/files.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/planning/diagnostics.h"

namespace mw::planning {
namespace fs = std::filesystem;
namespace {

template <class Enum, size_t N>
Enum one_of(const std::string& value, const std::array<std::string_view, N>& names) {
  const auto at = std::find(names.begin(), names.end(), value);
  return static_cast<Enum>(at == names.end() ? 0 : at - names.begin());
}

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

std::vector<model::Role> roles_of(const std::vector<std::string>& names) {
  using enum model::Role;
  std::vector<model::Role> out;
  for (const model::Role role : {q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj})
    if (std::find(names.begin(), names.end(), model::hf_module_name(role)) != names.end()) out.push_back(role);
  return out;
}

lint::LoraInput lora_facts(const experiment::Experiment& e) {
  lint::LoraInput l{.targets = roles_of(e.list("lora.targets")),
                    .module_path = e.string("lora.module_path"),
                    .rank = static_cast<int>(e.integer("lora.rank")),
                    .alpha = e.number("lora.alpha"),
                    .rslora = e.flag("lora.rslora")};
  const fs::path file = e.path("lora.adapter") / "adapter_model.safetensors";
  if (e.path("lora.adapter").empty()) return l;
  try {
    l.adapter_tensors.emplace();
    const formats::SafetensorsFile adapter(file);
    for (const formats::TensorInfo& t : adapter.tensors()) l.adapter_tensors->push_back(t.name);
  } catch (const Error&) {
    l.adapter_tensors.reset();
  }
  return l;
}

std::optional<lint::CheckpointInput> checkpoint_facts(const experiment::Experiment& e,
                                                      const model::TensorInventory& inventory) {
  if (e.path("model.path").empty()) return std::nullopt;
  try {
    formats::FolderContent c = formats::compare_folder(e.path("model.path"), inventory);
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

lint::ChatInput template_facts(const experiment::Experiment& e, model::Family family, const DiagnosticFacts& facts) {
  lint::ChatInput t;
  const std::string chat = e.string("data.chat");
  const std::array<std::string_view, 4> names{"none", "gemma2", "gemma3", "gemma4"};
  constexpr std::array<lint::Chat, 5> kOf{lint::Chat::gemma2, lint::Chat::gemma3, lint::Chat::gemma4, lint::Chat::none,
                                          lint::Chat::none};
  t.chat = chat == "auto" ? kOf[static_cast<size_t>(family)] : one_of<lint::Chat>(chat, names);
  t.add_bos =
      one_of<lint::AddBos>(e.string("stack.add_bos"), std::array<std::string_view, 3>{"auto", "always", "never"});
  t.rendering = one_of<lint::ChatRendering>(e.string("stack.rendering"),
                                            std::array<std::string_view, 2>{"prompt_and_answer", "conversation"});
  t.system_turns = facts.system_turns;
  if (!e.string("data.columns.system").empty()) t.system_turns = true;
  return t;
}

lint::ExportInput export_facts(const experiment::Experiment& e) {
  lint::ExportInput x;
  x.merge =
      one_of<lint::MergeTool>(e.string("export.merge"), std::array<std::string_view, 3>{"none", "tunix", "meshwright"});
  if (const auto rank = e.integer("export.rank"); rank > 0) x.rank = static_cast<int>(rank);
  if (const double alpha = e.number("export.alpha"); alpha > 0) x.alpha = alpha;
  x.folder = e.path("export.out").string();
  x.folder_used = !x.folder.empty() && !is_missing_or_empty(x.folder);
  x.serve_as =
      one_of<lint::AdapterServing>(e.string("export.serve_as"), std::array<std::string_view, 2>{"merged", "adapter"});
  return x;
}

// Sets the memory of the fullest device and the share of real tokens in a padded batch, if the plan has them.
void add_plan(const plan::Request& r, const plan::Plan& plan, lint::CheckInput& facts) {
  facts.memory = lint::MemoryInput{.capacity = plan.memory.capacity,
                                   .total = plan.memory.at_peak.total(),
                                   .logits = plan.memory.at_peak[MemoryCategory::logits]};
  if (!r.lengths.histogram.empty() || r.lengths.mean > 0) facts.real_share = plan.run.real_share;
}

}  // namespace

lint::CheckInput check_facts(const experiment::Experiment& e, const plan::Request& r, const DiagnosticFacts& known) {
  lint::CheckInput facts{.config = r.model, .inventory = model::TensorInventory(r.model)};
  facts.target = r.target;
  facts.stack = r.stack;
  facts.purpose = r.work == plan::Work::train ? lint::Purpose::train : lint::Purpose::serve;
  facts.mesh = r.mesh;
  facts.rules = r.rules;
  facts.asked = r.places;
  if (r.method == model::TrainMethod::lora) facts.lora = lora_facts(e);
  facts.remat = r.train.remat;
  facts.dtype = model::parse<model::WeightType>(e.string("train.dtype")).value_or(model::WeightType::f32);
  facts.dtype_stated = e.has("train.dtype");
  facts.batch = static_cast<int>(e.integer("train.batch"));
  facts.accumulation = static_cast<int>(e.integer("train.accumulation"));
  facts.max_len = static_cast<int>(e.integer("data.max_len"));
  facts.loss_chunk = static_cast<int>(e.integer("train.loss_chunk"));
  facts.packing = e.flag("data.packing");
  facts.real_share = known.real_share;
  facts.memory = known.memory;
  if (known.plan) add_plan(r, *known.plan, facts);
  facts.versions = pairs(e.list("stack.versions"), "==");
  facts.model_config = pairs(e.list("stack.model_config"), "=");
  facts.checkpoint = checkpoint_facts(e, facts.inventory);
  facts.chat = template_facts(e, r.model.family, known);
  facts.exported = export_facts(e);
  return facts;
}

}  // namespace mw::planning
