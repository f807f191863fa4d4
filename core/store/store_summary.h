// SPDX-License-Identifier: Apache-2.0
// The row of the Runs table as it follows from the frozen experiment and the events. Plain values.
#pragma once
#include <string>

#include "core/store/store.h"

namespace mw::store {

// The columns that the experiment decides: model, method, source, steps_total.
RunRow row_from(const experiment::Experiment& experiment);
// Moves the row on by one event: state, steps, losses, seconds, tokens, peak, error.
void apply(RunRow& row, const Event& event);

// What the indexed columns of the events table hold; unset is NULL.
struct EventColumns {
  std::string kind, name;
  std::optional<std::int64_t> step;
  std::optional<double> value;
};
EventColumns columns_of(const Event& event);

std::string now_utc();  // "2026-01-31T12:00:00Z"

}  // namespace mw::store
