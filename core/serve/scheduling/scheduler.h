// SPDX-License-Identifier: Apache-2.0
// Continuous batching over a paged KV cache with the policy of vLLM V1: decides what the next step computes. Has no
// clock and no tensors, so the engine and the cost model run the same scheduler. Not thread-safe.
#pragma once
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/options/serving.h"
#include "core/serve/scheduling/block_hashes.h"

namespace mw::serve {

enum class RequestId : std::int64_t {};

enum class PrefixCache { off, on };
enum class ChunkedPrefill { off, on };
// mixed: a step computes prompts beside decoding requests, as in vLLM V1 and TensorRT-LLM's in-flight batching.
// separate: a step computes either prompts, which come first, or one token for every decoding request, as in SGLang
// without
// --enable-mixed-chunk (sglang/srt/managers/scheduler.py, get_next_batch_to_run) and JetStream, whose prefill and
// generate programs take turns on a device (jetstream/core/orchestrator.py). The token budget then limits prompts only.
enum class PrefillSteps { mixed, separate };
// computed: blocks for the tokens that are computed; a request may be preempted. whole: admission reserves the blocks
// of prompt and answer, so that nothing is preempted (TensorRT-LLM's default, CapacitySchedulerPolicy
// GUARANTEED_NO_EVICT).
enum class KvReservation { computed, whole };

// blocks: every block has an id, and free ones can be found in the prefix cache. counts: only the number of blocks of
// each request is kept, and nothing is found again; the steps are the same if no prompts share a block and no request
// is preempted, or without a prefix cache. Simulations of long prompts are faster by it; Scheduler::blocks() is empty.
enum class KvTracking { blocks, counts };

struct KvGroup {       // layers that keep the same tokens
  int window = 0;      // tokens; blocks behind it are evicted. 0: the whole context is kept
  Bytes block_bytes;   // of one block over all layers of the group
  int max_blocks = 0;  // block ids are 0 .. max_blocks - 1; 0: limited by the capacity alone
};
struct KvLayout {
  int block_size = 16;  // tokens
  std::vector<KvGroup> groups;
  Bytes capacity;  // shared by the groups
};

struct SchedulerSettings {
  int max_num_seqs = 64, max_num_batched_tokens = 2048, max_model_len = 4096;
  ChunkedPrefill chunked_prefill = ChunkedPrefill::on;
  PrefixCache prefix_cache = PrefixCache::on;
  options::SchedulingPolicy policy = options::SchedulingPolicy::fcfs;
  KvLayout kv;
  PrefillSteps prefill_steps = PrefillSteps::mixed;
  KvReservation kv_reservation = KvReservation::computed;
  int max_prefills = 0;  // prompts in one step; 0: no limit. JetStream computes one at a time
  KvTracking kv_tracking = KvTracking::blocks;
};
// Explains in a sentence why no server with these settings can ever serve such a request; empty if it can.
std::string explain_rejection(const SchedulerSettings& settings, int prompt_len, int max_new_tokens);

struct ScheduledRequest {
  RequestId id{};
  int prompt_len = 0, max_new_tokens = 0;
  int priority = 0;                        // lower values run first, under options::SchedulingPolicy::priority
  double arrival_s = 0;                    // orders requests of equal priority
  std::vector<BlockHash> prompt_blocks{};  // of the full blocks of the prompt; empty: no prefix is shared
};

// Requests that wait outside the scheduler, so that a simulation can keep a long queue in little memory.
class OutsideQueue {
 public:
  virtual ~OutsideQueue() = default;
  struct Rank {  // lower values come first
    int priority = 0;
    double arrival_s = 0;
    auto operator<=>(const Rank&) const = default;
  };
  virtual size_t size() const = 0;
  // The rank of the request that take() removes; size() is at least 1. Under options::SchedulingPolicy::priority that
  // is the lowest one.
  virtual Rank first() const = 0;
  virtual ScheduledRequest take() = 0;
};

struct StepItem {
  RequestId id{};
  int first = 0, count = 0;  // computes tokens [first, first + count) of the prompt and the tokens generated so far
  bool samples = false;      // these complete the prompt: the step samples the next token
};
struct Step {
  // Running requests first, in order of admission. An item may read blocks that an earlier item of the same step writes
  // (a shared prefix), so compute the items in this order, or all keys and values of a layer before its attention.
  std::vector<StepItem> items;
  std::vector<RequestId> preempted{};  // lost their blocks and wait to be computed again
  std::vector<RequestId> rejected{};   // can never fit and have been removed
  int tokens() const;
};

struct SchedulerState {
  int running = 0, waiting = 0;  // requests
  double kv_used = 0;            // fraction of the capacity held by running requests
  std::int64_t prompt_tokens = 0, cached_tokens = 0, preemptions = 0;  // since construction
};

class Scheduler {
 public:
  // Throws Error SERVE for settings that allow no block, no sequence or no token.
  explicit Scheduler(SchedulerSettings settings);
  ~Scheduler();
  void add(ScheduledRequest request);  // appends it to the queue
  // next() takes requests from `queue` as if they had been added, when they are first in line. They count as waiting in
  // state() from the next step on. abort() does not find them before. `queue` must outlive its use; nullptr: none.
  void set_outside_queue(OutsideQueue* queue);
  Step next();  // the next step; no items: nothing can be computed now
  // Counts the tokens of the step as computed and the sampled ones as generated. Call it after every step, before
  // finish().
  void advance(const Step& step);
  // Removes requests that have generated their last token and releases their blocks; full blocks stay in the prefix
  // cache.
  void finish(std::span<const RequestId> ended);
  // Removes a waiting or running request and releases its blocks; ignores unknown ids. Not between next() and
  // advance().
  void abort(RequestId id);
  bool is_idle() const;  // no request waits or runs
  const SchedulerState& state() const;
  // Block ids of a running request in one group: entry i holds tokens [i * block_size, ...); -1: evicted.
  std::span<const int> blocks(RequestId id, size_t group) const;
  // Prompt tokens that the request took from the prefix cache when it was first admitted.
  int cached_tokens(RequestId id) const;
  void clear_prefix_cache();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::serve
