// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/designer/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/model/catalogue.h"
#include "tests/mesh/targets.h"

namespace mw::designer {
namespace {

using namespace mesh;

CanvasPicture drawn(const Mesh& mesh, const hardware::Target& target) {
  return canvas_picture(target, lay_out(mesh, target));
}

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

TEST(Canvas, DrawsEveryTopologyInsideItsFrameWithoutOverlap) {
  const std::vector<hardware::Target> targets{tpu({2, 2, 1}),
                                              tpu({2, 4}),
                                              tpu({16, 16}, {true, true}),
                                              tpu({4, 4, 4}, {true, true, true}),
                                              tpu({2, 2, 1}, {}, 2),
                                              tpu({1, 1}),
                                              gpus({2}),
                                              gpus({8}),
                                              gpus({4, 8}),
                                              slices(2, tpu({2, 2, 1})),
                                              slices(6, tpu({2, 4}, {}, 2)),
                                              slices(4, tpu({4, 4, 4}, {true, true, true}))};
  for (const hardware::Target& target : targets) {
    int devices = target.chip.devices_per_chip;
    for (const int n : target.shape) devices *= n;
    const CanvasPicture p = drawn(two(1, devices), target);
    ASSERT_EQ(static_cast<int>(p.devices.size()), devices);
    std::set<int> positions;
    for (const CanvasDevice& d : p.devices) {
      positions.insert(d.position);
      EXPECT_GE(d.at.x, 0);
      EXPECT_LE(d.at.right(), p.width + 1e-9);
      EXPECT_LE(d.at.bottom(), p.height + 1e-9);
    }
    EXPECT_EQ(positions.size(), p.devices.size());
    for (size_t a = 0; a < p.chips.size(); ++a) {
      for (size_t b = 0; b < a; ++b) ASSERT_FALSE(overlap(p.chips[a].at, p.chips[b].at));
      for (const CanvasSwitch& s : p.switches) ASSERT_FALSE(overlap(p.chips[a].at, s.at));
    }
  }
}

TEST(Canvas, DrawsTheLinksOfTheTopology) {
  EXPECT_EQ(drawn(two(1, 4), tpu({2, 2, 1})).links.size(), 4u);
  EXPECT_EQ(drawn(two(2, 4), tpu({2, 4})).links.size(), 10u);
  const CanvasPicture torus = drawn(two(16, 16), tpu({16, 16}, {true, true}));
  EXPECT_EQ(torus.links.size(), 512u);
  EXPECT_EQ(std::count_if(torus.links.begin(), torus.links.end(), [](const CanvasLink& l) { return l.wrap; }), 32);
  EXPECT_EQ(drawn(two(1, 64), tpu({4, 4, 4}, {true, true, true})).links.size(), 192u);
  const CanvasPicture nodes = drawn(two(4, 8), gpus({4, 8}));
  EXPECT_TRUE(nodes.links.empty());
  ASSERT_EQ(nodes.switches.size(), 4u);
  EXPECT_EQ(nodes.switches[1].chips, (std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Canvas, SlicesAreGroupsWithLinesBetweenThem) {
  const hardware::Target target = slices(4, tpu({2, 4}));
  const Mesh mesh{{{"data", 2}, {"fsdp", 4}, {"tp", 4}}};
  const Layout layout = lay_out(mesh, target, {{"data", {0}}, {"fsdp", {0, 1}}, {"tp", {2}}});
  const CanvasPicture p = canvas_picture(target, layout);
  ASSERT_EQ(p.groups.size(), 4u);
  EXPECT_EQ(p.groups[3].name, "slice 3");
  for (size_t c = 0; c < p.chips.size(); ++c) {
    const Box& frame = p.groups[c / 8].at;
    EXPECT_TRUE(frame.x < p.chips[c].at.x && p.chips[c].at.right() < frame.right() && frame.y < p.chips[c].at.y &&
                p.chips[c].at.bottom() < frame.bottom())
        << c;
  }
  EXPECT_EQ(p.network.size(), 4u) << "two rows of two slices";
  for (const CanvasLink& l : p.links) EXPECT_EQ(l.a / 8, l.b / 8) << "links stay within a slice";
  EXPECT_EQ(p.links.size(), 40u);
  EXPECT_EQ(p.network_axes, (std::vector<std::string>{"data", "fsdp"}));
  const auto network = std::find_if(p.sides.begin(), p.sides.end(),
                                    [](const CanvasSide& s) { return s.where == CanvasSide::Where::network; });
  ASSERT_NE(network, p.sides.end());
  EXPECT_EQ(network->name, "slices");
  EXPECT_EQ(network->axes, (std::vector<std::string>{"data", "fsdp"}));
  EXPECT_TRUE(axis_edges(mesh, layout, "data").empty()) << "its traffic is on the network";
  const std::vector<CanvasEdge> mixed = axis_edges(mesh, layout, "fsdp");
  EXPECT_EQ(mixed.size(), 16u) << "the pairs within each slice";
  for (const CanvasEdge& e : mixed) EXPECT_EQ(e.a / 8, e.b / 8);
  EXPECT_TRUE(drawn(two(2, 4), tpu({2, 4})).groups.empty());
  EXPECT_EQ(drawn(two(4, 8), gpus({4, 8})).groups.size(), 4u);
  EXPECT_EQ(drawn(two(4, 8), gpus({4, 8})).network_axes, std::vector<std::string>{"fsdp"});
}

TEST(Canvas, SidesNameTheirAxes) {
  const CanvasPicture p = drawn(two(2, 4), tpu({2, 4}));
  ASSERT_EQ(p.sides.size(), 2u);
  EXPECT_EQ(p.sides[0].name, "rows");
  EXPECT_EQ(p.sides[0].axes, std::vector<std::string>{"fsdp"});
  EXPECT_EQ(p.sides[1].axes, std::vector<std::string>{"tp"});
  const CanvasPicture line = drawn(two(4, 4), tpu({1, 16}));
  ASSERT_EQ(line.sides.size(), 1u);
  EXPECT_EQ(line.sides[0].axes, (std::vector<std::string>{"fsdp", "tp"})) << "outer first";
  EXPECT_EQ(drawn(two(4, 2), tpu({2, 2, 1}, {}, 2)).sides.back().name, "devices of a chip");
}

TEST(Canvas, PiecesCoverTheTensor) {
  const model::TensorInventory inventory(model::catalogue_config("gemma3-27b"));
  const Mesh mesh = two(2, 4);
  const Layout layout = lay_out(mesh, tpu({2, 4}));
  const Placement p = place(inventory, mesh, {}, {}, ShardingUse::training);
  const PlacedTensor& q = *std::find_if(p.tensors.begin(), p.tensors.end(),
                                        [](const PlacedTensor& t) { return t.name == "layers.0.q_proj"; });
  double area = 0;
  std::set<std::int64_t> seen;
  for (const PieceArea& v : piece_areas(q, mesh, layout)) {
    area += (v.right - v.left) * (v.bottom - v.top);
    seen.insert(v.index);
  }
  EXPECT_EQ(seen.size(), 8u);
  EXPECT_DOUBLE_EQ(area, 1);
}

TEST(Canvas, EdgesFollowRingsAndLines) {
  const auto count = [](const Mesh& mesh, const hardware::Target& target, const char* axis) {
    return axis_edges(mesh, lay_out(mesh, target), axis).size();
  };
  EXPECT_EQ(count(two(1, 4), tpu({2, 2, 1}), "tp"), 4u);  // a ring through the block
  EXPECT_EQ(count(two(2, 4), tpu({2, 4}), "tp"), 6u);     // two lines of four
  EXPECT_EQ(count(two(2, 4), tpu({2, 4}), "fsdp"), 4u);   // four pairs
  EXPECT_EQ(count(two(16, 16), tpu({16, 16}, {true, true}), "tp"), 256u);
  EXPECT_EQ(count(two(256, 1), tpu({16, 16}, {true, true}), "fsdp"), 512u);
  EXPECT_EQ(count(two(1, 4), tpu({2, 2, 1}), "fsdp"), 0u);
  EXPECT_EQ(count(two(1, 4), tpu({2, 2, 1}), "nothing"), 0u);
  const Mesh pair = two(1, 8);
  for (const CanvasEdge& e : axis_edges(pair, lay_out(pair, gpus({8})), "tp")) EXPECT_EQ(e.b, -1);
}

}  // namespace
}  // namespace mw::designer
