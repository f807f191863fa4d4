// SPDX-License-Identifier: Apache-2.0
// Follows vllm/v1/core/sched/scheduler.py (vLLM 0.11): running requests are scheduled first, within the token budget;
// if blocks run out, the last admitted request is preempted; then waiting requests are admitted while they fit.
#include "core/serve/scheduling/scheduler.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/scheduling/kv_block_manager.h"

namespace mw::serve {
namespace {

struct Entry {
  ScheduledRequest request;
  KvBlockManager::BlockTable table{};
  int computed = 0, total = 0;                  // tokens; total: of the prompt and generated so far
  int cached = -1;                              // tokens from the prefix cache at first admission; -1: not admitted yet
  std::int64_t order = 0;                       // in the queue
  bool is_running = false, is_servable = true;  // servable: fits into an empty server
};

enum class StepPart { all, prompts, answers };  // of the running requests

struct QueueKey {
  int priority = 0;
  double arrival_s = 0;
  std::int64_t order = 0;
  int slot = 0;
  auto operator<=>(const QueueKey&) const = default;
};

void check(const SchedulerSettings& s) {
  const auto at_least_one = [](const char* key, int value) {
    if (value < 1)
      throw Error("SERVE", "the server could not serve any request",
                  {.place = key, .found = std::to_string(value), .expected = "at least 1"});
  };
  at_least_one("serve.max_num_seqs", s.max_num_seqs);
  at_least_one("serve.max_num_batched_tokens", s.max_num_batched_tokens);
  at_least_one("serve.max_model_len", s.max_model_len);
}

std::string explain_rejection(const SchedulerSettings& s, const KvBlockManager& blocks, int prompt_len,
                              int max_new_tokens) {
  if (prompt_len < 1 || max_new_tokens < 1) return "the prompt and the generated text need at least one token each";
  const std::int64_t tokens = std::int64_t{prompt_len} + max_new_tokens;
  if (tokens > s.max_model_len)
    return std::to_string(prompt_len) + " prompt tokens and " + std::to_string(max_new_tokens) +
           " new tokens exceed max_model_len, " + std::to_string(s.max_model_len);
  if (s.chunked_prefill == ChunkedPrefill::off && prompt_len > s.max_num_batched_tokens)
    return "the prompt has " + std::to_string(prompt_len) + " tokens; without chunked prefill it must fit into " +
           "max_num_batched_tokens, " + std::to_string(s.max_num_batched_tokens);
  // The last token is sampled but never computed.
  if (!blocks.fits_alone(prompt_len, static_cast<int>(tokens) - 1, s.max_num_batched_tokens))
    return "the KV cache is too small for " + std::to_string(tokens) + " tokens";
  return {};
}

}  // namespace

std::string explain_rejection(const SchedulerSettings& settings, int prompt_len, int max_new_tokens) {
  return explain_rejection(settings, KvBlockManager(settings.kv, settings.prefix_cache), prompt_len, max_new_tokens);
}

int Step::tokens() const {
  int sum = 0;
  for (const StepItem& item : items) sum += item.count;
  return sum;
}

struct Scheduler::Impl {
  explicit Impl(SchedulerSettings s)
      : settings(std::move(s)), blocks(settings.kv, settings.prefix_cache, settings.kv_tracking) {
    check(settings);
  }

  Entry& at(int slot) { return entries[static_cast<size_t>(slot)]; }
  Entry* find(RequestId id) {
    const auto found = slots.find(static_cast<std::int64_t>(id));
    return found == slots.end() ? nullptr : &at(found->second);
  }

