// SPDX-License-Identifier: Apache-2.0
// The settings that a plan for another target keeps, and another experiment beside it that was written for
// that target. Reads the experiments in the document's folder. Any thread.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/document/plan_request.h"

namespace mw::plan {

struct CarriedValue {
  std::string key;
  Json value;
};
struct ChangedValue {
  std::string key;
  Json before, after;
};
struct CarriedAssumptions {
  std::string from, to;               // target ids
  std::vector<CarriedValue> kept;     // settings that time and memory depend on
  std::vector<ChangedValue> changed;  // by the move; a reset key has its default
  struct Other {
    std::filesystem::path file;
    double seconds = 0;                 // predicted, of its step
    std::vector<ChangedValue> differs;  // before: here, after: there
  };
  std::optional<Other> other;  // same kind and model, written for `to`
};
// `moved`: `document` after retarget().
CarriedAssumptions carried_assumptions(const experiment::Experiment& document, const experiment::Experiment& moved,
                                       const PlanContext& context);
Json to_json(const CarriedAssumptions& carried);
std::string to_text(const CarriedAssumptions& carried);

}  // namespace mw::plan
