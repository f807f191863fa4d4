// SPDX-License-Identifier: Apache-2.0
// Parses one row of a data file in the record formats of TRL and LLaMA-Factory: prompt/completion pairs, OpenAI and
// ShareGPT messages, Alpaca, text. Thread-safe.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/base/json.h"
#include "core/data/dataset/examples.h"
#include "core/data/tokenizer/chat.h"

namespace mw::data {

struct Conversation {
  std::vector<Message> messages;
  size_t completion = 0;  // index of the first message of the completion; by default the last answer
  Json tools{};           // the row's "tools", for a template of a folder; null: none
};
struct PlainPair {  // with options::ChatFormat::none: concatenated without a template
  std::string prompt, completion;
};
struct PlainText {
  std::string text;
};
using Record = std::variant<Conversation, PlainPair, PlainText>;

// The format in the options, or the one that the row's keys imply. Throws DATA-FORMAT listing the keys.
options::Format detect_format(const Json& row, const DatasetOptions& options);
// `format` must not be automatic. Throws DATA-ROW, without file and line, for missing or invalid columns.
Record read_record(const Json& row, options::Format format, const DatasetOptions& options);

// Encodes one record as token ids with a loss mask. Thread-safe.

// Ignores max_len. Throws TOK-1 if the text contains the beginning-of-text token, TOK-2 if the chat template does not
// fit the record or the tokenizer.
Example encode_record(const Record& record, const DatasetOptions& options, const Tokenizer& tokenizer);

}  // namespace mw::data
