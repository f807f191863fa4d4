// SPDX-License-Identifier: Apache-2.0
// The results of plan::predict: memory, time and cost of a request. Plain values; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/ledger.h"
#include "core/plan/request/estimate.h"
#include "core/plan/request/request.h"

namespace mw::plan {

struct Buffer {      // one allocation at the peak, per device
  std::string name;  // "saved inputs of 60 layers"
  MemoryCategory category = MemoryCategory::workspace;
  Bytes bytes;     // as held, tiles included
  Bytes unpadded;  // without padding
  std::string formula{};
};

struct DeviceUse {        // of one device of the engine
  Ledger at_peak;         // the instant of the largest total
  Ledger category_peaks;  // peak of each category, at possibly different instants
  std::string peak_instant;
  EngineRows rows{};
};

// Memory of the fullest device. Stacks but the engine hold the same on all: uneven shards are rounded up.
struct DeviceMemory {
  Bytes capacity;
  Ledger at_peak, category_peaks;
  std::string peak_instant;          // "backward of layer 59"
  std::vector<Buffer> buffers;       // at the peak, largest first
  Estimate total;                    // bytes, with interval
  std::vector<DeviceUse> devices{};  // of the engine, in row-major order of the mesh; empty: of other stacks
  bool is_bound = false;             // every row taken as long as it may be
  bool fits() const { return at_peak.total() <= capacity; }
};

// The time of one phase of one kind of layer, summed over its layers and all micro-batches of a step.
struct Term {
  enum class Phase { forward, remat, backward, update, prefill, decode };
  Phase phase = Phase::forward;
  std::string part;                         // "sliding layers", "global layers", "embedding", "loss", "adapters"
  int layers = 0;                           // in this term; 0: no layer
  Estimate compute, memory, communication;  // seconds of products, passes over memory and collectives
  double hidden = 0;                        // collective seconds that overlap with compute and memory
  double seconds() const { return compute.value + memory.value + communication.value - hidden; }
};

struct StepTime {
  std::vector<Term> terms;
  Estimate seconds;  // of an optimizer step (train), a forward, a rollout, or a decode step (serve)
  Estimate compute, memory, communication, fixed;  // of a step, all micro-batches; communication before overlap
  double hidden = 0;
  std::string overlap;  // the assumed overlap of collectives, as text
};

struct Utilisation {  // model FLOP utilisation under a named formula
  std::string name;   // "6N, padded tokens"
  double share = 0;
};

struct RunTotals {
  std::int64_t steps = 0;
  Estimate hours, usd;
  double usd_per_hour = 0;
  double tokens_per_second = 0, padded_tokens_per_second = 0;  // real tokens; all computed tokens
  double usd_per_million_tokens = 0, usd_per_million_padded = 0;
  double real_share = 1;      // share of real tokens among computed ones
  double packed_speedup = 1;  // expected from packing, if rows are padded
  std::vector<Utilisation> utilisation;
};

struct ServeNumbers {
  std::int64_t kv_tokens = 0;  // tokens that fit into the KV cache
  std::int64_t longest_request =
      0;                          // tokens of the longest request that one server's cache holds, at most max_model_len
  double kv_bytes_per_token = 0;  // per device, for a row of max_model_len
  Estimate ttft;                  // of one request in an idle server
  double running = 0;             // requests at once
  Estimate decode_step;           // of a step with these that computes no prompt
  Estimate tpot;                  // seconds per token beside the prompts of others; 0: answers have one token
  double output_tokens_per_second = 0;
  double usd_per_million_output_tokens = 0;
};

struct Plan {
  int devices = 1;
  DeviceMemory memory;
  StepTime step;
  RunTotals run;
  Estimate compile;                   // seconds before the first step
  std::optional<ServeNumbers> serve;  // Work::serve and Work::rollout
  std::vector<Problem> problems;      // from placement and memory; core/lint finds others
  std::vector<Problem> refusals;      // why the stack would not start, see core/plan/request/refusals.h
  std::vector<std::string> sources;
  bool fits() const { return refusals.empty() && memory.fits(); }
};

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<6> mw::kEnumNames<mw::plan::Term::Phase>{"forward", "remat",   "backward",
                                                                        "update",  "prefill", "decode"};