  QueueKey key_of(int slot) const {
    const Entry& e = entries[static_cast<size_t>(slot)];
    const bool by_priority = settings.policy == options::SchedulingPolicy::priority;
    return {by_priority ? e.request.priority : 0, by_priority ? e.request.arrival_s : 0, e.order, slot};
  }
  size_t outside() const { return queue ? queue->size() : 0; }
  void enqueue(ScheduledRequest request);
  // Takes the first request outside if no waiting one comes before it.
  bool has_waiting() {
    const auto is_before = [](const OutsideQueue::Rank& rank, const QueueKey& key) {
      return rank < OutsideQueue::Rank{key.priority, key.arrival_s};
    };
    const bool by_priority = settings.policy == options::SchedulingPolicy::priority;
    if (outside() > 0 && (waiting.empty() || (by_priority && is_before(queue->first(), *waiting.begin()))))
      enqueue(queue->take());
    return !waiting.empty();
  }
  void forget(int slot) {  // it neither waits nor runs any more
    Entry& e = at(slot);
    blocks.release(e.table);
    slots.erase(static_cast<std::int64_t>(e.request.id));
    e = Entry{};
    vacant.push_back(slot);
  }

  size_t preemption_victim() const;
  void preempt(size_t at, Step& step, int& budget);
  bool make_room(size_t& at, int count, Step& step, int& budget);
  void schedule(int slot, int count, Step& step, int& budget);
  void schedule_running(StepPart part, Step& step, int& budget);
  bool admit(int slot, Step& step, int& budget);
  int count_prompts(const Step& step);
  void schedule_waiting(Step& step, int& budget);
  void remove_running(const std::vector<int>& removed);
  void update_state();

