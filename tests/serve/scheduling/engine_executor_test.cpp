// SPDX-License-Identifier: GPL-3.0-or-later
// Served tokens equal those of `generate` for every request alone, whatever the batch, the chunks of the prompt, the
// prefix cache and preemptions are.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/engine/generate/sampler.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/serve/scheduling/engine_executor.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::serve {
namespace {

using engine::Network;

struct Job {
  GenerationRequest request{.sampling = {.max_new_tokens = 8}};
  int at_step = 0;
};

struct Outcome {
  std::vector<std::vector<int>> texts;
  SchedulerState state;
  int most_running = 0, steps = 0, chunked = 0;  // items that continue a prompt
};

// The adapter of a tuned network as a file would hold it.
formats::PeftAdapter adapter_of(const Network& tuned) {
  formats::PeftAdapter adapter;
  for (const engine::LoraTensors& m : tuned.lora())
    adapter.modules.push_back(
        {m.target, m.rank, m.alpha, {m.a.begin(), m.a.end()}, {m.b.begin(), m.b.end()}, {m.m.begin(), m.m.end()}});
  return adapter;
}

using Adapters = std::map<std::string, formats::PeftAdapter>;

Outcome serve(Network& network, const SchedulerSettings& settings, const std::vector<Job>& jobs,
              const Adapters& adapters = {}) {
  EngineExecutor executor(network, settings);
  for (const auto& [name, adapter] : adapters) executor.add_adapter(name, adapter);
  Scheduler scheduler(settings);
  Outcome out{.texts = std::vector<std::vector<int>>(jobs.size()), .state = {}};
  size_t added = 0, open = jobs.size();
  for (; open > 0; ++out.steps) {
    if (out.steps > 5000) throw std::logic_error("the scheduler does not finish");
    for (; added < jobs.size() && jobs[added].at_step <= out.steps; ++added) {
      const Job& job = jobs[added];
      const RequestId id{static_cast<std::int64_t>(added)};
      executor.begin(id, job.request);
      std::uint64_t salt = 0;
      for (const char c : job.request.adapter) salt = mix64(salt ^ static_cast<unsigned char>(c));
      ScheduledRequest request{.id = id,
                               .prompt_len = static_cast<int>(job.request.prompt_ids.size()),
                               .max_new_tokens = job.request.sampling.max_new_tokens,
                               .arrival_s = static_cast<double>(added)};
      if (settings.prefix_cache == PrefixCache::on)
        request.prompt_blocks = hash_blocks(job.request.prompt_ids, settings.kv.block_size, salt);
      scheduler.add(std::move(request));
    }
    const Step step = scheduler.next();
    EXPECT_TRUE(step.rejected.empty());
    if (step.items.empty()) continue;
    for (const StepItem& item : step.items) out.chunked += item.count > 1 && item.first > 0;
    out.most_running = std::max(out.most_running, scheduler.state().running);
    const StepResult result = executor.run(step, scheduler);
    EXPECT_GT(result.seconds, 0);
    scheduler.advance(step);
    std::vector<RequestId> ended;
    for (const SampledToken& s : result.sampled) {
      const auto i = static_cast<size_t>(s.id);
      if (!s.is_stop) out.texts[i].push_back(s.token);
      if (!s.is_stop && static_cast<int>(out.texts[i].size()) < jobs[i].request.sampling.max_new_tokens) continue;
      ended.push_back(s.id);
    }
    scheduler.finish(ended);
    for (const RequestId id : ended) executor.end(id), --open;
  }
  out.state = scheduler.state();
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(out.state.kv_used, 0) << "finished requests hold no blocks";
  return out;
}

std::vector<int> generated(Network& network, const Job& job) {
  return engine::Sampler(network).generate(job.request.prompt_ids, job.request.sampling);
}

constexpr int kVocab = 61;

std::vector<int> text(std::uint64_t seed, int len) {
  const Rng rng{seed, 77};
  std::vector<int> ids;
  for (int i = 0; i < len; ++i) ids.push_back(static_cast<int>(rng.at(static_cast<std::uint64_t>(i)) % kVocab));
  return ids;
}

// Mixed lengths that arrive while others run; half of the prompts share a prefix.
std::vector<Job> mixed_jobs(int count = 14) {
  std::vector<Job> jobs;
  for (int i = 0; i < count; ++i) {
    Job job{.request = {.sampling = {.max_new_tokens = 3 + i * 7 % 19}}, .at_step = i * 2 / 3};
    const int lens[]{1, 33, 7, 20, 48, 2, 11};
    job.request.prompt_ids = text(static_cast<std::uint64_t>(100 + i), lens[i % 7]);
    if (i % 2 == 1) {
      const std::vector<int> common = text(5, 22);
      job.request.prompt_ids.insert(job.request.prompt_ids.begin(), common.begin(), common.end());
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

SchedulerSettings settings_of(const model::Config& config, Bytes kv = Bytes(0)) {
  SchedulerSettings s{.max_num_seqs = 6, .max_num_batched_tokens = 24, .max_model_len = 96, .kv = {}};
  s.kv.block_size = 4;
  return lay_out_engine_kv(config, s, kv);
}

class EngineExecutorTest : public ::testing::TestWithParam<std::string> {
 protected:
  EngineExecutorTest()
      : config_(engine::test::as_family(engine::test::tiny_config(), GetParam())),
        device_(Bytes(0), 2),
        network_(config_, device_, model::WeightType::f32) {
    engine::test::fill(network_, 8, 0.25f);
  }
  std::vector<std::vector<int>> expected(const std::vector<Job>& jobs) {
    std::vector<std::vector<int>> all;
    for (const Job& job : jobs) all.push_back(generated(network_, job));
    return all;
  }
  model::Config config_;
  engine::Device device_;
  Network network_;
};
INSTANTIATE_TEST_SUITE_P(Families, EngineExecutorTest, ::testing::ValuesIn(engine::test::families()),
                         engine::test::family_name);

TEST_P(EngineExecutorTest, FullBatchEqualsGenerateWithAndWithoutChunksAndPrefixCache) {
  const std::vector<Job> jobs = mixed_jobs();
  const auto alone = expected(jobs);
  for (const auto prefix : {PrefixCache::off, PrefixCache::on})
    for (const auto chunks : {ChunkedPrefill::off, ChunkedPrefill::on}) {
      SchedulerSettings s = settings_of(config_);
      s.prefix_cache = prefix, s.chunked_prefill = chunks;
      if (chunks == ChunkedPrefill::off) {
        s.max_num_batched_tokens = 96;
        s = lay_out_engine_kv(config_, s, Bytes(0));
      }
      const Outcome out = serve(network_, s, jobs);
      EXPECT_EQ(out.texts, alone) << "prefix cache " << (prefix == PrefixCache::on) << ", chunks "
                                  << (chunks == ChunkedPrefill::on);
      EXPECT_EQ(out.most_running, 6);
      EXPECT_GE(out.chunked, chunks == ChunkedPrefill::on ? 5 : 0);
      EXPECT_GE(out.state.cached_tokens, prefix == PrefixCache::on ? 40 : 0);
    }
}

TEST_P(EngineExecutorTest, SingleRequestEqualsGenerateWithAndWithoutCacheHit) {
  Job job{.request = {.prompt_ids = text(3, 40), .sampling = {.max_new_tokens = 20}}};
  const auto alone = expected({job});
  Job again = job;
  again.at_step = 40;
  const Outcome out = serve(network_, settings_of(config_), {job, again});
  EXPECT_EQ(out.texts[0], alone[0]);
  EXPECT_EQ(out.texts[1], alone[0]);
  EXPECT_EQ(out.state.cached_tokens, 36) << "full blocks; at least one token is computed";
}

TEST_P(EngineExecutorTest, PreemptionDoesNotChangeTokens) {
  const std::vector<Job> jobs = mixed_jobs();
  const auto alone = expected(jobs);
  const SchedulerSettings roomy = settings_of(config_);
  std::int64_t one = 0;  // bytes of one request of max_model_len
  for (const KvGroup& g : roomy.kv.groups)
    one += g.block_bytes.value * (g.window == 0 ? 24 : std::min(24, (g.window + 2) / 4 + 1 + 6));
  for (const auto prefix : {PrefixCache::off, PrefixCache::on}) {
    SchedulerSettings s = settings_of(config_, Bytes(one * 3 / 2));
    s.prefix_cache = prefix;
    const Outcome out = serve(network_, s, jobs);
    EXPECT_EQ(out.texts, alone);
    EXPECT_GT(out.state.preemptions, 0);
  }
}

TEST_P(EngineExecutorTest, KeepingBlocksBehindTheWindowDoesNotChangeTokens) {
  const std::vector<Job> jobs = mixed_jobs(6);
  SchedulerSettings s = settings_of(config_);
  s = lay_out_engine_kv(config_, s, Bytes(0), OutOfWindowKv::kept);
  ASSERT_EQ(s.kv.groups.size(), 1u);
  EXPECT_EQ(serve(network_, s, jobs).texts, expected(jobs));
}

TEST_P(EngineExecutorTest, SamplesTheSameTokensForASeedInAnyBatch) {
  std::vector<Job> jobs = mixed_jobs();
  for (size_t i = 0; i < jobs.size(); ++i) {
    options::SampleOptions& p = jobs[i].request.sampling;
    p.temperature = 0.9f, p.seed = i / 2, p.top_k = i % 3 == 0 ? 20 : 0, p.top_p = i % 4 == 0 ? 0.9f : 1.0f;
  }
  const auto alone = expected(jobs);
  EXPECT_EQ(serve(network_, settings_of(config_), jobs).texts, alone);
  jobs[4].request.prompt_ids = text(999, 17);
  jobs[5].request.sampling.seed = 1234;
  const auto others = serve(network_, settings_of(config_), jobs).texts;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (i != 4 && i != 5) {
      EXPECT_EQ(others[i], alone[i]) << i;
    }
  EXPECT_NE(others[5], alone[5]);
}

TEST_P(EngineExecutorTest, StopTokensEndTheText) {
  std::vector<Job> jobs = mixed_jobs();
  const auto whole = expected(jobs);
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].request.sampling.stop_ids = {whole[i][whole[i].size() / 2]};
  const auto cut = expected(jobs);
  EXPECT_NE(cut, whole);
  EXPECT_EQ(serve(network_, settings_of(config_), jobs).texts, cut);
}

TEST_P(EngineExecutorTest, UsesTheAdapterOfEachRequest) {
  Network first(config_, device_, model::WeightType::f32), second(config_, device_, model::WeightType::f32);
  for (Network* n : {&first, &second}) engine::test::fill(*n, 8, 0.25f);
  first.add_lora(engine::test::all_projections(), 5);
  engine::test::randomise_adapters(first, 6);
  options::Lora some = engine::test::all_projections(2);
  some.targets = {"q_proj", "down_proj"};
  some.dora = true;
  second.add_lora(some, 7);
  engine::test::randomise_adapters(second, 8);
  for (const engine::LoraTensors& module : second.lora())
    for (size_t i = 0; i < module.m.size(); ++i) module.m[i] *= i % 2 == 0 ? 1.4f : 0.7f;
  second.parameters_changed();
  std::vector<Job> jobs = mixed_jobs();
  Network* const of[]{&network_, &first, &second};
  const std::string names[]{"", "first", "second"};
  std::vector<std::vector<int>> alone;
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].request.adapter = names[i % 3];
    alone.push_back(generated(*of[i % 3], jobs[i]));
  }
  const SchedulerSettings roomy =
      settings_of(config_, settings_of(config_).kv.capacity * 4);  // enough to avoid most evictions
  const Outcome out = serve(network_, roomy, jobs, {{"first", adapter_of(first)}, {"second", adapter_of(second)}});
  EXPECT_EQ(out.texts, alone);
  EXPECT_GT(out.state.cached_tokens, 0) << "equal prefixes are shared under the same adapter only";
}

TEST(EngineExecutorErrors, RejectsInvalidPrompts) {
  engine::Device device(Bytes(0), 1);
  Network network(engine::test::tiny_config(), device, model::WeightType::f32);
  EngineExecutor executor(network, settings_of(network.config()));
  const auto id_of = [&](const GenerationRequest& request) -> std::string {
    try {
      executor.begin(RequestId{1}, request);
    } catch (const Error& e) {
      return e.problem().id;
    }
    return "";
  };
  EXPECT_EQ(id_of({.prompt_ids = {}}), "PROMPT");
  EXPECT_EQ(id_of({.prompt_ids = {3, kVocab}}), "PROMPT");
  EXPECT_EQ(id_of({.prompt_ids = {3, -1}}), "PROMPT");
  EXPECT_EQ(id_of({.prompt_ids = text(1, 96)}), "CONTEXT");
  EXPECT_EQ(id_of({.prompt_ids = {3}, .adapter = "none"}), "ADAPTER");
  EXPECT_EQ(id_of({.prompt_ids = text(1, 95)}), "");
  EXPECT_THROW(executor.add_adapter("", {}), Error);
}

TEST(EngineKvLayout, FollowsTheModelAndTheMemory) {
  const model::Config config = engine::test::tiny_config();
  const SchedulerSettings s = settings_of(config);
  ASSERT_EQ(s.kv.groups.size(), 2u);
  EXPECT_EQ(s.kv.groups[0].window, 0);
  EXPECT_EQ(s.kv.groups[1].window, 5);
  EXPECT_EQ(s.kv.groups[0].block_bytes.value, 1 * 2 * 4 * 2 * 8 * 4) << "one full layer";
  EXPECT_EQ(s.kv.groups[1].block_bytes.value, 3 * 2 * 4 * 2 * 8 * 4);
  EXPECT_EQ(s.kv.groups[0].max_blocks, 6 * 24);
  EXPECT_EQ(s.kv.groups[1].max_blocks, 6 * (2 + 2) + 6);
  EXPECT_EQ(s.kv.capacity.value, 144 * s.kv.groups[0].block_bytes.value + 30 * s.kv.groups[1].block_bytes.value);
  const Bytes half(s.kv.capacity.value / 2), twice(2 * s.kv.capacity.value);
  EXPECT_LE(settings_of(config, half).kv.capacity, half);
  EXPECT_LE(settings_of(config, twice).kv.capacity, twice);
  EXPECT_GT(settings_of(config, twice).kv.groups[0].max_blocks, s.kv.groups[0].max_blocks);
  EXPECT_THROW(settings_of(config, Bytes(1000)), Error);

  engine::Device device(Bytes((1 << 20) + 2 * sizes::kPackedBlocks * 2), 2);  // 1 MiB beside the products' workspace
  Network network(config, device, model::WeightType::f32);
  SchedulerSettings wanted = s;
  wanted.max_num_seqs = 64;
  const Bytes free = device.arena.capacity() - device.arena.use().now.total();
  const SchedulerSettings fits =
      lay_out_engine_kv(config, wanted, Bytes(0), OutOfWindowKv::freed, {{.threads = 2}, free});
  EXPECT_LT(fits.kv.capacity, lay_out_engine_kv(config, wanted, Bytes(0)).kv.capacity);
  const EngineExecutor executor(network, fits);  // must not run out of memory
}

}  // namespace
}  // namespace mw::serve
