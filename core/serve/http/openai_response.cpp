// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/openai_response.h"

#include <cstdio>

#include "core/base/rng.h"

namespace mw::serve {
namespace {

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json response_body(const ResponseHeader& head, const char* object, Json choices) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"choices", std::move(choices)}};
}

const char* chunk_object(Endpoint endpoint) {
  return endpoint == Endpoint::chat ? "chat.completion.chunk" : "text_completion";
}

// `first`: the number of the answer's calls before these.
Json calls_json(const ResponseHeader& head, const std::vector<ToolCall>& calls, int first) {
  Json out = Json::array();
  for (const ToolCall& call : calls) {
    const int index = first + static_cast<int>(out.size());
    out.push_back({{"index", index},
                   {"id", "call_" + head.id.substr(head.id.find('-') + 1) + "_" + std::to_string(index)},
                   {"type", "function"},
                   {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

Json message_json(const ResponseHeader& head, const AnswerPart& answer) {
  Json out{{"role", "assistant"}, {"content", answer.content}};
  if (!answer.reasoning.empty()) out["reasoning_content"] = answer.reasoning;
  if (answer.calls.empty()) return out;
  if (answer.content.empty()) out["content"] = nullptr;
  out["tool_calls"] = calls_json(head, answer.calls, 0);
  for (Json& call : out["tool_calls"]) call.erase("index");  // chunks have it
  return out;
}

}  // namespace

std::string make_response_id(Endpoint endpoint, std::uint64_t number) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(mix64(number)));
  return (endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") + std::string(digits);
}

Json to_json(const TokenUsage& usage) {
  return {{"prompt_tokens", usage.prompt},
          {"total_tokens", usage.prompt + usage.completion},
          {"completion_tokens", usage.completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

Json completion_json(const ResponseHeader& head, const AnswerPart& answer, const std::string& finish_reason,
                     const TokenUsage& usage) {
  Json choice{{"index", 0}};
  if (head.endpoint == Endpoint::chat)
    choice["message"] = message_json(head, answer);
  else
    choice["text"] = answer.content;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_reason;
  Json out = response_body(head, head.endpoint == Endpoint::chat ? "chat.completion" : "text_completion",
                           Json::array({choice}));
  out["usage"] = to_json(usage);
  return out;
}

Json chunk_json(const ResponseHeader& head, ChunkPosition position, const AnswerPart& part,
                const std::string& finish_reason) {
  Json choice{{"index", 0}};
  if (head.endpoint == Endpoint::chat) {
    Json delta = Json::object();
    if (position.is_first) delta["role"] = "assistant";
    if (!part.reasoning.empty()) delta["reasoning_content"] = part.reasoning;
    if (!part.calls.empty()) delta["tool_calls"] = calls_json(head, part.calls, position.calls_before);
    if (!part.content.empty() || (part.reasoning.empty() && part.calls.empty())) delta["content"] = part.content;
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = part.content;
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = or_null(finish_reason);
  return response_body(head, chunk_object(head.endpoint), Json::array({choice}));
}

Json usage_chunk_json(const ResponseHeader& head, const TokenUsage& usage) {
  Json out = response_body(head, chunk_object(head.endpoint), Json::array());
  out["usage"] = to_json(usage);
  return out;
}

std::string sse_event(const Json& json) {
  return "data: " + json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
}

Json model_json(const ModelEntry& m, int max_model_len, std::int64_t created) {
  return {{"id", m.id},
          {"object", "model"},
          {"created", created},
          {"owned_by", "meshwright"},
          {"root", m.root},
          {"parent", m.root == m.id ? Json() : Json(m.root)},
          {"max_model_len", max_model_len}};
}

Json model_list(const std::vector<ModelEntry>& models, int max_model_len, std::int64_t created) {
  Json list = Json::array();
  for (const ModelEntry& m : models) list.push_back(model_json(m, max_model_len, created));
  return {{"object", "list"}, {"data", list}};
}

HttpError to_http_error(const Error& error) {
  const Problem& p = error.problem();
  Problem shown = p;
  if (p.id == "REQUEST") shown.place.clear();
  HttpError out{.status = 400, .type = "invalid_request_error", .message = to_text(shown)};
  if (p.id == "REQUEST") out.param = p.place;
  if (p.id == "CONTEXT") out.code = "context_length_exceeded";
  if (p.id == "MODEL-NAME") out.status = 404, out.code = "model_not_found";
  if (p.id == "BUSY") out.status = 429, out.type = "rate_limit_error", out.code = "queue_full";
  if (p.id != "BUSY" && error.kind() == Error::Kind::failed) out.status = 500, out.type = "internal_error";
  return out;
}

Json to_json(const HttpError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

}  // namespace mw::serve
