// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/merge_adapter.h"

#include <cerrno>

#include "core/base/file_system.h"
#include "core/base/files.h"
#include "core/base/partial_files.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/jobs/served_parity.h"
#include "core/train/trained_template.h"

namespace mw::jobs {

formats::Adapter read_any_adapter(const std::filesystem::path& adapter, const model::TensorInventory& inventory,
                                  std::optional<float> alpha, std::vector<std::string>& notes) {
  if (!formats::is_orbax(adapter)) {
    if (alpha)
      throw Error({.id = "USAGE",
                   .message = "alpha cannot be set for a PEFT adapter, which contains it",
                   .place = "--alpha",
                   .fix = "remove --alpha"});
    return formats::read_peft(adapter, inventory);
  }
  formats::TunixAdapter read = formats::read_tunix_adapter(adapter, inventory, alpha);
  notes = std::move(read.notes);
  return std::move(read.adapter);
}

namespace {

namespace fs = std::filesystem;

std::vector<train::ParityPrompt> tokenised(const fs::path& base, const std::vector<std::string>& texts) {
  std::vector<train::ParityPrompt> out;
  if (texts.empty()) return out;
  train::ModelSettings settings;
  settings.path = base;
  const auto tokenizer = train::load_tokenizer_of(settings);
  for (const std::string& text : texts) {
    train::ParityPrompt prompt{text, {tokenizer->bos()}};
    const std::vector<int> ids = tokenizer->encode(text);
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    out.push_back(std::move(prompt));
  }
  return out;
}

struct Compared {
  fs::path base, merged;
  const formats::Adapter& adapter;
  std::vector<train::ParityPrompt> prompts;
};
train::Parity compared(const Compared& c, const train::Progress& checking, const std::stop_token& stop) {
  const train::Progress reported = [&](long done, long of) {
    if (stop.stop_requested()) throw cancelled("the check");
    checking(done, of);
  };
  const auto serve = [&](const std::vector<train::ParityPrompt>& prompts, model::WeightType weights,
                         const train::Progress& progress) {
    train::ServedRun run = run_served({c.base, c.merged, &c.adapter, weights}, prompts, stop);
    progress(1, 1);
    return run;
  };
  return train::check_parity(c.base, c.adapter, c.merged, {}, reported, {.prompts = c.prompts, .serve = serve});
}

// A name beside `out` that is free.
fs::path aside(const fs::path& out, const std::string& ending) {
  fs::path named = out.has_filename() ? out : out.parent_path();
  const std::string name = named.string() + ending;
  fs::path free = name;
  for (int i = 2; !is_missing_or_empty(free); ++i) free = name + "-" + std::to_string(i);
  return free;
}

void keep(const fs::path& staged, const fs::path& folder) {
  if (file_system().rename(staged.c_str(), folder.c_str()) != 0)
    throw system_error("cannot keep the merged model", folder.string(), errno);
  sync_folder_of(folder);
}

}  // namespace

MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const train::Progress& progress, const train::Progress& checking, std::stop_token stop) {
  const model::Config config = formats::read_config(request.base);
  std::vector<std::string> notes;
  const formats::Adapter adapter =
      read_any_adapter(request.adapter, model::TensorInventory(config), request.alpha, notes);
  const auto chat = data::load_chat_template(request.base, train::chat_format(config.family));
  if (std::string warning = train::template_warning(request.adapter, chat); !warning.empty())
    notes.push_back(std::move(warning));
  for (const std::string& note : notes) noted(note);
  train::require_merge_target(request.base, request.out);
  std::vector<train::ParityPrompt> prompts = tokenised(request.base, request.prompts);
  StagedFolder staged(request.out);
  MergeResult result;
  train::CheckedMerge checked =
      train::merge_checked(staged.path(), request.base, adapter, {.progress = progress}, stop);
  result.merged = std::move(checked.merged);
  result.check = std::move(checked.check);
  const bool compares = request.logits == CompareLogits::yes || !prompts.empty();
  result.parity.reason = compares ? "it was stopped" : "it was not asked for";
  try {
    if (compares && result.check.verdict == train::ParityVerdict::passed) {
      checking(0, 1);
      result.parity = compared({request.base, staged.path(), adapter, std::move(prompts)}, checking, stop);
    }
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) throw;
  }
  using Verdict = train::ParityVerdict;
  const bool failed = result.check.verdict == Verdict::failed || result.parity.verdict == Verdict::failed;
  const bool compared_enough = !compares || result.parity.verdict == Verdict::passed ||
                               (request.unchecked == UncheckedMerge::released && !stop.stop_requested());
  result.is_released = !failed && result.check.verdict == Verdict::passed && compared_enough;
  result.folder = result.is_released ? request.out : aside(request.out, failed ? ".rejected" : ".unchecked");
  result.answer = {{"merged", result.merged.merged},          {"tensors", result.merged.tensors},
                   {"bytes", result.merged.written.value},    {"out", result.folder.string()},
                   {"released", result.is_released},          {"check", train::to_json(result.check)},
                   {"parity", train::to_json(result.parity)}, {"notes", notes}};
  write_file_atomically(staged.path() / "merge.json", result.answer.dump(2) + "\n");
  if (result.is_released)
    staged.commit();
  else
    keep(staged.path(), result.folder);
  return result;
}

train::Parity check_merged(const ParityRequest& request, const std::function<void(const std::string&)>& noted,
                           const train::Progress& checking, std::stop_token stop) {
  const model::Config config = formats::read_config(request.base);
  std::vector<std::string> notes;
  const formats::Adapter adapter =
      read_any_adapter(request.adapter, model::TensorInventory(config), request.alpha, notes);
  for (const std::string& note : notes) noted(note);
  return compared({request.base, request.merged, adapter, tokenised(request.base, request.prompts)}, checking, stop);
}

std::string released_text(const MergeResult& result) {
  if (result.is_released) return "released as " + result.folder.string();
  const bool failed =
      result.check.verdict == train::ParityVerdict::failed || result.parity.verdict == train::ParityVerdict::failed;
  return "not released: the check " + std::string(failed ? "failed" : "did not run to its end") +
         "; the merged model was kept in " + result.folder.string();
}

}  // namespace mw::jobs
