// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/mesh/layout/layout.h"
#include "tests/mesh/targets.h"

namespace mw::mesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const AxisPlacement& of(const Layout& layout, std::string_view axis) {
  return *std::find_if(layout.axes.begin(), layout.axes.end(), [&](const AxisPlacement& p) { return p.axis == axis; });
}

// Grid coordinates of a device.
std::vector<int> point(const Layout& layout, int device) {
  std::vector<int> at(layout.grid.size());
  for (size_t d = at.size(); d-- > 0;) {
    at[d] = device % layout.grid[d].size;
    device /= layout.grid[d].size;
  }
  return at;
}

int hops_between(const Layout& layout, int a, int b) {
  const auto p = point(layout, a), q = point(layout, b);
  int sum = 0;
  for (size_t d = 0; d < p.size(); ++d) {
    const int far = std::abs(p[d] - q[d]);
    sum += layout.grid[d].wrap ? std::min(far, layout.grid[d].size - far) : far;
  }
  return sum;
}

std::string refusal(const Mesh& mesh, const hardware::Target& target,
                    const std::vector<RequestedPlacement>& asked = {}) {
  try {
    lay_out(mesh, target, asked);
  } catch (const Error& error) {
    return error.problem().id + ": " + error.what();
  }
  return "accepted";
}

TEST(Layout, FourWaysOnV5p8RunARingThroughTheBlock) {
  const Layout layout = lay_out(two(1, 4), tpu({2, 2, 1}));
  const AxisPlacement& tp = of(layout, "tp");
  EXPECT_TRUE(tp.ring);
  EXPECT_EQ(tp.rails, 2);
  EXPECT_EQ(tp.sharing, 1);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(hops_between(layout, layout.device_of[i], layout.device_of[(i + 1) % 4]), 1);
}

TEST(Layout, EightWaysOnV6e8RunARingThroughTheBlock) {
  const Layout layout = lay_out(two(1, 8), tpu({2, 4}));
  EXPECT_TRUE(of(layout, "tp").ring);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(hops_between(layout, layout.device_of[i], layout.device_of[(i + 1) % 8]), 1);
}

