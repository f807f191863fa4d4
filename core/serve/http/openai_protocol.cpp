// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/openai_protocol.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/counted.h"
#include "core/base/rng.h"
#include "core/base/text.h"

namespace mw::serve {
namespace {

constexpr size_t kMaxStops = 64, kMaxStopBytes = 4096;

[[noreturn]] void reject(const std::string& key, const std::string& message, const std::string& expected = {},
                         const std::string& found = {}) {
  throw Error("REQUEST", message, {.place = key, .found = found, .expected = expected});
}

// Reads members by key; null means absent, as in the protocol.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}
  const Json* find(const std::string& key) const { return find_member(object_, key); }
  double number(const std::string& key, double fallback, double least, double most) const {
    const Json* value = find(key);
    if (!value) return fallback;
    const std::string expected = "a number from " + text(least) + " to " + text(most);
    if (!value->is_number()) reject(key, "the value is not a number", expected, json_excerpt(*value));
    const double x = value->get<double>();
    if (!(x >= least && x <= most)) reject(key, "the value is out of range", expected, json_excerpt(*value));
    return x;
  }
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t least, std::int64_t most) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    const bool whole = value->is_number_integer() ||
                       (value->is_number_float() && std::floor(value->get<double>()) == value->get<double>());
    if (!whole) reject(key, "the value is not a whole number", expected, json_excerpt(*value));
    const double x = value->get<double>();
    if (!(x >= static_cast<double>(least) && x <= static_cast<double>(most)))
      reject(key, "the value is out of range", expected, json_excerpt(*value));
    return value->get<std::int64_t>();
  }
  bool flag(const std::string& key, bool fallback) const {
    const Json* value = find(key);
    if (!value) return fallback;
    if (!value->is_boolean()) reject(key, "the value is not a boolean", "true or false", json_excerpt(*value));
    return value->get<bool>();
  }
  std::string string(const std::string& key) const {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_string()) reject(key, "the value is not a string", "a string", json_excerpt(*value));
    return value->get<std::string>();
  }
  void reject_unless(const std::string& key, const Json& allowed, const std::string& why) const {
    const Json* value = find(key);
    if (value && *value != allowed) reject(key, why, "absent or " + allowed.dump(), json_excerpt(*value));
  }

 private:
  static std::string text(double x) {
    std::string s = Json(x).dump();
    return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
  }
  const Json& object_;
};

void reject_unsupported_options(const Fields& f, Endpoint endpoint) {
  for (const char* key : {"n", "best_of"}) f.reject_unless(key, 1, std::string(key) + " must be 1");
  f.reject_unless("echo", false, "echo is not supported");
  if (endpoint == Endpoint::chat)
    f.reject_unless("logprobs", false, "log-probabilities are not supported");
  else if (f.find("logprobs"))
    reject("logprobs", "log-probabilities are not supported", "absent", json_excerpt(*f.find("logprobs")));
  f.reject_unless("top_logprobs", 0, "log-probabilities are not supported");
  f.reject_unless("prompt_logprobs", 0, "log-probabilities are not supported");
  f.reject_unless("suffix", "", "suffixes are not supported");
  f.reject_unless("use_beam_search", false, "beam search is not supported");
  for (const char* key : {"presence_penalty", "frequency_penalty", "min_tokens"})
    f.reject_unless(key, 0, "this sampling option is not supported");
  f.reject_unless("repetition_penalty", 1, "this sampling option is not supported");
  f.reject_unless("logit_bias", Json::object(), "this sampling option is not supported");
  if (endpoint == Endpoint::completions) {
    f.reject_unless("tools", Json::array(), "only chat completions have tools");
    if (const Json* choice = f.find("tool_choice"); choice && *choice != "auto" && *choice != "none")
      reject("tool_choice", "only chat completions have tools", "auto or none", json_excerpt(*choice));
    f.reject_unless("chat_template_kwargs", Json::object(), "only chat completions have a template");
  }
  f.reject_unless("functions", Json::array(), "functions were replaced by tools");
  f.reject_unless("include_stop_str_in_output", false, "stop strings are never part of the output");
  f.reject_unless("skip_special_tokens", true, "special tokens are never part of the output");
  if (const Json* format = f.find("response_format"))
    if (!format->is_object() || format->value("type", Json()) != "text")
      reject("response_format", "structured output is not supported", R"({"type": "text"})", json_excerpt(*format));
  for (const char* key : {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs"})
    if (f.find(key)) reject(key, "structured output is not supported", "absent");
}

std::vector<int> ids_of(const Json& list, const std::string& key) {
  std::vector<int> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() > std::numeric_limits<int>::max())
      reject(key, "the value is not a token id", "a whole number from 0", json_excerpt(id));
    ids.push_back(id.get<int>());
  }
  return ids;
}

