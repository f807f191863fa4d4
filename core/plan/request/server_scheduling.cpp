// SPDX-License-Identifier: Apache-2.0
#include "core/plan/request/server_scheduling.h"

namespace mw::plan {

ServerScheduling server_scheduling(model::Stack stack) {
  using S = ServerScheduling;
  switch (stack) {
    case model::Stack::tensorrt_llm:  // tensorrt_llm/llmapi/llm_args.py: CapacitySchedulerPolicy GUARANTEED_NO_EVICT
      return {.kv_admission = S::KvAdmission::whole};
    // sglang/srt/managers/scheduler.py, get_next_batch_to_run: a batch of prompts comes before the next token of the
    // others unless --enable-mixed-chunk is set.
    case model::Stack::sglang:
      return {.prefill_steps = S::PrefillSteps::separate};
    case model::Stack::jetstream:  // jetstream/core/orchestrator.py: prefill and generate programs take turns
      return {.prefill_steps = S::PrefillSteps::separate, .max_prefills = 1};
    default:
      return {};
  }
}

}  // namespace mw::plan
