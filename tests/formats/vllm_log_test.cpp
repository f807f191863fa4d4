// SPDX-License-Identifier: GPL-3.0-or-later
// Lines that vLLM printed on an RTX card, on TPU v6e and v5e, and its metrics: recorded, not from a run of ours.
#include "core/formats/logs/vllm_log.h"

#include <gmock/gmock.h>

namespace mw::formats {
namespace {

constexpr std::int64_t gib(double n) {
  return static_cast<std::int64_t>(n * 1073741824.0);
}
std::map<std::string, double> metrics_of(const std::vector<Event>& facts) {
  std::map<std::string, double> out;
  for (const auto& fact : facts)
    if (const auto* m = std::get_if<event::Metric>(&fact.body)) out[m->name] = m->value;
  return out;
}

TEST(VllmLog, ReadsTheMemoryOfAGpu) {
  VllmLog log;
  auto facts = log.take(
      "(EngineCore pid=258) INFO gpu_model_runner.py:4879 Model loading took 2.89 GiB memory and 60.297843 seconds");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(std::get<event::Memory>(facts[0].body).bytes[MemoryCategory::weights].value, gib(2.89));
  log.take("Estimated CUDA graph memory: 0.45 GiB total");
  facts = log.take("(EngineCore pid=258) INFO gpu_worker.py:440 Available KV cache memory: 0.56 GiB");
  ASSERT_EQ(facts.size(), 1u);
  const auto& memory = std::get<event::Memory>(facts[0].body);
  EXPECT_EQ(memory.device, 0);
  EXPECT_EQ(memory.bytes[MemoryCategory::kv_cache].value, gib(0.56));
  EXPECT_EQ(memory.peak.value, gib(2.89) + gib(0.45) + gib(0.56));
  facts = log.take("(EngineCore pid=258) INFO kv_cache_utils.py:1708 GPU KV cache size: 20,992 tokens");
  EXPECT_THAT(metrics_of(facts), testing::ElementsAre(testing::Pair("serve/kv_cache_tokens", 20992.0)));
}

TEST(VllmLog, TellsWorkersApart) {
  VllmLog log;
  for (const int rank : {0, 1}) {
    const auto facts = log.take("(Worker_TP" + std::to_string(rank) +
                                " pid=91) INFO Model loading took 29.6 GiB memory and 9.1 seconds");
    ASSERT_EQ(facts.size(), 1u);
    EXPECT_EQ(std::get<event::Memory>(facts[0].body).device, rank);
  }
}

TEST(VllmLog, DividesTheSumsOfATpuByItsChips) {
  VllmLog log;
  log.take(
      "Initializing a V1 LLM engine (v0.13.0) with config: model='google/gemma-4-31B-it', tensor_parallel_size=4, "
      "seed=0");
  const auto facts = log.take(
      "Memory statistics | total_hbm_limit_gb=124.97GiB | total_hbm_limit_cap_gb=114.97GiB | total_hbm_used_gb=58.4GiB "
      "| total_hbm_avail_gb=56.57GiB");
  ASSERT_EQ(facts.size(), 4u);
  for (int device = 0; device < 4; ++device) {
    const auto& memory = std::get<event::Memory>(facts[static_cast<size_t>(device)].body);
    EXPECT_EQ(memory.device, device);
    EXPECT_EQ(memory.bytes[MemoryCategory::weights].value, gib(58.4) / 4);
    EXPECT_EQ(memory.bytes[MemoryCategory::kv_cache].value, gib(56.57) / 4);
  }
}

TEST(VllmLog, ReadsStatisticsLines) {
  VllmLog log;
  const auto facts = log.take(
      "INFO 11-20 10:00:00 loggers.py:127] Engine 000: Avg prompt throughput: 1,204.5 tokens/s, Avg generation "
      "throughput: 85.1 tokens/s, Running: 12 reqs, Waiting: 3 reqs, GPU KV cache usage: 34.5%, Prefix cache hit rate: "
      "0.0%");
  EXPECT_THAT(metrics_of(facts),
              testing::ElementsAre(testing::Pair("serve/generation_tokens_per_second", 85.1),
                                   testing::Pair("serve/kv_cache_usage", testing::DoubleEq(0.345)),
                                   testing::Pair("serve/prompt_tokens_per_second", 1204.5),
                                   testing::Pair("serve/running", 12), testing::Pair("serve/waiting", 3)));
}

TEST(VllmLog, ReadsPrometheusMetrics) {
  VllmLog log;
  const auto facts = log.take_metrics(R"(# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3.8-27B-FP8"} 0.3412
vllm:num_requests_running{engine="0",model_name="q"} 24.0
vllm:num_requests_running{engine="1",model_name="q"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="q",reason="capacity"} 72.0
vllm:generation_tokens_total{engine="0",model_name="q"} 15000
)");
  EXPECT_THAT(metrics_of(facts),
              testing::ElementsAre(testing::Pair("serve/generation_tokens", 15000),
                                   testing::Pair("serve/kv_cache_usage", 0.3412), testing::Pair("serve/running", 26)));
  EXPECT_TRUE(log.take_metrics("<html>not found</html>").empty());
}

TEST(VllmLog, IgnoresOtherLines) {
  VllmLog log;
  for (const char* line : {"", "Model loading took long", "Available KV cache memory: -23.55 GiB", "total_hbm_used_gb=",
                           "Available KV cache memory: 1e99 GiB", "KV cache size: tokens", "tensor_parallel_size=-4"})
    EXPECT_TRUE(log.take(line).empty()) << line;
}

}  // namespace
}  // namespace mw::formats
