// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/rng.h"
#include "core/data/tokenizer/utf8.h"
#include "core/serve/http/completion_stream.h"
#include "core/serve/http/http_access.h"
#include "core/serve/http/openai_request.h"
#include "core/serve/http/openai_response.h"
#include "core/serve/http/server_metrics.h"

namespace mw::serve {
namespace {

constexpr int kDefaultTokens = 16;  // of completions; the answer to a chat may fill the context

using httplib::Request;
using httplib::Response;

void answer_json(Response& res, int status, const Json& json) {
  res.status = status;
  res.set_content(json.dump(-1, ' ', false, Json::error_handler_t::replace), "application/json");
}

void answer_error(Response& res, const HttpError& error) {
  if (HttpConnections::closes_after_this()) res.set_header("Connection", "close");
  if (error.status == 429 || error.status == 503) res.set_header("Retry-After", "1");
  answer_json(res, error.status, to_json(error));
}

// How long a comparison takes must not tell how much of the key was right.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned differ = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return differ == 0;
}

constexpr std::string_view kModel = "/v1/models/";  // and a model's name

// As the value of an Allow header; null: there is nothing at this path.
const char* methods_of(std::string_view path) {
  if (path == "/v1/completions" || path == "/v1/chat/completions") return "POST, OPTIONS";
  for (const std::string_view known : {"/v1/models", "/health", "/version", "/metrics"})
    if (path == known) return "GET, HEAD, OPTIONS";
  return path.starts_with(kModel) && path.size() > kModel.size() ? "GET, HEAD, OPTIONS" : nullptr;
}

// Tells the browser that a page of an allowed origin may read the answer and send what it asks to send.
void allow_page(const HttpHead& head, const std::string& origin, Response& res) {
  res.set_header("Access-Control-Allow-Origin", origin);
  res.set_header("Vary", "Origin");
  if (head.method != "OPTIONS" || !head.find("access-control-request-method")) return;
  res.set_header("Access-Control-Allow-Methods", "GET, HEAD, POST");
  if (const auto headers = head.find("access-control-request-headers"))
    res.set_header("Access-Control-Allow-Headers", std::string(*headers));
  res.set_header("Access-Control-Max-Age", "600");
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions o, ServedModel m, ServingLoop& l)
      : options(std::move(o)),
        access(options.host, options.allow_hosts, options.allow_origins),
        model(std::move(m)),
        live(l),
        metrics(model.name),
        http(options.limits) {
    routes();
    bound = http.bind(options.host, options.port);
    accepting = std::thread([this] { http.accept_until_stopped(); });
  }

  void routes();
  bool answered_before_body(const Request& req, Response& res) const;
  std::optional<HttpError> refusal_of_name(const HttpHead& head) const;
  std::optional<HttpError> refusal_of_origin(const HttpHead& head) const;
  std::optional<HttpError> refusal_of_request(const Request& req, Response& res) const;
  std::vector<ModelEntry> models() const;
  void answer_model(const std::string& name, Response& res) const;
  void complete(Endpoint endpoint, const Request& req, Response& res);
  std::string adapter_of(const std::string& name) const;
  Error unknown_model(const std::string& name) const;
  std::vector<int> prompt_of(const OpenAiRequest& request) const;
  GenerationRequest ask_of(const OpenAiRequest& request);
  void answer_whole(CompletionStream& reply, const ResponseHeader& head, Response& res);
  void answer_stream(std::shared_ptr<CompletionStream> reply, const ResponseHeader& head, UsageMode usage,
                     Response& res);
  HttpError shown(const std::exception& error) const;
  void explain_failure(Response& res) const;

  const HttpOptions options;
  const HttpAccessPolicy access;
  const ServedModel model;
  ServingLoop& live;
  ServerMetrics metrics;
  const std::int64_t created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::atomic<std::uint64_t> asked{0};
  std::atomic<bool> stopping{false};
  int bound = 0;
  HttpConnections http;
  std::thread accepting;
};

