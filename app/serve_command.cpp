// SPDX-License-Identifier: GPL-3.0-or-later
// `serve`: serves the experiment's model over HTTP until Ctrl-C. Running requests are completed first.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/jobs/model_server.h"
#include "core/serve/http/http_access.h"

namespace mw::app {
namespace {

using namespace std::chrono_literals;

struct ServeOptions {
  TunedRun tuned{};
  int port = 8000;  // 0: any free port
  std::string host = "127.0.0.1", api_key;
  std::vector<std::string> allow_hosts{}, allow_origins{};
};

std::string state_text(const serve::ServingLoop::State& now, const serve::ServingLoop::State& before, double seconds,
                       int connections) {
  const double rate = static_cast<double>(now.output_tokens - before.output_tokens) / seconds;
  return formatted(
      "running %d  waiting %d  KV %.0f %%  %.1f tokens/s  done %lld  cancelled %lld  rejected %lld  "
      "connections %d",
      now.scheduler.running, now.scheduler.waiting, 100 * now.scheduler.kv_used, rate,
      static_cast<long long>(now.finished), static_cast<long long>(now.cancelled), static_cast<long long>(now.rejected),
      connections);
}

void print_address(const CommonOptions& common, const jobs::ModelServer& model) {
  const jobs::ServedModel& served = model.served();
  const serve::HttpServer& server = *model.http();
  std::vector<std::string> models = model.adapters();
  models.insert(models.begin(), served.name);
  if (common.output == Output::json) {
    print_json({{"address", server.address()},
                {"port", server.port()},
                {"models", models},
                {"max_model_len", served.settings.max_model_len},
                {"kv_bytes", served.settings.kv.capacity.value}});
    return;
  }
  print_text("%s/v1 serves %s: up to %d tokens per request, KV cache %s\n", server.address().c_str(),
             joined(models).c_str(), served.settings.max_model_len, to_text(served.settings.kv.capacity).c_str());
  std::fflush(stdout);
}

void print_state_until_stopped(const CommonOptions& common, jobs::ModelServer& model, ProgressLine& line) {
  serve::ServingLoop::State before = model.loop().state();
  auto last = std::chrono::steady_clock::now();
  while (!common.stop.stop_requested()) {
    std::this_thread::sleep_for(100ms);
    const auto now = std::chrono::steady_clock::now();
    if (now - last < 1s) continue;
    const serve::ServingLoop::State state = model.loop().state();
    const double seconds = std::chrono::duration<double>(now - last).count();
    line.update(state_text(state, before, seconds, model.http()->connections()));
    before = state;
    last = now;
  }
}

serve::HttpOptions http_options(const ServeOptions& options) {
  serve::HttpOptions http{.host = options.host,
                          .port = options.port,
                          .api_key = options.api_key,
                          .allow_hosts = options.allow_hosts,
                          .allow_origins = options.allow_origins};
  if (const char* key = std::getenv("MESHWRIGHT_API_KEY"); http.api_key.empty() && key) http.api_key = key;
  return http;
}

void add_serve_options(CLI::App& command, CommonOptions& common, ServeOptions& options) {
  add_file_and_set_options(command, common);
  add_tuned_run_options(command, options.tuned, "Serve the best checkpoint of this run, or latest, as tuned");
  command.add_option("--port", options.port, "Port; 0 picks a free one and prints it")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--host", options.host, "Address to listen on")->capture_default_str();
  command.add_option("--api-key", options.api_key, "API key that clients must send (or set MESHWRIGHT_API_KEY)");
  command
      .add_option(
          "--allow-host", options.allow_hosts,
          "Host name that clients may use besides localhost, 127.0.0.0/8 and [::1] (repeatable); a server on another "
          "address accepts every name unless this is given")
      ->allow_extra_args(false);
  command
      .add_option("--allow-origin", options.allow_origins,
                  "Origin whose web pages may use the server, such as http://localhost:3000 (repeatable); others are "
                  "refused")
      ->allow_extra_args(false);
}

int run_serve(const CommonOptions& common, const ServeOptions& options) {
  experiment::Experiment experiment = load_experiment(common);
  use_tuned_run(common, options.tuned, experiment);
  // Refuses invalid names before the model is loaded.
  [[maybe_unused]] const serve::HttpAccessPolicy checked(options.host, options.allow_hosts, options.allow_origins);
  ProgressLine line;
  jobs::ModelServer model(experiment, [&](long done, long total) {
    line.update("loading " + std::to_string(done) + "/" + counted(total, "tensor"));
  });
  line.clear();
  for (const std::string& warning : model.served().warnings) line.message("warning: " + warning);
  const serve::HttpOptions http = http_options(options);
  if (!serve::is_loopback(options.host) && http.api_key.empty())
    line.message("warning: every client that can reach " + options.host + " may send requests; set --api-key");
  model.listen(http);
  print_address(common, model);
  print_state_until_stopped(common, model, line);
  model.stop_listening(serve::StopMode::complete);
  line.message("stopped after " + counted(model.loop().state().finished, "answer"));
  return 0;
}

}  // namespace

Subcommand serve_subcommand() {
  return make_subcommand("serve", "Serve the experiment's model over the OpenAI HTTP protocol", add_serve_options,
                         run_serve);
}

}  // namespace mw::app