TEST(Layout, TwoByFourFillsTheSidesOfV6e8) {
  const Layout layout = lay_out(two(2, 4), tpu({2, 4}));
  EXPECT_EQ(of(layout, "tp").parts, (std::vector<GridPart>{{1, 4, 1}}));
  EXPECT_EQ(of(layout, "fsdp").parts, (std::vector<GridPart>{{0, 2, 1}}));
  EXPECT_FALSE(of(layout, "tp").ring);
  EXPECT_EQ(of(layout, "tp").rails, 1);
  EXPECT_EQ(of(layout, "tp").hops, 3);
  EXPECT_EQ(layout.device_of, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Layout, WrappedSidesAreRingsAndATorusUsesAllOfThem) {
  const Layout sides = lay_out(two(16, 16), tpu({16, 16}, {true, true}));
  EXPECT_TRUE(of(sides, "tp").ring);
  EXPECT_EQ(of(sides, "tp").rails, 2);
  EXPECT_EQ(of(sides, "tp").hops, 8);
  const Layout torus = lay_out(two(256, 1), tpu({16, 16}, {true, true}));
  EXPECT_EQ(of(torus, "fsdp").rails, 4);
  EXPECT_EQ(of(torus, "fsdp").hops, 16);
  EXPECT_EQ(of(torus, "tp").medium, Medium::none);
  const Layout cube = lay_out(two(64, 1), tpu({4, 4, 4}, {true, true, true}));
  EXPECT_EQ(of(cube, "fsdp").rails, 6);
}

TEST(Layout, PartOfASideIsALineAndTheOuterPartSharesItsLinks) {
  const Layout layout = lay_out(two(4, 4), tpu({16}, {false}));
  EXPECT_EQ(of(layout, "tp").parts, (std::vector<GridPart>{{0, 4, 1}}));
  EXPECT_EQ(of(layout, "tp").sharing, 1);
  EXPECT_EQ(of(layout, "fsdp").parts, (std::vector<GridPart>{{0, 4, 4}}));
  EXPECT_EQ(of(layout, "fsdp").sharing, 4);
  EXPECT_EQ(of(layout, "fsdp").hops, 12);
}

TEST(Layout, DevicesOfOneChipAreTheInnermostDimensionAndShareItsLinks) {
  const Layout layout = lay_out(two(4, 2), tpu({2, 2, 1}, {}, 2));
  EXPECT_EQ(of(layout, "tp").medium, Medium::chip);
  EXPECT_EQ(of(layout, "fsdp").medium, Medium::link);
  EXPECT_EQ(of(layout, "fsdp").sharing, 2);
  EXPECT_EQ(layout.device_of[0] / 2, layout.device_of[1] / 2) << "tp stays within a chip";
}

TEST(Layout, InnerAxesStayWithinAGpuNode) {
  const Layout layout = lay_out(two(4, 8), gpus({4, 8}));
  EXPECT_EQ(of(layout, "tp").medium, Medium::node);
  EXPECT_EQ(of(layout, "fsdp").medium, Medium::network);
  EXPECT_EQ(of(layout, "tp").hops, 1);
  EXPECT_EQ(of(lay_out(two(8, 4), gpus({4, 8})), "tp").medium, Medium::node)
      << "although fsdp alone would fit the node";
  EXPECT_EQ(of(lay_out(two(2, 1), gpus({2})), "fsdp").medium, Medium::node);
}

// The slice of each mesh position, as create_hybrid_device_mesh of JAX 0.10.2 gives it for the same factors.
TEST(Layout, OrdersSlicesAsJaxHybridMeshes) {
  const auto slices_along = [](const Mesh& mesh, int count, const std::vector<RequestedPlacement>& asked) {
    std::vector<int> out;
    for (const int d : lay_out(mesh, slices(count, tpu({2, 4})), asked).device_of) out.push_back(d / 8);
    return out;
  };
  const auto repeated = [](const std::vector<int>& blocks, int each) {
    std::vector<int> out;
    for (const int b : blocks) out.insert(out.end(), static_cast<size_t>(each), b);
    return out;
  };
  const Mesh three{{{"data", 2}, {"fsdp", 4}, {"tp", 4}}};  // ICI (1, 2, 4), DCN (2, 2, 1)
  EXPECT_EQ(slices_along(three, 4, {{"data", {0}}, {"fsdp", {0, 1}}, {"tp", {2}}}), repeated({0, 1, 2, 3}, 8));
  EXPECT_EQ(slices_along({{{"fsdp", 32}}}, 4, {}), repeated({0, 1, 2, 3}, 8)) << "no slice is visited twice";
  // tp over the network: ICI (2, 4), DCN (1, 2)
  EXPECT_EQ(slices_along(two(2, 8), 2, {{"fsdp", {1}}, {"tp", {0, 2}}}), repeated({0, 1, 0, 1}, 4));
}

TEST(Layout, AnAxisOverSlicesKeepsTheLinksWithinThem) {
  const Layout layout = lay_out(two(32, 4), slices(2, tpu({8, 8}, {true, true})));
  const AxisPlacement& fsdp = of(layout, "fsdp");
  EXPECT_EQ(fsdp.medium, Medium::network);
  EXPECT_EQ(fsdp.rails, of(lay_out(two(16, 4), tpu({8, 8}, {true, true})), "fsdp").rails);
  EXPECT_EQ(of(layout, "tp").medium, Medium::link);
  EXPECT_EQ(of(lay_out({{{"data", 2}, {"fsdp", 64}}}, slices(2, tpu({8, 8}))), "data").sharing, 1);
}

TEST(Layout, CpuHasAsManyVirtualDevicesAsTheMesh) {
  EXPECT_EQ(lay_out(two(2, 4), cpu()).device_of.size(), 8u);
}

TEST(Layout, KeepsRequestedPlacements) {
  const Layout layout = lay_out(two(4, 2), tpu({2, 4}), {{"tp", {0}}});
  EXPECT_EQ(of(layout, "tp").parts, (std::vector<GridPart>{{0, 2, 1}}));
  EXPECT_EQ(of(layout, "fsdp").parts, (std::vector<GridPart>{{1, 4, 1}}));
  EXPECT_EQ(layout.device_of, (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(Layout, RejectsImpossiblePlacementsWithLegalSizes) {
  EXPECT_THAT(refusal(two(2, 4), tpu({2, 4}), {{"tp", {0}}}),
              AllOf(HasSubstr("MESH-PLACE"), HasSubstr("among 1, 2"), HasSubstr("fits on dimension 1")));
  EXPECT_THAT(refusal(two(2, 4), tpu({2, 4}), {{"fsdp", {1}}, {"tp", {1}}}), HasSubstr("MESH-PLACE"));
  EXPECT_THAT(refusal(two(2, 4), tpu({2, 4}), {{"tp", {7}}}), HasSubstr("a dimension that the grid does not have"));
  EXPECT_THAT(refusal(two(2, 4), tpu({2, 4}), {{"tq", {0}}}), HasSubstr("tq"));
}

TEST(Layout, RejectsWrongSizesWithTheNearestMeshes) {
  EXPECT_THAT(refusal(two(1, 8), tpu({2, 2, 1})),
              AllOf(HasSubstr("MESH-SIZE"), HasSubstr("8 devices"), HasSubstr("4 devices"), HasSubstr("mesh.tp = 4")));
  EXPECT_THAT(refusal(two(2, 4), tpu({2, 2, 1})), AllOf(HasSubstr("mesh.fsdp = 1"), HasSubstr("mesh.tp = 2")));
  for (const int size : {0, -3, 2147483647})
    EXPECT_THAT(refusal(two(size, 4), tpu({2, 2, 1})), HasSubstr("MESH-SIZE")) << size;
  EXPECT_THAT(refusal(two(2147483647, 2147483647), gpus({8})), HasSubstr("MESH-SIZE"));
  EXPECT_THAT(refusal({{{"tp", 2}, {"tp", 2}}}, tpu({2, 2, 1})), HasSubstr("same name"));
  EXPECT_THAT(refusal({{{"a b", 4}}}, tpu({2, 2, 1})), HasSubstr("MESH-AXIS"));
  EXPECT_THAT(refusal({}, tpu({2, 2, 1})), HasSubstr("MESH-SIZE"));
}

// Random grids and axes: every device exactly once; what facts say holds for the neighbours.
TEST(Layout, CoversEveryDeviceOnceWithConsistentNeighbours) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    std::vector<int> shape;
    std::vector<bool> wrap;
    int devices = 1;
    for (int d = 1 + pick(3); d-- > 0;) {
      shape.push_back(std::vector{1, 2, 3, 4, 6, 8}[static_cast<size_t>(pick(6))]);
      wrap.push_back(pick(2) == 0 && shape.back() > 2);
      devices *= shape.back();
    }
    Mesh mesh;
    int left = devices;
    for (const char* name : {"a", "b"}) {
      std::vector<int> sizes;
      for (int n = 1; n <= left; ++n)
        if (left % n == 0) sizes.push_back(n);
      mesh.axes.push_back({name, sizes[static_cast<size_t>(pick(static_cast<int>(sizes.size())))]});
      left /= mesh.axes.back().size;
    }
    mesh.axes.push_back({"c", left});
    const Layout layout = lay_out(mesh, tpu(shape, wrap));
    std::vector<int> sorted = layout.device_of, all(static_cast<size_t>(devices));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(sorted, all) << to_text(mesh);
    for (size_t a = 0; a < mesh.axes.size(); ++a) {
      const AxisPlacement& place = layout.axes[a];
      int product = 1, stride = 1;
      for (const GridPart& p : place.parts) product *= p.size, stride = std::max(stride, p.stride);
      EXPECT_EQ(product, mesh.axes[a].size);
      int step = 1;
      for (size_t b = a + 1; b < mesh.axes.size(); ++b) step *= mesh.axes[b].size;
      // Along one group from position 0: steps of at most `stride` hops, closing where it is a ring and no torus.
      for (int i = 0; i + 1 < product; ++i)
        EXPECT_LE(hops_between(layout, layout.device_of[static_cast<size_t>(i * step)],
                               layout.device_of[static_cast<size_t>((i + 1) * step)]),
                  stride)
            << to_text(mesh);
      if (place.ring && place.rails == 2) {
        EXPECT_LE(
            hops_between(layout, layout.device_of[0], layout.device_of[static_cast<size_t>((product - 1) * step)]),
            stride)
            << to_text(mesh);
      }
    }
  }
}

}  // namespace
}  // namespace mw::mesh