void read_prompt(const Fields& f, OpenAiRequest& out) {
  const Json* prompt = f.find("prompt");
  if (!prompt) reject("prompt", "the prompt is missing", "a string or a list of token ids");
  const bool list_of_one = prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number();
  if (list_of_one) prompt = &prompt->front();
  if (prompt->is_string()) {
    out.prompt = prompt->get<std::string>();
    return;
  }
  if (!prompt->is_array())
    reject("prompt", "the prompt has the wrong type", "a string or a list of token ids", json_excerpt(*prompt));
  if (prompt->empty()) reject("prompt", "the prompt is empty", "a string or at least one token id");
  if (!prompt->front().is_number())
    reject("prompt", "several prompts in one request are not supported", "a single prompt",
           counted(prompt->size(), "prompt"));
  out.prompt_ids = ids_of(*prompt, "prompt");
  out.has_ids = true;
}

std::string content_of(const Json& message, const std::string& place) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array())
    reject(place, "the content has the wrong type", "a string or a list of text parts", json_excerpt(*content));
  std::string text;
  for (const Json& part : *content) {
    const bool is_text =
        part.is_object() && part.value("type", Json()) == "text" && part.contains("text") && part["text"].is_string();
    if (!is_text)
      reject(place, "only text parts are supported", R"({"type": "text", "text": "..."})", json_excerpt(part));
    text += part["text"].get<std::string>();
  }
  return text;
}

// The protocol has the arguments of a call as JSON text; templates expect an object, as vLLM gives them.
void parse_arguments(Json& fields, const std::string& place) {
  const auto calls = fields.find("tool_calls");
  if (calls == fields.end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    const auto function = call.find("function");
    if (function == call.end() || !function->is_object()) continue;
    const auto arguments = function->find("arguments");
    if (arguments != function->end() && arguments->is_string())
      *arguments = parse_json(arguments->get<std::string>(), place + ".tool_calls, arguments");
  }
}

void read_messages(const Fields& f, OpenAiRequest& out) {
  const Json* messages = f.find("messages");
  if (!messages || !messages->is_array() || messages->empty())
    reject("messages", "the messages are missing", "a list of messages with role and content",
           messages ? json_excerpt(*messages) : "");
  for (size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    const std::string place = "messages[" + std::to_string(i) + "]";
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      reject(place, "the value is not a message", R"({"role": "user", "content": "..."})", json_excerpt(message));
    std::string role = message["role"].get<std::string>();
    if (role == "developer") role = "system";  // OpenAI's newer name for it
    if (role != "system" && role != "user" && role != "assistant" && role != "tool")
      reject(place + ".role", "the role is unknown", "system, user, assistant or tool", excerpt(role));
    Json fields;  // e.g. tool_calls, for a template that has them
    for (const auto& member : message.items())
      if (member.key() != "role" && member.key() != "content") fields[member.key()] = member.value();
    parse_arguments(fields, place);
    out.chat.push_back({role, content_of(message, place + ".content"), std::move(fields)});
  }
}

// The name of a tool of the request or, with the same members, of the choice of one; empty: there is none.
std::string function_name(const Json& tool) {
  const Json* function = find_member(tool, "function");
  const Json* name = function ? find_member(*function, "name") : nullptr;
  return name && name->is_string() ? name->get<std::string>() : std::string();
}

