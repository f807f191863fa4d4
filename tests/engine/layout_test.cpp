// SPDX-License-Identifier: GPL-3.0-or-later
// Layouts as values, without a device. tests/plan compares them with what arenas hold.
#include <gtest/gtest.h>

#include "core/engine/layout/step_layout.h"
#include "core/engine/layout/workspace.h"
#include "core/mesh/collectives/engine_step.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {
namespace {

template <template <template <class> class> class Fields>
void expect_inside(const Fields<FieldOf>& fields, const std::vector<Allocation>& allocations) {
  constexpr size_t kFields = sizeof(fields) / sizeof(BufferField);
  for (const BufferField& field : std::bit_cast<std::array<BufferField, kFields>>(fields)) {
    if (!field) continue;
    ASSERT_LT(static_cast<size_t>(field.allocation), allocations.size());
    EXPECT_LT(field.offset, allocations[static_cast<size_t>(field.allocation)].bytes.value);
    EXPECT_EQ(field.offset % 64, 0);
  }
}

TEST(StepLayouts, PlaceEveryFieldInsideItsAllocation) {
  for (const std::string& family : families())
    for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer}) {
      const ModelShape model(as_family(tiny_config(), family), {});
      const StepLayout layout = lay_out_step(model, {.tokens = 7, .lowest = 1, .backward = true, .remat = remat});
      ASSERT_EQ(layout.layers.size(), model.config.layers.size() + 1);
      for (const LayerActivationsAt<FieldOf>& layer : layout.layers) expect_inside(layer, layout.allocations);
      expect_inside(layout.scratch, layout.allocations);
      EXPECT_TRUE(layout.layers.back().x);
      EXPECT_EQ(static_cast<bool>(layout.ple), model.config.ple_dim > 0);
    }
}

TEST(WorkspaceLayouts, ShareARopeTableBetweenLayersThatRotateTheSamePairs) {
  model::Config config = as_gemma4(tiny_config());
  const size_t tables = ModelShape(config, {}).rope_specs.size();
  config.layers[1].rope_factor = 0.26f;  // as many pairs as 0.25
  EXPECT_EQ(rope_tables(ModelShape(config, {}), 64).size(), tables);
  config.layers[1].rope_factor = 0.5f;
  EXPECT_EQ(rope_tables(ModelShape(config, {}), 64).size(), tables + 1);
}

// Device 1 of 3 has two of the six query heads, of different KV heads of three.
TEST(WorkspaceLayouts, CountTheQueryHeadsOfAWholeKvHeadForDecoding) {
  model::Config config = tiny_config();
  for (model::Layer& l : config.layers) l.heads = 6, l.mlp_dim = 42, l.attention = model::Attention::full;
  config.vocab = 60;
  const mesh::Mesh mesh{{{"tp", 3}}};
  const mesh::Placement placement =
      mesh::place(model::TensorInventory(config), mesh,
                  mesh::engine_rules({.overrides = {{"(k|v)_proj$", mesh::parse_spec("(-, -, -)")}}}), {},
                  mesh::ShardingUse::training);
  const mesh::ComputeSharding form(mesh, placement, mesh::engine_step({}));
  const mesh::LocalConfig local = mesh::local_config(config, form, placement, mesh, 1);
  ASSERT_EQ(local.config.layers[0].heads, 2);
  ASSERT_EQ(local.config.layers[0].kv_heads, 2);
  EXPECT_EQ(decoded_keys(ModelShape(config, {}, &local), 0, 12800), 2 * 12800 / 128 + 1);
}

}  // namespace
}  // namespace mw::engine::test
