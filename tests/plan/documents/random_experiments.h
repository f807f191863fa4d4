// SPDX-License-Identifier: GPL-3.0-or-later
// Random experiments, the same at every run: of common settings, and of everything that an experiment can say.
#pragma once
#include <array>
#include <random>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/model/catalogue.h"
#include "tests/shipped.h"

namespace mw::test {

class RandomExperiments {
 public:
  explicit RandomExperiments(std::uint64_t seed) : random_(seed) {}

  experiment::Experiment next(const std::string& kind) {
    experiment::Experiment e;
    const std::string target = one_of(
        std::array{"v5p-8", "v5p-16", "v6e-8", "v5e-4", "1xh100", "2xh100", "4xh100", "8xh100", "8xh200", "8xmi300x"});
    e.set_value("kind", kind);
    e.set_value("model.id", one_of(std::array{"gemma2-2b", "gemma3-1b", "gemma3-4b", "gemma3-12b", "gemma4-31b",
                                              "gemma4-26b-a4b", "gemma3n-e4b", "llama3.1-8b", "qwen3-32b"}));
    e.set_value("target.id", target);
    add_mesh(context().catalogue.target(target).devices(), e);
    e.set_value("train.dtype", one_of(std::array{"bf16", "bf16", "bf16", "f32", "int8"}));
    if (kind == "train") add_training(e);
    if (kind == "serve") add_serving(e);
    if (kind == "size") e.set_value("size.batches", Json::array({1, 64}));
    return e;
  }
  // Any model, target of at most 64 devices, software and option: many of them are refused.
  experiment::Experiment next_of_everything(const std::string& kind) {
    experiment::Experiment e;
    e.set_value("kind", kind);
    e.set_value("model.id", one_of(models_));
    const hardware::Target target = context().catalogue.target(one_of(targets_));
    e.set_value("target.id", target.id);
    if (!chance(3)) add_powers(target.devices(), e);
    e.set_value("train.dtype", one_of(std::array{"bf16", "bf16", "bf16", "f32", "int8"}));
    const bool gpu = target.chip.vendor == hardware::Vendor::gpu;
    if (kind == "train") add_training_options(gpu, e);
    if (kind == "serve") add_serving_options(gpu, e);
    if (kind == "size") add_sizes(e);
    return e;
  }
  const std::string& one_of(const std::vector<std::string>& values) { return values[random_() % values.size()]; }
  template <size_t N>
  std::string one_of(const std::array<const char*, N>& values) {
    return values[random_() % N];
  }
  template <size_t N>
  int one_of(const std::array<int, N>& values) {
    return values[random_() % N];
  }
  bool chance(unsigned of) { return random_() % of == 0; }

