// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/steady_state.h"

#include <algorithm>
#include <cmath>

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
  const double host = model.request_seconds() + in * model.tokenize_seconds();
  s.ttft_s = host + chunks * with_prompt + cycle / count / 2 +
             cycle * std::max(0.0, load.concurrency - n * replicas) / (n * replicas);
  s.tpot_s = out > 1 ? std::max(0.0, cycle - chunks * with_prompt) / std::max(1.0, count - chunks) : 0;
  s.output_tokens_per_s = std::min(n * replicas, std::floor(s.running)) * out / cycle;
  return s;
}

}  // namespace mw::plan