void HttpServer::Impl::routes() {
  http.set_payload_max_length(options.limits.body);
  http.set_keep_alive_timeout(static_cast<time_t>(options.limits.idle_s));
  http.set_keep_alive_max_count(1000000);  // told to clients only
  http.set_pre_routing_handler([this](const Request& req, Response& res) {
    using R = httplib::Server::HandlerResponse;
    return answered_before_body(req, res) ? R::Handled : R::Unhandled;
  });
  http.set_exception_handler([this](const Request&, Response& res, std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      answer_error(res, shown(error));
    }
  });
  http.set_error_handler([this](const Request&, Response& res) { explain_failure(res); });
  http.Post("/v1/completions", [this](const Request& q, Response& a) { complete(Endpoint::completions, q, a); });
  http.Post("/v1/chat/completions", [this](const Request& q, Response& a) { complete(Endpoint::chat, q, a); });
  http.Get("/v1/models", [this](const Request&, Response& res) {
    answer_json(res, 200, model_list(models(), model.max_model_len, created));
  });
  http.Get("/health", [this](const Request&, Response& res) { res.status = stopping ? 503 : 200; });
  http.Get("/version", [](const Request&, Response& res) { answer_json(res, 200, {{"version", MW_VERSION}}); });
  http.Get("/metrics", [this](const Request&, Response& res) {
    res.set_content(metrics.text(live.state()), "text/plain; version=0.0.4; charset=utf-8");
  });
}

std::optional<HttpError> HttpServer::Impl::refusal_of_name(const HttpHead& head) const {
  const auto host = head.find("host");
  if (!host && !access.checks_hosts()) return std::nullopt;  // HTTP/1.0
  switch (host ? access.check_host(*host) : HostCheck::malformed) {
    case HostCheck::allowed:
      return std::nullopt;
    case HostCheck::malformed:
      return HttpError{400, "invalid_request_error", "malformed or unsupported request: no valid Host header", "",
                       "host"};
    case HostCheck::refused:
      break;
  }
  // Not 421: a client could take that for an invitation to try another connection.
  return HttpError{403, "permission_error",
                   "this server does not answer to the name '" + data::excerpt(std::string(*host), 100) +
                       "'; if it is one of its names, start it with --allow-host NAME",
                   "", "host_not_allowed"};
}

std::optional<HttpError> HttpServer::Impl::refusal_of_origin(const HttpHead& head) const {
  for (const auto& [name, value] : head.headers)
    if (name == "origin" && !access.allows_origin(value))
      return HttpError{403, "permission_error",
                       "web pages of '" + data::excerpt(value, 100) +
                           "' may not use this server; to allow them, start it with --allow-origin ORIGIN",
                       "", "origin_not_allowed"};
  return std::nullopt;
}

// The key guards what is under /v1, as with vLLM: health and metrics are for monitors.
std::optional<HttpError> HttpServer::Impl::refusal_of_request(const Request& req, Response& res) const {
  if (!options.api_key.empty() && req.path.starts_with("/v1/") &&
      !same_secret(req.get_header_value("Authorization"), "Bearer " + options.api_key)) {
    res.set_header("WWW-Authenticate", "Bearer");
    return HttpError{401, "authentication_error", "the API key is missing or wrong", "", "invalid_api_key"};
  }
  const char* methods = methods_of(req.path);
  if (!methods) return HttpError{404, "invalid_request_error", "there is nothing at this address"};
  if (std::string(methods).find(req.method) == std::string::npos) {
    res.set_header("Allow", methods);
    return HttpError{405, "invalid_request_error", req.path + " takes " + methods, "", "method_not_allowed"};
  }
  // A web page may send a form or plain text to this machine without asking; JSON it may not.
  if (req.method == "POST" && !req.get_header_value(kContentType).starts_with("application/json"))
    return HttpError{415, "invalid_request_error", "the body has to be JSON: send Content-Type: application/json", "",
                     "content_type"};
  return std::nullopt;
}

