// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/engine_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/elapsed.h"
#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "core/serve/scheduling/engine_kv_layout.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;
using Logits = engine::TokenChunk::Logits;

// Picks a token and reports its probability and those of the likeliest ones, which pick_token() overwrites.
void sample_with_probabilities(std::span<float> logits, size_t likeliest, const options::SampleOptions& options,
                               double uniform, SampledToken& sampled) {
  const std::vector<float> before(logits.begin(), logits.end());
  const auto best = engine::likeliest(before, likeliest);
  const auto share = [top = best.front().value](float logit) { return std::exp(static_cast<double>(logit - top)); };
  double sum = 0;
  for (const float logit : before) sum += share(logit);
  for (const engine::Candidate& candidate : best)
    sampled.likeliest.push_back({candidate.id, share(candidate.value) / sum});
  sampled.token = engine::pick_token(logits, options, uniform);
  sampled.probability = share(before[static_cast<size_t>(sampled.token)]) / sum;
}

}  // namespace

struct EngineExecutor::Sequence {
  std::vector<int> ids;  // of the prompt and the tokens generated so far
  int generated = 0;
  int adapter = -1;  // index in the server; -1: the base model
  options::SampleOptions options;
  size_t likeliest = 0;
};

EngineExecutor::EngineExecutor(engine::Network& network, const SchedulerSettings& settings)
    : server_(network, engine_capacity(network.config(), settings)), max_model_len_(settings.max_model_len) {}
EngineExecutor::~EngineExecutor() = default;

void EngineExecutor::add_adapter(const std::string& name, const formats::Adapter& adapter) {
  if (name.empty() || adapters_.contains(name))
    throw Error({.id = "ADAPTER",
                 .message = "the name of an adapter is empty or already taken",
                 .place = "serve.adapters",
                 .found = "\"" + name + "\"",
                 .expected = "a unique name for each adapter"});
  std::vector<engine::AdapterValues> values;
  for (const formats::AdapterModule& m : adapter.modules) {
    const auto rank = static_cast<float>(m.rank);
    values.push_back({m.target, m.rank, m.alpha / (adapter.rslora ? std::sqrt(rank) : rank), m.a, m.b, m.m});
  }
  adapters_[name] = server_.add_adapter(values);
}

std::vector<std::string> EngineExecutor::adapters() const {
  std::vector<std::string> names;
  for (const auto& [name, index] : adapters_) names.push_back(name);
  return names;
}

void EngineExecutor::begin(RequestId id, const GenerationRequest& request) {
  const int vocab = server_.network().config().vocab;
  if (request.prompt_ids.empty())
    throw Error({.id = "PROMPT", .message = "the prompt is empty", .expected = "at least one token"});
  for (const int token : request.prompt_ids)
    if (token < 0 || token >= vocab)
      throw Error({.id = "PROMPT",
                   .message = "a prompt token is outside the vocabulary",
                   .found = std::to_string(token),
                   .expected = "0.." + std::to_string(vocab - 1)});
  if (request.prompt_ids.size() >= static_cast<size_t>(max_model_len_))
    throw Error({.id = "CONTEXT",
                 .message = "the prompt is too long to generate a token after it",
                 .found = std::to_string(request.prompt_ids.size()) + " tokens",
                 .expected = "less than " + std::to_string(max_model_len_)});
  auto sequence = std::make_shared<Sequence>();
  if (!request.adapter.empty()) {
    const auto found = adapters_.find(request.adapter);
    if (found == adapters_.end())
      throw Error({.id = "ADAPTER", .message = "the server has no adapter of this name", .found = request.adapter});
    sequence->adapter = found->second;
  }
  sequence->ids = request.prompt_ids;
  sequence->options = request.sampling;
  sequence->likeliest = static_cast<size_t>(std::max(request.likeliest, 0));
  const std::lock_guard lock(mutex_);
  sequences_[id] = std::move(sequence);
}

void EngineExecutor::end(RequestId id) {
  const std::lock_guard lock(mutex_);
  sequences_.erase(id);
}

std::shared_ptr<EngineExecutor::Sequence> EngineExecutor::find(RequestId id) const {
  const std::lock_guard lock(mutex_);
  return sequences_.at(id);
}

StepResult EngineExecutor::run(const Step& step, const Scheduler& scheduler) {
  const auto start_time = Clock::now();
  const size_t groups = server_.capacity().groups.size();
  std::vector<std::shared_ptr<Sequence>> sequences, sampling;
  std::vector<std::span<const int>> blocks;
  std::vector<engine::TokenChunk> chunks;
  StepResult result;
  blocks.reserve(step.items.size() * groups);
  for (const StepItem& item : step.items) {
    const Sequence& s = *sequences.emplace_back(find(item.id));
    for (size_t g = 0; g < groups; ++g) blocks.push_back(scheduler.blocks(item.id, g));
    chunks.push_back({std::span(s.ids).subspan(static_cast<size_t>(item.first), static_cast<size_t>(item.count)),
                      item.first, std::span(blocks).last(groups), s.adapter, item.samples ? Logits::last : Logits::no});
    if (!item.samples) continue;
    sampling.push_back(sequences.back());
    result.sampled.push_back({.id = item.id});
  }
  const std::span<float> logits = server_.step(chunks);
  const auto vocab = static_cast<size_t>(server_.network().config().vocab);
  server_.network().device().pool.parallel_for(
      static_cast<std::int64_t>(sampling.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
          const Sequence& s = *sampling[i];
          const std::span<float> row = logits.subspan(i * vocab, vocab);
          const double uniform = engine::sampling_uniform(s.options.seed, 0, s.generated);
          if (s.likeliest > 0)
            sample_with_probabilities(row, s.likeliest, s.options, uniform, result.sampled[i]);
          else
            result.sampled[i].token = engine::pick_token(row, s.options, uniform);
        }
      });
  for (size_t i = 0; i < sampling.size(); ++i) {
    Sequence& s = *sampling[i];
    SampledToken& sampled = result.sampled[i];
    const std::vector<int>& stop_ids = s.options.stop_ids;
    sampled.is_stop = std::find(stop_ids.begin(), stop_ids.end(), sampled.token) != stop_ids.end();
    if (sampled.is_stop) continue;
    s.ids.push_back(sampled.token);
    ++s.generated;
  }
  result.seconds = seconds_since(start_time);
  return result;
}

}  // namespace mw::serve
