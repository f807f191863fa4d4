// SPDX-License-Identifier: Apache-2.0
// Parses and checks requests of the OpenAI API: /v1/completions and /v1/chat/completions. Rejects options that are not
// implemented if they would change the response. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/data/tokenizer/chat.h"

namespace mw::serve {

enum class Endpoint { completions, chat };
enum class ToolChoice { none, automatic, required, named };
enum class UsageMode { none, at_end, always };  // which chunks of a stream carry the token usage

struct OpenAiRequest {
  Endpoint endpoint{};
  std::string model;                  // empty: the base model
  std::vector<int> prompt_ids{};      // of completions, if has_ids
  std::string prompt{};               // of completions otherwise
  std::vector<data::Message> chat{};  // of chat
  Json tools{}, template_values{};    // of chat, for a folder's template: a list, an object; or null
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool_name{};  // if ToolChoice::named
  bool parallel_tool_calls = true;
  bool has_ids = false, add_bos = true;
  std::optional<int> max_tokens{};
  float temperature = 1, top_p = 1, min_p = 0;
  int top_k = 0;
  std::optional<std::uint64_t> seed{};
  std::vector<std::string> stop{};
  std::vector<int> stop_ids{};
  bool ignore_eos = false;
  int priority = 0;
  bool stream = false;
  UsageMode usage = UsageMode::none;
};

// Throws Error REQUEST with the invalid parameter as its place.
OpenAiRequest parse_openai_request(Endpoint endpoint, std::string_view body);

}  // namespace mw::serve
