// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a server as the planner prices them, and the KV cache that it would have.
#include "core/plan/prediction/serve_step.h"

#include <gmock/gmock.h>

#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/step_time.h"
#include "tests/plan/requests.h"

namespace mw::plan {
namespace {

Request server(const char* model, const char* target, model::Stack stack, int tp) {
  Request r = request(model, target, stack, {{"tp", tp}});
  r.work = Work::serve;
  r.targets.clear();
  r.serve.max_model_len = 16384;
  return r;
}
Request tpu() {
  return server("gemma4-31b", "v6e-8", model::Stack::vllm_tpu, 8);
}
Request gpu() {
  return server("gemma4-31b", "2xh100", model::Stack::vllm_gpu, 2);
}

StepLoad mixed() {
  return {.decoding = 20,
          .prefill_tokens = 700,
          .prefilling = 2,
          .prefill_pairs = 3e5,
          .prefill_window_pairs = 2e5,
          .read_tokens = 4e4,
          .read_window_tokens = 2e4};
}

TEST(ServeStep, PartsSumToTheStep) {
  for (const Request& r : {tpu(), gpu()}) {
    const ServeStepModel m(r);
    for (const StepLoad& load : {mixed(), StepLoad{.decoding = 64, .read_tokens = 64e3, .read_window_tokens = 64e3},
                                 StepLoad{.prefill_tokens = 2048, .prefilling = 1, .prefill_pairs = 2e6}}) {
      const ServeStepModel::Parts p = m.parts(load);
      EXPECT_NEAR(p.total.value, m.seconds(load), 1e-9 * p.total.value);
      EXPECT_LE(p.total.low, p.total.value);
      EXPECT_GE(p.total.high, p.total.value);
      for (const Estimate* e : {&p.base, &p.sequences, &p.kv_reads, &p.prefill, &p.communication}) {
        EXPECT_GE(e->value, 0);
        EXPECT_FALSE(e->formula.empty());
        EXPECT_FALSE(e->source.empty());
      }
    }
    EXPECT_EQ(m.seconds({}), 0);
  }
}

TEST(ServeStep, NothingIsFasterThanItsFloor) {
  const ServeStepModel m(gpu());
  // Weights of 2x H100 at the full bandwidth; products of a long prompt at the full peak.
  EXPECT_GT(m.seconds({.decoding = 1}), 61.4e9 / 2 / 3.35e12);
  EXPECT_LT(m.seconds({.decoding = 1}), 2.1 * 61.4e9 / 2 / 3.35e12);
  EXPECT_GT(m.seconds({.prefill_tokens = 8192, .prefilling = 1}), 8192 * 2 * 29.3e9 / (2 * 989e12));
}

TEST(ServeStep, TimeGrowsWithWork) {
  for (const Request& r : {tpu(), gpu()}) {
    const ServeStepModel m(r);
    double before = 0;
    for (int n = 1; n <= 600; ++n) {
      const double now = m.seconds({.decoding = 20, .prefill_tokens = 4L * n, .prefilling = 1});
      EXPECT_GE(now, before) << n;
      before = now;
    }
  }
}

TEST(ServeStep, TpuStepsArePaddedToBuckets) {
  const ServeStepModel m(tpu());
  const auto of = [&](int n) { return m.parts({.decoding = n}); };
  EXPECT_EQ(of(1).padded_tokens, 16);
  EXPECT_EQ(of(1).padded_requests, 8);
  EXPECT_EQ(of(17).padded_tokens, 32);
  EXPECT_EQ(of(64).padded_requests, 64);
  EXPECT_DOUBLE_EQ(m.seconds({.decoding = 33}), m.seconds({.decoding = 64}));
  EXPECT_LT(m.seconds({.decoding = 32}), m.seconds({.decoding = 33}));
  EXPECT_EQ(m.parts({.prefill_tokens = 2000, .prefilling = 1}).padded_tokens, 2048);
  const ServeStepModel g(gpu());
  EXPECT_EQ(g.parts({.decoding = 33}).padded_tokens, 33);
  EXPECT_LT(g.seconds({.decoding = 33}), g.seconds({.decoding = 64}));
}

TEST(ServeStep, CacheMatchesPublishedServers) {
  Request t = tpu(), g = gpu();
  t.sliding_window_kv = g.sliding_window_kv = false;
  const ServeStepModel::Kv on_tpu = ServeStepModel(t).kv(), on_gpu = ServeStepModel(g).kv();
  ASSERT_EQ(on_tpu.groups.size(), 1u);
  EXPECT_EQ(on_tpu.groups[0].layers, 60);
  EXPECT_EQ(on_tpu.groups[0].window, 0);
  // Four global KV heads on eight devices: held twice.
  EXPECT_DOUBLE_EQ(on_tpu.groups[0].bytes_per_token, 491520 * 2);
  EXPECT_DOUBLE_EQ(on_gpu.groups[0].bytes_per_token, 450560 * 2);
  // 181k and 95-104k tokens by the reference's arithmetic (1.7).
  EXPECT_NEAR(static_cast<double>(on_tpu.capacity.value) / (491520 * 2), 181e3, 18e3);
  EXPECT_NEAR(static_cast<double>(on_gpu.capacity.value) / (450560 * 2), 99e3, 10e3);
  t.kv = model::DType::fp8;
  EXPECT_DOUBLE_EQ(ServeStepModel(t).kv().groups[0].bytes_per_token, 491520);
}

TEST(ServeStep, SlidingLayersFormAGroupIfWindowsAreCached) {
  const ServeStepModel m(gpu());
  const ServeStepModel::Kv kv = m.kv();
  ASSERT_EQ(kv.groups.size(), 2u);
  for (const auto& g : kv.groups) {
    EXPECT_EQ(g.layers, g.window > 0 ? 50 : 10);
    EXPECT_DOUBLE_EQ(g.bytes_per_token, 2.0 * (g.window > 0 ? 50 * 16 * 256 * 2 : 10 * 4 * 512 * 2));
  }
  EXPECT_EQ(m.window(), 1024);
  EXPECT_EQ(ServeStepModel(server("qwen3-32b", "2xh100", model::Stack::vllm_gpu, 2)).window(), 0);
}

TEST(ServeStep, TpuServersWithoutWindowCachesReadThemWhole) {
  const StepLoad load{.decoding = 8, .read_tokens = 8 * 8192, .read_window_tokens = 8 * 1024};
  Request t = tpu(), g = gpu();
  const double windowed = ServeStepModel(t).parts(load).kv_reads.value,
               windowed_gpu = ServeStepModel(g).parts(load).kv_reads.value;
  t.sliding_window_kv = g.sliding_window_kv = false;
  // Bytes of a token in sliding and global layers: 102,400 and 20,480 on each chip.
  EXPECT_NEAR(ServeStepModel(t).parts(load).kv_reads.value / windowed, 8192.0 * 122880 / (1024 * 102400 + 8192 * 20480),
              1e-9);
  EXPECT_DOUBLE_EQ(ServeStepModel(g).parts(load).kv_reads.value, windowed_gpu);
}

// vLLM turns to Triton for all layers of a model with heads of 512, whose attention is far from the peak.
TEST(ServeStep, LongHeadsOnGpusUseTriton) {
  const StepLoad prompt{.prefill_tokens = 8192, .prefilling = 1};
  StepLoad full = prompt, window = prompt;
  full.prefill_pairs = window.prefill_window_pairs = 1e7;
  const ServeStepModel m(gpu());
  const double pairs = 1e7 * 4 * 32 / 2 / 989e12;
  EXPECT_NEAR(m.seconds(full) - m.seconds(prompt), 10 * 512 * pairs / 0.061, 1e-3);
  EXPECT_NEAR(m.seconds(window) - m.seconds(prompt), 50 * 256 * pairs / 0.122, 1e-3);
  const ServeStepModel short_heads(server("gemma3-27b", "2xh100", model::Stack::vllm_gpu, 2));
  const double share = short_heads.parts(full).prefill.value - short_heads.parts(prompt).prefill.value;
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 10 * 128 * pairs / 0.3);
}

TEST(ServeStep, AsyncSchedulingRemovesHostTime) {
  Request r = tpu();
  const double between = ServeStepModel(r).seconds({.decoding = 8});
  enable_async_scheduling(r);
  EXPECT_NEAR(between - ServeStepModel(r).seconds({.decoding = 8}), 4.5e-3 - 0.5e-3, 1e-9);
}

// 64 sums over the f32 logits of 262,144 tokens and 16 further passes, for the 64 rows of the bucket.
TEST(ServeStep, SamplingOnTpusPassesOverTheLogits) {
  Request r = tpu();
  const StepLoad load{.decoding = 60, .read_tokens = 6e4, .read_window_tokens = 6e4};
  const double greedy = ServeStepModel(r).seconds(load);
  r.serve.sampling = options::Sampling::top_k_top_p;
  const ServeStepModel sampled(r);
  const double passes = 80 * 64 * 262144.0 * 4 / (1638e9 * r.efficiencies.sampling.value);
  EXPECT_NEAR(sampled.seconds(load) - greedy, passes, 1e-9);
  EXPECT_NEAR(sampled.parts(load).total.value, sampled.seconds(load), 1e-12);
  EXPECT_THAT(sampled.parts(load).sequences.formula, testing::HasSubstr("in sampling"));
  EXPECT_EQ(sampled.parts({.decoding = 9}).sequences.formula,  // 16 rows stay on the chip
            ServeStepModel(tpu()).parts({.decoding = 9}).sequences.formula);
  Request g = gpu();  // not modelled there
  const double before = ServeStepModel(g).seconds(load);
  g.serve.sampling = options::Sampling::top_k_top_p;
  EXPECT_EQ(ServeStepModel(g).seconds(load), before);
}

// 128 MiB of v6e hold the activations of a step with 2,048 tokens: two copies of the residual stream (5,376 wide) and
// the outputs of gate and up (2 x 21,504 / 8 on a device), 2 bytes each. Of 8,192 tokens, most are read from HBM.
TEST(ServeStep, ActivationsThatFitStayOnTheChip) {
  const auto activations = [](const Request& r, std::int64_t tokens) {
    const ServeStepModel m(r);
    const StepLoad load{.prefill_tokens = tokens, .prefilling = 1};
    EXPECT_NEAR(m.parts(load).total.value, m.seconds(load), 1e-12);
    Request off = r;
    off.target.chip.on_chip_memory = {};
    return std::pair(m.seconds(load), ServeStepModel(off).seconds(load));
  };
  Request r = tpu();
  r.serve.max_num_batched_tokens = 8192;
  const auto [kept, all] = activations(r, 2048);
  const auto [some_of_8k, all_of_8k] = activations(r, 8192);
  EXPECT_LT(kept, all);
  EXPECT_NEAR((all_of_8k - some_of_8k) / (all - kept), 128 * 1048576.0 / (2 * (2 * 5376 + 2 * 21504 / 8)) / 2048, 1e-9);
  const auto [gpu_now, gpu_without] = activations(gpu(), 2048);
  EXPECT_EQ(gpu_now, gpu_without);
  // Each token is copied to its experts, and their outputs are kept until they are summed.
  Request experts = server("gemma4-26b-a4b", "v6e-8", model::Stack::vllm_tpu, 8);
  experts.serve.max_num_batched_tokens = 8192;
  const auto [kept_1k, all_1k] = activations(experts, 1024);
  const auto [some, all_tokens] = activations(experts, 8192);
  const double values = (2.0 + 2 * experts.model.experts_per_token) * experts.model.dim;
  EXPECT_NEAR((all_tokens - some) / (all_1k - kept_1k), 128 * 1048576.0 / (2 * values) / 1024, 1e-9);
}

TEST(ServeStep, CollectivesOfAnyCountMatchTheirList) {
  for (const Request& r : {tpu(), gpu(), server("gemma3-1b", "v6e-8", model::Stack::vllm_tpu, 8)}) {
    const LocalModel m = local_model(r, mesh::ShardingUse::sampling);
    const StepCollectives::List list = [&](std::int64_t count) {
      return step_collectives(r, m.config, m.placement,
                              complete_step_shape({.work = mesh::StepKind::decode, .rows = count, .tokens = 1}, r));
    };
    StepCollectives sums(list);
    for (const std::int64_t count : {1, 7, 30, 64, 100, 2048, 99999, 3000000}) {
      const auto own = list(count);
      const auto& told = sums.of(count);
      ASSERT_EQ(told.size(), own.size());
      ASSERT_FALSE(own.empty());
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_NEAR(told[i].full / own[i].full, 1, 1e-6) << r.target.id << " " << count << " " << own[i].tensor;
        EXPECT_NEAR(told[i].moved / own[i].moved, 1, 1e-6);
        EXPECT_EQ(told[i].calls, own[i].calls);
      }
    }
  }
}