// Whether that was all: refusals, which come before a body is read, and what has no route of the library.
bool HttpServer::Impl::answered_before_body(const Request& req, Response& res) const {
  const HttpHead& head = HttpConnections::head();
  std::optional<HttpError> refusal = refusal_of_name(head);
  if (!refusal) refusal = refusal_of_origin(head);
  if (const auto origin = head.find("origin"); origin && !refusal) allow_page(head, std::string(*origin), res);
  const bool asks_for_options = !refusal && req.method == "OPTIONS" && (methods_of(req.path) || req.path == "*");
  if (!refusal && !asks_for_options) refusal = refusal_of_request(req, res);
  // Only bodies of POST are read; another one would be taken for the next request.
  if (head.has_body() && (refusal || req.method != "POST")) HttpConnections::close_after_this();
  if (refusal) {
    answer_error(res, *refusal);
  } else if (asks_for_options) {
    res.status = 204;
    res.set_header("Allow", req.path == "*" ? "GET, HEAD, POST, OPTIONS" : methods_of(req.path));
  } else if (req.path.starts_with(kModel)) {
    answer_model(req.path.substr(kModel.size()), res);
  } else {
    return false;
  }
  return true;
}

std::vector<ModelEntry> HttpServer::Impl::models() const {
  std::vector<ModelEntry> list{{model.name, model.name}};
  for (const std::string& adapter : model.adapters) list.push_back({adapter, model.name});
  return list;
}

void HttpServer::Impl::answer_model(const std::string& name, Response& res) const {
  for (const ModelEntry& entry : models())
    if (entry.id == name) return answer_json(res, 200, model_json(entry, model.max_model_len, created));
  answer_error(res, to_http_error(unknown_model(name)));
}

HttpError HttpServer::Impl::shown(const std::exception& error) const {
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (!ours) return {.status = 500, .type = "internal_error", .message = error.what()};
  HttpError out = to_http_error(*ours);
  if (out.status == 429 && stopping) out.status = 503, out.type = "server_error", out.code = "stopping";
  return out;
}

// What the library answers by itself gets a body as everything else.
void HttpServer::Impl::explain_failure(Response& res) const {
  if (!res.body.empty()) return;
  HttpError error{.status = res.status, .type = "invalid_request_error"};
  if (HttpConnections::body_was_too_long()) error.status = 413;
  switch (error.status) {
    case 413:
      error.message = "the body is too long: " + std::to_string(options.limits.body >> 20) + " MiB at most";
      break;
    case 503:
      error.type = "server_error", error.message = "the server is stopping";
      break;
    default:
      error.message = "malformed or unsupported request";
  }
  answer_error(res, error);
}

std::string HttpServer::Impl::adapter_of(const std::string& name) const {
  if (name.empty() || name == model.name) return {};
  if (std::find(model.adapters.begin(), model.adapters.end(), name) != model.adapters.end()) return name;
  throw unknown_model(name);
}

Error HttpServer::Impl::unknown_model(const std::string& name) const {
  std::string known = model.name;
  for (const std::string& adapter : model.adapters) known += ", " + adapter;
  return Error({.id = "MODEL-NAME", .message = "the model `" + name + "` does not exist", .expected = known});
}

std::vector<int> HttpServer::Impl::prompt_of(const OpenAiRequest& request) const {
  const data::Tokenizer& tokenizer = *model.tokenizer;
  const auto refuse = [](const std::string& place, const std::string& message, const std::string& expected) {
    throw Error({.id = "REQUEST", .message = message, .place = place, .expected = expected});
  };
  if (request.has_ids) {
    for (const int id : request.prompt_ids)
      if (id >= tokenizer.size())
        refuse("prompt", "there is no token " + std::to_string(id), "ids below " + std::to_string(tokenizer.size()));
    return request.prompt_ids;
  }
  if (request.endpoint == Endpoint::chat && model.chat == data::ChatFormat::none)
    refuse("messages", "this model has no chat template", "a request to /v1/completions");
  std::vector<int> ids;
  if (request.endpoint == Endpoint::chat || request.add_bos) ids.push_back(tokenizer.bos());
  const std::string text =
      request.endpoint == Endpoint::chat ? data::render_prompt(model.chat, request.chat) : request.prompt;
  const std::vector<int> body = tokenizer.encode(text);
  ids.insert(ids.end(), body.begin(), body.end());
  if (ids.empty()) refuse("prompt", "the prompt is empty", "at least one token");
  return ids;
}

