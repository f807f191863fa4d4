// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/event.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/base/random_events.h"

namespace mw {
namespace {

TEST(EventJson, RoundTripsRandomEventsOfEveryKind) {
  Rng rng({3});
  std::array<int, std::variant_size_v<decltype(Event::body)>> kinds{};
  for (int i = 0; i < 3000; ++i) {
    const Event e = test::random_event(rng);
    ++kinds[e.body.index()];
    const std::string text = to_json(e, "run-1").dump();
    const Event back = event_from_json(parse_json(text, "event"));
    ASSERT_EQ(back.body.index(), e.body.index());
    ASSERT_EQ(back.time_s, e.time_s);
    ASSERT_EQ(to_json(back, "run-1").dump(), text);
  }
  for (const int n : kinds) EXPECT_GT(n, 100);
}

TEST(EventJson, KeepsExactFieldValues) {
  const Event e{0.1, event::Metric{"train/loss", 7, 0.1 + 0.2}};
  const Event back = event_from_json(parse_json(to_json(e, "").dump(), "event"));
  const auto& metric = std::get<event::Metric>(back.body);
  EXPECT_EQ(metric.name, "train/loss");
  EXPECT_EQ(metric.step, 7);
  EXPECT_EQ(metric.value, 0.1 + 0.2);
  Rng rng({4});
  const event::Memory memory{3, 9, "backward", test::random_ledger(rng), Bytes(987654321)};
  const Event again = event_from_json(parse_json(to_json({1, memory}, "").dump(), "event"));
  EXPECT_EQ(std::get<event::Memory>(again.body).bytes, memory.bytes);
  EXPECT_EQ(std::get<event::Memory>(again.body).peak, memory.peak);
}

TEST(EventJson, WritesNanAndInfinityAsNull) {
  for (const double v :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    const Json j = to_json({v, event::Metric{"train/loss", 1, v}}, "");
    EXPECT_TRUE(j.at("value").is_null());
    const Event back = event_from_json(parse_json(j.dump(), "event"));
    EXPECT_TRUE(std::isnan(std::get<event::Metric>(back.body).value));
    EXPECT_EQ(back.time_s, 0);
  }
  const Json j = to_json({1, event::Finished{RunState::done, 1, 2, std::nan(""), Bytes(3), "", Json()}}, "");
  EXPECT_TRUE(std::isnan(std::get<event::Finished>(event_from_json(parse_json(j.dump(), "event")).body).seconds));
}

TEST(EventJson, HasDocumentedMembers) {
  EXPECT_EQ(to_json({2.5, event::Metric{"eval/loss", 3, 1.5}}, "run-4").dump(),
            R"({"event":"metric","name":"eval/loss","step":3,"value":1.5,"time_s":2.5})");
  const Json finished =
      to_json({9, event::Finished{RunState::cancelled, 5, 50, 9.5, Bytes(1000), "", Json{{"right", 1}}}}, "run-4");
  EXPECT_EQ(finished.at("run"), "run-4");
  EXPECT_EQ(finished.at("state"), "cancelled");
  EXPECT_EQ(finished.at("peak_bytes"), 1000);
  Ledger ledger;
  ledger[MemoryCategory::logits] = Bytes(64);
  const Json memory = to_json({1, event::Memory{0, 2, "forward", ledger, Bytes(64)}}, "run-4");
  EXPECT_EQ(memory.at("bytes").dump(), R"({"logits":64,"total":64})");
  EXPECT_EQ(to_json({0, event::Started{Json{{"steps", 3}}}}, "run-4").at("run"), "run-4");
  const Event of_host{1, event::Log{"error", "no space left"}, EventHost{3, "node3"}};
  EXPECT_EQ(to_json(of_host, "").dump(), R"({"event":"log","level":"error","text":"no space left","time_s":1.0,)"
                                         R"("host":{"process":3,"name":"node3"}})");
  EXPECT_FALSE(event_from_json(parse_json(R"({"event":"log","host":"x"})", "event")).host);
  const event::StepTraffic::Entry entry{"all-gather", "fsdp", "forward", "FSDP gather", 3, 2, Bytes(96), 0.5, 0.25};
  EXPECT_EQ(to_json({1, event::StepTraffic{4, {entry}, {{Bytes(48), 0.5, 0.25}}}}, "run-4").dump(),
            R"({"event":"traffic","step":4,"entries":[{"kind":"all-gather","axis":"fsdp","phase":"forward",)"
            R"("cause":"FSDP gather","layer":3,"calls":2,"bytes":96,"seconds":0.5,"waited":0.25}],)"
            R"("devices":[{"bytes":48,"seconds":0.5,"waited":0.25}],"time_s":1.0})");
}

TEST(EventJson, ReplacesInvalidUtf8) {
  const Json j = to_json({0, event::Sample{1, "p", "\xE6\x97", "", ""}}, "");
  EXPECT_NO_THROW(j.dump());
  EXPECT_EQ(j.at("text"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(EventJson, FillsMembersMissingInExternalEvents) {
  const Event e = event_from_json(Json{{"event", "metric"}, {"name", "loss"}, {"value", 3}});
  EXPECT_EQ(std::get<event::Metric>(e.body).step, 0);
  EXPECT_TRUE(
      std::isnan(std::get<event::Metric>(event_from_json(Json{{"event", "metric"}, {"name", "x"}}).body).value));
  EXPECT_EQ(std::get<event::Log>(event_from_json(Json{{"event", "log"}}).body).text, "");
}

TEST(EventJson, RejectsMalformedEvents) {
  for (const char* text :
       {R"({"event":"nonsense"})", R"({})", R"([])", R"(3)", R"({"event":7})", R"({"event":"metric"})",
        R"({"event":"metric","name":"x","step":"many"})", R"({"event":"metric","name":"x","value":"high"})",
        R"({"event":"state","state":"sleeping"})", R"({"event":"finished"})", R"({"event":"memory","bytes":[1]})",
        R"({"event":"memory","bytes":{"weights":"x"}})", R"({"event":"memory","bytes":{"weights":1e300}})",
        R"({"event":"traffic","entries":[3]})", R"({"event":"traffic","entries":[{"bytes":1e300}]})",
        R"({"event":"traffic","devices":{"a":{"bytes":"many"}}})", R"({"event":"log","text":5})",
        R"({"event":"log","time_s":"late"})"})
    EXPECT_THROW(event_from_json(parse_json(text, "event")), Error) << text;
}

TEST(Events, ClassifiesTelemetry) {
  EXPECT_TRUE(is_telemetry({0, event::Metric{}}));
  EXPECT_TRUE(is_telemetry({0, event::Memory{}}));
  EXPECT_TRUE(is_telemetry({0, event::StepTraffic{}}));
  EXPECT_TRUE(is_telemetry({0, event::Progress{}}));
  EXPECT_FALSE(is_telemetry({0, event::Started{}}));
  EXPECT_FALSE(is_telemetry({0, event::Checkpoint{}}));
  EXPECT_FALSE(is_telemetry({0, event::Sample{}}));
  EXPECT_FALSE(is_telemetry({0, event::Log{}}));
  EXPECT_FALSE(is_telemetry({0, event::StateChanged{}}));
  EXPECT_FALSE(is_telemetry({0, event::Finished{}}));
}

TEST(Events, StateNamesRoundTrip) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(parse_run_state(to_string(static_cast<RunState>(i))), static_cast<RunState>(i));
  EXPECT_THROW(parse_run_state("asleep"), Error);
}

}  // namespace
}  // namespace mw
