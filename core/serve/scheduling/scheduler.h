// SPDX-License-Identifier: Apache-2.0
// Continuous batching over a paged KV cache, as vLLM V1 does it: what the next step computes. Knows no clock and no
// tensor, so the engine and the cost model run the same one. One thread.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace mw::serve {

enum class RequestId : std::int64_t {};
using BlockHash = std::uint64_t;  // of a full block of prompt tokens and all before it

enum class PrefixCache { off, on };
enum class ChunkedPrefill { off, on };
enum class SchedulingPolicy { fcfs, priority };

struct KvGroup {       // layers that keep the same tokens
  int window = 0;      // 0: the whole context; else blocks that fall behind it are freed
  Bytes block_bytes;   // of one block over the group's layers
  int max_blocks = 0;  // ids are 0 .. max_blocks - 1; 0: only the capacity limits
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
  SchedulingPolicy policy = SchedulingPolicy::fcfs;
  KvLayout kv;
};
// Why such a request can never be served, in a sentence; empty: it can.
std::string explain_rejection(const SchedulerSettings& settings, int prompt_len, int max_new_tokens);

struct ScheduledRequest {
  RequestId id{};
  int prompt_len = 0, max_new_tokens = 0;
  int priority = 0;                        // smaller is sooner, under SchedulingPolicy::priority
  double arrival_s = 0;                    // orders equals
  std::vector<BlockHash> prompt_blocks{};  // of its full blocks; empty: shares nothing
};

struct StepItem {
  RequestId id{};
  int first = 0, count = 0;  // tokens [first, first + count) of prompt and answer so far are computed
  bool samples = false;      // gives the next token (the prompt is complete)
};
struct Step {
  // Running ones first, in order of admission. To be computed in this order, or each layer's keys and values of all
  // before its attention: one may read blocks that an item before it writes in this step (a shared prefix).
  std::vector<StepItem> items;
  std::vector<RequestId> preempted{};  // lost their blocks, wait again, and will compute all anew
  std::vector<RequestId> refused{};    // can never fit: failed
  int tokens() const;
};

struct SchedulerState {
  int running = 0, waiting = 0;
  double kv_used = 0;  // share of the capacity that running requests hold
  std::int64_t prompt_tokens = 0, cached_tokens = 0, preemptions = 0;  // since the start
};

class Scheduler {
 public:
  // Throws Error SERVE for settings that serve nothing (no block, no sequence).
  explicit Scheduler(SchedulerSettings settings);
  ~Scheduler();
  void add(ScheduledRequest request);  // to the queue
  Step next();                         // empty: nothing can be computed now
  // After the step: every item that samples has one more token. Requests that have ended (length or stop) are named and
  // free their blocks at once (full ones stay in the prefix cache).
  void finish(std::span<const RequestId> ended);
  void advance(const Step& step);  // counts the step's tokens as computed; before finish()
  // Waiting or running; frees at once; unknown ids are none of ours. Not between next() and advance().
  void abort(RequestId id);
  bool idle() const;  // nothing waits or runs
  const SchedulerState& state() const;
  // Physical blocks of a running request by group: entry i holds tokens [i*block_size, ...); -1: freed behind a window.
  std::span<const int> blocks(RequestId id, size_t group) const;
  // Tokens at its start that were taken from the prefix cache when it was first admitted.
  int cached_tokens(RequestId id) const;
  void clear_prefix_cache();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Hashes of the full blocks of a prompt; `salt` parts adapters and tenants.
std::vector<BlockHash> hash_blocks(std::span<const int> ids, int block_size, std::uint64_t salt = 0);
// The same of a prompt that is only a seed (serve/load.h), without its tokens: `shared` of `shared_seed`, then its own.
std::vector<BlockHash> hash_blocks(std::uint64_t shared_seed, int shared, std::uint64_t seed, int len, int block_size);

}  // namespace mw::serve
