// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/plan_result.h"

namespace mw::plan {

std::string_view to_string(Term::Phase phase) {
  switch (phase) {
    case Term::Phase::forward:
      return "forward";
    case Term::Phase::remat:
      return "remat";
    case Term::Phase::backward:
      return "backward";
    case Term::Phase::update:
      return "update";
    case Term::Phase::prefill:
      return "prefill";
    case Term::Phase::decode:
      return "decode";
  }
  return "";
}

}  // namespace mw::plan
