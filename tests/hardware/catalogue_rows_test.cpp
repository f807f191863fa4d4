// SPDX-License-Identifier: GPL-3.0-or-later
// Rows added by users: each invalid row is one problem with its place, the other rows remain.
#include <gmock/gmock.h>

#include <fstream>

#include "core/hardware/catalogue.h"
#include "tests/base/scratch.h"

namespace mw::hardware {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kShipped = std::string(MW_RESOURCES) + "/hardware";

class UserRows : public testing::Test {
 protected:
  Catalogue with(const char* name, const std::string& text) {
    scratch_.put(name, text);
    return Catalogue::load(kShipped, folder_);
  }
  static std::string chip(const std::string& memory, const std::string& more = "") {
    return R"({"chips": [{"id": "mine", "name": "Mine", "vendor": "gpu", "source": "my desk", "bf16": "100 TFLOP/s",
      "memory_bandwidth": "1 TB/s", "marketed_memory": "16 GB", "memory": )" +
           memory + more + "}]}";
  }
  test::Scratch scratch_;
  const fs::path& folder_ = scratch_.path();
};

TEST_F(UserRows, AddChipAndPrice) {
  const Catalogue c = with("chips.json", chip("\"15 GiB\""));
  ASSERT_TRUE(c.problems().empty()) << to_text(c.problems().front());
  EXPECT_EQ(c.target("4xmine").devices(), 4);
  EXPECT_EQ(c.chip("mine")->memory.source, "my desk");
  const Catalogue priced = with("prices.json", R"({"prices": [
    {"chip": "mine", "usd_per_chip_hour": 0.1, "region": "home", "class": "on demand", "date": "2026-11", "source": "the bill"},
    {"chip": "v5p", "usd_per_chip_hour": 3, "region": "contract", "class": "on demand", "date": "2026-11", "source": "mine"}]})");
  EXPECT_DOUBLE_EQ(priced.price("mine")->usd_per_chip_hour, 0.1);
  EXPECT_DOUBLE_EQ(priced.price("v5p")->usd_per_chip_hour, 3);  // the user's price comes before the shipped one
  EXPECT_DOUBLE_EQ(priced.price("v5p", "us-central1")->usd_per_chip_hour, 4.20);
}

TEST_F(UserRows, ReplaceShippedChip) {
  const Catalogue c = with("chips.json", R"({"chips": [{"id": "h100", "name": "Tuned", "vendor": "gpu", "source": "lab",
    "bf16": {"value": "900 TFLOP/s", "low": "880 TFLOP/s", "kind": "measured"}, "memory_bandwidth": "3 TB/s",
    "marketed_memory": "80 GB", "memory": "79 GiB"}]})");
  EXPECT_EQ(c.target("2xh100").chip.name, "Tuned");
  EXPECT_EQ(c.chip("h100")->bf16_flops.kind, Provenance::measured);
  EXPECT_EQ(c.chip("h100")->bf16_flops.source, "lab");
}

TEST_F(UserRows, InvalidPriceIsReportedAndSkipped) {
  const Catalogue c = with("prices.json", R"({"prices": [
    {"chip": "v5p", "usd_per_chip_hour": -4, "region": "a", "class": "on demand", "date": "2026-11", "source": "x"},
    {"chip": "v5p", "usd_per_chip_hour": 5, "region": "b", "class": "on demand", "date": "2026-11", "source": "x"}]})");
  ASSERT_EQ(c.problems().size(), 1u);
  const Problem p = c.problems().front();
  EXPECT_EQ(p.id, "HARDWARE-ROW");
  EXPECT_EQ(p.place, "prices[0].usd_per_chip_hour");
  EXPECT_EQ(p.found, "-4");
  EXPECT_THAT(p.file, HasSubstr("prices.json"));
  EXPECT_DOUBLE_EQ(c.price("v5p")->usd_per_chip_hour, 5);
}

struct Bad {
  const char* name;
  std::string text, place, expected;
};

