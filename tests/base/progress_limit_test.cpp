// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/event.h"

#include <gtest/gtest.h>

namespace mw {
namespace {

struct Passed {
  std::vector<Event> events;
  ProgressLimit limit{[this](const Event& e) { events.push_back(e); }};
  void progress(double time_s, const char* phase, long done, long total) {
    limit({time_s, event::Progress{phase, done, total}});
  }
  std::string text() const {
    std::string out;
    for (const Event& e : events)
      if (const auto* p = std::get_if<event::Progress>(&e.body)) out += p->phase + std::to_string(p->done) + " ";
    return out;
  }
};

TEST(ProgressLimit, PassesTenASecondAndTheFirstAndLastOfAPhase) {
  Passed all;
  for (int i = 0; i <= 1000; ++i) all.progress(i / 1024.0, "read", i, 1000);
  EXPECT_EQ(all.text(), "read0 read103 read206 read309 read412 read515 read618 read721 read824 read927 read1000 ");
}

TEST(ProgressLimit, PassesTheLastProgressOfAPhaseThatEndsEarlyOrHasNoTotal) {
  Passed all;
  all.progress(0, "a", 1, 9);
  all.progress(0.01, "a", 2, 9);
  all.progress(0.02, "a", 3, 9);
  all.limit({0.03, event::Metric{"train/loss", 1, 2}});
  all.progress(0.04, "b", 1, 0);
  all.progress(0.05, "b", 2, 0);
  all.progress(0.06, "", 0, 0);  // the activity has ended
  all.progress(0.07, "a", 4, 9);
  all.progress(0.08, "a", 5, 9);
  all.limit.end_phase();
  EXPECT_EQ(all.text(), "a1 a3 b1 b2 0 a4 a5 ");
  for (size_t i = 1; i < all.events.size(); ++i) EXPECT_GE(all.events[i].time_s, all.events[i - 1].time_s) << i;
}

TEST(ProgressLimit, PassesEveryOtherEvent) {
  Passed all;
  for (int i = 0; i < 100; ++i) all.limit({0.0001 * i, event::Metric{"train/loss", i, 1}});
  EXPECT_EQ(all.events.size(), 100u);
}

}  // namespace
}  // namespace mw
