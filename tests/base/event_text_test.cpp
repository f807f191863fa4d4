// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/event.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "core/base/error.h"
#include "tests/base/random_events.h"

namespace mw {
namespace {

// The text of the event, or of the error.
std::string outcome(const std::function<Event()>& read) {
  try {
    const Event e = read();
    std::string text = to_json(e, "run-1").dump() + std::to_string(std::bit_cast<std::uint64_t>(e.time_s));
    if (const auto* m = std::get_if<event::Metric>(&e.body))
      text += " " + std::to_string(std::bit_cast<std::uint64_t>(m->value));
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_as_parsed(const std::string& text) {
  EXPECT_EQ(outcome([&] { return event_from_text(text, "t"); }),
            outcome([&] { return event_from_json(parse_json(text, "t")); }))
      << text;
}

TEST(EventText, ReadsRandomEventsBitForBitAsTheJsonParserDoes) {
  Rng rng({5});
  for (int i = 0; i < 3000; ++i) expect_as_parsed(to_json(test::random_event(rng), "run-1").dump());
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(rng.below(std::numeric_limits<std::uint64_t>::max()));
    expect_as_parsed(to_json({value, event::Metric{"train/loss", i, value}}, "").dump());
  }
}

// Damage one byte at a time, and every cut.
TEST(EventText, ReadsDamagedMetricsAsTheJsonParserDoes) {
  const std::string whole = to_json({12.5, event::Metric{"train/loss", -40, 1.5e-7}}, "").dump();
  for (size_t at = 0; at < whole.size(); ++at) {
    expect_as_parsed(whole.substr(0, at));
    for (const char byte : std::string_view(" \"\\0-+.eE,}{n\x01\x7f\xc3", 16)) {
      std::string changed = whole;
      changed[at] = byte;
      expect_as_parsed(changed);
      expect_as_parsed(whole.substr(0, at) + byte + whole.substr(at));
    }
  }
  for (const char* number : {"1", "01", "1.", ".5", "-", "1e", "1e+", "1e999", "1e-999", "99999999999999999999", "-0",
                             "-0.0", "null", "nan", "inf", "0x1", "1.0", "4.9e-324", "true"})
    for (const char* text : {R"({"event":"metric","name":"a","step":1,"value":#,"time_s":1.5})",
                             R"({"event":"metric","name":"a","step":1,"value":2.0,"time_s":#})",
                             R"({"event":"metric","name":"a","step":#,"value":2,"time_s":1.5})"}) {
      std::string filled = text;
      filled.replace(filled.find('#'), 1, number);
      expect_as_parsed(filled);
    }
}

}  // namespace
}  // namespace mw