TEST_F(UserRows, ReportPlaceOfEachMistake) {
  const std::vector<Bad> all = {
      {"chips.json", chip("\"15 GB/s\""), "chips.mine.memory", "bytes, as in"},
      {"chips.json", chip("15"), "chips.mine.memory", "bytes, as in"},
      {"chips.json", chip("\"0 GiB\""), "chips.mine.memory", "1 B to 8000 GB"},
      {"chips.json", chip("\"8001 GB\""), "chips.mine.memory", "to 8000 GB"},
      {"chips.json", chip("\"15 GiB\"", ", \"link_bandwidth\": \"1e-300 GB/s\""), "chips.mine.link_bandwidth",
       "1e-9 GB/s to"},
      {"chips.json", chip("\"15 GiB\"", ", \"link_latency\": \"1e300 us\""), "chips.mine.link_latency", "to 1e9 us"},
      {"chips.json", chip("\"1e400 GiB\""), "chips.mine.memory", "bytes, as in"},
      {"chips.json", chip("{\"value\": \"15 GiB\", \"low\": \"16 GiB\"}"), "chips.mine.memory", "low <= value"},
      {"chips.json", chip("{\"value\": \"15 GiB\", \"kind\": \"guessed\"}"), "chips.mine.memory.kind", "measured"},
      {"chips.json", chip("{\"value\": \"15 GiB\", \"hi\": \"16 GiB\"}"), "chips.mine.memory.hi", "high"},
      {"chips.json", chip("\"15 GiB\"", ", \"bandwith\": 3"), "chips.mine.bandwith", ""},
      {"chips.json", chip("\"15 GiB\"", ", \"tile\": [8, 8]"), "chips.mine.tile", "[8, 8, 32, 128]"},
      {"chips.json", chip("\"15 GiB\"", ", \"matmul_efficiency\": \"120 %\""), "chips.mine.matmul_efficiency",
       "at most 100 %"},
      {"chips.json", chip("\"15 GiB\"", ", \"devices_per_chip\": -1"), "chips.mine.devices_per_chip", "from 1"},
      {"chips.json", R"({"chips": [{"id": "mine"}]})", "chips.mine.name", "\"name\""},
      {"chips.json", R"({"chips": [{"id": "m", "name": "m", "vendor": "gpu", "bf16": "1 TFLOP/s"}]})", "chips.m.source",
       "\"source\""},
      {"chips.json", R"({"chips": [7]})", "chips[0]", "{\"id\""},
      {"chips.json", R"({"chips": 7})", "chips", ""},
      {"chips.json", R"({"rows": []})", "chips", ""},
      {"chips.json", "{", "line 1, column 2", ""},
      {"prices.json",
       R"({"prices": [{"chip": "v5", "usd_per_chip_hour": 1, "region": "r", "class": "spot", "date": "d", "source": "s"}]})",
       "prices[0].chip", "v5p"},
      {"prices.json",
       R"({"prices": [{"chip": "v5p", "usd_per_chip_hour": "4", "region": "r", "class": "spot", "date": "d", "source": "s"}]})",
       "prices[0].usd_per_chip_hour", "dollars per chip"},
      {"slices.json", R"({"families": [{"chip": "v5p", "prefixes": ["v5p-"], "counts": "chips", "source": "s",
        "wrap": {"rule": "none", "source": "s"}, "slices": [{"suffix": 8, "shape": [2, 2, 1]}]}]})",
       "families.v5p.slices", "8 chips"},
      {"slices.json", R"({"families": [{"chip": "v5p", "prefixes": ["v5p-"], "counts": "chips", "source": "s",
        "wrap": {"rule": "torus", "source": "s"}, "slices": [{"suffix": 4, "shape": [2, 2, 1]}]}]})",
       "families.v5p.wrap.rule", "cubes"},
      {"slices.json", R"({"families": [{"chip": "v5p", "prefixes": ["v5p-"], "counts": "chips", "source": "s",
        "wrap": {"rule": "none", "source": "s"}, "slices": [{"suffix": 4, "shape": [2, -2, 1]}]}]})",
       "families.v5p.slices[0].shape", "from 1"}};
  for (const Bad& bad : all) {
    const Catalogue c = with(bad.name, bad.text);
    fs::remove(folder_ / bad.name);
    ASSERT_EQ(c.problems().size(), 1u) << bad.text;
    EXPECT_EQ(c.problems()[0].place, bad.place) << bad.text;
    EXPECT_THAT(c.problems()[0].expected, HasSubstr(bad.expected)) << bad.text;
    EXPECT_EQ(c.target("v5p-8").chips(), 4);  // the shipped rows remain
    EXPECT_EQ(c.chip("mine"), nullptr);
  }
}

TEST_F(UserRows, InvalidShippedFileThrows) {
  for (const char* name : {"chips.json", "slices.json", "prices.json"})
    fs::copy(fs::path(kShipped) / name, folder_ / name);
  std::ofstream(folder_ / "prices.json") << R"({"prices": [{}]})";
  EXPECT_THROW(Catalogue::load(folder_), Error);
  fs::remove(folder_ / "prices.json");
  EXPECT_THROW(Catalogue::load(folder_), Error);
}

}  // namespace
}  // namespace mw::hardware
