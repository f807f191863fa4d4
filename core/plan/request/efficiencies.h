// SPDX-License-Identifier: Apache-2.0
// The named shares and fixed costs between what a chip could do and what programs reach on it. Everything that may be
// fitted is here and nowhere else; defaults are measured ceilings of the catalogue and published constants. Plain
// values.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/hardware/target.h"
#include "core/model/types.h"
#include "core/plan/request/estimate.h"

namespace mw::plan {

using model::Stack;
Stack parse_stack(std::string_view text);  // the names of model::Stack; throws Error STACK
bool serves(Stack stack);                  // true for vLLM

struct Efficiency {
  double value = 0, low = 0, high = 0;
  Origin origin = Origin::transferred;
  std::string source{};
};

struct Efficiencies {
  Efficiency matmul;         // share of the bf16 peak in large products
  Efficiency attention;      // share of the bf16 peak inside a fused attention kernel
  Efficiency memory;         // share of memory bandwidth, element-wise work and weight reads
  Efficiency collectives;    // share of what the link model gives
  Efficiency overlap;        // share of weight gathers and gradient sums that may hide behind computing
  Efficiency overlap_sums;   // the same of partial sums between the products of a layer
  Efficiency kernel_s;       // seconds per kernel that nothing hides
  Efficiency kv_reads;       // share of memory bandwidth in reads of a server's paged KV cache
  Efficiency sum_s;          // seconds of a server's sum beside its bytes; GPUs: of two, times log2 of their number
  Efficiency step_s;         // seconds per optimizer step or decode step beside the devices' work: host, data, dispatch
  Efficiency sequence_s;     // seconds per sequence of a decode step
  Efficiency request_s;      // seconds from a request's sending until a server may schedule it: HTTP, tokenizer, queues
  Efficiency compile_s;      // seconds of compilation before the first step
  Efficiency runtime_bytes;  // held per device by runtime, context and communicators
  Efficiency fragmentation;  // share by which an allocator holds more than the live buffers

  struct Named {
    std::string_view name;
    Efficiency Efficiencies::*member;
    std::string_view help;
  };
  static const std::vector<Named>& names();  // for fitting and for tables
};

Efficiencies default_efficiencies(const hardware::Target& target, Stack stack);
// What is left of step_s where the host schedules a step while the one before it runs.
Efficiency async_step_overhead();

}  // namespace mw::plan
