// SPDX-License-Identifier: GPL-3.0-or-later
// Which elements a device stores and computes with: properties over every tensor of every family, many specs.
#include "core/mesh/collectives/reshard_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/rng.h"
#include "tests/engine/local_slice.h"
#include "tests/engine/mesh_model.h"

namespace mw::engine::test {
namespace {

using mesh::IndexRange;
using mesh::IndexRegion;
using mesh::PlacedTensor;
using model::Axis;
using model::Role;

mesh::Mesh mesh_of(std::vector<mesh::MeshAxis> axes) {
  return {std::move(axes)};
}

std::vector<mesh::AdapterShape> all_adapters(const model::TensorInventory& inventory, int rank) {
  std::vector<mesh::AdapterShape> shapes;
  for (const model::LoraTarget& t : inventory.lora_targets()) shapes.push_back({t.role, t.layer, rank, true});
  return shapes;
}

std::int64_t size_of(const PlacedTensor& p, Axis axis) {
  for (const model::Dim& d : p.dims)
    if (d.axis == axis) return d.size;
  return 1;
}

// Where element (row, column) of the matrix in the files lies along a dimension of the spec. transformers stores
// linears as [out, in], heads outermost; experts one under the other, gate rows before up rows.
std::int64_t coordinate(const PlacedTensor& p, Axis axis, std::int64_t row, std::int64_t column) {
  const std::int64_t head_dim = size_of(p, Axis::head_dim), mlp = size_of(p, Axis::mlp),
                     embed = size_of(p, Axis::embed);
  if (p.dims.size() == 1) return column;
  std::int64_t along = row;  // of the dimensions that are not the other's
  switch (p.role) {
    case Role::experts_gate_up:
      if (axis == Axis::experts) return row / (2 * mlp);
      if (axis == Axis::one) return row / mlp % 2;
      return axis == Axis::mlp ? row % mlp : column;
    case Role::experts_down:
      if (axis == Axis::experts) return row / embed;
      return axis == Axis::mlp ? column : row % embed;
    case Role::lora_a:
      if (axis == Axis::rank) return row;
      along = column;
      break;
    case Role::lora_b:
      if (axis == Axis::rank) return column;
      break;
    case Role::lora_m:
      along = column;
      break;
    case Role::o_proj:
      if (axis == Axis::embed) return row;
      along = column;
      break;
    case Role::down_proj:
    case Role::ple_proj:
      return axis == Axis::embed ? row : column;
    case Role::ple_embed:
      return axis == Axis::vocab ? row : column;
    default:
      if (axis == Axis::embed) return column;
      break;
  }
  if (axis == Axis::heads || axis == Axis::kv_heads) return along / head_dim;
  return axis == Axis::head_dim ? along % head_dim : along;
}

struct Shape {
  std::int64_t rows = 1, cols = 1;
};
Shape shape_of(const model::TensorInventory& inventory, const PlacedTensor& p) {
  if (model::is_adapter(p.role))
    for (const model::LoraTarget& t : inventory.lora_targets())
      if (t.role == p.base && t.layer == p.layer) {
        const std::int64_t rank = size_of(p, Axis::rank);
        return p.role == Role::lora_a   ? Shape{rank, t.in}
               : p.role == Role::lora_b ? Shape{t.out, rank}
                                        : Shape{1, t.out};
      }
  const model::Tensor& t = *inventory.find(p.role, p.layer);
  return {t.elements() / t.hf_shape.back(), t.hf_shape.back()};
}

std::vector<std::int64_t> flat(const IndexRegion& region, std::int64_t cols) {
  std::vector<std::int64_t> out;
  for (const IndexInterval& r : region.rows)
    for (std::int64_t row = r.begin; row < r.end; ++row)
      for (const IndexInterval& c : region.cols)
        for (std::int64_t col = c.begin; col < c.end; ++col) out.push_back(row * cols + col);
  return out;
}

std::vector<std::int64_t> flat(const LocalSlice& slice, std::int64_t cols) {
  IndexRegion region{{}, {slice.cols}};
  for (std::int64_t b = 0; b < slice.blocks; ++b)
    region.rows.push_back({b * slice.block_rows + slice.rows.begin, b * slice.block_rows + slice.rows.end});
  return flat(region, cols);
}

void expect_pieces(const model::TensorInventory& inventory, const PlacedTensor& p, const mesh::Mesh& mesh) {
  SCOPED_TRACE(p.name + " " + mesh::to_text(p.spec) + " on " + mesh::to_text(mesh));
  const Shape shape = shape_of(inventory, p);
  std::map<std::int64_t, std::vector<std::int64_t>> pieces;
  std::vector<int> covered(static_cast<size_t>(shape.rows * shape.cols));
  ASSERT_EQ(p.total(), shape.rows * shape.cols);
  for (int device = 0; device < mesh.devices(); ++device) {
    const IndexRegion region = region_of(p, mesh::piece(p, mesh, device));
    const std::vector<std::int64_t> elements = flat(region, shape.cols);
    ASSERT_EQ(region.elements(), static_cast<std::int64_t>(elements.size()));
    const std::int64_t index = mesh::piece_index(p, mesh, device);
    if (index < 0) {
      EXPECT_TRUE(elements.empty());
      continue;
    }
    const std::vector<IndexInterval> held = mesh::piece(p, mesh, device);
    for (const std::int64_t e : elements)
      for (size_t d = 0; d < p.dims.size(); ++d) {
        const std::int64_t at = coordinate(p, p.dims[d].axis, e / shape.cols, e % shape.cols);
        ASSERT_TRUE(at >= held[d].begin && at < held[d].end) << "element " << e << ", dimension " << d;
      }
    const auto [known, fresh] = pieces.try_emplace(index, elements);
    EXPECT_EQ(known->second, elements) << "replicas agree";
    for (const std::int64_t e : elements) covered[static_cast<size_t>(e)] += fresh ? 1 : 0;
  }
  EXPECT_EQ(static_cast<std::int64_t>(pieces.size()), p.shards);
  for (const int times : covered) ASSERT_EQ(times, 1) << "every element is in exactly one distinct piece";
}

// Everything a device computes with comes from some shard, once, and from the right place. On every device that is
// `working`, whatever its part of the model.
void expect_sources(const PlacedTensor& p, const mesh::Mesh& mesh, const mesh::ComputeSharding& form,
                    const IndexRegion& working, int device) {
  SCOPED_TRACE(p.name + " " + mesh::to_text(p.spec) + " on " + mesh::to_text(mesh));
  const mesh::ReshardPlan plan(p, form, mesh, {static_cast<size_t>(mesh.devices()), working});
  constexpr std::int64_t kWide = 1 << 20;
  const std::vector<std::int64_t> wanted = flat(working, kWide);
  if (plan.direct) {
    EXPECT_EQ(flat(plan.stored[static_cast<size_t>(device)], kWide), wanted);
    return;
  }
  std::vector<std::int64_t> got(wanted.size(), -1);
  for (const mesh::CopySource& share : plan.copies(device).sources) {
    const IndexRegion& from = plan.stored[static_cast<size_t>(share.device)];
    const std::vector<std::int64_t> there = flat(from, kWide);
    for (const IndexRange& r : share.at.rows)
      for (const IndexRange& c : share.at.cols)
        for (std::int64_t i = 0; i < r.count; ++i)
          for (std::int64_t j = 0; j < c.count; ++j) {
            auto& to = got[static_cast<size_t>((r.to + i) * working.width() + c.to + j)];
            EXPECT_EQ(to, -1) << "twice";
            to = there[static_cast<size_t>((r.from + i) * from.width() + c.from + j)];
          }
  }
  EXPECT_EQ(got, wanted);
}

void expect_all(const model::Config& config, const mesh::Mesh& mesh, const mesh::ShardingRules& rules) {
  const model::TensorInventory inventory(config);
  const mesh::Placement placement =
      mesh::place(inventory, mesh, rules, all_adapters(inventory, 3), mesh::ShardingUse::training);
  const mesh::ComputeSharding form(mesh, placement, mesh::StepShape{});
  for (const std::vector<PlacedTensor>* list : {&placement.tensors, &placement.adapters})
    for (const PlacedTensor& p : *list) {
      expect_pieces(inventory, p, mesh);
      const Shape shape = shape_of(inventory, p);
      expect_sources(p, mesh, form, {{{0, shape.rows}}, {{0, shape.cols}}}, mesh.devices() - 1);
      if (shape.rows > 3) expect_sources(p, mesh, form, {{{1, 2}, {3, shape.rows}}, {{0, 1}}}, 0);
    }
}

class ShardMap : public ::testing::TestWithParam<std::string> {
 protected:
  const model::Config config = as_family(tiny_config(), GetParam());
};
INSTANTIATE_TEST_SUITE_P(Engine, ShardMap, ::testing::ValuesIn(families()), family_name);

TEST_P(ShardMap, PresetsCutEveryTensorIntoItsPieces) {
  for (const mesh::Preset preset :
       {mesh::Preset::tunix, mesh::Preset::megatron, mesh::Preset::fsdp, mesh::Preset::replicated})
    for (const auto& [fsdp, tp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 2}, {2, 4}, {3, 1}, {5, 2}})
      expect_all(config, mesh_of({{"fsdp", fsdp}, {"tp", tp}}),
                 {.preset = preset, .adapters = mesh::AdapterForm::separate});
}

// Specs that nobody would choose: random axes on random dimensions, several on one, heads cut within.
TEST_P(ShardMap, AnySpecCutsEveryTensorIntoItsPieces) {
  const mesh::Mesh mesh = mesh_of({{"data", 2}, {"fsdp", 2}, {"tp", 3}});
  const char* const kTensors[] = {"q_proj$",        "k_proj$",        "o_proj$",       "down_proj$", "up_proj$",
                                  "embed$",         "norm",           "experts",       "router",     "ple_",
                                  "q_proj.lora_a$", "o_proj.lora_a$", "v_proj.lora_b$"};
  for (std::uint64_t draw = 0; draw < 12; ++draw) {
    Rng rng{draw, 7};
    mesh::ShardingRules rules{.adapters = mesh::AdapterForm::separate};
    for (const char* const tensor : kTensors) {
      mesh::PartitionSpec spec{std::vector<std::vector<std::string>>(1 + rng.below(3))};
      for (const char* const axis : {"tp", "data", "fsdp"})
        if (rng.below(3) != 0) spec.dims[rng.below(spec.dims.size())].emplace_back(axis);
      rules.overrides.push_back({tensor, spec});
    }
    expect_all(config, mesh, rules);
  }
}

// Memory and traffic are planned by dimensions, the engine goes by rows and columns of the files.
TEST_P(ShardMap, ADevicesPartIsTheSameByDimensions) {
  const model::Config even = divisible(GetParam());
  const model::TensorInventory inventory(even);
  for (const mesh::Mesh& mesh : {grid(1, 4), grid(2, 2), grid(2, 4)}) {
    const mesh::Placement placement =
        mesh::place(inventory, mesh, tunix_rules(even), all_adapters(inventory, 3), mesh::ShardingUse::training);
    const mesh::ComputeSharding form(mesh, placement, mesh::StepShape{});
    for (int device = 0; device < mesh.devices(); ++device) {
      const mesh::LocalConfig local = mesh::local_config(even, form, placement, mesh, device);
      for (size_t i = 0; i < placement.tensors.size(); ++i) {
        const PlacedTensor& p = placement.tensors[i];
        SCOPED_TRACE(p.name + " on " + mesh::to_text(mesh) + ", device " + std::to_string(device));
        const std::vector<IndexInterval> part = mesh::working_piece(local, p);
        const std::int64_t cols = shape_of(inventory, p).cols;
        const std::vector<std::int64_t> elements = flat(local_slice(local, inventory.tensors()[i]), cols);
        ASSERT_EQ(flat(region_of(p, part), cols), elements);
        std::int64_t expected = 1;
        for (const IndexInterval& r : part) expected *= r.end - r.begin;
        ASSERT_EQ(static_cast<std::int64_t>(elements.size()), expected);
        for (const std::int64_t e : elements)
          for (size_t d = 0; d < p.dims.size(); ++d) {
            const std::int64_t at = coordinate(p, p.dims[d].axis, e / cols, e % cols);
            ASSERT_TRUE(at >= part[d].begin && at < part[d].end) << "element " << e << ", dimension " << d;
          }
      }
    }
  }
}

}  // namespace
}  // namespace mw::engine::test
