// SPDX-License-Identifier: Apache-2.0
// Parts of Gemma 3n that Gemma 3 lacks: AltUp's streams, LAuReL, sparse gates, and K and V of the last layers shared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/inventory.h"
#include "core/plan/prediction/activations.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/predict.h"
#include "requests.h"

namespace mw::plan {
namespace {

// The same request of a model without AltUp.
Request single_stream(Request r) {
  r.model.altup_inputs = 0;
  return r;
}

Request gemma3n_training(model::Stack stack) {
  const bool tpu = stack == model::Stack::tunix || stack == model::Stack::torchax || stack == model::Stack::maxtext;
  Request r = request("gemma3n-e4b", tpu ? "v5p-8" : "4xh100", stack, {{"fsdp", 4}});
  r.train.batch = 4;
  return r;
}

const Buffer& buffer_named(const DeviceMemory& memory, const std::string& name) {
  const auto at =
      std::find_if(memory.buffers.begin(), memory.buffers.end(), [&](const Buffer& b) { return b.name == name; });
  if (at == memory.buffers.end()) throw std::runtime_error("no buffer " + name);
  return *at;
}

TEST(Gemma3n, EveryStackHoldsEveryParameter) {
  for (const char* id : {"gemma3n-e2b", "gemma3n-e4b"})
    for (const model::Stack stack : {model::Stack::tunix, model::Stack::torchax, model::Stack::maxtext,
                                     model::Stack::trl_fsdp, model::Stack::torchtitan}) {
      Request r = gemma3n_training(stack);
      r.model = model::catalogue_config(id);
      const LocalModel m = local_model(r, mesh::ShardingUse::training);
      EXPECT_EQ(m.parameters, model::TensorInventory(r.model).parameters()) << id << " " << to_string(stack);
    }
}

TEST(Gemma3n, SavesFourStreamsAndThePerLayerInputsUnderRemat) {
  Request r = gemma3n_training(model::Stack::maxtext);
  r.train.remat = model::Remat::layer;
  const double tokens = r.lengths.max_len;  // one row on each device
  const DeviceMemory four = train_memory(local_model(r, mesh::ShardingUse::training));
  EXPECT_EQ(buffer_named(four, "saved inputs of all layers").unpadded.value, 4 * 35 * tokens * 2048 * 2);
  EXPECT_EQ(buffer_named(four, "per-layer inputs").unpadded.value, tokens * 35 * 256 * 2);
  const Request one = single_stream(r);
  EXPECT_EQ(buffer_named(train_memory(local_model(one, mesh::ShardingUse::training)), "saved inputs of all layers")
                .unpadded.value,
            35 * tokens * 2048 * 2);
}

TEST(Gemma3n, KeepsKAndVOfTwentyLayersOnly) {
  Request r = request("gemma3n-e4b", "1xh100", model::Stack::vllm_gpu, {{"tp", 1}});
  r.work = Work::serve;
  const LocalModel m = local_model(r, mesh::ShardingUse::sampling);
  EXPECT_EQ(kv_bytes_per_token(m, 256), 20 * 2 * 2 * 256 * 2);
  r.sliding_window_kv = true;  // 16 of the 20 see 512 tokens
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(local_model(r, mesh::ShardingUse::sampling), 1024),
                   (4 + 16 * 0.5) * 2 * 2 * 256 * 2);
}

TEST(Gemma3n, StreamsLaurelAndSparseGatesCostTimeOnEveryStack) {
  for (const model::Stack stack : {model::Stack::maxtext, model::Stack::trl_fsdp, model::Stack::torchtitan}) {
    SCOPED_TRACE(std::string(to_string(stack)));
    const Request r = gemma3n_training(stack);
    const double whole = predict(r).step.seconds.value;
    EXPECT_GT(whole, predict(single_stream(r)).step.seconds.value);
    Request without = r;
    without.model.laurel_rank = 0;
    EXPECT_GT(whole, predict(without).step.seconds.value);
    without = r;
    for (model::Layer& l : without.model.layers) l.gate_sparsity = 0;
    EXPECT_GT(whole, predict(without).step.seconds.value);
  }
}

TEST(Gemma3n, ADecodeStepReadsEveryMatrixButThePerLayerTable) {
  Request r = request("gemma3n-e4b", "1xh100", model::Stack::vllm_gpu, {{"tp", 1}});
  r.work = Work::serve;
  r.serve.max_num_seqs = 1;
  double read = 0;
  const model::TensorInventory inventory(r.model);
  for (const model::Tensor& t : inventory.tensors())
    if (t.hf_shape.size() > 1 && t.role != model::Role::ple_embed) read += 2.0 * static_cast<double>(t.elements());
  const Plan plan = predict(r);
  ASSERT_TRUE(plan.fits());
  const double floor = read / r.target.chip.memory_bandwidth.value;
  EXPECT_GT(plan.serve->decode_step.value, floor);
  EXPECT_LT(plan.serve->decode_step.value, 3 * floor);
}

}  // namespace
}  // namespace mw::plan