 private:
  void add_mesh(int devices, experiment::Experiment& e) {
    if (chance(4)) return;  // the default mesh
    if (chance(8)) return e.set_value("mesh.tp", 3);
    for (int left = devices; left > 1;) {
      const int size = one_of(std::array{2, left});
      if (left % size != 0) continue;
      const std::string axis =
          chance(8) ? one_of(std::array{"pp", "cp", "ep", "dp"}) : one_of(std::array{"fsdp", "tp", "data"});
      const std::string key = "mesh." + axis;
      e.set_value(key, (e.has(key) ? e.value(key).get<int>() : 1) * size);
      left /= size;
    }
  }
  void add_training(experiment::Experiment& e) {
    e.set_value("train.batch", one_of(std::array{1, 2, 3, 4, 8, 16}));
    e.set_value("train.accumulation", one_of(std::array{1, 2, 8}));
    e.set_value("train.remat", one_of(std::array{"none", "block", "layer"}));
    e.set_value("train.loss_chunk", one_of(std::array{0, 256}));
    e.set_value("train.method", one_of(std::array{"lora", "lora", "full"}));
    e.set_value("data.max_len", one_of(std::array{512, 2048, 8192}));
    e.set_value("data.rows", 10000);
    if (chance(2)) e.set_value("data.mean_len", 300);
    if (chance(4)) e.set_value("data.packing", true);
    if (chance(2)) e.set_value("train.epochs", 1);
    const bool gpu = e.value("target.id").get<std::string>().find('x') != std::string::npos;
    if (chance(2))
      e.set_value("train.stack", gpu ? one_of(std::array{"trl-fsdp", "torchtitan", "megatron"})
                                     : one_of(std::array{"tunix", "torchax", "maxtext"}));
  }
  void add_serving(experiment::Experiment& e) {
    e.set_value("serve.max_num_seqs", one_of(std::array{16, 64, 256}));
    e.set_value("serve.max_num_batched_tokens", one_of(std::array{32, 512, 2048, 8192}));
    e.set_value("serve.max_model_len", one_of(std::array{2048, 8192, 32768, 200000}));
    e.set_value("serve.kv_dtype", one_of(std::array{"bf16", "fp8"}));
    if (chance(4)) e.set_value("serve.chunked_prefill", false);
  }
  void add_powers(int devices, experiment::Experiment& e) {
    int tp = 1;
    while (tp < devices && devices % (2 * tp) == 0 && !chance(3)) tp *= 2;
    e.set_value("mesh.tp", tp);
    e.set_value(chance(4) ? "mesh.data" : "mesh.fsdp", devices / tp);
  }
  void add_training_options(bool gpu, experiment::Experiment& e) {
    add_training(e);
    e.set_value("train.batch", one_of(std::array{1, 2, 4, 8, 16, 32, 64, 256}));
    e.set_value("data.max_len", one_of(std::array{16, 128, 1000, 4096, 32768, 131072}));
    e.set_value("data.mean_len", one_of(std::array{0, 1, 8, 300, 2000}));
    e.set_value("lora.rank", one_of(std::array{1, 8, 64, 512}));
    e.set_value("train.attention", one_of(std::array{"auto", "materialised", "fused"}));
    e.set_value("train.adapter_dtype", one_of(std::array{"auto", "bf16", "f32"}));
    e.set_value("train.moment_dtype", one_of(std::array{"auto", "bf16", "f32"}));
    if (chance(3)) e.set_value("lora.targets", Json::array({one_of(std::array{"q_proj", "v_proj", "down_proj"})}));
    if (chance(4)) e.set_value("train.products", "fp8");
    if (chance(8)) e.set_value("train.saved", Json::array({"attention", "down_proj"}));
    if (chance(8)) e.set_value("train.offload", "host");
    if (chance(8)) e.set_value("train.other_models", 1);
    if (!chance(3))
      e.set_value("train.stack", gpu ? one_of(std::array{"trl-fsdp", "torchtune", "torchtitan", "megatron"})
                                     : one_of(std::array{"tunix", "torchax", "maxtext"}));
  }
  void add_serving_options(bool gpu, experiment::Experiment& e) {
    e.set_value("serve.max_num_seqs", one_of(std::array{1, 2, 8, 64, 256, 1024}));
    e.set_value("serve.max_num_batched_tokens", one_of(std::array{1024, 2048, 8192, 32768}));
    e.set_value("serve.max_model_len", one_of(std::array{2048, 4096, 8192, 32768}));
    e.set_value("serve.input_len", one_of(std::array{1, 16, 512, 1500}));
    e.set_value("serve.output_len", one_of(std::array{1, 2, 64, 500}));
    e.set_value("serve.kv_dtype", one_of(std::array{"bf16", "fp8"}));
    e.set_value("serve.weight_dtype", one_of(std::array{"auto", "bf16", "fp8", "int8"}));
    e.set_value("serve.sliding_window_kv", chance(2));
    if (chance(4)) e.set_value("serve.products", "fp8");
    if (chance(4)) e.set_value("serve.chunked_prefill", false);
    if (chance(4)) e.set_value("serve.async_scheduling", true);
    if (chance(4)) e.set_value("serve.sampling", "top_k_top_p");
    if (!chance(3))
      e.set_value("serve.stack", gpu ? one_of(std::array{"vllm-gpu", "tensorrt-llm", "sglang"})
                                     : one_of(std::array{"vllm-tpu", "jetstream"}));
  }
  void add_sizes(experiment::Experiment& e) {
    e.set_value("size.workloads", Json::array({one_of(std::array{"rollout", "forward", "chunked_forward"})}));
    e.set_value("size.batches", Json::array({one_of(std::array{1, 3, 16, 64, 256})}));
    e.set_value("size.prompt_len", one_of(std::array{1, 64, 1024}));
    e.set_value("size.new_tokens", one_of(std::array{1, 64, 1024}));
    e.set_value("size.adapters", chance(2));
  }
  static std::vector<std::string> small_targets() {
    std::vector<std::string> out;
    for (const std::string& id : context().catalogue.target_ids())
      if (id != "cpu" && context().catalogue.target(id).devices() <= 64) out.push_back(id);
    for (const char* id : {"2xv5p-8", "2xv6e-8", "16xh100", "32xh200"}) out.emplace_back(id);
    return out;
  }
  std::vector<std::string> models_ = model::catalogue_ids(), targets_ = small_targets();
  std::mt19937_64 random_;
};

}  // namespace mw::test
