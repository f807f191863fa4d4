// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/merge_adapter.h"

#include "core/base/files.h"
#include "core/formats/orbax/tunix_adapter.h"

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

train::Parity checked(const MergeRequest& request, const formats::Adapter& adapter, const train::Progress& checking,
                      const std::stop_token& stop) {
  try {
    return train::check_parity(request.base, adapter, request.out, {}, [&](long done, long of) {
      if (stop.stop_requested()) throw cancelled("the check");
      checking(done, of);
    });
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) throw;
    return {.reason = "it was stopped"};
  }
}

}  // namespace

MergeResult merge_adapter(const MergeRequest& request, const std::function<void(const std::string&)>& noted,
                          const train::Progress& progress, const train::Progress& checking, std::stop_token stop) {
  const model::Config config = formats::read_config(request.base);
  std::vector<std::string> notes;
  const formats::Adapter adapter =
      read_any_adapter(request.adapter, model::TensorInventory(config), request.alpha, notes);
  for (const std::string& note : notes) noted(note);
  MergeResult result;
  result.merged = train::merge(request.base, adapter, request.out, 0, progress, stop);
  checking(0, 1);
  result.parity = checked(request, adapter, checking, stop);
  result.answer = {{"merged", result.merged.merged},          {"tensors", result.merged.tensors},
                   {"bytes", result.merged.written.value},    {"out", request.out.string()},
                   {"parity", train::to_json(result.parity)}, {"notes", notes}};
  write_file_atomically(request.out / "merge.json", result.answer.dump(2) + "\n");
  return result;
}

}  // namespace mw::jobs
