// SPDX-License-Identifier: GPL-3.0-or-later
// Load test of a running server: many concurrent connections, some of which are closed in the middle of their answer.
// Prints the server's memory and state during the test and latencies at the end. Fails (exit code 1) if an answer is
// neither complete nor 429, if memory grows after the warm-up, or if cancelled requests leave KV blocks behind. Start
// it with scripts/load-test.sh.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/serve/load/metrics_poller.h"
#include "core/serve/load/stream_client.h"

namespace mw {
namespace {

using namespace std::chrono_literals;
using Clock = serve::HttpClock;

struct Options {
  serve::HttpTarget target;
  int connections = 200;
  double seconds = 600, warmup = 0.2;  // warm-up as a share of the time
  int prompt = 64, answer = 64, vocab = 2000, first_id = 300;
  double cancelled = 0.1;  // share of requests that are cancelled
  double most_growth = 0.02;
};

struct Tally {
  std::mutex mutex;
  std::vector<double> ttft, tpot, e2e;  // ms, of complete answers after the warm-up
  long whole = 0, refused = 0, broken_off = 0, tokens = 0;
  std::map<std::string, long> errors;
};

std::string body(const Options& o, std::uint64_t id) {
  const Rng rng{id};
  Json ids = Json::array();
  const int length = 1 + static_cast<int>(rng.at(0) % static_cast<std::uint64_t>(2 * o.prompt));
  for (int i = 0; i < length; ++i)
    ids.push_back(o.first_id + static_cast<int>(rng.at(static_cast<std::uint64_t>(i) + 9) %
                                                static_cast<std::uint64_t>(o.vocab - o.first_id)));
  return Json{{"prompt", ids},      {"max_tokens", o.answer}, {"temperature", id % 2},
              {"ignore_eos", true}, {"stream", true},         {"stream_options", {{"include_usage", true}}}}
      .dump();
}

class Users {
 public:
  Users(const Options& options, Tally& tally) : o_(options), tally_(tally) {
    for (int i = 0; i < o_.connections; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  void measure() { measuring_ = true; }
  void stop() {
    over_ = true;
    threads_.clear();
  }

 private:
  void run(int user) {
    serve::StreamClient client(o_.target);
    for (std::uint64_t n = 0; !over_; ++n) {
      const std::uint64_t id = static_cast<std::uint64_t>(user) << 32 | n;
      const bool breaks_off = Rng{id, 7}.uniform_at(0) < o_.cancelled;
      std::stop_source stop;
      std::jthread breaker;
      if (breaks_off)
        breaker = std::jthread([stop, id](const std::stop_token& answered) mutable { break_off(stop, id, answered); });
      record(client.complete(body(o_, id), {.output_tokens = o_.answer}, origin_, stop.get_token()));
    }
  }
  static void break_off(std::stop_source& stop, std::uint64_t id, const std::stop_token& answered) {
    const auto at = Clock::now() + std::chrono::milliseconds(Rng{id, 8}.at(0) % 2000);
    while (Clock::now() < at && !answered.stop_requested()) std::this_thread::sleep_for(5ms);
    if (!answered.stop_requested()) stop.request_stop();
  }
  void record(const serve::StreamedCompletion& s) {
    const formats::RequestResult& r = s.result;
    const bool refused = r.error.starts_with("HTTP 429");
    {
      const std::lock_guard lock(tally_.mutex);
      if (s.stopped) {
        ++tally_.broken_off;
      } else if (refused) {
        ++tally_.refused;
      } else if (!r.completed()) {
        ++tally_.errors[r.error];
      } else {
        ++tally_.whole;
        tally_.tokens += r.output_tokens;
        if (r.output_tokens != o_.answer) ++tally_.errors["an answer of another length"];
        if (measuring_) {
          tally_.ttft.push_back(1e3 * (r.first_token_s - r.sent_s));
          tally_.e2e.push_back(1e3 * (r.end_s - r.sent_s));
          tally_.tpot.push_back(1e3 * (r.end_s - r.first_token_s) / std::max(1, r.output_tokens - 1));
        }
      }
    }
    if (refused) std::this_thread::sleep_for(200ms);
  }

  const Options& o_;
  Tally& tally_;
  const Clock::time_point origin_ = Clock::now();
  std::atomic<bool> over_{false}, measuring_{false};
  std::vector<std::jthread> threads_;
};

std::map<std::string, double> server_state(serve::StreamClient& client) {
  const auto response = client.get("/metrics");
  if (response.status != 200)
    throw Error("SERVER", "the server does not answer", {.found = response.error}, Error::Kind::failed);
  return serve::sum_prometheus_metrics(response.body);
}

double memory_of(const std::map<std::string, double>& state) {
  const auto it = state.find("process_resident_memory_bytes");
  return it == state.end() ? 0 : it->second;
}

void print_latency(const char* name, const std::vector<double>& ms) {
  if (ms.empty()) return;
  std::printf("%-6s p50 %8.1f  p90 %8.1f  p99 %8.1f  max %8.1f ms\n", name, formats::percentile_of(ms, 50),
              formats::percentile_of(ms, 90), formats::percentile_of(ms, 99), formats::percentile_of(ms, 100));
}

// Checks that after the last user nothing runs, nothing waits and no KV block is held.
bool all_free(serve::StreamClient& client, double& after_s) {
  const auto begun = Clock::now();
  for (;;) {
    auto state = server_state(client);
    after_s = seconds_since(begun);
    if (state["vllm:num_requests_running"] + state["vllm:num_requests_waiting"] == 0 &&
        state["vllm:kv_cache_usage_perc"] == 0)
      return true;
    if (after_s > 10) return false;
    std::this_thread::sleep_for(20ms);
  }
}

// Cancels one request with a long answer and returns the time until its KV blocks are freed; -1: they stay held.
double freed_after_break(const Options& o, serve::StreamClient& client) {
  const auto wait = [&](auto done) {
    for (const auto begun = Clock::now(); Clock::now() - begun < 10s; std::this_thread::sleep_for(1ms))
      if (auto state = server_state(client);
          done(state["vllm:num_requests_running"], state["vllm:kv_cache_usage_perc"]))
        return true;
    return false;
  };
  Options longest = o;
  longest.answer = 4 * o.answer;
  serve::StreamClient user(o.target);
  std::stop_source stop;
  std::jthread asking(
      [&] { user.complete(body(longest, 0), {.output_tokens = longest.answer}, Clock::now(), stop.get_token()); });
  const bool ran = wait([](double running, double kv) { return running > 0 && kv > 0; });
  stop.request_stop();
  const auto broken = Clock::now();
  const bool freed = wait([](double running, double kv) { return running == 0 && kv == 0; });
  return ran && freed ? seconds_since(broken) : -1;
}

double mean(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += values[i];
  return sum / static_cast<double>(std::max<size_t>(1, to - from));
}

int run(const Options& o) {
  serve::StreamClient client(o.target);
  server_state(client);
  Tally tally;
  std::vector<double> memory;  // after the warm-up, once per second
  Users users(o, tally);
  const auto begun = Clock::now();
  std::printf("%8s %10s %8s %8s %6s %10s %8s %8s\n", "s", "memory", "running", "waiting", "KV", "whole", "429",
              "broken");
  for (double at = 0, told = -1e9; at < o.seconds;) {
    std::this_thread::sleep_for(1s);
    at = seconds_since(begun);
    auto state = server_state(client);
    if (at > o.warmup * o.seconds) {
      users.measure();
      memory.push_back(memory_of(state));
    }
    if (at - told < o.seconds / 20) continue;
    told = at;
    const std::lock_guard lock(tally.mutex);
    std::printf("%8.0f %10s %8.0f %8.0f %5.0f%% %10ld %8ld %8ld\n", at,
                to_text(Bytes(static_cast<std::int64_t>(memory_of(state)))).c_str(), state["vllm:num_requests_running"],
                state["vllm:num_requests_waiting"], 100 * state["vllm:kv_cache_usage_perc"], tally.whole, tally.refused,
                tally.broken_off);
    std::fflush(stdout);
  }
  users.stop();
  double free_after = 0;
  const bool freed = all_free(client, free_after);
  const size_t third = memory.size() / 3;
  const double first = mean(memory, 0, third), last = mean(memory, memory.size() - third, memory.size());
  const double growth = first > 0 ? last / first - 1 : 0;
  std::printf("\n%ld whole answers (%.1f tokens/s), %ld refused with 429, %ld broken off by the client\n", tally.whole,
              static_cast<double>(tally.tokens) / o.seconds, tally.refused, tally.broken_off);
  print_latency("TTFT", tally.ttft), print_latency("TPOT", tally.tpot), print_latency("E2E", tally.e2e);
  std::printf("memory: %.1f MiB after the warm-up, %.1f MiB at the end, %+.2f %% from the first third to the last\n",
              memory.empty() ? 0.0 : memory.front() / 1048576, memory.empty() ? 0.0 : memory.back() / 1048576,
              100 * growth);
  std::printf("%s %.0f ms after the last request\n", freed ? "all blocks free" : "BLOCKS STILL HELD", 1e3 * free_after);
  const double broken_off_s = freed_after_break(o, client);
  if (broken_off_s >= 0)
    std::printf("a request broken off in its answer: its blocks free after %.0f ms\n", 1e3 * broken_off_s);
  else
    std::printf("A REQUEST BROKEN OFF STILL HOLDS BLOCKS\n");
  for (const auto& [error, n] : tally.errors) std::printf("ERROR %ld times: %s\n", n, error.c_str());
  return tally.errors.empty() && freed && broken_off_s >= 0 && growth < o.most_growth && tally.whole > 0 ? 0 : 1;
}

}  // namespace
}  // namespace mw

int main(int argc, char** argv) {
  mw::Options o;
  o.target.timeout_s = 300;
  CLI::App cli{"Load test of a server of the OpenAI protocol"};
  cli.add_option("--url", o.target.url, "Server")->required();
  cli.add_option("--connections", o.connections, "Users at once")->capture_default_str();
  cli.add_option("--seconds", o.seconds, "How long")->capture_default_str();
  cli.add_option("--prompt", o.prompt, "Mean prompt, tokens")->capture_default_str();
  cli.add_option("--answer", o.answer, "Answer, tokens")->capture_default_str();
  cli.add_option("--vocab", o.vocab, "Prompts are of token ids below it")->capture_default_str();
  cli.add_option("--cancelled", o.cancelled, "Share of requests that are broken off")->capture_default_str();
  CLI11_PARSE(cli, argc, argv);
  try {
    return mw::run(o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