// A step of 64 sequences reads nearly all of the 128 experts of each layer, one sequence the 8 that it chooses.
TEST(ServeStep, ExpertsReadFollowTheBatch) {
  Request r = server("gemma4-26b-a4b", "1xh100", model::Stack::vllm_gpu, 1);
  r.efficiencies.memory.value = r.efficiencies.matmul.value = 1;
  r.efficiencies.step_s.value = r.efficiencies.layer_s.value = r.efficiencies.sequence_s.value = 0;
  const model::Config& c = r.model;
  const double experts = 3.0 * c.expert_dim * c.dim * static_cast<double>(c.layers.size()) * 2 / 3.35e12;  // s of each
  const auto base = [&](int n) { return ServeStepModel(r).parts({.decoding = n}).base.value; };
  EXPECT_NEAR(base(64) - base(1), 128 * (1 - std::pow(1 - 8.0 / 128, 64)) * experts - 8 * experts, 0.01 * base(64));
  EXPECT_GT(base(64), 48e9 / 3.35e12);  // 50.5 GB in bf16; 7.6 GB were read
  EXPECT_LT(base(64), 51e9 / 3.35e12);
  EXPECT_LT(base(1), 9e9 / 3.35e12);
}

// A replica computes a whole prompt: three idle ones beside it do not shorten it.
TEST(ServeStep, ReplicasDoNotSplitAPrompt) {
  Request one = server("gemma3-4b", "1xh100", model::Stack::vllm_gpu, 1);
  Request four = server("gemma3-4b", "4xh100", model::Stack::vllm_gpu, 1);
  four.mesh.axes = {{"data", 4}, {"tp", 1}};
  const StepLoad prompt{.prefill_tokens = 2048, .prefilling = 1, .prefill_pairs = 2e6, .prefill_window_pairs = 1e6};
  EXPECT_NEAR(ServeStepModel(four).seconds(prompt) / ServeStepModel(one).seconds(prompt), 1, 1e-9);
  EXPECT_NEAR(predict(four).serve->ttft.value / predict(one).serve->ttft.value, 1, 1e-9);
  EXPECT_GT(predict(four).serve->output_tokens_per_second, predict(one).serve->output_tokens_per_second);
}

