// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped measurements: every row can be planned, says where it is from, and what is held out stays held out.
#include "core/plan/calibration/measurements.h"
#include "core/base/json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/base/scratch.h"
#include "tests/plan/shipped_rows.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using test::context;
using test::kHardware;
using test::shipped_rows;

const Measurement& row(const std::string& id) {
  for (const Measurement& m : shipped_rows())
    if (m.id == id) return m;
  throw std::runtime_error("no row " + id);
}

TEST(Measurements, EnoughRowsAreHeldOut) {
  int time = 0, memory = 0, serving = 0, fitted = 0, fitted_servers = 0;
  for (const Measurement& m : shipped_rows()) {
    EXPECT_FALSE(m.source.empty()) << m.id;
    if (m.id.starts_with("paper")) {
      EXPECT_EQ(m.purpose, MeasurementUse::holdout) << m.id;
    }
    if (m.purpose == MeasurementUse::calibration)
      ++(is_serving(m.what) ? fitted_servers : fitted);
    else if (m.counted())
      ++(is_time(m.what) ? time : is_serving(m.what) ? serving : memory);
  }
  EXPECT_GE(time, 20);
  EXPECT_GE(serving, 40);
  EXPECT_GT(fitted_servers, 0);
  EXPECT_LT(fitted_servers, serving);
  EXPECT_GE(memory, 10);
  EXPECT_GT(fitted, 0);
  EXPECT_LT(fitted, time);
}

TEST(Measurements, AlternativeNamesACountedRow) {
  for (const Measurement& m : shipped_rows())
    if (!m.counted()) {
      EXPECT_TRUE(row(m.alternative_of).counted()) << m.id;
    }
}

// Scalars of the file replaced by what nobody means, and bytes of it by any: rows or one Error, nothing else.
TEST(Measurements, AnyFileGivesRowsOrOneError) {
  const test::Scratch scratch;
  const Json whole = read_json(kHardware + "/measurements.json");
  std::vector<Json::json_pointer> leaves;
  const Json flat = whole.flatten();
  for (const auto& [where, value] : flat.items()) leaves.emplace_back(where);
  const std::vector<Json> hostile{-1,     0,       1e300, 9223372036854775807, "",
                                  "\x01", nullptr, true,  Json::array(),       Json::object()};
  std::mt19937 random(1);
  const auto any = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    if (i % 3 == 0) {
      text = whole.dump();
      text[any(text.size())] = static_cast<char>(any(256));
      if (i % 2 == 0) text.resize(any(text.size()));
    } else {
      Json changed = whole;
      changed[leaves[any(leaves.size())]] = hostile[any(hostile.size())];
      text = changed.dump();
    }
    try {
      read_measurements(scratch.put("rows.json", text), context().catalogue);
    } catch (const Error& error) {
      ++refused;
      EXPECT_FALSE(error.problem().message.empty());
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 300);
}

TEST(Measurements, RowsCarryTheirConfiguration) {
  const Measurement& paper = row("paper-v5p-8-3072");
  EXPECT_EQ(paper.request.target.id, "v5p-8");
  EXPECT_EQ(paper.request.stack, model::Stack::tunix);
  EXPECT_EQ(paper.request.mesh.size("tp"), 4);
  EXPECT_EQ(paper.request.train.accumulation, 8);
  EXPECT_EQ(paper.request.lora.rank, 64);
  EXPECT_EQ(paper.request.targets.size(), 7u);
  EXPECT_EQ(row("a100-llama3.2-3b-compile").request.profile.elementwise, StackProfile::Elementwise::fused);
  EXPECT_EQ(row("a100-llama3.2-3b-packed").request.profile.elementwise, StackProfile::Elementwise::eager);
  EXPECT_EQ(row("8xh100-llama2-70b-lora").request.products, model::DType::fp8);
  EXPECT_EQ(row("8xh100-96-llama3.1-8b-fsdp").request.train.saved.size(), 5u);
  EXPECT_EQ(row("v6e-32-llama3.1-70b").request.train.offload, options::Offload::host);
  // A decoder of MaxText's scale factor 32 has 31 billion weights ahead its embeddings.
  const model::TensorInventory big(row("v5p-128-maxtext-32b").request.model);
  EXPECT_NEAR(static_cast<double>(big.parameters()), 31.7e9, 0.2e9);
}

TEST(Measurements, ServerRowsCarryHostSettings) {
  const Measurement &ahead = row("v6e-1-gemma4-e4b-128-c64, output tokens/s"),
                    &between = row("2xh100-qwen3-32b-1024-c8-ttft");
  EXPECT_EQ(ahead.request.serve.scheduling, Scheduling::ahead);
  EXPECT_LT(ahead.request.efficiencies.step_s.value, between.request.efficiencies.step_s.value);
  EXPECT_EQ(between.request.serve.scheduling, Scheduling::between_steps);
  EXPECT_EQ(between.load.requests, 80);
  EXPECT_EQ(between.load.warmups, 16);
  EXPECT_EQ(row("paper-burst-3-v6e-8, output tokens/s").load.earlier,
            (std::vector<EarlierLoad>{{256, 256, 64}, {512, 512, 128}}));
}

