// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_server.h"

#include <algorithm>
#include <array>

#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/data/tokenizer/chat_template.h"
#include "core/serve/http/completion_stream.h"

namespace mw::serve {
namespace {

constexpr int kDefaultTokens = 16;  // of a completion, as in the OpenAI API; a chat may fill the context

Json live_request_json(const LiveRequest& live) {
  return {{"id", static_cast<std::int64_t>(live.id)},
          {"state", to_string(live.state)},
          {"age_s", live.age_s},
          {"prompt_tokens", live.prompt_tokens},
          {"output_tokens", live.output_tokens},
          {"max_tokens", live.max_new_tokens},
          {"tokens_per_second", or_null(live.tokens_per_second)}};
}

// Compares in constant time, so that the time does not reveal how much of the key is correct.
bool is_same_secret(std::string_view a, std::string_view b) {
  unsigned differ = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return differ == 0;
}

constexpr std::string_view kModelPrefix = "/v1/models/";  // followed by the name of a model

// The allowed methods as the value of an Allow header; null if the path does not exist.
const char* methods_of(std::string_view path) {
  if (path == "/v1/completions" || path == "/v1/chat/completions") return "POST, OPTIONS";
  for (const std::string_view known : {"/v1/models", "/health", "/version", "/metrics", "/requests"})
    if (path == known) return "GET, HEAD, OPTIONS";
  return path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size() ? "GET, HEAD, OPTIONS" : nullptr;
}

// Adds the CORS headers for a page of an allowed origin.
void add_cors_headers(const HttpHead& head, const std::string& origin, HttpResponse& res) {
  res.set_header("Access-Control-Allow-Origin", origin);
  res.set_header("Vary", "Origin");
  if (head.method != "OPTIONS" || !head.find("access-control-request-method")) return;
  res.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST");
  if (const auto headers = head.find("access-control-request-headers"))
    res.set_header("Access-Control-Allow-Headers", std::string(*headers));
  res.set_header("Access-Control-Max-Age", "600");
}

using IsGone = std::function<bool()>;  // the client has disconnected, or the server cancels its requests

// Turns the pieces of a completion into those of the response.
struct AnswerStream {
  CompletionStream completion;
  AnswerReader reader;
  bool names_tool = false;  // the request chose a tool by its name

