// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/serving_loop.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

std::uint64_t adapter_salt(const std::string& adapter) {  // keys and values of a prompt depend on the adapter
  std::uint64_t salt = 0;
  for (const char c : adapter) salt = mix64(salt ^ static_cast<unsigned char>(c));
  return salt;
}

Error busy(const std::string& message, const std::string& fix) {
  return Error("BUSY", message, {.fix = fix}, Error::Kind::failed);
}

}  // namespace

ServingLoop::ServingLoop(SchedulerSettings settings, Executor& executor, int max_queued)
    : settings_(std::move(settings)),
      executor_(executor),
      max_queued_(max_queued),
      free_slots_(settings_.max_num_seqs),
      scheduler_(settings_),
      thread_([this] { run(); }) {}

ServingLoop::~ServingLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = quitting_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

RequestId ServingLoop::submit(GenerationRequest request, OnTokenEvent on_event) {
  const int prompt_len = static_cast<int>(request.prompt_ids.size());
  const int max_new_tokens = request.sampling.max_new_tokens;
  if (const std::string why = explain_rejection(settings_, prompt_len, max_new_tokens); !why.empty())
    throw Error("CONTEXT", why,
                {.found = std::to_string(prompt_len) + " prompt tokens and " + std::to_string(max_new_tokens) +
                          " tokens to generate",
                 .expected = "at most " + std::to_string(settings_.max_model_len) + " together",
                 .fix = "send a shorter prompt or request fewer tokens"});
  ScheduledRequest scheduled{
      .prompt_len = prompt_len, .max_new_tokens = max_new_tokens, .priority = request.priority, .arrival_s = now()};
  {
    const std::lock_guard lock(mutex_);
    const auto reject = [&](const std::string& message, const std::string& fix) {
      ++state_.rejected;
      throw busy(message, fix);
    };
    if (stopping_) reject("the server is stopping", "send the request to another server");
    const int waiting = state_.scheduler.waiting + pending_;
    if (waiting >= max_queued_ + free_slots_)
      reject("the server's queue is full: " + std::to_string(waiting) + " requests wait", "try again later");
    ++in_flight_, ++pending_;
    scheduled.id = RequestId{next_id_++};
  }
  try {
    executor_.begin(scheduled.id, request);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --pending_;
    if (--in_flight_ == 0) all_finished_.notify_all();
    throw;
  }
  if (settings_.prefix_cache == PrefixCache::on)
    scheduled.prompt_blocks = hash_blocks(request.prompt_ids, settings_.kv.block_size, adapter_salt(request.adapter));
  Entry entry{
      .prompt_len = prompt_len, .max_new_tokens = max_new_tokens, .on_event = std::move(on_event), .timing = {}};
  entry.timing.intended_s = entry.timing.sent_s = scheduled.arrival_s;
  entry.timing.prompt_tokens = prompt_len;
  const RequestId id = scheduled.id;
  {
    const std::lock_guard lock(mutex_);
    arrived_.emplace_back(std::move(scheduled), std::move(entry));
  }
  wake_.notify_all();
  return id;
}

void ServingLoop::run() {
  while (wait_for_work()) {
    admit_arrivals();
    if (!scheduler_.is_idle()) step();
    publish_state();
  }
  admit_arrivals();
  std::vector<RequestId> left;
  for (const auto& [id, entry] : entries_) left.push_back(id);
  for (const RequestId id : left) {
    scheduler_.abort(id);
    finish(id, FinishReason::cancelled, {});
  }
  publish_state();
}

// Returns false when the loop must end.
bool ServingLoop::wait_for_work() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] {
    return quitting_ || clear_cache_ || !arrived_.empty() || !to_cancel_.empty() || !scheduler_.is_idle();
  });
  return !quitting_;
}

