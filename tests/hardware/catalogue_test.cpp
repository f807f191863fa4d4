// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped hardware catalogue: names, grids, wraparound links, capacities, prices and sources.
#include "core/hardware/catalogue.h"

#include <gmock/gmock.h>

#include <set>

namespace mw::hardware {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Catalogue& shipped() {
  static const Catalogue catalogue = Catalogue::load(std::string(MW_RESOURCES) + "/hardware");
  return catalogue;
}

Problem refused(const std::string& id) {
  try {
    shipped().target(id);
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << id << " was taken";
  return {};
}

TEST(Targets, SuffixCountsCoresChipsOrDevices) {
  const Target v5p = shipped().target("v5p-8"), v6e = shipped().target("v6e-8"), tpu7x = shipped().target("tpu7x-8");
  EXPECT_EQ(v5p.chips(), 4);
  EXPECT_EQ(v5p.devices(), 4);  // megacore: two TensorCores form one device
  EXPECT_EQ(v6e.chips(), 8);
  EXPECT_EQ(v6e.devices(), 8);
  EXPECT_EQ(tpu7x.chips(), 4);
  EXPECT_EQ(tpu7x.devices(), 8);
  EXPECT_EQ(shipped().target("v3-8").devices(), 8);
  EXPECT_EQ(v5p.note, "v5p-8: the suffix counts TensorCores, 2 per chip; 4 chips, 2x2x1, no wraparound links");
  EXPECT_THAT(v6e.note, HasSubstr("counts chips; 8 chips, 2x4"));
}

TEST(Targets, ResolvesSeveralNamesOfOneSlice) {
  EXPECT_EQ(shipped().target("v5litepod-8").id, "v5e-8");
  EXPECT_EQ(shipped().target("ct6e-standard-8t").id, "v6e-8");
  EXPECT_EQ(shipped().target("v5p-4x4x8").id, "v5p-256");
  EXPECT_EQ(shipped().target("v5p-4x4x16").id, "v5p-4x4x16");
  EXPECT_EQ(shipped().target("v5p-4x4x16").chips(), 256);
}

TEST(Targets, HasWraparoundLinksOfSlice) {
  const auto wrap = [](const char* id) { return shipped().target(id).wrap; };
  EXPECT_THAT(wrap("v6e-8"), ElementsAre(false, false));
  EXPECT_THAT(wrap("v5e-64"), ElementsAre(false, false));
  EXPECT_THAT(wrap("v6e-128"), ElementsAre(false, true));  // 8x16: only the dimension of 16
  EXPECT_THAT(wrap("v6e-256"), ElementsAre(true, true));
  EXPECT_THAT(wrap("v5p-64"), ElementsAre(false, false, false));
  EXPECT_THAT(wrap("v5p-128"), ElementsAre(true, true, true));  // 4x4x4
  EXPECT_THAT(wrap("v4-384"), ElementsAre(true, true, true));
  EXPECT_THAT(wrap("tpu7x-128"), ElementsAre(true, true, true));
  EXPECT_THAT(wrap("v5p-4x4x6"), ElementsAre(false, false, false));
  EXPECT_THAT(shipped().target("v6e-128").note, HasSubstr("only in the dimension of 16"));
}

TEST(Targets, CountsHosts) {
  EXPECT_EQ(shipped().target("v5p-8").hosts(), 1);
  EXPECT_EQ(shipped().target("v5p-128").hosts(), 16);
  EXPECT_EQ(shipped().target("v6e-8").hosts(), 1);   // the 8-chip host
  EXPECT_EQ(shipped().target("v6e-16").hosts(), 4);  // larger slices have hosts of four
  EXPECT_EQ(shipped().target("64xh100").hosts(), 8);
}

TEST(Targets, SupportsGpusInOneNodeAndInNodesOfEight) {
  const Target pair = shipped().target("2xh100"), many = shipped().target("256xh100");
  EXPECT_THAT(pair.shape, ElementsAre(2));
  EXPECT_THAT(pair.wrap, ElementsAre(true));
  EXPECT_THAT(many.shape, ElementsAre(32, 8));
  for (int n = 1; n <= 8; ++n) EXPECT_EQ(shipped().target(std::to_string(n) + "xa100-80").devices(), n);
  EXPECT_EQ(refused("12xh100").fix, "use 16xh100");
}

TEST(Targets, SupportsThisMachineAndVirtualDevices) {
  const Target one = shipped().target("cpu"), eight = shipped().target("cpu-8");
  EXPECT_EQ(one.devices(), 1);
  EXPECT_EQ(eight.devices(), 8);
  EXPECT_GT(one.chip.memory.value, 1e8);
  EXPECT_DOUBLE_EQ(eight.chip.memory.value * 8, one.chip.memory.value);
}

TEST(Targets, JoinsSlicesOverTheDataCentreNetwork) {
  const Target two = shipped().target("2xv6e-256"), pair = shipped().target("2xv5p-8");
  EXPECT_EQ(two.id, "2xv6e-256");
  EXPECT_EQ(two.chips(), 512);
  EXPECT_EQ(two.slices, 2);
  EXPECT_THAT(two.shape, ElementsAre(2, 16, 16));
  EXPECT_EQ(two.hosts(), 128);
  EXPECT_THAT(pair.shape, ElementsAre(2, 2, 2, 1));
  EXPECT_EQ(pair.devices(), 8);
  EXPECT_THAT(pair.note, HasSubstr("2 slices over the data-centre network; v5p-8: the suffix counts TensorCores"));
  EXPECT_EQ(shipped().target("2xv6e-8").hosts(), 2);
  EXPECT_EQ(shipped().target("4xct6e-standard-8t").id, "4xv6e-8");
  EXPECT_EQ(shipped().target("1xv6e-8").id, "v6e-8");
  EXPECT_EQ(refused("2xv6e-12").id, "TARGET-SLICE");
  EXPECT_EQ(refused("2x2xv6e-8").id, "TARGET");
  EXPECT_EQ(refused("2000xv6e-8").id, "TARGET-SLICE");
  EXPECT_THAT(refused("2xtpu8t-4").message, HasSubstr("data-centre network"));  // no published figure
}

TEST(Targets, SuggestsNearestForUnknownTarget) {
  EXPECT_THAT(refused("v6p-8").expected, HasSubstr("v5p-8"));
  EXPECT_THAT(refused("2xh10").expected, HasSubstr("2xh100"));
  EXPECT_THAT(refused("1xa100").expected, HasSubstr("1xa100-"));
  for (const char* id :
       {"", "x", "-", "0xh100", "-2xh100", "99999999999xh100", "cpu-0", "cpu-x", "cpu-99999", "2x", "v5p"})
    EXPECT_EQ(refused(id).id, "TARGET") << id;
  EXPECT_LT(refused(std::string(100000, 'v')).found.size(), 100u);
}

TEST(Targets, ExplainsUnitOfWrongSuffix) {
  const Problem four = refused("v5p-4");
  EXPECT_EQ(four.id, "TARGET-SLICE");
  EXPECT_THAT(four.message, HasSubstr("counts TensorCores, 2 per chip"));
  EXPECT_THAT(four.expected, HasSubstr("v5p-8"));
  EXPECT_THAT(refused("v6e-12").expected, HasSubstr("v6e-8"));
  for (const char* id :
       {"v5p-", "v5p-0", "v5p--8", "v5p-4x4", "v5p-4xx4", "v6e-2x4x1", "v5p-1e9", "v5p-99999999999", "v6e-32x32"})
    EXPECT_THAT(refused(id).id, testing::StartsWith("TARGET")) << id;
}

TEST(Targets, ResolvesEveryListedId) {
  std::set<std::string> seen;
  for (const std::string& id : shipped().target_ids()) {
    const Target t = shipped().target(id);
    EXPECT_EQ(t.id, id);
    EXPECT_TRUE(seen.insert(id).second) << id;
    EXPECT_EQ(t.shape.size(), t.wrap.size());
    EXPECT_FALSE(t.note.empty());
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Chips, MemoryIsReportedByRuntime) {
  const double gib = 1073741824.0;
  EXPECT_DOUBLE_EQ(shipped().chip("v5p")->memory.value, 95.74 * gib);
  EXPECT_DOUBLE_EQ(shipped().chip("v6e")->memory.value, 31.25 * gib);
  EXPECT_DOUBLE_EQ(shipped().chip("v5e")->memory.value, 15.75 * gib);
  EXPECT_DOUBLE_EQ(shipped().chip("h100")->memory.value, 79.65 * gib);
  for (const Chip& c : shipped().chips())
    EXPECT_LE(c.memory.value * c.devices_per_chip, static_cast<double>(c.marketed_memory) * 1.0738) << c.id;
}

TEST(Chips, EveryFigureHasSourceAndRange) {
  for (const Chip& c : shipped().chips()) {
    const bool published = c.id != "tpu8t" && c.id != "tpu8i" && c.id != "trn2";
    for (const Figure* f : {&c.bf16_flops, &c.memory_bandwidth, &c.matmul_efficiency, &c.memory_efficiency, &c.memory,
                            &c.link_bandwidth, &c.link_latency}) {
      if (!*f && !published) continue;  // no figure is known
      EXPECT_TRUE(*f) << c.id;
      EXPECT_FALSE(f->source.empty()) << c.id;
      EXPECT_LE(f->low, f->value) << c.id;
      EXPECT_GE(f->high, f->value) << c.id;
    }
    for (const Figure* f : {&c.fp8_flops, &c.int8_ops, &c.host_link, &c.egress})
      EXPECT_EQ(!*f, f->source.empty()) << c.id;
    for (const BandwidthCurve* curve : {&c.all_reduce, &c.all_reduce_pair, &c.all_reduce_nodes, &c.all_gather})
      EXPECT_EQ(curve->points.empty(), curve->source.empty()) << c.id;
    for (const Chip::Fact& fact : c.facts) EXPECT_FALSE(fact.source.empty()) << c.id << " " << fact.name;
  }
  EXPECT_THAT(shipped().chip("v6e")->matmul_efficiency.source, HasSubstr("tpu-recipes"));  // abbreviations are expanded
  EXPECT_EQ(shipped().chip("h200")->all_reduce.points.size(), 8u);
}

TEST(Chips, HasNewerChipsAndMarksUnverifiedFigures) {
  for (const char* id : {"gb200", "h200-nvl", "a6000", "h20", "b300", "gb300", "mi355x", "trn2", "t4", "rtx3090",
                         "dgx-spark", "tpu8t", "tpu8i"})
    EXPECT_NE(shipped().chip(id), nullptr) << id;
  EXPECT_EQ(shipped().chip("tpu8t")->memory.kind, Provenance::unverified);
  EXPECT_FALSE(shipped().chip("tpu8t")->bf16_flops) << "not published, so not guessed";
  EXPECT_EQ(shipped().chip("mi355x")->fp8_flops.kind, Provenance::unverified);
  EXPECT_FALSE(shipped().chip("a6000")->fp8_flops);
  EXPECT_EQ(shipped().target("72xgb200").hosts(), 1) << "one NVLink domain";
}

TEST(Chips, ConflictingFiguresFormRange) {
  EXPECT_DOUBLE_EQ(shipped().chip("v3")->bf16_flops.high, 140e12);
  EXPECT_DOUBLE_EQ(shipped().chip("v5p")->memory_bandwidth.low, 2460e9);
}

TEST(Prices, DefaultsToOnDemandAndAcceptsRegion) {
  EXPECT_DOUBLE_EQ(shipped().price("v5p")->usd_per_chip_hour * 4, 16.80);
  EXPECT_DOUBLE_EQ(shipped().price("h100")->usd_per_chip_hour * 2, 22.12);
  EXPECT_DOUBLE_EQ(shipped().price("v6e")->usd_per_chip_hour, 2.70);
  EXPECT_DOUBLE_EQ(shipped().price("v6e", "us")->usd_per_chip_hour * 8, 21.52);
  EXPECT_DOUBLE_EQ(shipped().price("v6e", "asia-northeast1")->usd_per_chip_hour, 3.24);
  EXPECT_DOUBLE_EQ(shipped().price("v5e", {}, "3y")->usd_per_chip_hour, 0.54);
  EXPECT_EQ(shipped().price("v5e", "mars"), nullptr);
  EXPECT_EQ(shipped().price("h20"), nullptr);
  EXPECT_EQ(shipped().price("trn2")->price_class, "calendar") << "no price on demand";
  EXPECT_EQ(shipped().price("trn2", {}, "on demand"), nullptr);
}

TEST(Prices, OfEveryChipAreDatedAndSourcedOrSaidToBeUnpublished) {
  for (const Chip& chip : shipped().chips())
    EXPECT_NE(shipped().price(chip.id) != nullptr, shipped().unpublished(chip.id) != nullptr) << chip.id;
  for (const Price& p : shipped().prices()) {
    EXPECT_TRUE(first_day(p)) << p.chip << " " << p.date;
    EXPECT_FALSE(p.source.empty()) << p.chip;
    EXPECT_EQ(p.usd_per_chip_hour == 0, p.region.empty()) << p.chip;
  }
}

TEST(Prices, AgeFromTheFirstDayOfTheirDate) {
  using namespace std::chrono;
  const auto dated = [](const char* date) {
    Price p;
    p.date = date;
    return p;
  };
  EXPECT_EQ(first_day(dated("2026-08-06")), sys_days(2026y / August / 6));
  EXPECT_EQ(first_day(dated("2026-05")), sys_days(2026y / May / 1));
  EXPECT_EQ(first_day(dated("2026")), sys_days(2026y / January / 1));
  EXPECT_EQ(first_day(dated("2025-26")), sys_days(2025y / January / 1));  // two years
  for (const char* bad : {"", "soon", "2026/05", "99", "-5", "2026-05-06-07x"}) {
    const auto day = first_day(dated(bad));
    EXPECT_TRUE(!day || std::string(bad) == "2026-05-06-07x") << bad;
  }
  EXPECT_FALSE(age_days(dated(""), sys_days(2026y / November / 5)));
  EXPECT_EQ(age_days(dated("2026-08-06"), sys_days(2026y / November / 5)), 91);
  EXPECT_EQ(age_days(dated("2026-12"), sys_days(2026y / November / 5)), 0);  // of a clock that is behind
  EXPECT_FALSE(age_days(dated("soon"), sys_days(2026y / November / 5)));
}

}  // namespace
}  // namespace mw::hardware
