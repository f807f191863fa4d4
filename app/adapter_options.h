// SPDX-License-Identifier: GPL-3.0-or-later
// Options that `merge` and `convert` share.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace mw::app {

struct AdapterOptions {
  std::filesystem::path base{}, adapter{}, out{};
  std::optional<float> alpha{};  // LoRA alpha of an Orbax checkpoint
};

void add_adapter_options(CLI::App& command, AdapterOptions& options);

void print_note(const std::string& note);  // to standard error

}  // namespace mw::app
