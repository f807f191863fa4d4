// SPDX-License-Identifier: Apache-2.0
// What one row of a data file says, before rendering: the record formats of TRL and LLaMA-Factory. Pure functions, any
// thread.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/base/json.h"
#include "core/data/dataset/dataset.h"
#include "core/data/tokenizer/chat.h"

namespace mw::data {

struct Conversation {
  std::vector<Message> messages;
  size_t completion = 0;  // index of the first message of the completion (the last answer, where the row does not say)
};
struct Plain {  // for chat none: put one after the other, as they are
  std::string prompt, completion;
};
struct Text {
  std::string text;
};
using Record = std::variant<Conversation, Plain, Text>;

// The format that the options ask for or that the row's keys show. Throws Error listing the keys.
Format detect_format(const Json& row, const DatasetOptions& options);
// `format` is not automatic. Throws Error (DATA-ROW, without file and line) for missing or wrong columns.
Record read_record(const Json& row, Format format, const DatasetOptions& options);

std::string_view to_string(Format format);

}  // namespace mw::data
