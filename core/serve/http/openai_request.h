// SPDX-License-Identifier: Apache-2.0
// What a client of the OpenAI protocol asks for, checked: /v1/completions and /v1/chat/completions. Options that would
// change the answer and are not implemented are refused, never ignored. Pure; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/data/tokenizer/chat.h"

namespace mw::serve {

enum class Endpoint { completions, chat };
enum class UsageMode { none, at_end, always };  // chunks of a stream that carry it

struct OpenAiRequest {
  Endpoint endpoint{};
  std::string model;                  // empty: the base model
  std::vector<int> prompt_ids{};      // completions, given as ids; else
  std::string prompt{};               // completions
  std::vector<data::Message> chat{};  // chat
  bool has_ids = false, add_bos = true;
  std::optional<int> max_tokens{};
  float temperature = 1, top_p = 1;
  int top_k = 0;
  std::optional<std::uint64_t> seed{};
  std::vector<std::string> stop{};
  std::vector<int> stop_ids{};
  bool ignore_eos = false;
  int priority = 0;
  bool stream = false;
  UsageMode usage = UsageMode::none;
};

// Throws Error REQUEST whose place is the parameter at fault.
OpenAiRequest parse_openai_request(Endpoint endpoint, std::string_view body);

}  // namespace mw::serve
