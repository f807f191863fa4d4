// SPDX-License-Identifier: Apache-2.0
// Properties of thousands of random requests: no prediction beats physics, better hardware is never slower, and nothing
// depends on the order of a mesh. A failure prints the seed of its request; random_request(seed) makes it again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/rng.h"
#include "core/model/config.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/prediction/serve_step.h"
#include "requests.h"
#include "tests/random_inputs.h"

namespace mw::plan {
namespace {

constexpr double kRounding = 1 + 1e-9;

class Choice {
 public:
  explicit Choice(std::uint64_t seed) : rng_{seed} {}
  std::uint64_t below(std::uint64_t n) { return rng_.below(n); }
  template <class T, size_t N>
  T of(const std::array<T, N>& values) {
    return values[below(N)];
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  Rng rng_;
};

model::Stack stack_for(Choice& choice, hardware::Vendor vendor, Work work) {
  const bool tpu = vendor == hardware::Vendor::tpu;
  if (work == Work::serve) return tpu ? model::Stack::vllm_tpu : model::Stack::vllm_gpu;
  if (work == Work::rollout) return tpu ? model::Stack::tunix : model::Stack::vllm_gpu;
  return tpu ? choice.of(std::array{model::Stack::tunix, model::Stack::maxtext})
             : choice.of(std::array{model::Stack::trl_fsdp, model::Stack::torchtitan, model::Stack::megatron});
}

// Splits the devices into axes that the stack uses.
std::vector<mesh::MeshAxis> axes_for(Choice& choice, const Request& request) {
  int left = request.target.devices();
  const auto take = [&] {
    int n = 1;
    while (left % 2 == 0 && !choice.one_in(3)) n *= 2, left /= 2;
    return n;
  };
  const bool gathers = request.rules.preset == mesh::Preset::fsdp;
  const int tp = gathers ? 1 : take(), data = take();
  const bool splits = request.rules.preset == mesh::Preset::megatron;
  if (splits) return {{"data", data * left}, {"tp", tp}};
  return {{"data", data}, {"fsdp", left}, {"tp", tp}};
}

// Empty if the choices do not go together, such as a mesh that the model's heads do not divide.
std::optional<Request> random_request(std::uint64_t seed) {
  Choice choice(seed);
  const char* model = choice.of(std::array{"gemma3-1b", "gemma3-4b", "gemma3-27b", "gemma3n-e4b", "gemma4-e2b",
                                           "gemma4-26b-a4b", "gemma4-31b", "qwen3-32b", "llama3.1-8b"});
  const char* target = choice.of(std::array{"v5e-1", "v5e-8", "v5p-8", "v6e-8", "v6e-16", "tpu7x-8", "1xh100", "2xh100",
                                            "8xh100", "16xh100", "8xa100-80", "8xmi300x", "16xb200", "2xl4"});
  const Work work = choice.of(std::array{Work::train, Work::train, Work::serve, Work::serve, Work::rollout});
  Request r;
  r.model = model::catalogue_config(model);
  r.target = context().catalogue.target(target);
  r.work = work;
  set_stack(r, stack_for(choice, r.target.chip.vendor, work));
  r.mesh.axes = axes_for(choice, r);
  r.method = work == Work::train && choice.one_in(3) ? model::TrainMethod::full : model::TrainMethod::lora;
  r.lora.rank = choice.of(std::array{8, 64});
  if (work == Work::train && r.method == model::TrainMethod::lora) r.targets = every_projection();
  r.lengths.max_len = choice.of(std::array{512, 2048, 8192});
  if (choice.one_in(2)) r.lengths.mean = r.lengths.max_len / 4.0;
  r.lengths.rows = choice.of(std::array{RowLayout::padded, RowLayout::ragged, RowLayout::packed});
  r.train.batch = choice.of(std::array{16, 32, 64});
  r.train.accumulation = choice.of(std::array{1, 4});
  r.train.remat = choice.of(std::array{model::Remat::none, model::Remat::layer});
  r.train.steps = 10;
  r.sliding_window_kv = choice.one_in(2);
  r.rollout = {.batch = choice.of(std::array{1, 16, 64, 200}), .prompt = 256, .new_tokens = 512};
  r.serve.max_num_seqs = choice.of(std::array{1, 8, 64, 250});
  r.serve.max_model_len = choice.of(std::array{4096, 16384});
  r.serve.input_len = choice.of(std::array{100, 1000, 3500});
  try {
    predict(r);
  } catch (const Error&) {
    return std::nullopt;
  }
  return r;
}

template <class Check>
void for_requests(std::uint64_t first, const Check& check) {
  const int wanted = test::random_inputs(600);
  int made = 0;
  for (std::uint64_t seed = test::random_seed(first); seed < test::random_seed(first) + wanted; ++seed) {
    const std::optional<Request> r = random_request(seed);
    if (!r) continue;
    ++made;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + r->model.id + " on " + r->target.id + ", " +
                 mesh::to_text(r->mesh) + ", " + std::string(to_string(r->stack)));
    check(*r);
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%d requests\n", made);
  EXPECT_GT(made, wanted / 2);
}

// A decode step of a server whose batch does not depend on its memory.
StepLoad decoding(const Request& r) {
  const double n = r.serve.max_num_seqs, context = r.serve.input_len;
  const double window = r.model.sliding_window > 0 ? std::min<double>(context, r.model.sliding_window) : context;
  return {.decoding = r.serve.max_num_seqs, .read_tokens = n * context, .read_window_tokens = n * window};
}
StepLoad prompting(const Request& r) {
  const double n = r.serve.input_len, window = r.model.sliding_window > 0 ? r.model.sliding_window : n;
  return {.prefill_tokens = r.serve.input_len,
          .prefilling = 1,
          .prefill_pairs = n * n / 2,
          .prefill_window_pairs = n * std::min(window, n / 2)};
}

double seconds(const Request& r) {
  if (r.work != Work::serve) return predict(r).step.seconds.value;
  const ServeStepModel model(r);
  return model.seconds(decoding(r)) + model.seconds(prompting(r));
}

TEST(Properties, BetterHardwareIsNeverSlowerOrSmaller) {
  for_requests(1'000'000, [](const Request& r) {
    const double before = seconds(r);
    for (const double factor : {1.3, 4.0}) {
      Request better = r;
      better.target.chip.memory_bandwidth.value *= factor;
      EXPECT_LE(seconds(better), before * kRounding) << "bandwidth x " << factor;
      better = r;
      better.target.chip.bf16_flops.value *= factor;
      EXPECT_LE(seconds(better), before * kRounding) << "FLOP/s x " << factor;
      better = r;
      better.target.chip.link_bandwidth.value *= factor;
      better.target.chip.egress.value *= factor;
      EXPECT_LE(seconds(better), before * kRounding) << "links x " << factor;
      better = r;
      better.target.chip.memory.value *= factor;
      EXPECT_LE(seconds(better), before * kRounding) << "memory x " << factor;
    }
    Request larger = r;
    larger.target.chip.memory.value *= 1.5;
    const Plan small = predict(r), large = predict(larger);
    EXPECT_TRUE(large.fits() || !small.fits());
    if (r.work == Work::serve) {
      EXPECT_GE(large.serve->kv_tokens, small.serve->kv_tokens);
    }
  });
}

// Elements of matrices that every token is multiplied with, without experts; and of one expert of every layer.
struct Elements {
  double shared = 0, head = 0, expert = 0;
};
Elements elements_of(const model::Config& config) {
  Elements out;
  const model::TensorInventory inventory(config);
  for (const model::Tensor& t : inventory.tensors()) {
    const auto n = static_cast<double>(t.elements());
    using model::Role;
    if (t.role == Role::ple_embed || t.hf_shape.size() < 2) continue;
    if (t.role == Role::embed || t.role == Role::lm_head)
      out.head = n;
    else if (t.role == Role::experts_gate_up || t.role == Role::experts_down)
      out.expert += n / config.experts;
    else
      out.shared += n;
  }
  return out;
}

TEST(Properties, NothingIsFasterThanPhysics) {
  for_requests(2'000'000, [](const Request& r) {
    const Elements e = elements_of(r.model);
    const double chips = r.target.chips();
    const double flops = r.target.chip.bf16_flops.value * chips,
                 bandwidth = r.target.chip.memory_bandwidth.value * chips;
    const Plan plan = predict(r);
    if (r.work == Work::train) {
      const double rows = static_cast<double>(r.train.batch) * r.train.accumulation;
      const double tokens = rows * plan.run.tokens_per_second * plan.step.seconds.value / rows;
      const double products =
          2 * (e.shared + e.expert * r.model.experts_per_token) * (r.method == model::TrainMethod::full ? 3 : 2);
      EXPECT_GE(plan.step.seconds.value * kRounding, products * tokens / flops);
      return;
    }
    // Every group of devices that computes different rows reads all weights.
    double groups = 1;
    for (const std::string& axis : batch_axes(r)) groups *= r.mesh.size(axis);
    const double rows = r.work == Work::serve ? r.serve.max_num_seqs : static_cast<double>(r.rollout.batch);
    const double each = std::ceil(rows / groups);
    const double weights = 2 * (e.shared + e.head + e.expert * model::expected_experts(r.model, each));
    const double step = r.work == Work::serve ? ServeStepModel(r).seconds(decoding(r)) : plan.serve->decode_step.value;
    EXPECT_GE(step * kRounding, weights * groups / bandwidth);
    EXPECT_GE(step * kRounding, 2 * (e.shared + e.head + e.expert * r.model.experts_per_token) * rows / flops);
    if (r.work == Work::serve) {
      const double prefill = ServeStepModel(r).seconds(prompting(r));
      EXPECT_GE(prefill * kRounding,
                2 * (e.shared + e.expert * r.model.experts_per_token) * r.serve.input_len / (flops / groups));
      EXPECT_LE(plan.serve->output_tokens_per_second, flops / (2 * e.shared));
    }
  });
}

TEST(Properties, OrderOfTheMeshNeverMatters) {
  for_requests(3'000'000, [](const Request& r) {
    const Plan plan = predict(r);
    Request other = r;
    std::sort(other.mesh.axes.begin(), other.mesh.axes.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    do {
      const Plan same = predict(other);
      EXPECT_EQ(same.step.seconds.value, plan.step.seconds.value) << mesh::to_text(other.mesh);
      EXPECT_EQ(same.memory.at_peak, plan.memory.at_peak) << mesh::to_text(other.mesh);
    } while (std::next_permutation(other.mesh.axes.begin(), other.mesh.axes.end(),
                                   [](const auto& a, const auto& b) { return a.name < b.name; }));
  });
}

TEST(Properties, HalfTheCacheIsNeverSlowerOrSmaller) {
  for_requests(4'000'000, [](const Request& r) {
    if (r.work == Work::train) return;
    Request half = r;
    half.kv = model::DType::fp8;
    EXPECT_LE(seconds(half), seconds(r) * kRounding);
    EXPECT_GE(predict(half).serve->kv_tokens, predict(r).serve->kv_tokens);
  });
}

TEST(Properties, ReplicasNeverShortenAPrompt) {
  for_requests(5'000'000, [](const Request& r) {
    if (r.work != Work::serve) return;
    const double several = ServeStepModel(r).seconds(prompting(r));
    Request one = r;  // the chips of one replica
    int groups = 1;
    for (mesh::MeshAxis& axis : one.mesh.axes)
      if (axis.name == "data" || axis.name == "fsdp") groups *= axis.size, axis.size = 1;
    if (groups == 1 || one.mesh.devices() != 1) return;
    one.target.shape = {1};
    one.target.wrap = {false};
    if (one.target.devices() != 1) return;
    EXPECT_NEAR(ServeStepModel(one).seconds(prompting(r)) / several, 1, 1e-9);
  });
}

}  // namespace
}  // namespace mw::plan