// Reads "tool_choice", which may only choose from out.tools: these are read first.
void read_tool_choice(const Fields& f, OpenAiRequest& out) {
  const Json* choice = f.find("tool_choice");
  if (!choice || *choice == "auto") return;
  if (*choice == "none") {
    out.tool_choice = ToolChoice::none;
    return;
  }
  const std::string expected = R"(auto, none, required or {"type": "function", "function": {"name": "..."}})";
  if (*choice == "required") {
    out.tool_choice = ToolChoice::required;
  } else {
    out.tool_name = function_name(*choice);
    if (out.tool_name.empty())
      reject("tool_choice", "the value is not a choice of a tool", expected, json_excerpt(*choice));
    out.tool_choice = ToolChoice::named;
  }
  std::string names;
  for (const Json& tool : out.tools) {
    const std::string name = function_name(tool);
    if (name == out.tool_name) return;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (out.tools.empty()) reject("tool_choice", "the request has no tools to choose from", "auto or none");
  if (out.tool_choice == ToolChoice::named)
    reject("tool_choice", "the request does not have this tool", names, out.tool_name);
}

// Reads tools and values for a folder's chat template. Whether the template uses them is checked by the server.
void read_template_input(const Fields& f, OpenAiRequest& out) {
  out.tools = Json::array();
  if (const Json* tools = f.find("tools")) {
    if (!tools->is_array()) reject("tools", "the value is not a list of tools", "a list", json_excerpt(*tools));
    out.tools = *tools;
  }
  read_tool_choice(f, out);
  if (out.tool_choice == ToolChoice::none) out.tools = Json::array();
  out.parallel_tool_calls = f.flag("parallel_tool_calls", true);
  if (const Json* values = f.find("chat_template_kwargs")) {
    if (!values->is_object())
      reject("chat_template_kwargs", "the value is not an object", "an object", json_excerpt(*values));
    out.template_values = *values;
  }
}

void read_stops(const Fields& f, OpenAiRequest& out) {
  if (const Json* stop = f.find("stop")) {
    const Json list = stop->is_array() ? *stop : Json::array({*stop});
    if (list.size() > kMaxStops) reject("stop", "too many stop strings", "at most " + std::to_string(kMaxStops));
    for (const Json& s : list) {
      if (!s.is_string() || s.get_ref<const std::string&>().empty() ||
          s.get_ref<const std::string&>().size() > kMaxStopBytes)
        reject("stop", "the value is not a valid stop string",
               "a string of 1 to " + std::to_string(kMaxStopBytes) + " bytes", json_excerpt(s));
      out.stop.push_back(s.get<std::string>());
    }
  }
  if (const Json* ids = f.find("stop_token_ids")) {
    if (!ids->is_array())
      reject("stop_token_ids", "the value is not a list of token ids", "a list", json_excerpt(*ids));
    out.stop_ids = ids_of(*ids, "stop_token_ids");
  }
}

void read_length(const Fields& f, OpenAiRequest& out) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  for (const char* key : {"max_tokens", "max_completion_tokens"})  // the second is the newer name and wins
    if (const auto n = f.integer(key, 1, most)) out.max_tokens = static_cast<int>(*n);
}

void read_stream(const Fields& f, OpenAiRequest& out) {
  out.stream = f.flag("stream", false);
  const Json* options = f.find("stream_options");
  if (!options) return;
  if (!options->is_object())
    reject("stream_options", "the value is not an object", "an object", json_excerpt(*options));
  const Fields o(*options);
  if (o.flag("include_usage", false)) out.usage = UsageMode::at_end;
  if (o.flag("continuous_usage_stats", false) && out.usage == UsageMode::at_end) out.usage = UsageMode::always;
}

}  // namespace

OpenAiRequest parse_openai_request(Endpoint endpoint, std::string_view body) {
  const Json json = parse_json(body, "request body");
  if (!json.is_object()) reject("", "the body is not a JSON object", "an object", json_excerpt(json));
  const Fields f(json);
  OpenAiRequest out{.endpoint = endpoint, .model = f.string("model")};
  reject_unsupported_options(f, endpoint);
  endpoint == Endpoint::chat ? read_messages(f, out) : read_prompt(f, out);
  if (endpoint == Endpoint::chat) read_template_input(f, out);
  out.add_bos = f.flag("add_special_tokens", true);
  read_length(f, out);
  out.temperature = static_cast<float>(f.number("temperature", 1, 0, 100));
  out.top_p = static_cast<float>(f.number("top_p", 1, 0, 1));
  if (out.top_p <= 0) reject("top_p", "the value is out of range", "above 0, at most 1");
  out.min_p = static_cast<float>(f.number("min_p", 0, 0, 1));
  const auto top_k = f.integer("top_k", -1, std::numeric_limits<int>::max());
  out.top_k = static_cast<int>(std::max<std::int64_t>(top_k.value_or(0), 0));  // -1 and 0 are off, as in vLLM
  if (const auto seed =
          f.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()))
    out.seed = static_cast<std::uint64_t>(*seed);
  read_stops(f, out);
  out.ignore_eos = f.flag("ignore_eos", false);
  out.priority = static_cast<int>(
      f.integer("priority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max()).value_or(0));
  read_stream(f, out);
  return out;
}

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
  return (endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") +
         formatted("%016llx", static_cast<unsigned long long>(mix64(number)));
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
  return "data: " + dump_utf8(json) + "\n\n";
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
