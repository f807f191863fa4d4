// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/engine_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "core/serve/scheduling/engine_kv_layout.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;
using Logits = engine::ServeChunk::Logits;

}  // namespace

struct EngineExecutor::Request {
  std::vector<int> ids;  // of the prompt, then of the answer
  int answered = 0;
  int adapter = -1;
  engine::SampleOptions options;  // with stop_ids
};

EngineExecutor::EngineExecutor(engine::Network& network, const SchedulerSettings& settings)
    : server_(network, engine_capacity(network.config(), settings)), max_model_len_(settings.max_model_len) {}
EngineExecutor::~EngineExecutor() = default;

void EngineExecutor::add_adapter(const std::string& name, const formats::Adapter& adapter) {
  if (name.empty() || adapters_.contains(name))
    throw Error({.id = "ADAPTER",
                 .message = "an adapter needs a name of its own",
                 .place = "serve.adapters",
                 .found = "\"" + name + "\"",
                 .expected = "a name that no other one has"});
  std::vector<engine::AdapterValues> values;
  for (const formats::AdapterModule& m : adapter.modules) {
    const auto rank = static_cast<float>(m.rank);
    values.push_back({m.target, m.rank, m.alpha / (adapter.rslora ? std::sqrt(rank) : rank), m.a, m.b});
  }
  adapters_[name] = server_.add_adapter(values);
}

std::vector<std::string> EngineExecutor::adapters() const {
  std::vector<std::string> names;
  for (const auto& [name, index] : adapters_) names.push_back(name);
  return names;
}

void EngineExecutor::begin(RequestId id, const Prompt& prompt) {
  const int vocab = server_.network().config().vocab;
  if (prompt.ids.empty())
    throw Error({.id = "PROMPT", .message = "the prompt is empty", .expected = "at least one token"});
  for (const int token : prompt.ids)
    if (token < 0 || token >= vocab)
      throw Error({.id = "PROMPT",
                   .message = "a prompt token is outside the vocabulary",
                   .found = std::to_string(token),
                   .expected = "0.." + std::to_string(vocab - 1)});
  if (prompt.ids.size() >= static_cast<size_t>(max_model_len_))
    throw Error({.id = "CONTEXT",
                 .message = "the prompt leaves no room for an answer",
                 .found = std::to_string(prompt.ids.size()) + " tokens",
                 .expected = "less than " + std::to_string(max_model_len_)});
  auto request = std::make_shared<Request>();
  if (!prompt.adapter.empty()) {
    const auto found = adapters_.find(prompt.adapter);
    if (found == adapters_.end())
      throw Error({.id = "ADAPTER", .message = "this server has no such adapter", .found = prompt.adapter});
    request->adapter = found->second;
  }
  request->ids = prompt.ids;
  request->options = {.temperature = prompt.temperature,
                      .top_k = prompt.top_k,
                      .top_p = prompt.top_p,
                      .seed = prompt.seed,
                      .stop_ids = prompt.stop_ids};
  const std::lock_guard lock(mutex_);
  requests_[id] = std::move(request);
}

void EngineExecutor::end(RequestId id) {
  const std::lock_guard lock(mutex_);
  requests_.erase(id);
}

std::shared_ptr<EngineExecutor::Request> EngineExecutor::find(RequestId id) const {
  const std::lock_guard lock(mutex_);
  return requests_.at(id);
}

StepResult EngineExecutor::run(const Step& step, const Scheduler& scheduler) {
  const auto begun = Clock::now();
  const size_t groups = server_.room().groups.size();
  std::vector<std::shared_ptr<Request>> requests, sampling;
  std::vector<std::span<const int>> blocks;
  std::vector<engine::ServeChunk> chunks;
  StepResult result;
  blocks.reserve(step.items.size() * groups);
  for (const StepItem& item : step.items) {
    const Request& r = *requests.emplace_back(find(item.id));
    for (size_t g = 0; g < groups; ++g) blocks.push_back(scheduler.blocks(item.id, g));
    chunks.push_back({std::span(r.ids).subspan(static_cast<size_t>(item.first), static_cast<size_t>(item.count)),
                      item.first, std::span(blocks).last(groups), r.adapter, item.samples ? Logits::last : Logits::no});
    if (!item.samples) continue;
    sampling.push_back(requests.back());
    result.sampled.push_back({.id = item.id});
  }
  const std::span<float> logits = server_.step(chunks);
  const auto vocab = static_cast<size_t>(server_.network().config().vocab);
  server_.network().device().pool.parallel_for(
      static_cast<std::int64_t>(sampling.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
          const Request& r = *sampling[i];
          result.sampled[i].token = engine::pick_token(logits.subspan(i * vocab, vocab), r.options,
                                                       engine::sampling_uniform(r.options.seed, 0, r.answered));
        }
      });
  for (size_t i = 0; i < sampling.size(); ++i) {
    Request& r = *sampling[i];
    StepResult::Sampled& s = result.sampled[i];
    s.ended = std::find(r.options.stop_ids.begin(), r.options.stop_ids.end(), s.token) != r.options.stop_ids.end();
    if (s.ended) continue;
    r.ids.push_back(s.token);
    ++r.answered;
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return result;
}

}  // namespace mw::serve
