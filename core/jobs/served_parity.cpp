// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/served_parity.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "core/engine/generate/sampler.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/engine_kv_layout.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int>;
constexpr int kBlock = 16;  // tokens of a KV block, vLLM's default

train::LoadedModel load_folder(const fs::path& folder, model::WeightType weights) {
  train::ModelSettings settings;
  settings.path = folder;
  settings.weights = weights;
  settings.use = engine::NetworkUse::inference;
  return train::load_weights(settings, formats::read_config(folder));
}

serve::SchedulerSettings server_settings(const model::Config& config, int longest) {
  serve::SchedulerSettings settings;
  settings.max_num_seqs = 1;
  settings.max_model_len = longest + kGreedyTokens + 1;
  settings.max_num_batched_tokens = settings.max_model_len;
  settings.kv.block_size = kBlock;
  return serve::lay_out_engine_kv(config, settings, Bytes(0), serve::OutOfWindowKv::kept);
}

// One token at a time, as a server decodes, so that every position gives logits.
void score(engine::Network& network, const serve::SchedulerSettings& settings,
           const std::vector<train::ParityPrompt>& prompts, std::vector<float>& logits) {
  engine::ServingEngine server(network, serve::engine_capacity(network.config(), settings));
  const size_t groups = server.capacity().groups.size();
  Tokens blocks(static_cast<size_t>((settings.max_model_len + kBlock - 1) / kBlock));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int>(i);
  const std::vector<std::span<const int>> of_groups(groups, std::span<const int>(blocks));
  for (const train::ParityPrompt& prompt : prompts)
    for (size_t i = 0; i < prompt.ids.size(); ++i) {
      const engine::TokenChunk chunk{
          .ids = std::span(prompt.ids).subspan(i, 1), .first = static_cast<int>(i), .blocks = of_groups};
      const std::span<float> row = server.step(std::span(&chunk, 1));
      logits.insert(logits.end(), row.begin(), row.end());
    }
}

Tokens served_text(serve::ServingLoop& loop, const train::ParityPrompt& prompt) {
  serve::GenerationRequest request;
  request.prompt_ids = prompt.ids;
  request.sampling.max_new_tokens = kGreedyTokens;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Tokens out;
  std::string error;
  loop.submit(std::move(request), [&](serve::RequestId, const serve::TokenEvent& event) {
    const std::lock_guard lock(mutex);
    if (!event.is_last()) return out.push_back(event.token);
    error = event.error;
    done = true;
    ended.notify_one();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return done; });
  if (!error.empty()) throw Error({.id = "SERVE", .message = error}, Error::Kind::failed);
  return out;
}

// The logit of one token minus that of another after `ids`.
double margin(engine::Network& network, const Tokens& ids, int token, int other) {
  const int n = static_cast<int>(ids.size());
  Tokens targets(ids.size(), -1), positions(ids.size()), segments(ids.size(), 0);
  for (int i = 0; i < n; ++i) positions[static_cast<size_t>(i)] = i;
  const auto vocab = static_cast<size_t>(network.config().vocab);
  std::vector<float> logits(ids.size() * vocab);
  network.logits({1, n, ids, targets, positions, segments}, logits);
  const float* last = logits.data() + (ids.size() - 1) * vocab;
  return double{last[token]} - last[other];
}

train::GreedyText compare_texts(engine::Network& network, const Tokens& prompt, int index, Tokens with_adapter,
                                Tokens merged) {
  train::GreedyText text{.prompt = index, .with_adapter = std::move(with_adapter), .merged = std::move(merged)};
  const auto [a, b] =
      std::mismatch(text.with_adapter.begin(), text.with_adapter.end(), text.merged.begin(), text.merged.end());
  if (a == text.with_adapter.end() || b == text.merged.end()) return text;
  text.first_difference = static_cast<int>(a - text.with_adapter.begin());
  Tokens before = prompt;
  before.insert(before.end(), text.with_adapter.begin(), a);
  text.margin = margin(network, before, *a, *b);
  return text;
}

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) throw cancelled("the check");
}

}  // namespace

train::ServedRun run_served(const ServedParityRequest& request, const std::vector<train::ParityPrompt>& prompts,
                            std::stop_token stop) {
  const model::Config config = formats::read_config(request.merged);
  const std::int64_t parameters = model::TensorInventory(config).parameters();
  const Bytes need(parameters * (request.weights == model::WeightType::f32 ? 4 : 2) * 5 / 4),
      machine = train::machine_memory();
  train::ServedRun out;
  if (need > machine) {
    out.not_run =
        "serving the whole model needs about " + to_text(need) + ", but only " + to_text(machine) + " are available";
    return out;
  }
  size_t longest = 0;
  for (const train::ParityPrompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  std::vector<Tokens> texts;
  {
    throw_if_stopped(stop);
    train::LoadedModel merged = load_folder(request.merged, request.weights);
    engine::Network& network = merged.cluster->network(0);
    const serve::SchedulerSettings settings = server_settings(config, static_cast<int>(longest));
    score(network, settings, prompts, out.logits);
    serve::EngineExecutor executor(network, settings);
    serve::ServingLoop loop(settings, executor, 1);
    for (const train::ParityPrompt& prompt : prompts) {
      throw_if_stopped(stop);
      texts.push_back(served_text(loop, prompt));
    }
  }
  throw_if_stopped(stop);
  train::LoadedModel base = load_folder(request.base, request.weights);
  train::attach_adapter(*request.adapter, 0, *base.cluster);
  engine::Network& network = base.cluster->network(0);
  engine::Sampler sampler(network);
  options::SampleOptions greedy;
  greedy.max_new_tokens = kGreedyTokens;
  for (size_t i = 0; i < prompts.size(); ++i) {
    throw_if_stopped(stop);
    out.texts.push_back(compare_texts(network, prompts[i].ids, static_cast<int>(i),
                                      sampler.generate(prompts[i].ids, greedy, stop), std::move(texts[i])));
  }
  throw_if_stopped(stop);
  return out;
}

}  // namespace mw::jobs
