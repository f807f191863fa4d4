// SPDX-License-Identifier: Apache-2.0
// Reading members of a result: types and ranges are checked, null and absent are unknown. Errors are Error BENCH naming
// the field; who knows the file adds it. Any thread.
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats::bench {

inline constexpr std::int64_t kMost = 1'000'000'000'000'000;  // of any count; below 2^53

[[noreturn]] void bad(const std::string& place, const Json& found, const std::string& expected);

// A finite number from `least` on, or kUnknown where there is none. Absent, null: kUnknown.
double number(const Json& object, const std::string& key, double least = 0);
double number_of(const Json& value, const std::string& place, double least = 0);
std::int64_t count(const Json& object, const std::string& key, std::int64_t most = kMost);  // absent, null: 0
std::int64_t count_of(const Json& value, const std::string& place, std::int64_t most = kMost);
std::string text(const Json& object, const std::string& key);  // absent, null: empty
std::string text_of(const Json& value, const std::string& place);
const Json* list(const Json& object, const std::string& key);  // null where absent or null

// Runs `read` and adds `place` in front of what its errors name: "points[3].duration", "line 7: duration".
template <class Read>
auto inside(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    Problem problem = error.problem();
    const char* const join = place.empty() || problem.place.empty() ? ""
                             : place.find(' ') == std::string::npos ? "."
                                                                    : ": ";
    problem.place = place + join + problem.place;
    throw Error(problem, error.kind());
  }
}

}  // namespace mw::formats::bench
