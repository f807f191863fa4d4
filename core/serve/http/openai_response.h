// SPDX-License-Identifier: Apache-2.0
// Responses of the OpenAI API as JSON: completions, stream chunks, the list of models, errors. Pure functions; any
// thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/serve/http/answer_reader.h"
#include "core/serve/http/openai_request.h"

namespace mw::serve {

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
