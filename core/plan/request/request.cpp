// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/request.h"

#include <algorithm>

#include "core/base/error.h"

namespace mw::plan {
namespace {

constexpr double kMost = 1e12;  // tokens of a step; a larger number is a typing error

void refuse(bool wrong, const char* place, const std::string& found, const char* expected) {
  if (wrong)
    throw Error({.id = "PLAN-SIZE",
                 .message = std::string(place) + " is not usable",
                 .place = place,
                 .found = found,
                 .expected = expected});
}

}  // namespace

void check_request(const Request& request) {
  refuse(request.model.layers.empty() || request.model.vocab <= 0, "model", request.model.id,
         "a model with layers and a vocabulary");
  refuse(!request.target.chip.memory || !request.target.chip.bf16_flops || !request.target.chip.memory_bandwidth,
         "target.id", request.target.id, "a chip whose memory, peak and bandwidth are known");
  refuse(request.weights == DType::f32 && request.target.chip.vendor == hardware::Vendor::gpu &&
             !request.target.chip.f32_flops,
         "target.id", request.target.id, "train.dtype=bf16, or the peak of f32 products as f32 in the chip's row");
  const auto batch = request.work == Work::train     ? request.train.batch
                     : request.work == Work::forward ? request.forward.batch
                     : request.work == Work::rollout ? request.rollout.batch
                                                     : std::int64_t{request.serve.max_num_seqs};
  const double tokens = static_cast<double>(batch) *
                        std::max({1, request.lengths.max_len, request.forward.len, request.serve.max_model_len});
  refuse(batch < 1 || tokens > kMost, "train.batch", std::to_string(batch),
         "at least 1 and at most 1e12 tokens a step");
  refuse(request.rank < 0 || request.rank > 1 << 20, "lora.rank", std::to_string(request.rank), "0 to 1048576");
}

int activation_bytes(const Request& request) {
  return request.weights == DType::f32 ? 4 : 2;
}

double products_peak(const Request& request) {
  const hardware::Chip& chip = request.target.chip;
  return request.weights == DType::f32 && chip.vendor == hardware::Vendor::gpu ? chip.f32_flops.value
                                                                               : chip.bf16_flops.value;
}

DType full_weights(const Request& request) {
  return request.weights == DType::f32 ? DType::f32 : request.profile.full_weights;
}

void set_weights(Request& request, DType weights) {
  request.weights = weights;
  StackProfile& profile = request.profile;
  if (weights == DType::f32)
    for (DType* type : {&profile.adapters, &profile.gradients, &profile.moments}) *type = DType::f32;
}

void set_stack(Request& request, Stack stack) {
  request.stack = stack;
  request.profile = stack_profile(stack, request.model.family);
  request.efficiencies = default_efficiencies(request.target, stack);
  const bool gathers = stack == Stack::trl_fsdp || stack == Stack::torchtitan || stack == Stack::torchtune;
  request.rules.preset =
      gathers ? mesh::Preset::fsdp
              : (serves(stack) || stack == Stack::megatron ? mesh::Preset::megatron : mesh::Preset::tunix);
}

void enable_async_scheduling(Request& request) {
  request.serve.scheduling = Scheduling::ahead;
  request.efficiencies.step_s = async_step_overhead();
}

Stack default_stack(hardware::Vendor vendor, Work work) {
  switch (vendor) {
    case hardware::Vendor::tpu:
      return work == Work::serve ? Stack::vllm_tpu : Stack::tunix;
    case hardware::Vendor::gpu:
      return work == Work::serve ? Stack::vllm_gpu : Stack::trl_fsdp;
    case hardware::Vendor::cpu:
      return Stack::engine;
  }
  return Stack::engine;
}

}  // namespace mw::plan