void ServingLoop::admit_arrivals() {
  std::vector<std::pair<ScheduledRequest, Entry>> arrivals;
  std::vector<RequestId> cancelled;
  bool clear = false;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrived_);
    cancelled.swap(to_cancel_);
    clear = std::exchange(clear_cache_, false);
  }
  if (clear) scheduler_.clear_prefix_cache();
  for (auto& [request, entry] : arrivals) {
    entries_.emplace(request.id, std::move(entry));
    scheduler_.add(std::move(request));
  }
  if (!arrivals.empty()) {
    const std::lock_guard lock(mutex_);
    pending_ -= static_cast<int>(arrivals.size());
    state_.scheduler = scheduler_.state();
    publish_live();
  }
  for (const RequestId id : cancelled) {
    if (!entries_.contains(id)) continue;
    scheduler_.abort(id);
    finish(id, FinishReason::cancelled, {});
  }
}

void ServingLoop::step() {
  const Step step = scheduler_.next();
  for (const RequestId id : step.preempted)
    if (const auto it = entries_.find(id); it != entries_.end()) {
      ++it->second.timing.preemptions;
      it->second.is_waiting = true;
    }
  fail(step.rejected, "the KV cache is too small for the request");
  if (step.items.empty()) {
    // The scheduler must reject a request that it cannot admit while nothing runs. If it does not, avoid a busy loop.
    if (step.rejected.empty() && step.preempted.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  record_scheduling(step);
  StepResult result;
  try {
    result = executor_.run(step, scheduler_);
  } catch (const std::exception& error) {
    fail_step(step, error.what());
    return;
  }
  scheduler_.advance(step);
  std::vector<Outcome> outcomes;
  record_tokens(result, outcomes);
  std::vector<RequestId> ended;
  for (const Outcome& o : outcomes)
    if (o.event.is_last()) ended.push_back(o.id);
  scheduler_.finish(ended);
  publish_state();  // released blocks are visible before the end of a request is signalled
  for (const Outcome& o : outcomes) {
    if (o.event.is_last())
      finish(o.id, o.event.finish_reason, {});
    else
      entries_.at(o.id).on_event(o.id, o.event);
  }
}

void ServingLoop::fail(const std::vector<RequestId>& ids, const std::string& why) {
  for (const RequestId id : ids)
    if (entries_.contains(id)) finish(id, FinishReason::failed, why);
}

// The failed step may have left partial keys and values in the blocks, so no request may find them in the prefix cache.
void ServingLoop::fail_step(const Step& step, const std::string& why) {
  scheduler_.advance(step);
  std::vector<RequestId> all;
  for (const StepItem& item : step.items) {
    scheduler_.abort(item.id);
    all.push_back(item.id);
  }
  scheduler_.clear_prefix_cache();
  fail(all, why);
}

void ServingLoop::record_scheduling(const Step& step) {
  for (const StepItem& item : step.items) {
    Entry& entry = entries_.at(item.id);
    entry.is_waiting = false;
    formats::RequestResult& timing = entry.timing;
    if (!std::isnan(timing.scheduled_s)) continue;
    timing.scheduled_s = now();
    timing.cached_tokens = scheduler_.cached_tokens(item.id);
  }
}

void ServingLoop::record_tokens(const StepResult& result, std::vector<Outcome>& outcomes) {
  const double at = now();
  std::int64_t tokens = 0, prompts = 0;
  for (const SampledToken& s : result.sampled) {
    Entry& entry = entries_.at(s.id);
    formats::RequestResult& timing = entry.timing;
    if (s.is_stop) {
      outcomes.push_back({s.id, {.finish_reason = FinishReason::stop}});
      continue;
    }
    if (timing.output_tokens++ == 0) {
      timing.first_token_s = at;
      prompts += entry.prompt_len;
    } else {
      timing.gaps_ms.push_back(static_cast<float>((at - entry.last_token_s) * 1e3));
    }
    entry.last_token_s = at;
    ++tokens;
    outcomes.push_back({s.id, {.token = s.token, .probability = s.probability, .likeliest = s.likeliest}});
    if (timing.output_tokens == entry.max_new_tokens)
      outcomes.push_back({s.id, {.finish_reason = FinishReason::length}});
  }
  const std::lock_guard lock(mutex_);
  ++state_.steps;
  state_.output_tokens += tokens;
  state_.prompt_tokens += prompts;
}

// Signals the end of a request that the scheduler has already removed.
void ServingLoop::finish(RequestId id, FinishReason reason, const std::string& error) {
  executor_.end(id);
  auto entry = entries_.extract(id);
  TokenEvent event{.finish_reason = reason, .error = error, .timing = std::move(entry.mapped().timing)};
  const bool completed = reason == FinishReason::length || reason == FinishReason::stop;
  event.timing.end_s = completed && event.timing.output_tokens > 0 ? entry.mapped().last_token_s : now();
  if (reason == FinishReason::failed) event.timing.error = error;
  if (reason == FinishReason::cancelled) event.timing.error = "cancelled";
  {
    const std::lock_guard lock(mutex_);
    ++(completed ? state_.finished : reason == FinishReason::failed ? state_.failed : state_.cancelled);
    state_.scheduler = scheduler_.state();
    std::erase_if(live_, [id](const LiveRequest& live) { return live.id == id; });  // before the client knows
  }
  entry.mapped().on_event(id, event);
  const std::lock_guard lock(mutex_);
  if (--in_flight_ == 0) all_finished_.notify_all();
}

void ServingLoop::publish_state() {
  const std::lock_guard lock(mutex_);
  state_.scheduler = scheduler_.state();
  // A request that still waits after a step waits for blocks or for a running request to finish.
  free_slots_ = state_.scheduler.waiting > 0 ? 0 : std::max(0, settings_.max_num_seqs - state_.scheduler.running);
  timeline_.add(now(), state_.scheduler, state_.output_tokens);
  publish_live();
}

LiveRequest ServingLoop::live_request(RequestId id, const Entry& entry) {
  const formats::RequestResult& timing = entry.timing;
  LiveRequest live{.id = id,
                   .state = entry.is_waiting            ? LiveState::waiting
                            : timing.output_tokens == 0 ? LiveState::prefill
                                                        : LiveState::decode,
                   .age_s = timing.sent_s,
                   .prompt_tokens = entry.prompt_len,
                   .output_tokens = timing.output_tokens,
                   .max_new_tokens = entry.max_new_tokens};
  if (timing.output_tokens > 1 && entry.last_token_s > timing.first_token_s)
    live.tokens_per_second = (timing.output_tokens - 1) / (entry.last_token_s - timing.first_token_s);
  return live;
}

void ServingLoop::publish_live() {
  live_.clear();
  for (const auto& [id, entry] : entries_) live_.push_back(live_request(id, entry));
}

std::vector<LiveRequest> ServingLoop::live_requests() const {
  std::vector<LiveRequest> out;
  {
    const std::lock_guard lock(mutex_);
    out = live_;
    for (const auto& [request, entry] : arrived_) out.push_back(live_request(request.id, entry));
  }
  const double at = now();
  for (LiveRequest& live : out) live.age_s = std::max(0.0, at - live.age_s);
  return out;
}

void ServingLoop::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    to_cancel_.push_back(id);
  }
  wake_.notify_all();
}

void ServingLoop::drain() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  all_finished_.wait(lock, [&] { return in_flight_ == 0; });
}

ServingLoop::State ServingLoop::state() const {
  const std::lock_guard lock(mutex_);
  State shown = state_;
  shown.scheduler.waiting += pending_;
  return shown;
}

std::vector<formats::LoadSample> ServingLoop::take_timeline() {
  const std::lock_guard lock(mutex_);
  return timeline_.take();
}

void ServingLoop::clear_prefix_cache() {
  {
    const std::lock_guard lock(mutex_);
    clear_cache_ = true;
  }
  wake_.notify_all();
}

}  // namespace mw::serve
