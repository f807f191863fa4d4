// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/plan_result.h"

namespace mw::plan {

std::string_view to_string(Term::Phase phase) {
  static constexpr std::string_view kNames[] = {"forward", "remat", "backward", "update", "prefill", "decode"};
  return kNames[static_cast<size_t>(phase)];
}

}  // namespace mw::plan
