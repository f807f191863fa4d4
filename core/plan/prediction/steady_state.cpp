// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/steady_state.h"

#include <algorithm>
#include <cmath>

#include "core/plan/prediction/device_memory.h"
#include "core/plan/request/stack_profiles.h"

namespace mw::plan {
namespace {

// The number of requests of all replicas that fit into the cache when each has half of its answer.
double held_at_once(const ServeStepModel& model, const SteadyLoad& load) {
  const ServeStepModel::Kv& kv = model.kv();
  const double len = load.input_len + load.output_len / 2.0;
  double bytes = 0;
  for (const auto& g : kv.groups) bytes += g.bytes_per_token * (g.window > 0 ? std::min<double>(len, g.window) : len);
  return bytes > 0 ? static_cast<double>(kv.capacity.value) / bytes : load.concurrency;
}

// One of the equal replicas of a server; all take their steps at once.
class Server {
 public:
  Server(const ServeStepModel& model, const SteadyLoad& load)
      : model_(model),
        load_(load),
        replicas_(model.replicas()),
        window_(model.window() > 0 ? model.window() : 1e18),
        context_(load.input_len + load.output_len / 2.0) {}

  // Seconds of a step with `answers` decoding requests and `prompt_tokens`, which start `done` tokens into their
  // prompts.
  double seconds(double answers, double prompt_tokens, double done) const {
    const int rows = static_cast<int>(std::lround(answers * replicas_));
    StepLoad step{.decoding = rows,
                  .prefill_tokens = std::llround(prompt_tokens * replicas_),
                  .read_tokens = rows * context_,
                  .read_window_tokens = rows * std::min(context_, window_)};
    if (step.prefill_tokens > 0) {
      const int prompts = std::max(1, static_cast<int>(std::lround(prompt_tokens / load_.input_len)));
      const double all = prompt_tokens * replicas_, middle = done + prompt_tokens / prompts / 2;
      step.prefilling = prompts * replicas_;
      step.prefill_pairs = all * middle;
      step.prefill_window_pairs = all * std::min(middle, window_);
    }
    return model_.seconds(step);
  }
  // Mean seconds of the steps of a chunked prompt next to `answers` decoding requests.
  double prompt_seconds(double answers, double budget, double chunks) const {
    double sum = 0;
    for (double done = 0; done < load_.input_len; done += budget)
      sum += seconds(answers, std::min(budget, load_.input_len - done), done);
    return sum / chunks;
  }

