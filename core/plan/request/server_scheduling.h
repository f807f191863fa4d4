// SPDX-License-Identifier: Apache-2.0
// How a server's scheduler lays prompts and answers into steps, and what it reserves for a request; the meaning of the
// values is that of serve::PrefillSteps and serve::KvReservation. Plain values; any thread.
#pragma once
#include "core/model/types.h"

namespace mw::plan {

struct ServerScheduling {
  enum class PrefillSteps { mixed, separate };
  enum class KvAdmission { computed, whole };
  PrefillSteps prefill_steps = PrefillSteps::mixed;
  KvAdmission kv_admission = KvAdmission::computed;
  int max_prefills = 0;  // prompts in one step; 0: no limit
};
ServerScheduling server_scheduling(model::Stack stack);

}  // namespace mw::plan
