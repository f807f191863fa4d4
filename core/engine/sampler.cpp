// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/checks.h"
#include "core/engine/decode.h"
#include "core/engine/network_impl.h"

namespace mw::engine {
namespace {

// The candidates after temperature, top-k and top-p, likeliest first (ties: lower id), with their probabilities.
std::vector<std::pair<double, int>> candidates(std::span<const float> logits, const SampleOptions& o) {
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto better = [&](int a, int b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const size_t keep = o.top_k > 0 ? std::min(ids.size(), static_cast<size_t>(o.top_k)) : ids.size();
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(keep), ids.end(), better);
  ids.resize(keep);
  std::vector<std::pair<double, int>> out;
  double sum = 0;
  const double best = static_cast<double>(logits[static_cast<size_t>(ids[0])]);
  for (const int id : ids) {
    out.push_back(
        {std::exp((static_cast<double>(logits[static_cast<size_t>(id)]) - best) / static_cast<double>(o.temperature)),
         id});
    sum += out.back().first;
  }
  double mass = 0;
  for (size_t i = 0; i < out.size(); ++i) {  // top-p keeps the token that crosses the threshold
    mass += out[i].first / sum;
    if (o.top_p < 1 && mass >= static_cast<double>(o.top_p)) out.resize(i + 1);
  }
  return out;
}

int pick(std::span<const float> logits, const SampleOptions& o, float uniform) {
  if (!(o.temperature > 0)) return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const auto options = candidates(logits, o);
  double total = 0;
  for (const auto& c : options) total += c.first;
  double left = static_cast<double>(uniform) * total;
  for (const auto& [weight, id] : options)
    if ((left -= weight) < 0) return id;
  return options.back().second;
}

}  // namespace

std::vector<int> Sampler::generate(std::span<const int> prompt, const SampleOptions& options, std::stop_token stop,
                                   const std::function<bool(int)>& on_token) {
  Core& core = network_.impl_->core;
  if (prompt.empty())
    throw Error({.id = "PROMPT", .message = "the prompt is empty", .expected = "at least the bos token"});
  for (const int id : prompt)
    if (id < 0 || id >= core.config.vocab)
      throw Error({.id = "PROMPT",
                   .message = "a prompt token is outside the vocabulary",
                   .found = std::to_string(id),
                   .expected = "0.." + std::to_string(core.config.vocab - 1)});
  std::vector<int> generated;
  if (options.max_new_tokens <= 0) return generated;
  check_context(core.config, static_cast<std::int64_t>(prompt.size()) + options.max_new_tokens);
  KvCache cache = make_cache(core, static_cast<int>(prompt.size()) + options.max_new_tokens);
  const Rng rng{options.seed, 0x73616d70};
  std::span<const int> next = prompt;
  while (!stop.stop_requested()) {
    const float* logits = advance(core, cache, next);
    const int id = pick({logits, static_cast<size_t>(core.config.vocab)}, options, rng.uniform_at(generated.size()));
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end()) break;
    generated.push_back(id);
    if ((on_token && !on_token(id)) || static_cast<int>(generated.size()) >= options.max_new_tokens) break;
    next = std::span<const int>(generated).last(1);
  }
  return generated;
}

}  // namespace mw::engine