// Blocks of the TPU kernel held twice as many tokens of an fp8 cache, whose products took longer than the bytes.
TEST(ServeStep, SmallerCachesAreNoSlower) {
  for (const char* name : {"gemma4-31b", "qwen3-32b"})
    for (const bool windowed : {true, false})
      for (const double context : {256, 2048, 8192, 16000}) {
        Request r = server(name, "v6e-8", model::Stack::vllm_tpu, 8);
        r.sliding_window_kv = windowed;
        const StepLoad load{
            .decoding = 64, .read_tokens = 64 * context, .read_window_tokens = 64 * std::min(context, 1024.0)};
        const ServeStepModel::Parts wide = ServeStepModel(r).parts(load);
        r.kv = model::DType::fp8;
        const ServeStepModel::Parts small = ServeStepModel(r).parts(load);
        EXPECT_LE(small.kv_reads.value, wide.kv_reads.value) << name << " " << context;
        EXPECT_TRUE(small.kv_reads.value < 0.99 * wide.kv_reads.value || wide.products_bound_reads)
            << name << " " << context;
      }
}

// TensorRT-LLM launches the kernels of a step with a prompt one by one; only steps of decoding are CUDA graphs.
TEST(ServeStep, PromptsOfTensorRtTakeAtLeastTheHostsTime) {
  const Request r = server("qwen3-32b", "8xh100", model::Stack::tensorrt_llm, 8);
  const double host = 64 * r.efficiencies.prompt_layer_s.value + r.efficiencies.sequence_s.value;
  const auto prompt = [](int tokens) {
    return StepLoad{.prefill_tokens = tokens, .prefilling = 1, .prefill_pairs = tokens * (tokens + 1) / 2.0};
  };
  const ServeStepModel model(r);
  EXPECT_GT(host, 0.03);
  EXPECT_DOUBLE_EQ(model.seconds(prompt(16)), host);
  EXPECT_GT(model.seconds(prompt(8192)), host);
  EXPECT_LT(model.seconds({.decoding = 8, .read_tokens = 8192}), host / 2);
  const ServeStepModel::Parts parts = model.parts(prompt(16));
  EXPECT_NEAR(
      parts.base.value + parts.sequences.value + parts.kv_reads.value + parts.prefill.value + parts.communication.value,
      host, 1e-9);
  EXPECT_LE(parts.total.low, host);
  EXPECT_GE(parts.total.high, host);
  Request vllm = server("qwen3-32b", "8xh100", model::Stack::vllm_gpu, 8);
  EXPECT_LT(ServeStepModel(vllm).seconds(prompt(16)), host / 2);
}

TEST(ServeStep, RejectsOtherWork) {
  Request r = gpu();
  r.work = Work::train;
  EXPECT_THROW(ServeStepModel{r}, Error);
}

}  // namespace
}  // namespace mw::plan
