// SPDX-License-Identifier: Apache-2.0
// The model of an experiment and what it is run on or planned for. Plain values; paths are resolved, an empty one is
// not set. The defaults of all option values are those of the parameter table.
#pragma once
#include <filesystem>
#include <string>

#include "core/base/enum_names.h"

namespace mw::options {

enum class Init { load, random };

struct Model {
  std::filesystem::path path, tokenizer;
  std::string id;  // of the catalogue
  Init init{};
  const std::filesystem::path& tokenizer_path() const { return tokenizer.empty() ? path : tokenizer; }
};
struct TargetOptions {
  std::string id;
  int threads = 0;        // 0: all cores
  double memory_gib = 0;  // of each device; 0: the machine's
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Init>{"load", "random"};
