// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/serving_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/serve/scheduling/load_timeline.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t adapter_salt(const std::string& adapter) {  // keys and values of a prompt depend on the adapter
  std::uint64_t salt = 0;
  for (const char c : adapter) salt = mix64(salt ^ static_cast<unsigned char>(c));
  return salt;
}

Error busy(const std::string& message, const std::string& fix) {
  return Error({.id = "BUSY", .message = message, .fix = fix}, Error::Kind::failed);
}

}  // namespace

struct ServingLoop::Impl {
  struct Entry {
    int prompt_len = 0, max_new_tokens = 0;
    OnTokenEvent on_event;
    formats::RequestResult timing;
    double last_token_s = 0;
  };
  struct Outcome {  // of one request in one step; delivered after the state has been published
    RequestId id{};
    TokenEvent event;
  };

  Impl(SchedulerSettings s, Executor& e, int q)
      : settings(std::move(s)), executor(e), max_queued(q), free_slots(settings.max_num_seqs), scheduler(settings) {
    thread = std::thread([this] { loop(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = quitting = true;
    }
    wake.notify_all();
    thread.join();
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - start_time).count(); }

  RequestId submit(GenerationRequest request, OnTokenEvent on_event);
  void loop();
  bool wait_for_work();
  void admit_arrivals();
  void step();
  void fail(const std::vector<RequestId>& ids, const std::string& why);
  void fail_step(const Step& step, const std::string& why);
  void record_scheduling(const Step& step);
  void record_tokens(const StepResult& result, std::vector<Outcome>& outcomes);
  void finish(RequestId id, FinishReason reason, const std::string& error);
  void publish_state();

  const SchedulerSettings settings;
  Executor& executor;
  const int max_queued;
  const Clock::time_point start_time = Clock::now();

  mutable std::mutex mutex;  // guards the members up to `scheduler`
  std::condition_variable wake, all_finished;
  std::vector<std::pair<ScheduledRequest, Entry>> arrived;
  std::vector<RequestId> to_cancel;
  bool stopping = false, quitting = false, clear_cache = false;
  std::int64_t next_id = 1;
  int in_flight = 0;  // submitted and not finished
  int pending = 0;    // of these, not yet known to the scheduler
  int free_slots;     // requests that the next step can admit
  State state;
  LoadTimeline timeline;

  Scheduler scheduler;  // used by the serving thread only, like `entries`
  std::map<RequestId, Entry> entries;
  std::thread thread;
};

RequestId ServingLoop::Impl::submit(GenerationRequest request, OnTokenEvent on_event) {
  const int prompt_len = static_cast<int>(request.prompt_ids.size());
  const int max_new_tokens = request.max_new_tokens;
  if (const std::string why = explain_rejection(settings, prompt_len, max_new_tokens); !why.empty())
    throw Error({.id = "CONTEXT",
                 .message = why,
                 .found = std::to_string(prompt_len) + " prompt tokens and " + std::to_string(max_new_tokens) +
                          " tokens to generate",
                 .expected = "at most " + std::to_string(settings.max_model_len) + " together",
                 .fix = "send a shorter prompt or request fewer tokens"});
  ScheduledRequest scheduled{
      .prompt_len = prompt_len, .max_new_tokens = max_new_tokens, .priority = request.priority, .arrival_s = now()};
  {
    const std::lock_guard lock(mutex);
    const auto reject = [&](const std::string& message, const std::string& fix) {
      ++state.rejected;
      throw busy(message, fix);
    };
    if (stopping) reject("the server is stopping", "send the request to another server");
    const int waiting = state.scheduler.waiting + pending;
    if (waiting >= max_queued + free_slots)
      reject("the server's queue is full: " + std::to_string(waiting) + " requests wait", "try again later");
    ++in_flight, ++pending;
    scheduled.id = RequestId{next_id++};
  }
  try {
    executor.begin(scheduled.id, request);
  } catch (...) {
    const std::lock_guard lock(mutex);
    --pending;
    if (--in_flight == 0) all_finished.notify_all();
    throw;
  }
  if (settings.prefix_cache == PrefixCache::on)
    scheduled.prompt_blocks = hash_blocks(request.prompt_ids, settings.kv.block_size, adapter_salt(request.adapter));
  Entry entry{
      .prompt_len = prompt_len, .max_new_tokens = max_new_tokens, .on_event = std::move(on_event), .timing = {}};
  entry.timing.intended_s = entry.timing.sent_s = scheduled.arrival_s;
  entry.timing.prompt_tokens = prompt_len;
  const RequestId id = scheduled.id;
  {
    const std::lock_guard lock(mutex);
    arrived.emplace_back(std::move(scheduled), std::move(entry));
  }
  wake.notify_all();
  return id;
}

void ServingLoop::Impl::loop() {
  while (wait_for_work()) {
    admit_arrivals();
    if (!scheduler.is_idle()) step();
    publish_state();
  }
  admit_arrivals();
  std::vector<RequestId> left;
  for (const auto& [id, entry] : entries) left.push_back(id);
  for (const RequestId id : left) {
    scheduler.abort(id);
    finish(id, FinishReason::cancelled, {});
  }
  publish_state();
}

// Returns false when the loop must end.
bool ServingLoop::Impl::wait_for_work() {
  std::unique_lock lock(mutex);
  wake.wait(lock,
            [&] { return quitting || clear_cache || !arrived.empty() || !to_cancel.empty() || !scheduler.is_idle(); });
  return !quitting;
}

void ServingLoop::Impl::admit_arrivals() {
  std::vector<std::pair<ScheduledRequest, Entry>> arrivals;
  std::vector<RequestId> cancelled;
  bool clear = false;
  {
    const std::lock_guard lock(mutex);
    arrivals.swap(arrived);
    cancelled.swap(to_cancel);
    clear = std::exchange(clear_cache, false);
  }
  if (clear) scheduler.clear_prefix_cache();
  for (auto& [request, entry] : arrivals) {
    entries.emplace(request.id, std::move(entry));
    scheduler.add(std::move(request));
  }
  if (!arrivals.empty()) {
    const std::lock_guard lock(mutex);
    pending -= static_cast<int>(arrivals.size());
    state.scheduler = scheduler.state();
  }
  for (const RequestId id : cancelled) {
    if (!entries.contains(id)) continue;
    scheduler.abort(id);
    finish(id, FinishReason::cancelled, {});
  }
}

void ServingLoop::Impl::step() {
  const Step step = scheduler.next();
  for (const RequestId id : step.preempted)
    if (const auto it = entries.find(id); it != entries.end()) ++it->second.timing.preemptions;
  fail(step.rejected, "the KV cache is too small for the request");
  if (step.items.empty()) {
    // The scheduler must reject a request that it cannot admit while nothing runs. If it does not, avoid a busy loop.
    if (step.rejected.empty() && step.preempted.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  record_scheduling(step);
  StepResult result;
  try {
    result = executor.run(step, scheduler);
  } catch (const std::exception& error) {
    fail_step(step, error.what());
    return;
  }
  scheduler.advance(step);
  std::vector<Outcome> outcomes;
  record_tokens(result, outcomes);
  std::vector<RequestId> ended;
  for (const Outcome& o : outcomes)
    if (o.event.is_last()) ended.push_back(o.id);
  scheduler.finish(ended);
  publish_state();  // released blocks are visible before the end of a request is signalled
  for (const Outcome& o : outcomes) {
    if (o.event.is_last())
      finish(o.id, o.event.finish_reason, {});
    else
      entries.at(o.id).on_event(o.id, o.event);
  }
}

void ServingLoop::Impl::fail(const std::vector<RequestId>& ids, const std::string& why) {
  for (const RequestId id : ids)
    if (entries.contains(id)) finish(id, FinishReason::failed, why);
}

// The failed step may have left partial keys and values in the blocks, so no request may find them in the prefix cache.
void ServingLoop::Impl::fail_step(const Step& step, const std::string& why) {
  scheduler.advance(step);
  std::vector<RequestId> all;
  for (const StepItem& item : step.items) {
    scheduler.abort(item.id);
    all.push_back(item.id);
  }
  scheduler.clear_prefix_cache();
  fail(all, why);
}

void ServingLoop::Impl::record_scheduling(const Step& step) {
  for (const StepItem& item : step.items) {
    formats::RequestResult& timing = entries.at(item.id).timing;
    if (!std::isnan(timing.scheduled_s)) continue;
    timing.scheduled_s = now();
    timing.cached_tokens = scheduler.cached_tokens(item.id);
  }
}

void ServingLoop::Impl::record_tokens(const StepResult& result, std::vector<Outcome>& outcomes) {
  const double at = now();
  std::int64_t tokens = 0, prompts = 0;
  for (const SampledToken& s : result.sampled) {
    Entry& entry = entries.at(s.id);
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
    outcomes.push_back({s.id, {.token = s.token}});
    if (timing.output_tokens == entry.max_new_tokens)
      outcomes.push_back({s.id, {.finish_reason = FinishReason::length}});
  }
  const std::lock_guard lock(mutex);
  ++state.steps;
  state.output_tokens += tokens;
  state.prompt_tokens += prompts;
}

// Signals the end of a request that the scheduler has already removed.
void ServingLoop::Impl::finish(RequestId id, FinishReason reason, const std::string& error) {
  executor.end(id);
  auto entry = entries.extract(id);
  TokenEvent event{.finish_reason = reason, .error = error, .timing = std::move(entry.mapped().timing)};
  const bool completed = reason == FinishReason::length || reason == FinishReason::stop;
  event.timing.end_s = completed && event.timing.output_tokens > 0 ? entry.mapped().last_token_s : now();
  if (reason == FinishReason::failed) event.timing.error = error;
  if (reason == FinishReason::cancelled) event.timing.error = "cancelled";
  {
    const std::lock_guard lock(mutex);
    ++(completed ? state.finished : reason == FinishReason::failed ? state.failed : state.cancelled);
    state.scheduler = scheduler.state();
  }
  entry.mapped().on_event(id, event);
  const std::lock_guard lock(mutex);
  if (--in_flight == 0) all_finished.notify_all();
}

void ServingLoop::Impl::publish_state() {
  const std::lock_guard lock(mutex);
  state.scheduler = scheduler.state();
  // A request that still waits after a step waits for blocks or for a running request to finish.
  free_slots = state.scheduler.waiting > 0 ? 0 : std::max(0, settings.max_num_seqs - state.scheduler.running);
  timeline.add(now(), state.scheduler, state.output_tokens);
}

ServingLoop::ServingLoop(SchedulerSettings settings, Executor& executor, int max_queued)
    : impl_(std::make_unique<Impl>(std::move(settings), executor, max_queued)) {}
ServingLoop::~ServingLoop() = default;

RequestId ServingLoop::submit(GenerationRequest request, OnTokenEvent on_event) {
  return impl_->submit(std::move(request), std::move(on_event));
}

void ServingLoop::cancel(RequestId id) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->to_cancel.push_back(id);
  }
  impl_->wake.notify_all();
}

void ServingLoop::drain() {
  std::unique_lock lock(impl_->mutex);
  impl_->stopping = true;
  impl_->all_finished.wait(lock, [&] { return impl_->in_flight == 0; });
}

ServingLoop::State ServingLoop::state() const {
  const std::lock_guard lock(impl_->mutex);
  State state = impl_->state;
  state.scheduler.waiting += impl_->pending;
  return state;
}

std::vector<formats::LoadSample> ServingLoop::take_timeline() {
  const std::lock_guard lock(impl_->mutex);
  return impl_->timeline.take();
}

void ServingLoop::clear_prefix_cache() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->clear_cache = true;
  }
  impl_->wake.notify_all();
}

double ServingLoop::now() const {
  return impl_->now();
}

}  // namespace mw::serve
