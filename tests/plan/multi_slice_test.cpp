// SPDX-License-Identifier: Apache-2.0
// Training over two slices: what goes over the network between them, and how long it takes, from formulas of this file.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/mesh/layout/layout.h"
#include "core/plan/prediction/collective_time.h"
#include "core/plan/prediction/step_time.h"
#include "requests.h"

namespace mw::plan {
namespace {

constexpr double kSliceCount = 2, kSliceChips = 4,
                 kSliceDevices = kSliceCount * kSliceChips;  // two slices of 2x2 chips

Request two_slices(std::vector<mesh::MeshAxis> axes) {
  Request r = request("llama3.1-8b", "2xv5p-8", model::Stack::maxtext, std::move(axes));
  r.method = model::TrainMethod::full;
  r.train.batch = 16;
  r.efficiencies.collectives.value = 1;
  return r;
}

// Elements of the matrices of a layer, which fsdp splits; its norms are on every device.
double matrix_elements(const model::Config& config, int layer) {
  double sum = 0;
  const model::TensorInventory inventory(config);
  for (const model::Tensor& t : inventory.tensors()) {
    if (t.layer != layer || t.dims.size() < 2) continue;
    double elements = 1;
    for (const model::Dim& d : t.dims) elements *= static_cast<double>(d.size);
    sum += elements;
  }
  return sum;
}

struct LayerTraffic {
  double network = 0, seconds = 0;  // bytes of a device over the network; of all collectives
};
// The traffic that the planner lists for the matrices of a layer.
LayerTraffic sent_for_layer(const Request& r, int layer) {
  const LocalModel m = local_model(r, mesh::ShardingUse::training);
  LayerTraffic out;
  for (const mesh::Collective& c : step_collectives(r, m.config, m.placement, step_shape(m))) {
    if (c.layer != layer || c.axis == "tp" || c.full.value < 1 << 20) continue;  // norms are below a megabyte
    const auto calls = static_cast<double>(c.calls);
    out.network += calls * network_bytes(c, m.layout);
    out.seconds += calls * collective_seconds(c, m.layout, r.target, r.efficiencies).value;
  }
  return out;
}

// A gather, or a scattered sum, of `bytes` over all devices: each exchanges its shard with one in the other slice, and
// the rest within its slice, on a ring of four chips in both directions.
double seconds_over_all(double bytes, const hardware::Chip& chip) {
  const double shard = bytes / kSliceDevices, all = bytes - shard, network = shard * (kSliceCount - 1);
  return network / chip.egress.value + (all - network) / (2 * chip.link_bandwidth.value) +
         kSliceChips / 2 * chip.link_latency.value;
}
double seconds_in_slice(double bytes, const hardware::Chip& chip) {
  return bytes * (1 - 1 / kSliceChips) / (2 * chip.link_bandwidth.value) + kSliceChips / 2 * chip.link_latency.value;
}

TEST(MultiSlice, FsdpOverBothSlicesSendsAShardOfEachGatherAndSum) {
  const Request r = two_slices({{"fsdp", 8}, {"tp", 1}});
  const double weights = 2 * matrix_elements(r.model, 0), gradients = bytes_of(r.profile.gradients) / 2.0 * weights;
  const LayerTraffic sent = sent_for_layer(r, 0);
  // Gathered for the forward and for the backward, and the gradients summed into shards.
  EXPECT_NEAR(sent.network, (2 * weights + gradients) / kSliceDevices * (kSliceCount - 1), 1e-4 * sent.network);
  const hardware::Chip& chip = r.target.chip;
  EXPECT_NEAR(sent.seconds, 2 * seconds_over_all(weights, chip) + seconds_over_all(gradients, chip),
              0.02 * sent.seconds);
}

TEST(MultiSlice, CopiesInEachSliceSendOnlyTheirGradients) {
  const Request r = two_slices({{"data", 2}, {"fsdp", 4}, {"tp", 1}});
  const double weights = 2 * matrix_elements(r.model, 0), gradients = bytes_of(r.profile.gradients) / 2.0 * weights;
  const LayerTraffic sent = sent_for_layer(r, 0);
  // An all-reduce of the shards of a slice sends each of them (S - 1) / S there and back.
  const double reduced = gradients / kSliceChips * 2 * (kSliceCount - 1) / kSliceCount;
  EXPECT_NEAR(sent.network, reduced, 1e-3 * sent.network);  // the rest are norms
  const hardware::Chip& chip = r.target.chip;
  EXPECT_NEAR(sent.seconds,
              2 * seconds_in_slice(weights, chip) + seconds_in_slice(gradients, chip) + reduced / chip.egress.value +
                  chip.link_latency.value,
              0.02 * sent.seconds);
}

// Of weights w and gradients g of a layer, fsdp over N devices sends (2 w + g) / N between the two slices, copies 2 g /
// N: the same where all weights are trained with gradients of twice their bytes.
TEST(MultiSlice, CopiesSendAsMuchAsFsdpWhereGradientsAreTwiceTheWeights) {
  const Request all = two_slices({{"fsdp", 8}, {"tp", 1}}), copies = two_slices({{"data", 2}, {"fsdp", 4}, {"tp", 1}});
  const double gradients = bytes_of(all.profile.gradients) / 2.0;
  EXPECT_NEAR(sent_for_layer(copies, 0).network / sent_for_layer(all, 0).network, 2 * gradients / (2 + gradients),
              1e-3);
}

// The gradients of adapters are small, so that a hybrid mesh, fsdp within the slices and copies over them, sends less
// than fsdp over all.
TEST(MultiSlice, AHybridMeshSendsLessOverTheNetworkThanFsdpOverAllForAdapters) {
  for (const int accumulation : {1, 4}) {
    Request all = two_slices({{"fsdp", 8}, {"tp", 1}}), hybrid = two_slices({{"data", 2}, {"fsdp", 4}, {"tp", 1}});
    for (Request* r : {&all, &hybrid}) {
      r->method = model::TrainMethod::lora;
      r->train.accumulation = accumulation;
    }
    const double weights = 2 * matrix_elements(all.model, 0);
    const double over_all = sent_for_layer(all, 0).network;
    EXPECT_GE(over_all, accumulation * 2 * weights / kSliceDevices);
    EXPECT_LT(sent_for_layer(hybrid, 0).network, 0.2 * over_all);
    EXPECT_LT(predict(hybrid).step.communication.value, 0.5 * predict(all).step.communication.value);
  }
}

TEST(MultiSlice, SplitsOfAMeshAreThoseThatItsAxesAllow) {
  const hardware::Target two = context().catalogue.target("2xv5p-8");
  const mesh::Mesh mesh{{{"fsdp", 4}, {"tp", 2}}};
  const auto places = mesh::network_placements(mesh, two, {});
  ASSERT_EQ(places.size(), 2U);
  EXPECT_TRUE(places[0].empty());
  const auto split = [&](size_t i) { return mesh::network_split(mesh::lay_out(mesh, two, places[i])); };
  EXPECT_EQ(split(0), (std::vector<mesh::MeshAxis>{{"fsdp", 2}}));
  EXPECT_EQ(split(1), (std::vector<mesh::MeshAxis>{{"tp", 2}}));
  EXPECT_EQ(mesh::network_placements(mesh, context().catalogue.target("v5p-16"), {}).size(), 1U);
  EXPECT_EQ(mesh::network_placements({{{"fsdp", 8}, {"tp", 1}}}, two, {}).size(), 1U);
  EXPECT_EQ(mesh::network_placements({{{"fsdp", 2}, {"tp", 4}}}, two, {}).size(), 2U);
}

}  // namespace
}  // namespace mw::plan