 private:
  const ServeStepModel& model_;
  const SteadyLoad& load_;
  int replicas_;
  double window_, context_;
};

// One turn of all requests of a server that computes prompts in steps of their own, before any answer goes on: equal
// requests that are sent together end together, so that their prompts follow each other and their answers decode at
// once.
struct SeparateCycle {
  double batches = 0, batch_s = 0;  // of prompts
  double decode_s = 0;              // of a step with all answers
  double cycle_s = 0;
};
SeparateCycle separate_cycle(const Server& steps, const ServerScheduling& scheduling, const ServeWork& server,
                             const SteadyLoad& load, double requests) {
  const double in = load.input_len, budget = std::max(1, server.max_num_batched_tokens);
  const double most = scheduling.max_prefills > 0 ? scheduling.max_prefills : requests;
  SeparateCycle c;
  if (in < budget && load.is_staggered) {
    c.batches = requests;
    c.batch_s = steps.seconds(0, in, 0);
  } else if (in < budget) {
    c.batches = std::ceil(requests * in / std::min(budget, most * in));
    c.batch_s = steps.seconds(0, requests * in / c.batches, 0);
  } else {
    const double chunks = std::ceil(in / budget);
    c.batches = requests * chunks;
    c.batch_s = steps.prompt_seconds(0, budget, chunks);
  }
  c.decode_s = steps.seconds(requests, 0, 0);
  c.cycle_s = c.batches * c.batch_s + std::max(0, load.output_len - 1) * c.decode_s;
  return c;
}

}  // namespace

SteadyState steady_state(const ServeStepModel& model, const ServeWork& server, const SteadyLoad& load) {
  SteadyState s;
  s.running = std::max(1.0, std::min<double>({static_cast<double>(load.concurrency),
                                              static_cast<double>(server.max_num_seqs), held_at_once(model, load)}));
  const double replicas = model.replicas();
  const double n = std::max(1.0, std::floor(s.running / replicas));  // of a replica, of at least one with a request
  const double in = load.input_len, out = load.output_len;
  const double budget = std::max(1.0, server.max_num_batched_tokens - (n - 1));
  const double chunks = std::ceil(in / budget);
  const Server steps(model, load);
  const double host = model.request_seconds() + in * model.tokenize_seconds();
  const double waiting = std::max(0.0, load.concurrency - n * replicas) / (n * replicas);  // turns before its own
  const ServerScheduling scheduling = server_scheduling(model.stack());
  if (scheduling.prefill_steps == ServerScheduling::PrefillSteps::separate) {
    const SeparateCycle c = separate_cycle(steps, scheduling, server, load, n);
    // Answers then wait for the prompts behind their own; staggered ones, for those of all others.
    const double prompts_s = load.is_staggered ? c.batch_s : c.batch_s * (c.batches + 1) / 2;
    s.ttft_s = host + prompts_s + c.cycle_s * waiting;
    s.tpot_s = out > 1 ? (c.cycle_s - prompts_s) / (out - 1) : 0;
    s.itl_s = c.decode_s;
    s.output_tokens_per_s = std::min(n * replicas, std::floor(s.running)) * out / c.cycle_s;
    return s;
  }
  double cycle = 0, with_prompt = 0, count = 0;  // of the steps from a request's first to its last
  if (n * chunks <= out - 1 + chunks) {          // prompts come one at a time, beside the answers of the others
    count = out - 1 + chunks;
    with_prompt = steps.prompt_seconds(std::max(0.0, n - 1), budget, chunks);
    const double without = steps.seconds(n, 0, 0);
    cycle = n * chunks * with_prompt + (count - n * chunks) * without;
    s.itl_s = 2 * n * chunks > count ? with_prompt : without;
  } else {  // every step has prompts, at most as many tokens as it may
    count = std::max(out - 1 + chunks, n * (in + out) / server.max_num_batched_tokens);
    with_prompt = steps.seconds(n * out / count, n * in / count, std::max(0.0, in - n * in / count) / 2);
    cycle = count * with_prompt;
    s.itl_s = with_prompt;
  }
  // A prompt arrives in the middle of a step on average; requests beyond the running ones wait.
  s.ttft_s = host + chunks * with_prompt + cycle / count / 2 + cycle * waiting;
  s.tpot_s = out > 1 ? std::max(0.0, cycle - chunks * with_prompt) / std::max(1.0, count - chunks) : 0;
  s.output_tokens_per_s = std::min(n * replicas, std::floor(s.running)) * out / cycle;
  return s;
}

RolloutShape rollout_shape(const Request& r) {
  const RolloutWork& w = r.rollout;
  RolloutShape out{.rows = static_cast<double>(w.batch)};
  out.cache = w.cache_len > 0 ? w.cache_len : w.prompt + w.new_tokens;
  // Without window caches every step reads the whole cache, including unused slots.
  const bool whole = r.profile.attention == StackProfile::Attention::materialised;
  out.context = whole ? out.cache : w.prompt + w.new_tokens / 2.0;
  return out;
}

LoadedServer loaded_server(const ServeStepModel& model, const ServeWork& s) {
  LoadedServer out;
  out.steady = steady_state(
      model, s, {.concurrency = std::max(1, s.max_num_seqs), .input_len = s.input_len, .output_len = s.output_len});
  const double rows = std::floor(out.steady.running), context = s.input_len + s.output_len / 2.0;
  const double window = model.window() > 0 ? std::min<double>(context, model.window()) : context;
  out.decoding = {
      .decoding = static_cast<int>(rows), .read_tokens = rows * context, .read_window_tokens = rows * window};
  return out;
}

std::int64_t longest_request(const LocalModel& model, double cache) {
  std::int64_t held = 0;
  for (std::int64_t above = std::int64_t{model.request->serve.max_model_len} + 1; above - held > 1;) {
    const std::int64_t middle = held + (above - held) / 2;
    const auto tokens = static_cast<double>(middle);
    (kv_bytes_per_token(model, tokens) * tokens <= cache ? held : above) = middle;
  }
  return held;
}

}  // namespace mw::plan
