// SPDX-License-Identifier: Apache-2.0
// Named efficiencies and fixed costs that separate a chip's peak from what programs reach. Calibration fits only these;
// the defaults are measured ceilings of the catalogue and published constants. Plain values; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/hardware/target.h"
#include "core/model/types.h"
#include "core/plan/request/estimate.h"

namespace mw::plan {

model::Stack parse_stack(std::string_view text);  // the names of model::Stack; throws Error STACK

struct Efficiency {
  double value = 0, low = 0, high = 0;
  Origin origin = Origin::transferred;
  std::string source{};
};
Estimate operator*(double n, const Efficiency& each);      // `n` fixed costs
Estimate operator/(double best, const Efficiency& share);  // seconds that are `best` at the whole peak

// Costs of the engine's kernels beside multiply-adds and passes over memory, of a class of processors.
struct EngineCosts {
  double output_columns = 0;  // an output of a product takes as long as this many of its multiply-adds
  double query_keys = 0;      // a query of a head, in attention within a pass, as long as this many more keys
  double query_ops = 0;       // and as this many operations in f32 at the peak
  // Share of the memory bandwidth in reads of a server's KV cache, by the bytes that a step reads, ascending: few of
  // them are still in the processor's caches. Between the points and beyond them as kv_share() says.
  std::vector<std::pair<double, double>> kv_reads{};
  double gathers =
      0;              // bytes per second that a thread gathers from other virtual devices and packs for its own kernels
  double call_s = 0;  // of a thread that waits for other virtual devices
  std::string source{};
};
double kv_share(const EngineCosts& costs, double bytes);

struct Efficiencies {
  Efficiency matmul;       // share of the bf16 peak in large products
  Efficiency experts;      // share of `matmul` that the grouped products of experts reach in training
  Efficiency fp8;          // share of what large fp8 products reach that a server's do, with quantising their inputs
  Efficiency attention;    // share of the bf16 peak inside a fused attention kernel
  Efficiency memory;       // share of memory bandwidth, element-wise work and weight reads
  Efficiency collectives;  // share of what the link model gives
  Efficiency overlap;      // share of weight gathers and gradient sums that may hide behind computing
  Efficiency overlap_network;  // the same between nodes or slices
  Efficiency overlap_sums;     // share of partial sums within a layer that may hide
  Efficiency kernel_s;         // seconds per kernel launch that are not hidden
  Efficiency kv_reads;         // share of memory bandwidth in reads of a server's paged KV cache
  Efficiency triton_reads;    // share of the published bandwidth of Triton kernels in these reads, for heads beyond 256
  Efficiency sampling;        // share of memory bandwidth in a server's passes over logits for top-k and top-p
  Efficiency sum_s;           // fixed seconds of a server's all-reduce; on GPUs times log2 of their number
  Efficiency step_s;          // seconds of the host per optimizer or decode step: data, scheduling, dispatch
  Efficiency layer_s;         // seconds per layer of a server's step between the kernels of its graph
  Efficiency sequence_s;      // seconds per sequence of a decode step
  Efficiency request_s;       // seconds from sending a request until a server can schedule it: HTTP, tokenizer, queues
  Efficiency token_s;         // of the tokenizer per prompt token, before a server can schedule the request
  Efficiency prompt_layer_s;  // of the host per layer, in a server's step with prompts that no CUDA graph replays
  Efficiency compile_s;       // seconds of compilation before the first step
  Efficiency runtime_bytes;   // held per device by runtime, context and communicators
  Efficiency fragmentation;   // share by which an allocator holds more than the live buffers
  EngineCosts engine{};       // on this machine

  struct Named {
    std::string_view name;
    Efficiency Efficiencies::*member;
    std::string_view help;
  };
  static const std::vector<Named>& names();  // for fitting and for tables
};

Efficiencies default_efficiencies(const hardware::Target& target, model::Stack stack);
// The value of step_s if the host schedules a step while the previous one runs.
Efficiency async_step_overhead();

}  // namespace mw::plan
