// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/rng.h"
#include "core/serve/metrics.h"
#include "core/serve/openai_answer.h"
#include "core/serve/openai_request.h"
#include "core/serve/reply.h"

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
  if (error.status == 429 || error.status == 503) res.set_header("Retry-After", "1");
  answer_json(res, error.status, to_json(error));
}

// How long a comparison takes must not tell how much of the key was right.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned differ = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return differ == 0;
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions o, ServedModel m, Live& l)
      : options(std::move(o)), model(std::move(m)), live(l), metrics(model.name), http(options.limits) {
    routes();
    bound = http.bind(options.host, options.port);
    accepting = std::thread([this] { http.accept_until_stopped(); });
  }

  void routes();
  bool allowed(const Request& req, Response& res) const;
  void complete(Endpoint endpoint, const Request& req, Response& res);
  std::string adapter_of(const std::string& name) const;
  std::vector<int> prompt_of(const OpenAiRequest& request) const;
  Ask ask_of(const OpenAiRequest& request);
  void answer_whole(Reply& reply, const AnswerHead& head, Response& res);
  void answer_stream(std::shared_ptr<Reply> reply, const AnswerHead& head, Usage usage, Response& res);
  HttpError shown(const std::exception& error) const;
  void explain_failure(Response& res) const;

  const HttpOptions options;
  const ServedModel model;
  Live& live;
  Metrics metrics;
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
    return allowed(req, res) ? R::Unhandled : R::Handled;
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
    std::vector<ModelEntry> list{{model.name, model.name}};
    for (const std::string& adapter : model.adapters) list.push_back({adapter, model.name});
    answer_json(res, 200, model_list(list, model.max_model_len, created));
  });
  http.Get("/health", [this](const Request&, Response& res) { res.status = stopping ? 503 : 200; });
  http.Get("/version", [](const Request&, Response& res) { answer_json(res, 200, {{"version", MW_VERSION}}); });
  http.Get("/metrics", [this](const Request&, Response& res) {
    res.set_content(metrics.text(live.state()), "text/plain; version=0.0.4; charset=utf-8");
  });
}

// The key guards what is under /v1, as with vLLM: health and metrics are for monitors. Asked before a body is read.
bool HttpServer::Impl::allowed(const Request& req, Response& res) const {
  if (!options.api_key.empty() && req.path.starts_with("/v1/") &&
      !same_secret(req.get_header_value("Authorization"), "Bearer " + options.api_key)) {
    res.set_header("WWW-Authenticate", "Bearer");
    HttpConnections::close_after_this();
    res.set_header("Connection", "close");
    answer_error(res, {401, "authentication_error", "the API key is missing or wrong", "", "invalid_api_key"});
    return false;
  }
  // A web page may send a form or plain text to this machine without asking; JSON it may not.
  if (req.method == "POST" && !req.get_header_value(kContentType).starts_with("application/json")) {
    HttpConnections::close_after_this();
    res.set_header("Connection", "close");
    answer_error(res, {415, "invalid_request_error", "the body has to be JSON: send Content-Type: application/json", "",
                       "content_type"});
    return false;
  }
  return true;
}

HttpError HttpServer::Impl::shown(const std::exception& error) const {
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (!ours) return {.status = 500, .type = "internal_error", .message = error.what()};
  HttpError out = http_error(*ours);
  if (out.status == 429 && stopping) out.status = 503, out.type = "server_error", out.code = "stopping";
  return out;
}

// What the library answers by itself gets a body as everything else.
void HttpServer::Impl::explain_failure(Response& res) const {
  if (!res.body.empty()) return;
  HttpError error{.status = res.status, .type = "invalid_request_error"};
  if (HttpConnections::body_was_too_long()) error.status = 413;
  switch (error.status) {
    case 404:
      error.message = "there is nothing at this address";
      break;
    case 413:
      error.message = "the body is too long: " + std::to_string(options.limits.body >> 20) + " MiB at most";
      break;
    case 503:
      error.type = "server_error", error.message = "the server is stopping";
      break;
    default:
      error.message = "this is not a whole HTTP request";
  }
  answer_error(res, error);
}

std::string HttpServer::Impl::adapter_of(const std::string& name) const {
  if (name.empty() || name == model.name) return {};
  if (std::find(model.adapters.begin(), model.adapters.end(), name) != model.adapters.end()) return name;
  std::string known = model.name;
  for (const std::string& adapter : model.adapters) known += ", " + adapter;
  throw Error({.id = "MODEL-NAME", .message = "the model `" + name + "` does not exist", .expected = known});
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

Ask HttpServer::Impl::ask_of(const OpenAiRequest& request) {
  Ask ask{.prompt = {.ids = prompt_of(request)}, .priority = request.priority};
  const int room = model.max_model_len - static_cast<int>(ask.prompt.ids.size());
  ask.max_new = request.max_tokens.value_or(request.endpoint == Endpoint::chat ? std::max(room, 1) : kDefaultTokens);
  if (!request.max_tokens) ask.max_new = std::max(1, std::min(ask.max_new, room));
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
  const OpenAiRequest request = openai_request(endpoint, req.body);
  Ask ask = ask_of(request);
  const AnswerHead head{.endpoint = endpoint,
                        .id = answer_id(endpoint, static_cast<std::uint64_t>(created) << 32 ^ ++asked),
                        .model = request.model.empty() ? model.name : request.model,
                        .created = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())};
  res.set_header("x-request-id", head.id);
  auto reply = std::make_shared<Reply>(live, metrics, std::move(ask), TextStream(*model.tokenizer, request.stop));
  request.stream ? answer_stream(std::move(reply), head, request.usage, res) : answer_whole(*reply, head, res);
}

void HttpServer::Impl::answer_whole(Reply& reply, const AnswerHead& head, Response& res) {
  std::string text;
  for (;;) {
    const Reply::Piece piece = reply.next(HttpConnections::client_gone);
    text += piece.text;
    if (!piece.last()) continue;
    if (piece.finish.empty())
      answer_error(res, {500, "internal_error", piece.gone ? "the client has gone" : piece.error, "", "failed"});
    else
      answer_json(res, 200, whole_answer(head, text, piece.finish, reply.usage()));
    return;
  }
}

void HttpServer::Impl::answer_stream(std::shared_ptr<Reply> reply, const AnswerHead& head, Usage usage, Response& res) {
  res.set_header("Cache-Control", "no-cache");
  res.set_chunked_content_provider(
      "text/event-stream", [reply, head, usage, part = Part::first](size_t, httplib::DataSink& sink) mutable {
        const Reply::Piece piece = reply->next(HttpConnections::client_gone);
        if (piece.gone) return false;
        std::string out;
        if (!piece.error.empty()) {
          out = sse(to_json(HttpError{500, "internal_error", piece.error, "", "failed"}));
        } else {
          Json json = chunk(head, std::exchange(part, Part::later), piece.text, piece.finish);
          if (usage == Usage::always) json["usage"] = to_json(reply->usage());
          out = sse(json);
          if (piece.last() && usage != Usage::none) out += sse(usage_chunk(head, reply->usage()));
        }
        if (piece.last()) out += kSseEnd;
        if (!sink.write(out.data(), out.size())) return false;
        if (piece.last()) sink.done();
        return true;
      });
}

HttpServer::HttpServer(HttpOptions options, ServedModel model, Live& live)
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
