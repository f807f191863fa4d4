// SPDX-License-Identifier: GPL-3.0-or-later
// Random events of every kind with unusual content, for round-trip tests.
#pragma once
#include <limits>
#include <string>

#include "core/base/event.h"
#include "core/base/rng.h"

namespace mw::test {

inline std::string random_text(Rng& rng) {
  static const std::string kPieces[] = {"plain words ",
                                        "\"quoted\"",
                                        "back\\slash",
                                        "\n\t\r",
                                        "\u00e4\u00df",
                                        "\u65e5\u672c\u8a9e",
                                        "\U0001F600",
                                        std::string("\0", 1),
                                        "\x01\x1f",
                                        "{\"a\":[1,2]}",
                                        "'; DROP TABLE events; --",
                                        "</s>",
                                        "\u2028",
                                        ""};
  std::string text;
  for (std::uint64_t i = rng.below(6); i > 0; --i) text += kPieces[rng.below(std::size(kPieces))];
  return text;
}

inline double random_number(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return 0;
    case 2:
      return -1e-300;
    case 3:
      return 1.7976931348623157e308;
    case 4:
      return 5e-324;
    default:
      return static_cast<double>(rng.next_uniform()) * 0.1 - 0.05;
  }
}

inline long random_step(Rng& rng) {
  return rng.below(10) == 0 ? std::numeric_limits<long>::max() : static_cast<long>(rng.below(100000));
}

inline Ledger random_ledger(Rng& rng) {
  Ledger ledger;
  for (Bytes& b : ledger.bytes)
    if (rng.below(2) == 0) b = Bytes(static_cast<std::int64_t>(rng.next() >> 16));
  return ledger;
}

inline Event random_event(Rng& rng) {
  Event event;
  event.time_s = static_cast<double>(rng.next_uniform()) * 1e5;
  const auto state = static_cast<RunState>(rng.below(6));
  switch (rng.below(11)) {
    case 0:
      event.body =
          event::Started{Json{{"model", random_text(rng)}, {"steps", rng.below(1000)}, {"x", {1, 2.5, nullptr}}}};
      break;
    case 1:
      event.body = event::Metric{"train/" + random_text(rng), random_step(rng), random_number(rng)};
      break;
    case 2:
      event.body = event::Memory{static_cast<int>(rng.below(8)), random_step(rng), random_text(rng), random_ledger(rng),
                                 Bytes(static_cast<std::int64_t>(rng.next() >> 8))};
      break;
    case 3:
      event.body = event::Sample{random_step(rng), random_text(rng), random_text(rng), random_text(rng), "right"};
      break;
    case 4:
      event.body = event::Checkpoint{random_step(rng), random_text(rng)};
      break;
    case 5:
      event.body = event::Log{"warning", random_text(rng)};
      break;
    case 6:
      event.body = event::Progress{random_text(rng), static_cast<long>(rng.below(50)), 50};
      break;
    case 7:
      event.body = event::StateChanged{state};
      break;
    case 8:
      event.body =
          event::ResultPoint{random_step(rng), random_text(rng), Json{{"batch", 8}, {"mode", random_text(rng)}}};
      break;
    case 9: {
      event::StepTraffic traffic{.step = random_step(rng), .entries = {}, .devices = {}};
      for (std::uint64_t n = rng.below(3); n > 0; --n)
        traffic.entries.push_back(
            {random_text(rng), "fsdp", "forward", random_text(rng), static_cast<int>(rng.below(9)) - 1,
             static_cast<std::int64_t>(rng.below(99)), Bytes(static_cast<std::int64_t>(rng.next() >> 16)), 0.25,
             random_number(rng),
             rng.below(2) ? std::optional(Bytes(static_cast<std::int64_t>(rng.below(1 << 20)))) : std::nullopt});
      for (std::uint64_t n = rng.below(5); n > 0; --n)
        traffic.devices.push_back({Bytes(static_cast<std::int64_t>(rng.next() >> 16)), random_number(rng), 0.5});
      event.body = std::move(traffic);
      break;
    }
    default:
      event.body = event::Finished{state,
                                   random_step(rng),
                                   random_step(rng),
                                   12.5,
                                   Bytes(123456789012345),
                                   random_text(rng),
                                   Json{{"right", 3}, {"note", random_text(rng)}}};
  }
  if (rng.below(4) == 0) event.host = EventHost{static_cast<int>(rng.below(4096)), random_text(rng)};
  return event;
}

// Text form; equal events have equal text.
inline std::string fingerprint(const Event& event) {
  return to_json(event, "run-1").dump();
}

}  // namespace mw::test
