// SPDX-License-Identifier: GPL-3.0-or-later
// What is refused, with one clear error each and before anything is allocated.
#include "core/engine/transformer/checks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/engine/generate/sampler.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

using testing::HasSubstr;

Problem problem_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

struct Impossible {
  const char* name;
  const char* family;
  std::function<void(model::Config&)> change;
  const char* says;
};
void PrintTo(const Impossible& i, std::ostream* os) {
  *os << i.name;
}
class ImpossibleModel : public testing::TestWithParam<Impossible> {};

TEST_P(ImpossibleModel, IsNamedAndNothingIsAllocated) {
  model::Config c = as_family(tiny_config(), GetParam().family);
  GetParam().change(c);
  Device device(Bytes(0), 1);
  const Problem p = problem_of([&] { Network network(c, device, model::WeightType::f32); });
  EXPECT_EQ(p.id, "ARCH");
  EXPECT_EQ(p.file, c.id);
  EXPECT_THAT(p.message, HasSubstr(GetParam().says));
  EXPECT_FALSE(p.found.empty());
  EXPECT_FALSE(p.expected.empty());
  EXPECT_EQ(device.arena.use().at_peak.total(), Bytes(0));
}

using C = model::Config;
INSTANTIATE_TEST_SUITE_P(
    Checks, ImpossibleModel,
    testing::Values(
        Impossible{"llama", "gemma3", [](C& c) { c.family = model::Family::llama; }, "planning only"},
        Impossible{"qwen", "gemma3", [](C& c) { c.family = model::Family::qwen3; }, "planning only"},
        Impossible{"no_layers", "gemma3", [](C& c) { c.layers.clear(); }, "no layers"},
        Impossible{"no_vocabulary", "gemma3", [](C& c) { c.vocab = 0; }, "vocabulary"},
        Impossible{"negative_width", "gemma3", [](C& c) { c.dim = -8; }, "width"},
        Impossible{"no_positions", "gemma3", [](C& c) { c.max_positions = 0; }, "positions"},
        Impossible{"kv_heads", "gemma3", [](C& c) { c.layers[1].kv_heads = 3; }, "divide"},
        Impossible{"zero_heads", "gemma2", [](C& c) { c.layers[1].heads = 0; }, "divide"},
        Impossible{"odd_head", "gemma3", [](C& c) { c.layers[0].head_dim = 7; }, "even"},
        Impossible{"no_mlp", "gemma4", [](C& c) { c.layers[3].mlp_dim = 0; }, "MLP"},
        Impossible{"theta", "gemma3", [](C& c) { c.layers[2].rope_theta = 0; }, "RoPE"},
        Impossible{"nan_factor", "gemma3", [](C& c) { c.layers[2].rope_factor = NAN; }, "RoPE"},
        Impossible{"negative_cap", "gemma2", [](C& c) { c.final_softcap = -1; }, "softcap"},
        Impossible{"untied", "gemma3", [](C& c) { c.tied_embeddings = false; }, "untied"},
        Impossible{"donor_of_another_kind", "gemma4_e", [](C& c) { c.layers[2].kv_donor = 1; }, "borrows"},
        Impossible{"later_donor", "gemma4_e", [](C& c) { c.layers[2].kv_donor = 3; }, "borrows"},
        Impossible{"no_donor", "gemma4_e", [](C& c) { c.layers[2].kv_donor = -1; }, "borrows"},
        Impossible{"donor_of_another_shape", "gemma4_e", [](C& c) { c.layers[2].head_dim = 16; }, "borrows"},
        Impossible{"too_many_active_experts", "gemma4_moe", [](C& c) { c.experts_per_token = 6; }, "experts"},
        Impossible{"no_active_experts", "gemma4_moe", [](C& c) { c.experts_per_token = 0; }, "experts"},
        Impossible{"experts_without_width", "gemma4_moe", [](C& c) { c.expert_dim = 0; }, "experts"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(BrokenWeights, AreNamedByTensorAndElement) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16})
    for (const float bad : {NAN, infinity, -infinity}) {
      Device device(Bytes(0), 1);
      Network network(tiny_config(), device, type);
      const auto tensors = network.inventory().tensors();
      const auto at =
          std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == "layers.2.up_proj"; });
      const auto broken = static_cast<size_t>(at - tensors.begin());
      const Problem p = problem_of([&] {
        network.load({.f32 =
                          [&](size_t index, std::int64_t first, std::span<float> out) {
                            std::fill(out.begin(), out.end(), 0.5f);
                            if (index == broken && first == 0) out[24 * 3 + 5] = bad;
                          },
                      .bf16 = {}});
      });
      EXPECT_EQ(p.place, "tensor " + at->hf_name + ", element 77 ([3, 5])");
      EXPECT_EQ(p.found, std::isnan(bad) ? "NaN" : bad > 0 ? "infinity" : "-infinity");
    }
}

TEST(Context, LongerThanTheModelsIsRefusedBeforeAnythingIsAllocated) {
  Device device(Bytes(0), 1);
  Network network(tiny_config(), device, model::WeightType::f32);  // 128 positions
  const Bytes weights = device.arena.use().at_peak.total();
  const std::vector<int> prompt(100, 3);
  const Problem p = problem_of([&] { Sampler(network).generate(prompt, {.max_new_tokens = 29}); });
  EXPECT_EQ(p.id, "CONTEXT");
  EXPECT_THAT(p.found, HasSubstr("129"));
  EXPECT_THAT(p.expected, HasSubstr("128"));
  OwnedBatch batch = packed_batch(1, 130, 61);
  for (int i = 0; i < 130; ++i) batch.positions[static_cast<size_t>(i)] = i, batch.segments[static_cast<size_t>(i)] = 0;
  EXPECT_THAT(problem_of([&] { network.evaluate(batch, {}); }).message, HasSubstr("context"));
  EXPECT_EQ(device.arena.use().at_peak.total(), weights);
  EXPECT_EQ(Sampler(network).generate(prompt, {.max_new_tokens = 28}).size(), 28u);
}

}  // namespace
}  // namespace mw::engine::test
