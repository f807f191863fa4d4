// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/collective_time.h"

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

TEST(CollectiveTime, GpusFollowTheMeasuredCurve) {
  const Request r = request("gemma4-31b", "2xh100", Stack::trl_fsdp, {{"fsdp", 2}});
  // 67 MB between two H100 took 0.245 ms, 1 MB 0.042 ms (VD).
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 67e6)), 0.245e-3, 0.01e-3);
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 1e6)), 0.042e-3, 0.002e-3);
  // A tiny payload takes no less than the first point.
  EXPECT_NEAR(seconds(r, call(mesh::CollectiveKind::all_reduce, "fsdp", 2, 1e3)), 0.042e-3, 0.002e-3);
}

TEST(CollectiveTime, OneDeviceTakesNoTime) {
  const Request r = lora_31b_v5p();
  EXPECT_EQ(seconds(r, call(mesh::CollectiveKind::all_gather, "fsdp", 1, 1e9)), 0);
}

TEST(BandwidthCurve, InterpolatesInLogarithms) {
  const hardware::BandwidthCurve curve{.points = {{1e6, 10e9}, {1e8, 1000e9}}};
  EXPECT_NEAR(bandwidth_at(curve, 1e7), 100e9, 1e6);
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 1e9), 1000e9);
  EXPECT_DOUBLE_EQ(bandwidth_at(curve, 5e5), 5e9);
}

}  // namespace
}  // namespace mw::plan
