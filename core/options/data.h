// SPDX-License-Identifier: Apache-2.0
// The rows that a run reads, and how they become batches. Plain values; paths are resolved, an empty one is not set.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "core/base/enum_names.h"

namespace mw::options {

// text in a .txt file: the file is one running text, cut into examples of max_len tokens (bos included), each token in
// one example, lines ending in \n. All other formats: one example per row.
enum class Format { automatic, prompt_completion, messages, sharegpt, alpaca, text };
// Tokens that carry loss. completion: the row's completion, or its last answer. assistant: every answer. all: every
// token except bos and the turn markers. An answer includes its end-of-turn marker (eos with ChatFormat::none). In text
// rows, all tokens except bos carry loss.
enum class LossOn { completion, assistant, all };
enum class Overlong { drop, truncate };
enum class OnError { stop, skip };
enum class ChatFormat { gemma2, gemma3, gemma4, none };
enum class Padding { max_len, longest };

struct DataRows {
  std::filesystem::path path;       // a file, or a pattern of several: see data::data_files()
  std::filesystem::path eval_path;  // held-out rows, as `path`; empty: eval_fraction holds rows out
  Format format = Format::automatic;
  std::map<std::string, std::string> columns;  // prompt, completion, text, messages, system, input -> column name
  LossOn loss = LossOn::completion;
  Overlong overlong = Overlong::drop;
  OnError on_error = OnError::stop;
  int max_len = 1024;  // tokens, bos and end markers included
  // Drops training rows that are equal to an earlier training row or to a held-out row: the same used tokens, with loss
  // on the same of them.
  bool drops_duplicates = false;
  double eval_fraction = 0;  // of the rows, chosen by a hash of (seed, row); appending rows keeps the split
  bool operator==(const DataRows&) const = default;
  // Share of the rows of `path` that is held out.
  double random_share_held_out() const { return eval_path.empty() ? eval_fraction : 0; }
  bool holds_rows_out() const { return !eval_path.empty() || eval_fraction > 0; }
};

struct Data : DataRows {
  std::optional<ChatFormat> requested_chat;  // data.chat; none: the model's
  bool packing = false;
  std::filesystem::path lengths;
  std::string source;  // dataset of the Hugging Face hub, for recipes without data.path
  double mean_len = 0;
  std::int64_t rows = 0;
  std::optional<Padding> padding;
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<6> mw::kEnumNames<mw::options::Format>{
    "auto", "prompt_completion", "messages", "sharegpt", "alpaca", "text"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::LossOn>{"completion", "assistant", "all"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Overlong>{"drop", "truncate"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::OnError>{"stop", "skip"};

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::options::ChatFormat>{"gemma2", "gemma3", "gemma4", "none"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Padding>{"max_len", "longest"};