  SchedulerSettings settings;
  KvBlockManager blocks;
  std::vector<Entry> entries;
  std::vector<int> vacant, running, scheduled;  // slots; scheduled: parallel to the items of the last step
  std::unordered_map<std::int64_t, int> slots;
  std::set<QueueKey> waiting;
  OutsideQueue* queue = nullptr;
  std::int64_t next_order = 0, front_order = 0;
  SchedulerState state;
};

// Index in `running`: the last admitted request, or under options::SchedulingPolicy::priority the latest of the lowest
// priority.
size_t Scheduler::Impl::preemption_victim() const {
  if (settings.policy == options::SchedulingPolicy::fcfs) return running.size() - 1;
  const auto last =
      std::max_element(running.begin(), running.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
  return static_cast<size_t>(last - running.begin());
}

// Full blocks stay in the prefix cache, those of generated tokens under hashes that only this request has, so that it
// can often find them again when it is readmitted.
void Scheduler::Impl::preempt(size_t at_index, Step& step, int& budget) {
  const int slot = running[at_index];
  Entry& e = at(slot);
  if (const auto item = std::find(scheduled.begin(), scheduled.end(), slot); item != scheduled.end()) {
    const auto index = item - scheduled.begin();
    budget += step.items[static_cast<size_t>(index)].count;
    step.items.erase(step.items.begin() + index);
    scheduled.erase(item);
  }
  const int full = e.computed / blocks.block_size();
  blocks.uncache_blocks(e.table, full);
  std::vector<BlockHash>& hashes = e.request.prompt_blocks;
  while (static_cast<int>(hashes.size()) < full)
    hashes.push_back(mix64(mix64(static_cast<std::uint64_t>(e.request.id)) ^
                           mix64(hashes.size() + (hashes.empty() ? 0 : hashes.back()))));
  blocks.cache_blocks(e.table, hashes, full);
  blocks.release(e.table);
  e.computed = 0;
  e.is_running = false;
  if (settings.policy == options::SchedulingPolicy::fcfs) e.order = --front_order;
  running.erase(running.begin() + static_cast<std::ptrdiff_t>(at_index));
  waiting.insert(key_of(slot));
  step.preempted.push_back(e.request.id);
  ++state.preemptions;
}

// Reserves blocks for the next `count` tokens of running[index] and preempts others if needed. Returns false if the
// request itself was preempted or rejected. `index` follows the request when an earlier one is removed.
bool Scheduler::Impl::make_room(size_t& index, int count, Step& step, int& budget) {
  for (;;) {
    Entry& e = at(running[index]);
    if (blocks.reserve(e.table, e.computed, e.computed + count)) return true;
    if (running.size() == 1) {  // no other request holds blocks
      step.rejected.push_back(e.request.id);
      remove_running({running[index]});
      return false;
    }
    const size_t victim = preemption_victim();
    preempt(victim, step, budget);
    if (victim == index) return false;
    if (victim < index) --index;
  }
}

void Scheduler::Impl::schedule(int slot, int count, Step& step, int& budget) {
  Entry& e = at(slot);
  const auto& hashes = e.request.prompt_blocks;
  if (e.table.hashed_blocks < static_cast<int>(hashes.size()))
    blocks.cache_blocks(e.table, hashes,
                        std::min((e.computed + count) / blocks.block_size(), static_cast<int>(hashes.size())));
  step.items.push_back({e.request.id, e.computed, count, e.computed + count == e.total});
  scheduled.push_back(slot);
  budget -= count;
}

void Scheduler::Impl::schedule_running(StepPart part, Step& step, int& budget) {
  for (size_t i = 0; i < running.size() && budget > 0; ++i) {
    const Entry& e = at(running[i]);
    const int count = std::min(e.total - e.computed, budget);
    if (count <= 0) continue;
    const bool answers = e.total - e.computed == 1 && e.total > e.request.prompt_len;
    if (part != StepPart::all && answers != (part == StepPart::answers)) continue;
    const bool block_exists = count == 1 && e.computed % blocks.block_size() != 0;
    if (!block_exists && !make_room(i, count, step, budget)) return;
    schedule(running[i], count, step, budget);
  }
}

// Requests of the step that do not decode.
int Scheduler::Impl::count_prompts(const Step& step) {
  return static_cast<int>(std::count_if(step.items.begin(), step.items.end(), [&](const StepItem& item) {
    return item.count > 1 || item.first + item.count <= find(item.id)->request.prompt_len;
  }));
}

// Returns false if the request, and with it the rest of the queue, has to wait.
bool Scheduler::Impl::admit(int slot, Step& step, int& budget) {
  Entry& e = at(slot);
  const auto& hashes = e.request.prompt_blocks;
  const int block = blocks.block_size();
  const int cached = blocks.count_cached_blocks(hashes, (e.total - 1) / block);  // at least one token is computed
  const int wanted = e.total - cached * block, count = std::min(wanted, budget);
  if (settings.chunked_prefill == ChunkedPrefill::off && wanted > budget && !step.items.empty()) return false;
  // The last token is sampled but never computed.
  const int end = settings.kv_reservation == KvReservation::whole
                      ? std::max(e.total, e.request.prompt_len + e.request.max_new_tokens - 1)
                      : cached * block + count;
  if (!blocks.reserve(e.table, cached * block, end, hashes, cached)) return false;
  e.computed = cached * block;
  if (e.cached < 0) {
    e.cached = e.computed;
    state.prompt_tokens += e.request.prompt_len;
    state.cached_tokens += e.cached;
  }
  e.is_running = true;
  running.push_back(slot);
  schedule(slot, count, step, budget);
  return true;
}

void Scheduler::Impl::schedule_waiting(Step& step, int& budget) {
  const int prompts = settings.max_prefills > 0 ? settings.max_prefills - count_prompts(step) : settings.max_num_seqs;
  const size_t most = running.size() + static_cast<size_t>(std::max(0, prompts));
  while (budget > 0 && static_cast<int>(running.size()) < settings.max_num_seqs && running.size() < most &&
         has_waiting()) {
    const int slot = waiting.begin()->slot;
    const Entry& e = at(slot);
    if (e.is_servable && admit(slot, step, budget)) {
      waiting.erase(waiting.begin());
      continue;
    }
    if (e.is_servable && !running.empty()) return;
    step.rejected.push_back(e.request.id);
    waiting.erase(waiting.begin());
    forget(slot);
  }
}

void Scheduler::Impl::enqueue(ScheduledRequest request) {
  if (vacant.empty()) {
    vacant.push_back(static_cast<int>(entries.size()));
    entries.emplace_back();
  }
  const int slot = vacant.back();
  vacant.pop_back();
  Entry& e = at(slot);
  e.is_servable = explain_rejection(settings, blocks, request.prompt_len, request.max_new_tokens).empty();
  e.total = request.prompt_len;
  e.order = next_order++;
  e.request = std::move(request);
  const size_t full = static_cast<size_t>(std::max(0, e.total)) / static_cast<size_t>(blocks.block_size());
  if (e.request.prompt_blocks.size() > full) e.request.prompt_blocks.resize(full);
  e.table = blocks.empty_table();
  slots[static_cast<std::int64_t>(e.request.id)] = slot;
  waiting.insert(key_of(slot));
}

void Scheduler::Impl::remove_running(const std::vector<int>& removed) {
  for (const int slot : removed) at(slot).is_running = false;
  std::erase_if(running, [&](int slot) { return !at(slot).is_running; });
  for (const int slot : removed) forget(slot);
}

void Scheduler::Impl::update_state() {
  state.running = static_cast<int>(running.size());
  state.waiting = static_cast<int>(waiting.size() + outside());
  state.kv_used = blocks.used_fraction();
}

Scheduler::Scheduler(SchedulerSettings settings) : impl_(std::make_unique<Impl>(std::move(settings))) {}
Scheduler::~Scheduler() = default;

void Scheduler::add(ScheduledRequest request) {
  impl_->enqueue(std::move(request));
  impl_->update_state();
}

void Scheduler::set_outside_queue(OutsideQueue* queue) {
  impl_->queue = queue;
  impl_->update_state();
}

Step Scheduler::next() {
  Impl& im = *impl_;
  Step step;
  step.items.reserve(im.running.size() + 4);
  im.scheduled.clear();
  int budget = im.settings.max_num_batched_tokens;
  const bool mixed = im.settings.prefill_steps == PrefillSteps::mixed;
  im.schedule_running(mixed ? StepPart::all : StepPart::prompts, step, budget);
  if (step.preempted.empty()) im.schedule_waiting(step, budget);
  if (!mixed && step.items.empty() && step.preempted.empty()) {
    budget = std::max(budget, static_cast<int>(im.running.size()));
    im.schedule_running(StepPart::answers, step, budget);
  }
  im.update_state();
  return step;
}

void Scheduler::advance(const Step& step) {
  Impl& im = *impl_;
  for (size_t i = 0; i < step.items.size(); ++i) {
    const StepItem& item = step.items[i];
    Entry* e = i < im.scheduled.size() ? &im.at(im.scheduled[i]) : nullptr;
    if (!e || e->request.id != item.id || !e->is_running) e = im.find(item.id);
    if (!e) continue;
    e->computed += item.count;
    e->total += item.samples ? 1 : 0;
  }
}

void Scheduler::finish(std::span<const RequestId> ended) {
  Impl& im = *impl_;
  std::vector<int> removed;
  for (const RequestId id : ended)
    if (const Entry* e = im.find(id); e && e->is_running) removed.push_back(static_cast<int>(e - im.entries.data()));
  if (!removed.empty()) im.remove_running(removed);
  im.update_state();
}

void Scheduler::abort(RequestId id) {
  Impl& im = *impl_;
  Entry* e = im.find(id);
  if (!e) return;
  const int slot = static_cast<int>(e - im.entries.data());
  if (e->is_running) return finish(std::span(&id, 1));
  im.waiting.erase(im.key_of(slot));
  im.forget(slot);
  im.update_state();
}

bool Scheduler::is_idle() const {
  return impl_->running.empty() && impl_->waiting.empty() && impl_->outside() == 0;
}

const SchedulerState& Scheduler::state() const {
  return impl_->state;
}

std::span<const int> Scheduler::blocks(RequestId id, size_t group) const {
  const Entry* e = impl_->find(id);
  return e && group < e->table.blocks.size() ? std::span<const int>(e->table.blocks[group]) : std::span<const int>{};
}

int Scheduler::cached_tokens(RequestId id) const {
  const Entry* e = impl_->find(id);
  return e ? std::max(0, e->cached) : 0;
}

void Scheduler::clear_prefix_cache() {
  impl_->blocks.clear_prefix_cache();
}

}  // namespace mw::serve