GenerationRequest HttpServer::Impl::ask_of(const OpenAiRequest& request) {
  GenerationRequest ask{.prompt = {.ids = prompt_of(request)}, .priority = request.priority};
  const int room = model.max_model_len - static_cast<int>(ask.prompt.ids.size());
  ask.max_new_tokens =
      request.max_tokens.value_or(request.endpoint == Endpoint::chat ? std::max(room, 1) : kDefaultTokens);
  if (!request.max_tokens) ask.max_new_tokens = std::max(1, std::min(ask.max_new_tokens, room));
  Prompt& p = ask.prompt;
  p.temperature = request.temperature, p.top_p = request.top_p, p.top_k = request.top_k;
  p.seed = request.seed.value_or(mix64(asked));  // another one for every request
  p.adapter = adapter_of(request.model);
  p.stop_ids = request.stop_ids;
  if (request.ignore_eos) return ask;
  p.stop_ids.push_back(model.tokenizer->eos());
  if (model.chat != data::ChatFormat::none)
    if (const int end = model.tokenizer->find(data::end_of_turn(model.chat)); end >= 0) p.stop_ids.push_back(end);
  return ask;
}

void HttpServer::Impl::complete(Endpoint endpoint, const Request& req, Response& res) {
  const OpenAiRequest request = parse_openai_request(endpoint, req.body);
  GenerationRequest ask = ask_of(request);
  const ResponseHeader head{.endpoint = endpoint,
                            .id = make_response_id(endpoint, static_cast<std::uint64_t>(created) << 32 ^ ++asked),
                            .model = request.model.empty() ? model.name : request.model,
                            .created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())};
  res.set_header("x-request-id", head.id);
  auto reply = std::make_shared<CompletionStream>(live, metrics, std::move(ask),
                                                  IncrementalDetokenizer(*model.tokenizer, request.stop));
  request.stream ? answer_stream(std::move(reply), head, request.usage, res) : answer_whole(*reply, head, res);
}

void HttpServer::Impl::answer_whole(CompletionStream& reply, const ResponseHeader& head, Response& res) {
  std::string text;
  for (;;) {
    const CompletionStream::Piece piece = reply.next(HttpConnections::client_gone);
    text += piece.text;
    if (!piece.last()) continue;
    if (piece.finish.empty())
      answer_error(res, {500, "internal_error", piece.gone ? "the client has gone" : piece.error, "", "failed"});
    else
      answer_json(res, 200, completion_json(head, text, piece.finish, reply.usage()));
    return;
  }
}

void HttpServer::Impl::answer_stream(std::shared_ptr<CompletionStream> reply, const ResponseHeader& head,
                                     UsageMode usage, Response& res) {
  res.set_header("Cache-Control", "no-cache");
  res.set_chunked_content_provider(
      "text/event-stream", [reply, head, usage, part = ChunkPosition::first](size_t, httplib::DataSink& sink) mutable {
        const CompletionStream::Piece piece = reply->next(HttpConnections::client_gone);
        if (piece.gone) return false;
        std::string out;
        if (!piece.error.empty()) {
          out = sse(to_json(HttpError{500, "internal_error", piece.error, "", "failed"}));
        } else {
          Json json = chunk(head, std::exchange(part, ChunkPosition::later), piece.text, piece.finish);
          if (usage == UsageMode::always) json["usage"] = to_json(reply->usage());
          out = sse(json);
          if (piece.last() && usage != UsageMode::none) out += sse(usage_chunk(head, reply->usage()));
        }
        if (piece.last()) out += kSseEnd;
        if (!sink.write(out.data(), out.size())) return false;
        if (piece.last()) sink.done();
        return true;
      });
}

HttpServer::HttpServer(HttpOptions options, ServedModel model, ServingLoop& live)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(model), live)) {}

HttpServer::~HttpServer() {
  stop();
}

int HttpServer::port() const {
  return impl_->bound;
}

std::string HttpServer::address() const {
  const std::string& host = impl_->options.host;
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(impl_->bound);
}

int HttpServer::connections() const {
  return impl_->http.open();
}

void HttpServer::stop() {
  if (!impl_->accepting.joinable()) return;
  impl_->stopping = true;
  impl_->live.drain();
  impl_->http.finish();
  impl_->accepting.join();
}

}  // namespace mw::serve
