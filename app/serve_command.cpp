// SPDX-License-Identifier: GPL-3.0-or-later
// `serve`: the experiment's model over HTTP until Ctrl-C, which lets running requests finish.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "app/commands.h"
#include "app/progress_line.h"
#include "core/experiment/settings.h"
#include "core/jobs/serving.h"
#include "core/serve/http/http_access.h"
#include "core/serve/http/http_server.h"

namespace mw::app {
namespace {

using namespace std::chrono_literals;

std::string state_text(const serve::ServingLoop::State& now, const serve::ServingLoop::State& before, double seconds,
                       int connections) {
  const double rate = static_cast<double>(now.output_tokens - before.output_tokens) / seconds;
  char text[256];
  std::snprintf(text, sizeof text,
                "running %d  waiting %d  KV %.0f %%  %.1f tokens/s  done %lld  cancelled %lld  refused %lld  "
                "connections %d",
                now.scheduler.running, now.scheduler.waiting, 100 * now.scheduler.kv_used, rate,
                static_cast<long long>(now.finished), static_cast<long long>(now.cancelled),
                static_cast<long long>(now.refused), connections);
  return text;
}

void print_start(const Common& common, const jobs::Serving& serving, const serve::HttpServer& server) {
  Json models = Json::array({serving.name});
  for (const std::string& adapter : serving.adapters) models.push_back(adapter);
  if (common.output == Output::json) {
    print_json({{"address", server.address()},
                {"port", server.port()},
                {"models", models},
                {"max_model_len", serving.settings.max_model_len},
                {"kv_bytes", serving.settings.kv.capacity.value}});
    return;
  }
  std::string names;
  for (const Json& name : models) names += (names.empty() ? "" : ", ") + name.get<std::string>();
  print_text("%s/v1 serves %s: up to %d tokens a request, KV cache %s\n", server.address().c_str(), names.c_str(),
             serving.settings.max_model_len, to_text(serving.settings.kv.capacity).c_str());
  std::fflush(stdout);
}

void watch(const Common& common, const serve::ServingLoop& loop, const serve::HttpServer& server, ProgressLine& line) {
  serve::ServingLoop::State before = loop.state();
  auto last = std::chrono::steady_clock::now();
  while (!common.stop.stop_requested()) {
    std::this_thread::sleep_for(100ms);
    const auto now = std::chrono::steady_clock::now();
    if (now - last < 1s) continue;
    const serve::ServingLoop::State state = loop.state();
    line.update(state_text(state, before, std::chrono::duration<double>(now - last).count(), server.connections()));
    before = state;
    last = now;
  }
}

}  // namespace

int serve_command(const Common& common, const ServeArgs& args) {
  const experiment::Experiment experiment = load_experiment(common);
  serve::HttpAccessPolicy(args.host, args.allow_hosts,
                          args.allow_origins);  // refuses bad names before the model is loaded
  ProgressLine line;
  jobs::Serving serving = jobs::load_serving(experiment, [&](long done, long total) {
    line.update("loading " + std::to_string(done) + "/" + std::to_string(total) + " tensors");
  });
  line.clear();
  serve::HttpOptions options{.host = args.host,
                             .port = args.port,
                             .api_key = args.api_key,
                             .allow_hosts = args.allow_hosts,
                             .allow_origins = args.allow_origins};
  if (const char* key = std::getenv("MESHWRIGHT_API_KEY"); options.api_key.empty() && key) options.api_key = key;
  if (!serve::is_loopback(args.host) && options.api_key.empty())
    line.message("warning: whoever reaches " + args.host + " may ask; --api-key asks for a key");
  serve::ServingLoop loop(serving.settings, *serving.executor, serving.queue);
  serve::HttpServer server(options,
                           {.name = serving.name,
                            .adapters = serving.adapters,
                            .tokenizer = serving.model.tokenizer.get(),
                            .chat = experiment::chat_format(experiment, serving.model.config().family),
                            .max_model_len = serving.settings.max_model_len},
                           loop);
  print_start(common, serving, server);
  watch(common, loop, server, line);
  server.stop();
  line.message("stopped after " + std::to_string(loop.state().finished) + " answers");
  return 0;
}

}  // namespace mw::app
