// SPDX-License-Identifier: GPL-3.0-or-later
// `merge` and `convert`: adapters of other programs into what serves them.
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/base/files.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/jobs/merge_adapter.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

void say_note(const std::string& note) {
  print_error("note: %s\n", note.c_str());
}

void check_new(const fs::path& out) {
  if (!is_free(out))
    throw Error({.id = "OUT",
                 .message = "the output is there already",
                 .file = out.string(),
                 .expected = "a folder that is not there or empty",
                 .fix = "give another --out: nothing is overwritten"});
}

// The base model's shapes: its folder, a catalogue id, or the one Gemma of the catalogue that the arrays fit.
model::Config config_for(const AdapterArgs& args, std::vector<std::string>& notes) {
  if (!args.base.empty()) return formats::read_config(args.base);
  if (!args.model.empty()) return model::catalogue(args.model);
  std::vector<std::string> fitting;
  for (const std::string& id : model::catalogue_ids()) {
    const model::Config config = model::catalogue(id);
    if (model::planning_only(config)) continue;
    try {
      formats::read_tunix_adapter(args.adapter, model::TensorInventory(config), 1.0f);
      fitting.push_back(id);
    } catch (const Error&) {  // not this one
    }
  }
  if (fitting.size() != 1) {
    std::string found;
    for (const std::string& id : fitting) found += (found.empty() ? "" : ", ") + id;
    throw Error({.id = "MODEL",
                 .message = "which model the adapter is for cannot be told from its shapes",
                 .file = args.adapter.string(),
                 .found = found.empty() ? "no Gemma of the catalogue fits" : found,
                 .expected = "one",
                 .fix = "give --base with the base model's folder, or --model with its id"});
  }
  notes.push_back("taken for an adapter of " + fitting.front() + ": the only catalogue model that it fits");
  return model::catalogue(fitting.front());
}

}  // namespace

int merge_command(const Common& common, const AdapterArgs& args) {
  ProgressLine line;
  const auto [merged, parity, answer] = jobs::merge_adapter(
      {args.base, args.adapter, args.out, args.alpha}, say_note,
      [&](long done, long total) {
        line.update("merging " + std::to_string(done) + " of " + std::to_string(total) + " MiB");
      },
      [&](long done, long of) {
        line.update("checking base and adapter against the merged model: " + std::to_string(100 * done / of) + " %");
      },
      common.stop);
  line.clear();
  if (common.output == Output::json)
    print_json(answer);
  else
    print_text("%ld of %ld tensors merged, %s in %s\nparity %s%s%s\n", merged.merged, merged.tensors,
               to_text(merged.written).c_str(), args.out.c_str(), std::string(to_string(parity.verdict)).c_str(),
               parity.reason.empty() ? "" : ": ", parity.reason.c_str());
  return parity.verdict == train::Parity::Verdict::failed ? 1 : 0;
}

int convert_command(const Common& common, const AdapterArgs& args) {
  check_new(args.out);
  if (!formats::is_orbax(args.adapter))
    throw Error({.id = "ADAPTER",
                 .message = "not an Orbax checkpoint",
                 .file = args.adapter.string(),
                 .expected = "a folder that Tunix saved: steps, a step, or its item",
                 .fix = "a PEFT adapter needs no conversion"});
  std::vector<std::string> notes;
  const model::Config config = config_for(args, notes);
  const model::TensorInventory inventory(config);
  std::vector<std::string> more;
  formats::Adapter adapter = jobs::read_any_adapter(args.adapter, inventory, args.alpha, more);
  notes.insert(notes.end(), more.begin(), more.end());
  adapter.base_model = args.base.empty() ? config.id : args.base.string();
  StagedFolder staged(args.out);
  formats::write_peft(staged.path(), adapter, inventory);
  staged.commit();
  for (const std::string& note : notes) say_note(note);
  const Json answer{{"out", args.out.string()},
                    {"modules", adapter.modules.size()},
                    {"rank", adapter.rank},
                    {"alpha", adapter.alpha},
                    {"notes", notes}};
  if (common.output == Output::json)
    print_json(answer);
  else
    print_text("%zu modules, rank %d, alpha %s in %s\n", adapter.modules.size(), adapter.rank,
               number_text(adapter.alpha).c_str(), args.out.c_str());
  return 0;
}

}  // namespace mw::app
