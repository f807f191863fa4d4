// SPDX-License-Identifier: GPL-3.0-or-later
// `convert`: converts an Orbax LoRA checkpoint of Tunix to a PEFT adapter.
#include <CLI/CLI.hpp>

#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/jobs/merge_adapter.h"
#include "core/model/catalogue.h"

namespace mw::app {
namespace {

struct ConvertOptions : AdapterOptions {
  std::string model;  // catalogue id, if there is no base model folder
  std::string to = "peft";
};

void add_convert_options(CLI::App& command, CommonOptions&, ConvertOptions& options) {
  add_adapter_options(command, options);
  command.add_option("--to", options.to, "Output format")->check(CLI::IsMember({"peft"}))->capture_default_str();
  command.add_option("--base", options.base, "Folder of the base model");
  command.add_option("--model", options.model, "Catalogue id of the base model, if its folder is not available");
}

void refuse_bad_paths(const ConvertOptions& options) {
  if (!is_missing_or_empty(options.out))
    throw Error("OUT", "the output exists already",
                {.file = options.out.string(),
                 .expected = "a new or empty folder",
                 .fix = "choose another --out; existing files are not overwritten"});
  if (!formats::is_orbax(options.adapter))
    throw Error("ADAPTER", "not an Orbax checkpoint",
                {.file = options.adapter.string(),
                 .expected = "a folder saved by Tunix: the steps, one step, or its item",
                 .fix = "a PEFT adapter needs no conversion"});
}

// The catalogue's Gemma models whose shapes the adapter fits.
std::vector<std::string> models_that_fit(const std::filesystem::path& adapter) {
  std::vector<std::string> ids;
  for (const std::string& id : model::catalogue_ids()) {
    const model::Config config = model::catalogue_config(id);
    if (model::is_planning_only(config)) continue;
    try {
      formats::read_tunix_adapter(adapter, model::TensorInventory(config), 1.0f);
      ids.push_back(id);
    } catch (const Error&) {  // does not fit
    }
  }
  return ids;
}

// The base model's configuration: from its folder, from its catalogue id, or else from the only model that fits.
model::Config base_config(const ConvertOptions& options, std::vector<std::string>& notes) {
  if (!options.base.empty()) return formats::read_config(options.base);
  if (!options.model.empty()) return model::catalogue_config(options.model);
  const std::vector<std::string> ids = models_that_fit(options.adapter);
  if (ids.size() != 1) {
    throw Error("MODEL", "the shapes of the adapter do not identify its base model",
                {.file = options.adapter.string(),
                 .found = ids.empty() ? "no Gemma model of the catalogue fits" : joined(ids),
                 .expected = "exactly one",
                 .fix = "give --base with the base model's folder, or --model with its id"});
  }
  notes.push_back("the base model is taken to be " + ids.front() + ", the only catalogue model that fits");
  return model::catalogue_config(ids.front());
}

int run_convert(const CommonOptions& common, const ConvertOptions& options) {
  refuse_bad_paths(options);
  std::vector<std::string> notes, reader_notes;
  const model::Config config = base_config(options, notes);
  const model::TensorInventory inventory(config);
  formats::PeftAdapter adapter = jobs::read_any_adapter(options.adapter, inventory, options.alpha, reader_notes);
  notes.insert(notes.end(), reader_notes.begin(), reader_notes.end());
  adapter.base_model = options.base.empty() ? config.id : options.base.string();
  StagedFolder staged(options.out);
  formats::write_peft(staged.path(), adapter, inventory);
  staged.commit();
  for (const std::string& note : notes) print_note(note);
  if (common.output == Output::json)
    print_json({{"out", options.out.string()},
                {"modules", adapter.modules.size()},
                {"rank", adapter.rank},
                {"alpha", adapter.alpha},
                {"notes", notes}});
  else
    print_text("%s, rank %d, alpha %s in %s\n", counted(adapter.modules.size(), "module").c_str(), adapter.rank,
               number_text(adapter.alpha).c_str(), options.out.c_str());
  return 0;
}

}  // namespace

Subcommand convert_subcommand() {
  return make_subcommand("convert", "Convert an Orbax LoRA checkpoint of Tunix to a PEFT adapter", add_convert_options,
                         run_convert);
}

}  // namespace mw::app
