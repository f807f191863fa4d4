// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/adapter_options.h"

#include <CLI/CLI.hpp>

#include "app/output.h"

namespace mw::app {

void add_adapter_options(CLI::App& command, AdapterOptions& options) {
  command.add_option("--adapter", options.adapter, "PEFT folder, or an Orbax checkpoint saved by Tunix")->required();
  command.add_option("--out", options.out, "Output folder: new or empty")->required();
  command.add_option("--alpha", options.alpha, "LoRA alpha, which Orbax checkpoints do not record")
      ->check(CLI::PositiveNumber);
}

void print_note(const std::string& note) {
  print_error("note: %s\n", note.c_str());
}

}  // namespace mw::app