  AnswerPart read(const CompletionStream::Piece& piece) {
    AnswerPart part = reader.add(piece.text);
    if (piece.is_last()) append(part, reader.finish());
    return part;
  }
  // An answer with calls ends with "tool_calls", or with "stop" if the request named the tool, as in the OpenAI API.
  std::string finish_reason(const CompletionStream::Piece& piece) const {
    return piece.finish_reason == "stop" && reader.calls() > 0 && !names_tool ? "tool_calls" : piece.finish_reason;
  }
};

void send_completion(AnswerStream& stream, const ResponseHeader& head, const IsGone& is_gone, HttpResponse& res) {
  AnswerPart answer;
  for (;;) {
    const CompletionStream::Piece piece = stream.completion.next(is_gone);
    append(answer, stream.read(piece));
    if (!piece.is_last()) continue;
    if (piece.finish_reason.empty())
      res.set_error(piece.disconnected ? HttpError{503, "server_error", "the request was cancelled", "", "cancelled"}
                                       : HttpError{500, "internal_error", piece.error, "", "failed"});
    else
      res.set_json(200, completion_json(head, answer, stream.finish_reason(piece), stream.completion.usage()));
    return;
  }
}

void stream_completion(std::shared_ptr<AnswerStream> stream, const ResponseHeader& head, UsageMode usage,
                       const IsGone& is_gone, HttpResponse& res) {
  res.set_header("Cache-Control", "no-cache");
  res.set_header("Content-Type", "text/event-stream");
  res.next_piece = [stream, head, usage, is_gone, position = ChunkPosition()](std::string& out) mutable {
    CompletionStream& completion = stream->completion;
    const CompletionStream::Piece piece = completion.next(is_gone);
    if (piece.disconnected) return HttpResponse::Piece::failed;
    if (!piece.error.empty()) {
      out = sse_event(to_json(HttpError{500, "internal_error", piece.error, "", "failed"}));
    } else {
      const AnswerPart part = stream->read(piece);  // before the reason, which depends on the calls
      Json json = chunk_json(head, position, part, stream->finish_reason(piece));
      position = {false, stream->reader.calls()};
      if (usage == UsageMode::always) json["usage"] = to_json(completion.usage());
      out = sse_event(json);
      if (piece.is_last() && usage != UsageMode::none) out += sse_event(usage_chunk_json(head, completion.usage()));
    }
    if (!piece.is_last()) return HttpResponse::Piece::more;
    out += kSseEnd;
    return HttpResponse::Piece::last;
  };
}

// Refuses what the template would ignore, because the answer would not be what the client asked for.
void require_mentioned(const data::ChatTemplate& chat, const std::string& variable, const std::string& place) {
  const data::FolderTemplate* folder = chat.folder();
  const std::string owner = folder ? "the chat template " + folder->source()
                                   : "the built-in chat template " + std::string(to_string(chat.format()));
  if (!folder || !folder->mentions(variable))
    throw Error("REQUEST", owner + " does not use " + variable, {.place = place, .expected = "absent"});
}

std::string chat_prompt(const data::ChatTemplate& chat, const OpenAiRequest& request) {
  if (request.tools.is_array() && !request.tools.empty()) require_mentioned(chat, "tools", "tools");
  for (size_t i = 0; i < request.chat.size(); ++i) {
    const std::string place = "messages[" + std::to_string(i) + "]";
    if (request.chat[i].role == "tool") require_mentioned(chat, "tool", place + ".role");
    if (const Json* calls = find_member(request.chat[i].fields, "tool_calls"); calls && !calls->empty())
      require_mentioned(chat, "tool_calls", place + ".tool_calls");
  }
  if (!request.template_values.is_object()) return data::render_prompt(chat, request.chat, request.tools);
  for (const auto& value : request.template_values.items()) {
    const std::string place = "chat_template_kwargs." + value.key();
    for (const char* own : {"messages", "tools", "documents", "add_generation_prompt"})
      if (value.key() == own)
        throw Error("REQUEST", "the server sets this variable itself", {.place = place, .expected = "absent"});
    require_mentioned(chat, value.key(), place);
  }
  return chat.folder() ? chat.folder()->render_prompt(request.chat, request.tools, request.template_values)
                       : data::render_prompt(chat, request.chat);
}

// How to read the answer. For a forced call its start is added to the prompt.
AnswerReading read_answers_as(const AnswerFormat& format, const OpenAiRequest& request, std::string& prompt) {
  if (request.endpoint != Endpoint::chat) return {};
  AnswerReading out{.reads_calls = !request.tools.empty(), .only_one_call = !request.parallel_tool_calls};
  const std::string_view end = trim(prompt);
  if (format.has_thoughts()) out.begins_with_thought = end.ends_with(trim(format.thought_begin + format.thought_label));
  if (request.tool_choice != ToolChoice::required && request.tool_choice != ToolChoice::named) return out;
  if (format.notation == CallNotation::none)
    throw Error("REQUEST",
                "the answer cannot be forced to call a tool, because the notation of calls in the model's "
                "chat template is not known",
                {.place = "tool_choice", .expected = "auto or none"});
  if (request.tool_choice == ToolChoice::named) out.only_one_call = true;
  out.forced_call = forced_call(format, request.tool_name);
  prompt += format.call_begin + out.forced_call;
  return out;
}

// RFC 9110, 8.3: the type is case-insensitive and ends at its parameters.
bool is_json(std::string_view content_type) {
  std::string type = lower_case(content_type.substr(0, content_type.find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  return type == "application/json";
}

}  // namespace

HttpServer::HttpServer(HttpOptions options, HttpServedModel model, ServingLoop& loop)
    : options_(std::move(options)),
      access_(options_.host, options_.allow_hosts, options_.allow_origins),
      model_(std::move(model)),
      format_(answer_format(model_.chat)),
      loop_(loop),
      metrics_(model_.name),
      http_(options_.limits, handlers()),
      port_(http_.start(options_.host, options_.port)) {}

HttpHandlers HttpServer::handlers() {
  HttpHandlers out{.respond_before_body = [this](const HttpRequest& req,
                                                 HttpResponse& res) { return respond_before_body(req, res); },
                   .respond =
                       [this](const HttpRequest& req, HttpResponse& res) {
                         try {
                           respond(req, res);
                         } catch (const std::exception& error) {
                           res.set_error(to_response(error));
                         }
                       },
                   .on_response = {}};
  if (options_.on_response)
    out.on_response = [this](const HttpRequest& req, const HttpResponse& res) {
      options_.on_response(req.head.method, req.path, res.status);
    };
  return out;
}

// Answers a request that respond_before_body() has let pass.
void HttpServer::respond(const HttpRequest& req, HttpResponse& res) {
  if (req.path == "/v1/completions") {
    complete(Endpoint::completions, req, res);
  } else if (req.path == "/v1/chat/completions") {
    complete(Endpoint::chat, req, res);
  } else if (req.path == "/v1/models") {
    res.set_json(200, model_list(models(), model_.max_model_len, created_));
  } else if (req.path == "/health") {
    if (stopping_) res.set_error({503, "server_error", "the server is stopping"});
  } else if (req.path == "/version") {
    res.set_json(200, {{"version", MW_VERSION}});
  } else if (req.path == "/metrics") {
    res.set_body(metrics_.prometheus_text(loop_.state()), "text/plain; version=0.0.4; charset=utf-8");
  } else if (req.path == "/requests") {
    Json all = Json::array();
    for (const LiveRequest& live : loop_.live_requests()) all.push_back(live_request_json(live));
    res.set_json(200, {{"requests", all}});
  } else {
    send_model(req.path.substr(kModelPrefix.size()), res);
  }
}

std::optional<HttpError> HttpServer::check_host_name(const HttpHead& head) const {
  const auto host = head.find("host");
  if (!host && !access_.checks_hosts()) return std::nullopt;  // HTTP/1.0
  switch (host ? access_.check_host(*host) : HostCheck::malformed) {
    case HostCheck::allowed:
      return std::nullopt;
    case HostCheck::malformed:
      return HttpError{400, "invalid_request_error", "malformed or unsupported request: no valid Host header", "",
                       "host"};
    case HostCheck::refused:
      break;
  }
  // Not 421, after which a client may retry on another connection.
  return HttpError{403, "permission_error",
                   "the server does not accept the host name '" + excerpt(std::string(*host), 100) +
                       "'; to accept it, start the server with --allow-host NAME",
                   "", "host_not_allowed"};
}

std::optional<HttpError> HttpServer::check_origin(const HttpHead& head) const {
  for (const auto& [name, value] : head.headers)
    if (name == "origin" && !access_.allows_origin(value))
      return HttpError{403, "permission_error",
                       "web pages of '" + excerpt(value, 100) +
                           "' may not use this server; to allow them, start the server with --allow-origin ORIGIN",
                       "", "origin_not_allowed"};
  return std::nullopt;
}

// Only paths under /v1 need the key, as in vLLM, so that monitors can read health and metrics.
std::optional<HttpError> HttpServer::check_request(const HttpRequest& req, HttpResponse& res) const {
  if (!options_.api_key.empty() && req.path.starts_with("/v1/") &&
      !is_same_secret(req.head.find("authorization").value_or(""), "Bearer " + options_.api_key)) {
    res.set_header("WWW-Authenticate", "Bearer");
    return HttpError{401, "authentication_error", "the API key is missing or wrong", "", "invalid_api_key"};
  }
  const char* methods = methods_of(req.path);
  if (!methods) return HttpError{404, "invalid_request_error", "this path does not exist"};
  if (std::string(methods).find(req.head.method) == std::string::npos) {
    res.set_header("Allow", methods);
    return HttpError{405, "invalid_request_error", req.path + " allows " + methods, "", "method_not_allowed"};
  }
  // Browsers send forms and plain text to other origins without a preflight request, but not JSON.
  if (req.head.method == "POST" && !is_json(req.head.find("content-type").value_or("")))
    return HttpError{415, "invalid_request_error", "the body must be JSON: send Content-Type: application/json", "",
                     "content_type"};
  return std::nullopt;
}

// Rejects requests before the body is read, and responds to OPTIONS. Returns false if the request has to be processed
// further.
bool HttpServer::respond_before_body(const HttpRequest& req, HttpResponse& res) const {
  const HttpHead& head = req.head;
  std::optional<HttpError> rejection = check_host_name(head);
  if (!rejection) rejection = check_origin(head);
  if (const auto origin = head.find("origin"); origin && !rejection) add_cors_headers(head, std::string(*origin), res);
  const bool is_options = !rejection && head.method == "OPTIONS" && (methods_of(req.path) || req.path == "*");
  if (!rejection && !is_options) rejection = check_request(req, res);
  if (rejection) {
    res.set_error(*rejection);
  } else if (is_options) {
    res.status = 204;
    res.set_header("Allow", req.path == "*" ? "GET, HEAD, POST, OPTIONS" : methods_of(req.path));
  }
  return rejection || is_options;
}

std::vector<ModelEntry> HttpServer::models() const {
  std::vector<ModelEntry> list{{model_.name, model_.name}};
  for (const std::string& adapter : model_.adapters) list.push_back({adapter, model_.name});
  return list;
}

void HttpServer::send_model(const std::string& name, HttpResponse& res) const {
  for (const ModelEntry& entry : models())
    if (entry.id == name) return res.set_json(200, model_json(entry, model_.max_model_len, created_));
  throw unknown_model(name);
}

HttpError HttpServer::to_response(const std::exception& error) const {
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (!ours) return {.status = 500, .type = "internal_error", .message = error.what()};
  HttpError out = to_http_error(*ours);
  if (out.status == 429 && stopping_) out.status = 503, out.type = "server_error", out.code = "stopping";
  return out;
}

std::string HttpServer::find_adapter(const std::string& name) const {
  if (name.empty() || name == model_.name) return {};
  if (std::find(model_.adapters.begin(), model_.adapters.end(), name) != model_.adapters.end()) return name;
  throw unknown_model(name);
}

Error HttpServer::unknown_model(const std::string& name) const {
  std::string known = model_.name;
  for (const std::string& adapter : model_.adapters) known += ", " + adapter;
  return Error("MODEL-NAME", "the model `" + name + "` does not exist", {.expected = known});
}

// `text`: of a prompt without ids.
std::vector<int> HttpServer::tokenize_prompt(const OpenAiRequest& request, const std::string& text) const {
  const data::Tokenizer& tokenizer = *model_.tokenizer;
  const auto reject = [](const std::string& place, const std::string& message, const std::string& expected) {
    throw Error("REQUEST", message, {.place = place, .expected = expected});
  };
  if (request.has_ids) {
    for (const int id : request.prompt_ids)
      if (id >= tokenizer.size())
        reject("prompt", "token id " + std::to_string(id) + " is outside the vocabulary",
               "ids below " + std::to_string(tokenizer.size()));
    return request.prompt_ids;
  }
  std::vector<int> ids;
  if (request.endpoint == Endpoint::chat || request.add_bos) ids.push_back(tokenizer.bos());
  const std::vector<int> body = tokenizer.encode(text);
  ids.insert(ids.end(), body.begin(), body.end());
  if (ids.empty()) reject("prompt", "the prompt is empty", "at least one token");
  return ids;
}

// The special tokens that mark thoughts and calls in an answer. Tokens that are not special are text in any case.
std::vector<int> HttpServer::answer_markers(const OpenAiRequest& request) const {
  if (request.endpoint != Endpoint::chat) return {};
  std::vector<std::string> markers{format_.thought_begin, format_.thought_end};
  if (!request.tools.empty()) markers.insert(markers.end(), {format_.call_begin, format_.call_end, format_.quote});
  std::vector<int> out;
  for (const std::string& marker : markers) {
    const int id = marker.empty() ? -1 : model_.tokenizer->find(marker);
    if (id >= 0 && model_.tokenizer->decode(std::array{id}).empty()) out.push_back(id);
  }
  return out;
}

GenerationRequest HttpServer::make_request(const OpenAiRequest& request, std::vector<int> prompt_ids) {
  const bool is_chat = request.endpoint == Endpoint::chat;
  GenerationRequest out{.prompt_ids = std::move(prompt_ids),
                        .sampling = {.temperature = request.temperature,
                                     .top_k = request.top_k,
                                     .top_p = request.top_p,
                                     .min_p = request.min_p,
                                     .seed = request.seed.value_or(mix64(request_count_)),  // another for every request
                                     .stop_ids = request.stop_ids},
                        .adapter = find_adapter(request.model),
                        .priority = request.priority};
  const int room = std::max(model_.max_model_len - static_cast<int>(out.prompt_ids.size()), 1);
  out.sampling.max_new_tokens = request.max_tokens.value_or(is_chat ? room : std::min(kDefaultTokens, room));
  if (request.ignore_eos) return out;
  out.sampling.stop_ids.push_back(model_.tokenizer->eos());
  if (!model_.chat.is_none())
    if (const int end = model_.tokenizer->find(data::end_of_turn(model_.chat)); end >= 0)
      out.sampling.stop_ids.push_back(end);
  if (is_chat && !request.tools.empty() && !format_.response_begin.empty())
    if (const int end = model_.tokenizer->find(format_.response_begin); end >= 0) out.sampling.stop_ids.push_back(end);
  return out;
}

void HttpServer::complete(Endpoint endpoint, const HttpRequest& req, HttpResponse& res) {
  if (stopping_)
    throw Error("BUSY", "the server is stopping", {.fix = "send the request to another server"}, Error::Kind::failed);
  const OpenAiRequest request = parse_openai_request(endpoint, req.body);
  if (endpoint == Endpoint::chat && model_.chat.is_none())
    throw Error("REQUEST", "the model has no chat template",
                {.place = "messages", .expected = "a request to /v1/completions"});
  std::string prompt = endpoint == Endpoint::chat ? chat_prompt(model_.chat, request) : request.prompt;
  AnswerReading reading = read_answers_as(format_, request, prompt);
  GenerationRequest generation = make_request(request, tokenize_prompt(request, prompt));
  const ResponseHeader head{
      .endpoint = endpoint,
      .id = make_response_id(endpoint, static_cast<std::uint64_t>(created_) << 32 ^ ++request_count_),
      .model = request.model.empty() ? model_.name : request.model,
      .created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())};
  res.set_header("x-request-id", head.id);
  IncrementalDetokenizer text(*model_.tokenizer, request.stop, answer_markers(request));
  const auto stream = std::shared_ptr<AnswerStream>(new AnswerStream{
      .completion = {loop_, metrics_, std::move(generation), std::move(text)},
      .reader = endpoint == Endpoint::chat ? AnswerReader(format_, std::move(reading)) : AnswerReader(),
      .names_tool = request.tool_choice == ToolChoice::named});
  const IsGone is_gone = [this, &req] { return cancelling_ || req.is_disconnected(); };
  if (request.stream)
    stream_completion(stream, head, request.usage, is_gone, res);
  else
    send_completion(*stream, head, is_gone, res);
}

std::string HttpServer::address() const {
  const std::string& host = options_.host;
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port_);
}

void HttpServer::stop(StopMode mode) {
  if (stopping_.exchange(true)) return;
  cancelling_ = mode == StopMode::cancel;
  if (mode == StopMode::complete) loop_.drain();
  http_.finish();
}

}  // namespace mw::serve
