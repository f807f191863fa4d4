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

void check_request(const Request& r) {
  refuse(r.model.layers.empty() || r.model.vocab <= 0, "model", r.model.id, "a model with layers and a vocabulary");
  refuse(!r.target.chip.memory || !r.target.chip.bf16_flops || !r.target.chip.memory_bandwidth, "target.id",
         r.target.id, "a chip whose memory, peak and bandwidth are known");
  const auto batch = r.work == Work::train     ? r.train.batch
                     : r.work == Work::forward ? r.forward.batch
                     : r.work == Work::rollout ? r.rollout.batch
                                               : std::int64_t{r.serve.max_num_seqs};
  const double tokens =
      static_cast<double>(batch) * std::max({1, r.lengths.max_len, r.forward.len, r.serve.max_model_len});
  refuse(batch < 1 || tokens > kMost, "train.batch", std::to_string(batch),
         "at least 1 and at most 1e12 tokens a step");
  refuse(r.rank < 0 || r.rank > 1 << 20, "lora.rank", std::to_string(r.rank), "0 to 1048576");
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
