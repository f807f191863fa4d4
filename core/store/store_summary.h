// SPDX-License-Identifier: Apache-2.0
// Computes a row of the runs table from the run's experiment and its events.
#pragma once
#include <string>

#include "core/store/store.h"

namespace mw::store {

// Sets the columns that depend on the experiment: model, method, source, steps_total.
RunRow row_from(const experiment::Experiment& experiment);
// Updates the row with one event: state, steps, losses, seconds, tokens, peak, error.
void apply(RunRow& row, const Event& event);

// Values of the indexed columns of the events table; an empty optional is NULL.
struct EventColumns {
  std::string kind, name;
  std::optional<std::int64_t> step;
  std::optional<double> value;
};
EventColumns columns_of(const Event& event);

std::string now_utc();    // "2026-01-31T12:00:00Z"
std::string today_utc();  // "2026-01-31"

}  // namespace mw::store
