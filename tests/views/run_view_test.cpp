// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/run_view.h"

#include "core/views/streamed_answer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/store/store.h"
#include "tests/base/random_events.h"
#include "tests/store/store_fixture.h"

namespace mw::views {
namespace {
namespace fs = std::filesystem;
using test::Scratch;

Event loss(double time_s, long step, double value) {
  return {time_s, event::Metric{"train/loss", step, value}};
}

Ledger weights_and_activations(std::int64_t w, std::int64_t a) {
  Ledger ledger;
  ledger[MemoryCategory::weights] = Bytes(w);
  ledger[MemoryCategory::activations] = Bytes(a);
  return ledger;
}

// A run as the engine reports it, with a pause and a NaN, one event after another.
std::vector<Event> training(long steps) {
  std::vector<Event> events;
  events.push_back(
      {0.1, event::Started{Json{{"steps", steps},
                                {"capacity_bytes", 1000000},
                                {"predicted", {{"weights", 500}, {"activations", 300}, {"total", 800}}}}}});
  double t = 1;
  for (long step = 1; step <= steps; ++step) {
    t += 0.25;
    events.push_back({t, event::Metric{"train/learning_rate", step, 1e-3 / static_cast<double>(step)}});
    events.push_back(loss(t, step, step == 7 ? std::nan("") : 4.0 / static_cast<double>(step)));
    events.push_back({t, event::Memory{0, step, "forward", weights_and_activations(500, 100 + step), Bytes(700)}});
    events.push_back({t, event::Memory{0, step, "backward", weights_and_activations(500, 200 + step), Bytes(900)}});
    if (step % 10 == 0) {
      events.push_back({t, event::Metric{"eval/loss", step, 5.0 / static_cast<double>(step)}});
      events.push_back({t, event::Sample{step, "Say \xC3\xA4", "half a character \xE6\x97", "", ""}});
      events.push_back({t, event::Log{"info", "saved " + std::to_string(step)}});
      events.push_back({t, event::Checkpoint{step, "checkpoints/" + std::to_string(step)}});
    }
    if (step == 20) {
      events.push_back({t, event::StateChanged{RunState::paused}});
      t += 1000;
      events.push_back({t, event::StateChanged{RunState::running}});
    }
  }
  return events;
}

TEST(RunView, CollectsTheDataOfTheTrainPage) {
  RunView view(0.5);
  for (const Event& e : training(40)) view.feed(e);
  ASSERT_NE(view.metric("train/loss"), nullptr);
  EXPECT_EQ(view.metric("train/loss")->raw.size(), 40u);
  EXPECT_EQ(view.metric("train/loss")->smooth.series().size(), 40u);
  EXPECT_TRUE(std::isnan(view.metric("train/loss")->raw[6].y));
  EXPECT_EQ(view.metric("eval/loss")->raw.size(), 4u);
  EXPECT_EQ(view.metric("no/such"), nullptr);
  EXPECT_EQ(view.memory().at(0).points.size(), 80u);
  EXPECT_EQ(view.memory().at(0).peak, Bytes(900));
  EXPECT_EQ(view.memory().at(0).category_peaks, weights_and_activations(500, 240));
  EXPECT_EQ(view.samples().size(), 4u);
  EXPECT_EQ(view.checkpoints().back().path, "checkpoints/40");
  EXPECT_EQ(view.log().back().text, "saved 40");
  EXPECT_EQ(view.predicted(), weights_and_activations(500, 300));
  EXPECT_EQ(view.capacity(), Bytes(1000000));
  EXPECT_EQ(view.steps_total(), 40);
  EXPECT_EQ(view.step(), 40);
  EXPECT_EQ(view.state(), RunState::running);
}

TEST(RunView, AnActivityEndsOnItsEvent) {
  RunView view;
  view.feed({0, event::Started{Json{{"steps", 10}}}});
  view.feed({1, event::Progress{"copying", 3, 3}});
  ASSERT_TRUE(view.activity());
  EXPECT_EQ(view.activity()->phase, "copying");
  view.feed({2, event::Progress{}});
  EXPECT_FALSE(view.activity());
  view.feed({3, event::Progress{"", 3, 10}});  // another program's, that has no name for it
  EXPECT_TRUE(view.activity());
}

event::StepTraffic traffic(long step, std::int64_t bytes) {
  return {step,
          {{"all-gather", "fsdp", "forward", "FSDP gather", 0, 2, Bytes(bytes), 0.5, 0.25},
           {"all-reduce", "tp", "backward", "partial sums", 1, 3, Bytes(bytes), 0.25, 0}},
          {{Bytes(bytes), 0.5, 0.125}, {Bytes(bytes), 1, 0.375}}};
}

TEST(RunView, TrafficOfAMeshIsASeriesPerStep) {
  RunView view;
  EXPECT_TRUE(view.traffic().empty());
  for (long step = 1; step <= 3; ++step) view.feed({1, traffic(step, 100 * step)});
  const TrafficTimeline& t = view.traffic();
  EXPECT_EQ(t.bytes_by_step.back().y, 600);
  EXPECT_EQ(t.seconds_by_step.back().y, 0.75);
  EXPECT_EQ(sum(t.points.back()).waited, 0.25);
  EXPECT_EQ(t.kinds.size(), 2u);
}

TEST(RunView, TrafficOfRepeatedStepsIsCountedOnce) {
  RunView view, straight;
  for (long step = 1; step <= 6; ++step) view.feed({1, traffic(step, 7)});
  event::StepTraffic other = traffic(7, 7);
  other.entries[0].cause = "clumsy spec";
  view.feed({1, other});
  view.rewind(4);
  for (long step = 4; step <= 6; ++step) view.feed({1, traffic(step, 9)});
  for (long step = 1; step <= 6; ++step) straight.feed({1, traffic(step, step < 4 ? 7 : 9)});
  EXPECT_EQ(view.traffic(), straight.traffic());
}

TEST(RunView, EtaFollowsRecentStepsAndLeavesPausesOut) {
  RunView view;
  EXPECT_FALSE(view.eta_seconds());
  const auto events = training(40);
  for (const Event& e : events) {
    view.feed(e);
    if (view.step() == 21) break;
  }
  EXPECT_NEAR(*view.seconds_per_step(), 0.25, 1e-9);  // the pause of 1000 s lies between steps 20 and 21
  EXPECT_NEAR(*view.eta_seconds(), 0.25 * 19, 1e-9);
  EXPECT_NEAR(view.fraction(), 21.0 / 40, 1e-12);
  view.feed({2000, event::Finished{RunState::cancelled, 21, 99, 2000, Bytes(900), "", Json()}});
  EXPECT_FALSE(view.eta_seconds());
  EXPECT_TRUE(view.ended());
  EXPECT_EQ(view.state(), RunState::cancelled);
}

TEST(RunView, EtaFollowsAChangeOfSpeed) {
  RunView view;
  view.feed({0, event::Started{Json{{"steps", 1000}}}});
  for (long i = 1; i <= 300; ++i) view.feed(loss(0.1 * static_cast<double>(i), i, 1));
  for (long i = 301; i <= 400; ++i) view.feed(loss(30 + static_cast<double>(i - 300), i, 1));
  EXPECT_NEAR(*view.eta_seconds(), 600, 1e-6);
}

TEST(RunView, ARepeatedStepReplacesLaterSteps) {
  RunView view(0.7), straight(0.7);
  for (long i = 1; i <= 10; ++i) view.feed(loss(static_cast<double>(i), i, static_cast<double>(100 + i)));
  for (long i = 6; i <= 10; ++i) view.feed(loss(static_cast<double>(5 + i), i, static_cast<double>(i)));
  for (long i = 1; i <= 10; ++i) straight.feed(loss(0, i, static_cast<double>(i <= 5 ? 100 + i : i)));
  EXPECT_EQ(view.metric("train/loss")->raw, straight.metric("train/loss")->raw);
  EXPECT_EQ(view.metric("train/loss")->smooth.series(), straight.metric("train/loss")->smooth.series());
}

TEST(RunView, ReloadedFromTheStoreEqualsTheLiveOne) {
  const Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = store.create(experiment::Experiment(), "live");
  RunView live;
  auto events = training(60);
  events.push_back({99, event::Finished{RunState::done, 60, 1234, 98.5, Bytes(900), "", Json{{"right", {1, 9}}}}});
  for (const Event& e : events) {
    live.feed(e);
    store.append(run, e);
  }
  store.flush();
  RunView reloaded = read_run(store::Store(folder.path()), run);
  EXPECT_TRUE(live == reloaded);
  reloaded.feed(loss(100, 61, 1));
  EXPECT_FALSE(live == reloaded);
}

TEST(RunView, RandomEventsGiveEqualViewsLiveAndReloaded) {
  const Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = store.create(experiment::Experiment(), "random");
  RunView live;
  Rng rng({42});
  for (int i = 0; i < 2000; ++i) {
    const Event e = test::random_event(rng);
    live.feed(e);
    store.append(run, e);
  }
  EXPECT_TRUE(live == read_run(store, run));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(read_run(store, run, stop.get_token()), Error);
}

TEST(RunView, AResumedRunGivesEqualViewsLiveAndReloaded) {
  const Scratch folder;
  store::Store store(folder.path());
  const store::RunId run = store.create(experiment::Experiment(), "resumed");
  RunView live;
  const auto emit = [&](const Event& e) {
    live.feed(e);
    store.append(run, e);
  };
  const auto events = training(40);
  for (size_t i = 0; i + 30 < events.size(); ++i) emit(events[i]);  // dies somewhere after step 20
  ASSERT_GT(live.step(), 20);
  store.rewind(run, 20);
  emit({2000, event::Started{Json{{"steps", 40}, {"resumed_from", 20}}}});
  EXPECT_EQ(live.step(), 20);
  for (long step = 21; step <= 40; ++step) {
    emit(loss(2000 + static_cast<double>(step), step, 0.5));
    emit({2000 + static_cast<double>(step),
          event::Memory{0, step, "backward", weights_and_activations(500, step), Bytes(600)}});
  }
  emit({3000, event::Finished{RunState::done, 40, 1, 2, Bytes(700), "", Json()}});
  const RunView reloaded = read_run(store, run);
  EXPECT_EQ(reloaded.metric("train/loss")->raw.size(), 40u);
  EXPECT_TRUE(live == reloaded);
}

TEST(RunView, StackedMemoryKeepsTheInstantOfTheLargestTotal) {
  RunView view;
  for (long i = 1; i <= 20000; ++i)
    view.feed({static_cast<double>(i),
               event::Memory{0, i, "backward", weights_and_activations(10, i == 7777 ? 1000 : i % 50), Bytes(1)}});
  const MemoryTimeline& timeline = view.memory().at(0);
  for (const Against against : {Against::step, Against::time}) {
    const auto shown = timeline.decimate(against, 1, 20000, 300);
    EXPECT_LE(shown.size(), 602u);
    EXPECT_TRUE(std::any_of(shown.begin(), shown.end(), [&](size_t i) {
      return timeline.points[i].bytes[MemoryCategory::activations] == Bytes(1000);
    }));
  }
}

TEST(RunView, LogKeepsTheLatestLinesAndCountsTheRest) {
  RunView view;
  for (size_t i = 0; i < RunView::kLogLines + 5; ++i) view.feed({0, event::Log{"info", std::to_string(i)}});
  EXPECT_EQ(view.log().size(), RunView::kLogLines);
  EXPECT_EQ(view.log_lines_dropped(), 5u);
  EXPECT_EQ(view.log().front().text, "5");
}

TEST(RunView, ToleratesAnInvalidStartedEvent) {
  RunView view;
  view.feed({0, event::Started{Json::array({1, 2})}});
  EXPECT_FALSE(view.predicted());
  view.feed({0, event::Started{Json{{"steps", "many"}, {"predicted", {{"weights", "x"}}}, {"capacity_bytes", -5}}}});
  EXPECT_FALSE(view.predicted());
  view.feed({0, event::Started{Json{{"predicted", 7}, {"capacity_bytes", "lots"}}}});
  EXPECT_FALSE(view.predicted());
  EXPECT_FALSE(view.capacity());
  EXPECT_EQ(view.steps_total(), 0);
  EXPECT_EQ(view.fraction(), 0);
}

TEST(TextDifference, FindsMissingAndAdditionalWords) {
  using Kind = TextPart::Kind;
  EXPECT_EQ(text_difference("the answer is 4", "the answer is 5"),
            (std::vector<TextPart>{{Kind::same, "the answer is "}, {Kind::missing, "4"}, {Kind::extra, "5"}}));
  EXPECT_EQ(text_difference("", "x"), (std::vector<TextPart>{{Kind::extra, "x"}}));
  EXPECT_TRUE(text_difference("", "").empty());
  EXPECT_EQ(text_difference("\xC3\xA4 b", "\xC3\xA4 b"), (std::vector<TextPart>{{Kind::same, "\xC3\xA4 b"}}));
  std::string expected, actual;
  for (const auto& part : text_difference("a b c d", "b x d e")) {
    if (part.kind != Kind::extra) expected += part.text;
    if (part.kind != Kind::missing) actual += part.text;
  }
  EXPECT_EQ(expected, "a b c d");
  EXPECT_EQ(actual, "b x d e");
}

}  // namespace
}  // namespace mw::views
