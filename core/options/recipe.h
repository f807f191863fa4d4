// SPDX-License-Identifier: Apache-2.0
// The software that a recipe is for, and the export of its adapters. Plain values.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::options {

enum class AddBos { automatic, always, never };  // whether the stack's tokenizer adds <bos>, regardless of the template
enum class ChatRendering { prompt_and_answer, conversation };
enum class MergeTool { none, tunix, meshwright };  // the program that merges adapters into the weights
enum class AdapterServing { merged, adapter };

struct Recipe {
  std::vector<std::string> versions, model_config;
  AddBos add_bos{};
  ChatRendering rendering{};
};
struct Export {
  MergeTool merge{};
  std::filesystem::path out;
  int rank = 0;  // passed to the exporter; 0: the rank of the training
  double alpha = 0;
  AdapterServing serve_as{};
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::AddBos>{"auto", "always", "never"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::ChatRendering>{"prompt_and_answer", "conversation"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::MergeTool>{"none", "tunix", "meshwright"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::AdapterServing>{"merged", "adapter"};
