// SPDX-License-Identifier: Apache-2.0
// Requests and responses of the OpenAI API: /v1/completions and /v1/chat/completions, and the list of models. Rejects
// options that are not implemented if they would change the response. Pure functions; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/tokenizer/chat.h"
#include "core/serve/http/answer_reader.h"

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

struct ResponseHeader {  // repeated in every chunk of a response
  Endpoint endpoint{};
  std::string id, model;
  std::int64_t created = 0;  // Unix time
};
struct TokenUsage {
  int prompt = 0, cached = 0, completion = 0;
};

std::string make_response_id(Endpoint endpoint, std::uint64_t number);  // "cmpl-..." or "chatcmpl-..."
Json to_json(const TokenUsage& usage);
// finish_reason: "stop", "length" or "tool_calls"; "" in a chunk that is not the last. Only chats have reasoning and
// calls.
Json completion_json(const ResponseHeader& head, const AnswerPart& answer, const std::string& finish_reason,
                     const TokenUsage& usage);
struct ChunkPosition {
  bool is_first = true;
  int calls_before = 0;  // in earlier chunks
};
Json chunk_json(const ResponseHeader& head, ChunkPosition position, const AnswerPart& part,
                const std::string& finish_reason);
Json usage_chunk_json(const ResponseHeader& head, const TokenUsage& usage);
std::string sse_event(const Json& json);
inline constexpr const char* kSseEnd = "data: [DONE]\n\n";

struct ModelEntry {
  std::string id, root;  // root: the base model
};
Json model_json(const ModelEntry& model, int max_model_len, std::int64_t created);
Json model_list(const std::vector<ModelEntry>& models, int max_model_len, std::int64_t created);

struct HttpError {
  int status = 500;
  std::string type{}, message{}, param{}, code{};
};
HttpError to_http_error(const Error& error);
Json to_json(const HttpError& error);

}  // namespace mw::serve
