// SPDX-License-Identifier: Apache-2.0
// How much time of the processors other programs took beside this one. Thread-safe.
#pragma once

namespace mw {

// Seconds of all processors together up to now; zeros where the system does not tell.
struct ProcessorTime {
  double own = 0, others = 0, idle = 0;  // of this process, of other programs and of a hypervisor, of nobody
};
ProcessorTime processor_time();
// Processor time of other programs between two calls, divided by that of this process: 1 if its work took twice as long
// beside them. 0 if a tenth of the processors was idle, so that it did not wait for them.
double share_of_others(const ProcessorTime& before, const ProcessorTime& after);

}  // namespace mw
