// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/engine_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/engine/generate/sampler.h"

namespace mw::serve {
namespace {

std::int64_t block_count(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

bool is_sliding(const model::Config& config, const model::Layer& layer) {
  return layer.attention == model::Attention::sliding && config.sliding_window > 0;
}

struct BlockDemand {  // blocks of a group: for one request of max_model_len, and for max_num_seqs of them
  std::int64_t one = 0, all = 0;
};

// In a sliding layer a request holds its window, one more block because the window is not aligned, and during prefill
// one chunk. A prefix cache doubles the window's share: a cached prefix is usable only if its last window is cached
// too.
BlockDemand block_demand(const SchedulerSettings& s, int window) {
  const std::int64_t bs = s.kv.block_size, whole = block_count(s.max_model_len, bs);
  if (window == 0) return {whole, s.max_num_seqs * whole};
  const std::int64_t held = block_count(window - 1, bs) + 1, chunk = block_count(s.max_num_batched_tokens, bs);
  const std::int64_t kept = s.prefix_cache == PrefixCache::on ? held : 0;
  return {std::min(whole, held + chunk), std::min(s.max_num_seqs * whole, s.max_num_seqs * (held + kept) + chunk)};
}

}  // namespace

SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings s, Bytes kv, OutOfWindowKv windows) {
  const std::int64_t bs = s.kv.block_size;
  if (bs < 1 || s.max_num_seqs < 1 || s.max_model_len < 1 || s.max_num_batched_tokens < 1)
    throw Error(
        "SERVE", "the server could not serve any request",
        {.found = std::to_string(s.max_num_seqs) + " requests of " + std::to_string(s.max_model_len) + " tokens, " +
                  std::to_string(s.max_num_batched_tokens) + " tokens in a step, blocks of " + std::to_string(bs),
         .expected = "at least 1 of each"});
  std::int64_t bytes[2]{};  // of a block: full layers, sliding ones
  for (const model::Layer& l : config.layers)
    if (l.has_k)
      bytes[windows == OutOfWindowKv::freed && is_sliding(config, l)] +=
          2 * bs * l.kv_heads * l.head_dim * static_cast<std::int64_t>(sizeof(float));
  std::int64_t least = 0, most = 0;
  for (const int sliding : {0, 1}) {
    const BlockDemand d = block_demand(s, sliding ? config.sliding_window : 0);
    least += bytes[sliding] * d.one;
    most += bytes[sliding] * d.all;
  }
  const std::int64_t available = kv.value > 0 ? kv.value : most;
  if (available < least)
    throw Error(
        "SERVE", "the KV cache is too small for one request of max_model_len tokens",
        {.place = "serve.kv_gib",
         .found = to_text(Bytes(available)),
         .expected = "at least " + to_text(Bytes(least)) + " for " + std::to_string(s.max_model_len) + " tokens",
         .fix = "lower serve.max_model_len or give the KV cache more memory"});
  const double share = most > least ? static_cast<double>(available - least) / static_cast<double>(most - least) : 0;
  s.kv.groups.clear();
  s.kv.capacity = Bytes(0);
  for (const int sliding : {0, 1}) {
    if (bytes[sliding] == 0) continue;
    const int window = sliding ? config.sliding_window : 0;
    const BlockDemand d = block_demand(s, window);
    const auto blocks =
        static_cast<int>(std::min(1e9, static_cast<double>(d.one) + share * static_cast<double>(d.all - d.one)));
    s.kv.groups.push_back({.window = window, .block_bytes = Bytes(bytes[sliding]), .max_blocks = blocks});
    s.kv.capacity += Bytes(bytes[sliding]) * blocks;
  }
  return s;
}

SchedulerSettings lay_out_engine_kv(const model::Config& config, SchedulerSettings wanted, Bytes kv,
                                    OutOfWindowKv windows, const DeviceForServing& device) {
  SchedulerSettings s = lay_out_engine_kv(config, wanted, kv, windows);
  if (kv.value > 0) return s;
  engine::ServingWork work = planned_serving(config, s);
  work.groups.clear();
  const Ledger steps = plan::predict_memory(config, device.model, work).at_peak;  // without KV blocks
  const Bytes left = device.free - steps[MemoryCategory::activations] - steps[MemoryCategory::logits] -
                     steps[MemoryCategory::workspace];
  if (s.kv.capacity.value <= left.value / 2) return s;
  return lay_out_engine_kv(config, wanted, Bytes(std::max<std::int64_t>(1, left.value / 2)), windows);
}

engine::ServingCapacity engine_capacity(const model::Config& config, const SchedulerSettings& s) {
  engine::ServingCapacity room{.block_size = s.kv.block_size,
                               .groups = {},
                               .tokens = std::max(s.max_num_batched_tokens, s.max_num_seqs),
                               .rows = s.max_num_seqs,
                               .context = s.max_model_len};
  const bool separate_groups = s.kv.groups.size() > 1;
  for (const KvGroup& g : s.kv.groups) {
    engine::ServingCapacity::Group& group = room.groups.emplace_back();
    group.blocks = g.max_blocks;
    for (size_t i = 0; i < config.layers.size(); ++i)
      if (config.layers[i].has_k && (!separate_groups || is_sliding(config, config.layers[i]) == (g.window > 0)))
        group.layers.push_back(static_cast<int>(i));
  }
  return room;
}

engine::ServingWork planned_serving(const model::Config& config, const SchedulerSettings& settings) {
  const engine::ServingCapacity room = engine_capacity(config, settings);
  return {.tokens = room.tokens,
          .rows = room.rows,
          .context = room.context,
          .block_size = room.block_size,
          .groups = room.groups,
          .adapters = {}};
}

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
  for (const engine::TokenCandidate& candidate : best)
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

void EngineExecutor::add_adapter(const std::string& name, const formats::PeftAdapter& adapter) {
  if (name.empty() || adapters_.contains(name))
    throw Error("ADAPTER", "the name of an adapter is empty or already taken",
                {.place = "serve.adapters", .found = "\"" + name + "\"", .expected = "a unique name for each adapter"});
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
  if (request.prompt_ids.empty()) throw Error("PROMPT", "the prompt is empty", {.expected = "at least one token"});
  for (const int token : request.prompt_ids)
    if (token < 0 || token >= vocab)
      throw Error("PROMPT", "a prompt token is outside the vocabulary",
                  {.found = std::to_string(token), .expected = "0.." + std::to_string(vocab - 1)});
  if (request.prompt_ids.size() >= static_cast<size_t>(max_model_len_))
    throw Error("CONTEXT", "the prompt is too long to generate a token after it",
                {.found = std::to_string(request.prompt_ids.size()) + " tokens",
                 .expected = "less than " + std::to_string(max_model_len_)});
  auto sequence = std::make_shared<Sequence>();
  if (!request.adapter.empty()) {
    const auto found = adapters_.find(request.adapter);
    if (found == adapters_.end())
      throw Error("ADAPTER", "the server has no adapter of this name", {.found = request.adapter});
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