TEST(Measurements, StepTimesFollowFromThePublishedUtilisation) {
  // 328 TFLOP/s per chip of v5p-128 is 71.47 %: the same rows per second whichever of the two is written.
  const Measurement& m = row("v5p-128-maxtext-32b");
  Plan plan;
  plan.devices = 64;
  const double per_token = 6 * (31.4e9) + 12.0 * 32 * 64 * 128 * 2048;  // weights of products; pairs of query and key
  plan.step.seconds.value = per_token * 6 * 4 * 2048 / 4 / 328e12;
  EXPECT_NEAR(compare(m, plan).error, 0, 0.01);
}

TEST(Measurements, ErrorsHaveTheSignOfTimeAndBytes) {
  Measurement m = row("8xh100-96-llama3.1-8b-fsdp");
  Plan plan;
  plan.devices = 8;
  plan.run.padded_tokens_per_second = 8 * m.value / 2;  // half as fast
  EXPECT_NEAR(compare(m, plan).error, 1.0, 1e-9);
  m.what = MeasuredQuantity::step_seconds, m.value = 2;
  plan.step.seconds.value = 1;
  EXPECT_NEAR(compare(m, plan).error, -0.5, 1e-9);
  m.what = MeasuredQuantity::reserved_bytes, m.value = 4;
  plan.memory.at_peak[MemoryCategory::weights] = Bytes(5LL << 30);
  plan.memory.at_peak[MemoryCategory::runtime] = Bytes(3LL << 30);  // the allocator does not see it
  EXPECT_NEAR(compare(m, plan).error, 1.25 * (1 + m.request.efficiencies.fragmentation.value) - 1, 1e-9);
  m.what = MeasuredQuantity::active_bytes;
  EXPECT_NEAR(compare(m, plan).error, 0.25, 1e-9);
  m.what = MeasuredQuantity::device_bytes, m.value = 8 * 1.073741824;
  EXPECT_NEAR(compare(m, plan).error, 0, 1e-9);
}

TEST(Measurements, SummariesFilterByUseAndQuantity) {
  const std::vector<Measurement>& rows = shipped_rows();
  std::vector<RowPrediction> all(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) all[i].error = rows[i].counted() ? -0.1 : 5;
  const ErrorSummary s = summarise(rows, all, MeasurementUse::holdout, is_time);
  EXPECT_NEAR(s.mean, 0.1, 1e-9);
  EXPECT_NEAR(s.worst, 0.1, 1e-9);
  EXPECT_EQ(summarise({}, {}, MeasurementUse::holdout, is_time).rows, 0);
}

struct Bad {
  std::string rows, place, expected;
};

TEST(Measurements, ReportsEachMistakeWithItsPlace) {
  const auto with = [](const std::string& more) {
    return R"({"id": "a", "use": "holdout", "value": 1, "unit": "s/step", "model": "gemma3-1b", "target": "v5e-1",
      "stack": "tunix", "mesh": {"fsdp": 1}, "batch": 1, "max_len": 64, "source": "s")" +
           more + "}";
  };
  const auto without = [&](const std::string& from, const std::string& to) {
    std::string text = with("");
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::vector<Bad> all = {
      {without("\"value\": 1", "\"value\": -1"), "rows.a.value", "positive number"},
      {without("s/step", "s per step"), "rows.a.unit", "s/step"},
      {without("holdout", "test"), "rows.a.use", "holdout"},
      {without("{\"fsdp\": 1}", "{\"fsdp\": 2}"), "rows.a.mesh", "1 (v5e-1)"},
      {without("{\"fsdp\": 1}", "{\"fsdp\": 0}"), "rows.a.mesh.fsdp", "from 1"},
      {without("\"batch\": 1,", ""), "rows.a.batch", "\"batch\""},
      {without("\"batch\": 1", "\"batch\": 99999999999"), "rows.a.batch", "from 1"},
      {without(", \"source\": \"s\"", ""), "rows.a.source", "\"source\""},
      {with(", \"remat\": \"some\""), "rows.a.remat", "layer"},
      {without("s/step", "output tokens/s")
           .replace(0, 1, R"({"work": "serve", "concurrency": 4, "earlier": [{"input_len": 9}],)"),
       "rows.a.earlier.output_len", "\"output_len\""},
      {with(", \"ramat\": \"none\""), "rows.a.ramat", "remat"},
      {with(", \"compile\": 1"), "rows.a.compile", "true or false"},
      {with(", \"products\": \"fp8\""), "rows.a.products", "bf16"},
      {with(", \"method\": \"lora\", \"lora_targets\": [\"qproj\"]"), "rows.a.lora_targets", "q_proj"},
      {without("tunix", "tunics"), "rows.a.stack", "tunix"},
      {without("v5e-1", "v5e-3"), "rows.a.target", "v5e-1"},
      {without("gemma3-1b", "gemma3-2b"), "rows.a.model", "gemma3-1b"},
      {with("") + ", " + with(""), "rows.a", ""},
      {"7", "rows[0]", "{\"id\""}};
  const test::Scratch scratch;
  const auto read = [&](const std::string& rows) {
    return read_measurements(scratch.put("measurements.json", "{\"rows\": [" + rows + "]}"), context().catalogue);
  };
  for (const Bad& bad : all) {
    try {
      read(bad.rows);
      ADD_FAILURE() << bad.rows;
    } catch (const Error& e) {
      EXPECT_THAT(e.problem().place, HasSubstr(bad.place)) << e.what();
      EXPECT_THAT(e.problem().expected, HasSubstr(bad.expected)) << e.what();
    }
  }
  EXPECT_EQ(read(with("")).rows.size(), 1u);
}

}  // namespace
}  // namespace mw::plan
