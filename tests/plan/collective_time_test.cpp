// SPDX-License-Identifier: Apache-2.0
#include "core/plan/prediction/collective_time.h"

#include <gtest/gtest.h>

#include "requests.h"

namespace mw::plan {
namespace {

mesh::Collective call(mesh::CollectiveKind kind, const char* axis, int group, double full) {
  const double part = (group - 1.0) / group * (kind == mesh::CollectiveKind::all_reduce ? 2 : 1);
  mesh::Collective c;
  c.kind = kind;
  c.axis = axis;
  c.group = group;
  c.full = Bytes(static_cast<std::int64_t>(full));
  c.moved = Bytes(static_cast<std::int64_t>(full * part));
  return c;
}

double seconds(const Request& r, const mesh::Collective& c) {
  return collective_seconds(c, mesh::lay_out(r.mesh, r.target), r.target, r.efficiencies).value;
}

TEST(CollectiveTime, TorusUsesBothDirectionsAndAllReduceTakesTwice) {
  Request r = lora_31b_v5p();
  r.efficiencies.collectives.value = 1;
  const double bytes = 1e9, gather = seconds(r, call(mesh::CollectiveKind::all_gather, "tp", 4, bytes));
  EXPECT_NEAR(gather, 0.75 * bytes / (2 * 90e9), 0.05 * gather);  // reference 2.5 on the ring of 2x2
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "tp", 4, bytes)) / gather, 2, 0.01);
}

TEST(CollectiveTime, AnAxisOverSlicesSendsOnlyItsShardOverTheNetwork) {
  Request one = request("gemma3-27b", "v5e-256", model::Stack::maxtext, {{"fsdp", 256}});
  Request two = request("gemma3-27b", "2xv5e-256", model::Stack::maxtext, {{"fsdp", 512}});
  one.efficiencies.collectives.value = two.efficiencies.collectives.value = 1;
  const double bytes = 4e9, shard = bytes / 512;
  const double within = seconds(one, call(mesh::CollectiveKind::all_gather, "fsdp", 256, bytes));
  const double both = seconds(two, call(mesh::CollectiveKind::all_gather, "fsdp", 512, bytes));
  EXPECT_NEAR(both - within, shard / two.target.chip.egress.value, 1e-3 * within);
  // Copies of a slice's shards use the network only.
  const Request data = request("gemma3-27b", "2xv5e-256", model::Stack::maxtext, {{"data", 2}, {"fsdp", 256}});
  EXPECT_NEAR(seconds(data, call(mesh::CollectiveKind::all_reduce, "data", 2, 1e9)),
              1e9 / (data.target.chip.egress.value * data.efficiencies.collectives.value), 1e-3);
}

TEST(CollectiveTime, GpusFollowTheMeasuredCurve) {
  const Request r = request("gemma4-31b", "2xh100", model::Stack::trl_fsdp, {{"fsdp", 2}});
  // 67 MB between two H100 took 0.245 ms, 1 MB 0.042 ms (VD).
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 67e6)), 0.245e-3, 0.01e-3);
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 1e6)), 0.042e-3, 0.002e-3);
  // A tiny payload takes the latency.
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 1e3)), 0.032e-3, 0.001e-3);
}

// The only points of MI300X are at 4 GiB: 29 MB took as long, and a token of a server 3 s.
TEST(CollectiveTime, FallsTowardsTheLatencyBelowTheFirstPoint) {
  const Request r = request("gemma4-31b", "8xmi300x", model::Stack::vllm_gpu, {{"tp", 8}});
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "tp", 8, 29e6)), 32e-6 + 1.75 * 29e6 / 313e9, 5e-6);
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "tp", 8, 4294967296.0)), 1.75 * 4294967296.0 / 313e9,
              1e-6);
}

TEST(CollectiveTime, NodesSendThroughTheInterfacesOfAllTheirMembers) {
  Request r = request("gemma4-31b", "16xh100-96", model::Stack::trl_fsdp, {{"fsdp", 16}});
  r.efficiencies.collectives.value = 1;
  const double bytes = 1e9, latency = 32e-6;
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_gather, "fsdp", 16, bytes)),
              15.0 / 16 * bytes / (8 * 50e9) + latency, 1e-5);
  r.mesh.axes = {{"data", 2}, {"fsdp", 8}};  // a member of each group in each node
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_gather, "data", 2, bytes)), 0.5 * bytes / 50e9 + latency, 1e-5);
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_gather, "fsdp", 8, bytes)), 7.0 / 8 * bytes / 450e9 + latency,
              1e-5);
}

TEST(CollectiveTime, OneDeviceTakesNoTime) {
  const Request r = lora_31b_v5p();
  EXPECT_EQ(seconds(r, call(mesh::CollectiveKind::all_gather, "fsdp", 1, 1e9)), 0);
}

TEST(BandwidthCurve, InterpolatesInLogarithms) {
  const hardware::BandwidthCurve curve{.points = {{1e6, 10e9}, {1e8, 1000e9}}};
  EXPECT_NEAR(bandwidth_at(curve, 1e7, 1), 100e9, 1e6);
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 1e9, 1), 1000e9);
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 5e5, 1), 5e9);  // the first point takes no longer than the latency
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 5e5, 0), 10e9);
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 5e5, 5e-5), 5e5 / 75e-6);
}

}  // namespace
}  // namespace mw::plan
