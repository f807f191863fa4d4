// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/request.h"

#include <algorithm>

#include "core/base/error.h"

namespace mw::plan {
namespace {

constexpr double kMost = 1e12;  // tokens of a step; a larger number is a typing error

void refuse(bool wrong, const char* place, const std::string& found, const char* expected) {
  if (wrong)
    throw Error("PLAN-SIZE", std::string(place) + " is not usable",
                {.place = place, .found = found, .expected = expected});
}

struct Option {
  const char *place, *message;
  std::string found, expected, fix;
};
void refuse_option(bool wrong, Option option) {
  if (wrong)
    throw Error("PLAN-OPTION", option.message,
                {.place = option.place,
                 .found = std::move(option.found),
                 .expected = std::move(option.expected),
                 .fix = std::move(option.fix)});
}

void check_products(const Request& r) {
  if (r.products == model::DType::bf16) return;
  const bool serving = r.work == Work::serve;
  const char* place = serving ? "serve.products" : "train.products";
  const std::string type(to_string(r.products)), stack(to_string(r.stack)), fix = std::string("set ") + place + "=bf16";
  refuse_option(r.products != model::DType::fp8,
                {place, "products of this type are not planned", type, "bf16 or fp8", fix});
  refuse_option(!r.profile.options.fp8_products, {place, "the software has no products in fp8", stack,
                                                  "software that documents them", fix + ", or choose other software"});
  refuse_option(!r.target.chip.fp8_flops, {place, "no peak of fp8 products is known for this chip", r.target.chip.name,
                                           "a chip with a published fp8 peak", fix + ", or choose another target"});
  refuse_option(serving && r.weights != model::DType::fp8, {place, "servers compute in fp8 only with weights in fp8",
                                                            "weights in " + std::string(to_string(r.weights)),
                                                            "serve.weight_dtype fp8", "set serve.weight_dtype=fp8"});
}

// Refuses what the stack does not offer.
void check_options(const Request& r) {
  check_products(r);
  const std::string stack(to_string(r.stack));
  const options::StackOptions& offers = r.profile.options;
  if (r.work == Work::serve && !offers.weights.empty())
    refuse_option(
        std::find(offers.weights.begin(), offers.weights.end(), r.weights) == offers.weights.end(),
        {"serve.weight_dtype", "the software has no weights of this type",
         std::string(to_string(r.weights)) + " with " + stack, "bf16", "choose another type or other software"});
  if (r.work != Work::train) return;
  const char* keeps = "a checkpoint policy that names activations, as MaxText, torchtitan and Megatron-LM have";
  refuse_option(!r.train.saved.empty() && !offers.saved_by_name,
                {"train.saved", "the software does not keep activations by name", stack, keeps, "remove train.saved"});
  refuse_option(!r.train.saved.empty() && r.train.remat == model::Remat::none,
                {"train.saved", "without remat every activation is kept", "train.remat none", "block or layer",
                 "set train.remat=layer, or remove train.saved"});
  refuse_option(r.train.offload != options::Offload::none && !offers.offload,
                {"train.offload", "the software does not offload activations", stack,
                 "MaxText, TRL, torchtune or Megatron-LM", "set train.offload=none"});
  refuse_option(r.train.offload != options::Offload::none && r.train.remat == model::Remat::none,
                {"train.offload", "only the activations that remat keeps are offloaded", "train.remat none",
                 "block or layer", "set train.remat=layer, or train.offload=none"});
}

}  // namespace

void check_request(const Request& request) {
  refuse(request.model.layers.empty() || request.model.vocab <= 0, "model", request.model.id,
         "a model with layers and a vocabulary");
  const hardware::Chip& chip = request.target.chip;
  refuse_option(!chip.bf16_flops, {"target.id", "no peak of bf16 products is known for this chip",
                                   request.target.id + " (" + chip.name + ")", "a chip with a published bf16 peak",
                                   "choose another target, or add a row with its bf16 peak to chips.json in the "
                                   "configuration folder"});
  refuse(!chip.memory || !chip.memory_bandwidth, "target.id", request.target.id,
         "a chip whose memory and bandwidth are known");
  const bool f32_known = chip.f32_flops && chip.f32_flops.kind != hardware::Provenance::unverified;
  refuse(request.weights == model::DType::f32 && chip.vendor == hardware::Vendor::gpu && !f32_known, "target.id",
         request.target.id, "train.dtype=bf16, or the peak of f32 products with its source as f32 in the chip's row");
  const auto batch = request.work == Work::train     ? request.train.batch
                     : request.work == Work::forward ? request.forward.batch
                     : request.work == Work::rollout ? request.rollout.batch
                                                     : std::int64_t{request.serve.max_num_seqs};
  const double tokens = static_cast<double>(batch) *
                        std::max({1, request.lengths.max_len, request.forward.len, request.serve.max_model_len});
  refuse(batch < 1 || tokens > kMost, "train.batch", std::to_string(batch),
         "at least 1 and at most 1e12 tokens a step");
  refuse(request.lora.rank < 0 || request.lora.rank > 1 << 20, "lora.rank", std::to_string(request.lora.rank),
         "0 to 1048576");
  check_options(request);
}

model::WeightType weight_type(model::DType type) {
  if (type == model::DType::f32) return model::WeightType::f32;
  return type == model::DType::int8 ? model::WeightType::int8 : model::WeightType::bf16;
}

model::DType dtype_of(model::WeightType weights) {
  if (weights == model::WeightType::f32) return model::DType::f32;
  return weights == model::WeightType::int8 ? model::DType::int8 : model::DType::bf16;
}

int activation_bytes(const Request& request) {
  return request.weights == model::DType::f32 ? 4 : 2;
}

double products_peak(const Request& request) {
  const hardware::Chip& chip = request.target.chip;
  return request.weights == model::DType::f32 && chip.vendor == hardware::Vendor::gpu ? chip.f32_flops.value
                                                                                      : chip.bf16_flops.value;
}

Efficiency fp8_share(const Request& request) {
  const hardware::Chip& chip = request.target.chip;
  Efficiency e = request.efficiencies.matmul;
  const Efficiency& own = request.efficiencies.fp8;
  const bool is_measured = chip.fp8_efficiency && chip.matmul_efficiency;
  const double ratio = is_measured ? chip.fp8_efficiency.value / chip.matmul_efficiency.value : 1;
  e.value *= ratio * own.value, e.low *= ratio * own.low, e.high *= ratio * own.high;
  return e;
}

model::DType full_weights(const Request& request) {
  return request.weights == model::DType::f32 ? model::DType::f32 : request.profile.full_weights;
}

void set_weights(Request& request, model::DType weights) {
  request.weights = weights;
  StackProfile& profile = request.profile;
  if (weights == model::DType::f32)
    for (model::DType* type : {&profile.adapters, &profile.gradients, &profile.moments}) *type = model::DType::f32;
}

void set_stack(Request& request, model::Stack stack) {
  request.lengths.computes_padding = stack != model::Stack::engine;
  request.stack = stack;
  request.profile = stack_profile(stack, request.model.family);
  request.efficiencies = default_efficiencies(request.target, stack);
  const bool gathers =
      stack == model::Stack::trl_fsdp || stack == model::Stack::torchtitan || stack == model::Stack::torchtune;
  request.rules.preset =
      gathers ? mesh::Preset::fsdp
              : (serves(stack) || stack == model::Stack::megatron ? mesh::Preset::megatron : mesh::Preset::tunix);
  request.rules.experts = request.profile.options.expert_parallel && request.model.experts > 0
                              ? mesh::ExpertParallel::on
                              : mesh::ExpertParallel::off;
}

int expert_ways(const Request& request) {
  return request.rules.experts == mesh::ExpertParallel::on ? std::max(1, request.mesh.size(mesh::kExpertAxis)) : 1;
}

void enable_async_scheduling(Request& request) {
  request.serve.scheduling = Scheduling::ahead;
  request.efficiencies.step_s = async_step_overhead();
}

model::Stack default_stack(hardware::Vendor vendor, Work work) {
  switch (vendor) {
    case hardware::Vendor::tpu:
      return work == Work::serve ? model::Stack::vllm_tpu : model::Stack::tunix;
    case hardware::Vendor::gpu:
      return work == Work::serve ? model::Stack::vllm_gpu : model::Stack::trl_fsdp;
    case hardware::Vendor::cpu:
      return model::Stack::engine;
  }
  return model::Stack::engine;
}

}  // namespace mw::plan
