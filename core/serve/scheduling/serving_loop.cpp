// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/serving_loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/rng.h"
#include "core/serve/scheduling/load_timeline.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t salt_of(const std::string& adapter) {  // the same prompt has other keys and values under an adapter
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
    OnTokenEvent on_answer;
    formats::RequestResult timing;
    double last_token_s = 0;
  };
  struct Outcome {  // of one request in one step, told once the state is consistent
    RequestId id{};
    TokenEvent answered;
  };

  Impl(SchedulerSettings s, Executor& e, int q)
      : settings(std::move(s)), executor(e), queue(q), free_seats(settings.max_num_seqs), scheduler(settings) {
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

  double now() const { return std::chrono::duration<double>(Clock::now() - begun).count(); }

  RequestId submit(GenerationRequest ask, OnTokenEvent on_answer);
  void loop();
  bool wait_for_work();
  void take_in();
  void step();
  void fail(const std::vector<RequestId>& ids, const std::string& why);
  void give_up(const Step& step, const std::string& why);
  void count_step(const Step& step);
  void count_tokens(const StepResult& result, std::vector<Outcome>& outcomes);
  void close(RequestId id, FinishReason end, const std::string& error);
  void publish();

  const SchedulerSettings settings;
  Executor& executor;
  const int queue;
  const Clock::time_point begun = Clock::now();

  mutable std::mutex mutex;  // of what follows, up to the serving thread's own
  std::condition_variable wake, answered_all;
  std::vector<std::pair<ScheduledRequest, Entry>> arrived;
  std::vector<RequestId> to_cancel;
  bool stopping = false, quitting = false, clear_cache = false;
  std::int64_t next_id = 1;
  int in_flight = 0;  // submitted and not answered
  int coming = 0;     // of them, those that the scheduler does not know yet
  int free_seats;     // requests that the next step can take in
  State state;
  LoadTimeline timeline;

  Scheduler scheduler;  // the serving thread's, with `entries`
  std::map<RequestId, Entry> entries;
  std::thread thread;
};

RequestId ServingLoop::Impl::submit(GenerationRequest ask, OnTokenEvent on_answer) {
  const int prompt_len = static_cast<int>(ask.prompt.ids.size());
  if (const std::string why = explain_rejection(settings, prompt_len, ask.max_new_tokens); !why.empty())
    throw Error({.id = "CONTEXT",
                 .message = why,
                 .found = std::to_string(prompt_len) + " tokens of prompt and " + std::to_string(ask.max_new_tokens) +
                          " of answer",
                 .expected = std::to_string(settings.max_model_len) + " together at most",
                 .fix = "send a shorter prompt or ask for fewer tokens"});
  ScheduledRequest request{
      .prompt_len = prompt_len, .max_new_tokens = ask.max_new_tokens, .priority = ask.priority, .arrival_s = now()};
  {
    const std::lock_guard lock(mutex);
    const auto refuse = [&](const std::string& message, const std::string& fix) {
      ++state.refused;
      throw busy(message, fix);
    };
    if (stopping) refuse("the server is stopping", "ask another one");
    const int waiting = state.scheduler.waiting + coming;
    if (waiting >= queue + free_seats)
      refuse("the server's queue is full: " + std::to_string(waiting) + " requests wait", "try again later");
    ++in_flight, ++coming;
    request.id = RequestId{next_id++};
  }
  try {
    executor.begin(request.id, ask.prompt);
  } catch (...) {
    const std::lock_guard lock(mutex);
    --coming;
    if (--in_flight == 0) answered_all.notify_all();
    throw;
  }
  if (settings.prefix_cache == PrefixCache::on)
    request.prompt_blocks = hash_blocks(ask.prompt.ids, settings.kv.block_size, salt_of(ask.prompt.adapter));
  Entry entry{
      .prompt_len = prompt_len, .max_new_tokens = ask.max_new_tokens, .on_answer = std::move(on_answer), .timing = {}};
  entry.timing.intended_s = entry.timing.sent_s = request.arrival_s;
  entry.timing.prompt_tokens = prompt_len;
  const RequestId id = request.id;
  {
    const std::lock_guard lock(mutex);
    arrived.emplace_back(std::move(request), std::move(entry));
  }
  wake.notify_all();
  return id;
}

void ServingLoop::Impl::loop() {
  while (wait_for_work()) {
    take_in();
    if (!scheduler.idle()) step();
    publish();
  }
  take_in();
  std::vector<RequestId> left;
  for (const auto& [id, entry] : entries) left.push_back(id);
  for (const RequestId id : left) {
    scheduler.abort(id);
    close(id, FinishReason::cancelled, {});
  }
  publish();
}

// False: it is to end.
bool ServingLoop::Impl::wait_for_work() {
  std::unique_lock lock(mutex);
  wake.wait(lock,
            [&] { return quitting || clear_cache || !arrived.empty() || !to_cancel.empty() || !scheduler.idle(); });
  return !quitting;
}

void ServingLoop::Impl::take_in() {
  std::vector<std::pair<ScheduledRequest, Entry>> come;
  std::vector<RequestId> gone;
  bool clear = false;
  {
    const std::lock_guard lock(mutex);
    come.swap(arrived);
    gone.swap(to_cancel);
    clear = std::exchange(clear_cache, false);
  }
  if (clear) scheduler.clear_prefix_cache();
  for (auto& [request, entry] : come) {
    entries.emplace(request.id, std::move(entry));
    scheduler.add(std::move(request));
  }
  if (!come.empty()) {
    const std::lock_guard lock(mutex);
    coming -= static_cast<int>(come.size());
    state.scheduler = scheduler.state();
  }
  for (const RequestId id : gone) {
    if (!entries.contains(id)) continue;
    scheduler.abort(id);
    close(id, FinishReason::cancelled, {});
  }
}

void ServingLoop::Impl::step() {
  const Step step = scheduler.next();
  for (const RequestId id : step.preempted)
    if (const auto it = entries.find(id); it != entries.end()) ++it->second.timing.preemptions;
  fail(step.refused, "the request can never fit into the memory for keys and values");
  if (step.items.empty()) {
    // Nothing runs and what waits cannot be admitted: a scheduler must refuse it, but if it does not, do not spin.
    if (step.refused.empty() && step.preempted.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  count_step(step);
  StepResult result;
  try {
    result = executor.run(step, scheduler);
  } catch (const std::exception& error) {
    give_up(step, error.what());
    return;
  }
  scheduler.advance(step);
  std::vector<Outcome> outcomes;
  count_tokens(result, outcomes);
  std::vector<RequestId> ended;
  for (const Outcome& o : outcomes)
    if (o.answered.token < 0) ended.push_back(o.id);
  scheduler.finish(ended);
  publish();  // before anybody hears of it: who asks then sees the blocks free
  for (const Outcome& o : outcomes) {
    if (o.answered.token < 0)
      close(o.id, o.answered.end, {});
    else
      entries.at(o.id).on_answer(o.id, o.answered);
  }
}

void ServingLoop::Impl::fail(const std::vector<RequestId>& ids, const std::string& why) {
  for (const RequestId id : ids)
    if (entries.contains(id)) close(id, FinishReason::failed, why);
}

// What a step that broke off has left in the blocks is not known: nobody may find it in the prefix cache.
void ServingLoop::Impl::give_up(const Step& step, const std::string& why) {
  scheduler.advance(step);
  std::vector<RequestId> all;
  for (const StepItem& item : step.items) {
    scheduler.abort(item.id);
    all.push_back(item.id);
  }
  scheduler.clear_prefix_cache();
  fail(all, why);
}

void ServingLoop::Impl::count_step(const Step& step) {
  for (const StepItem& item : step.items) {
    formats::RequestResult& timing = entries.at(item.id).timing;
    if (!std::isnan(timing.scheduled_s)) continue;
    timing.scheduled_s = now();
    timing.cached_tokens = scheduler.cached_tokens(item.id);
  }
}

void ServingLoop::Impl::count_tokens(const StepResult& result, std::vector<Outcome>& outcomes) {
  const double at = now();
  std::int64_t tokens = 0, prompts = 0;
  for (const StepResult::Sampled& s : result.sampled) {
    Entry& entry = entries.at(s.id);
    formats::RequestResult& timing = entry.timing;
    if (s.ended) {
      outcomes.push_back({s.id, {.end = FinishReason::stop}});
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
    if (timing.output_tokens == entry.max_new_tokens) outcomes.push_back({s.id, {.end = FinishReason::length}});
  }
  const std::lock_guard lock(mutex);
  ++state.steps;
  state.output_tokens += tokens;
  state.prompt_tokens += prompts;
}

// Tells the request's end; the scheduler has forgotten it already.
void ServingLoop::Impl::close(RequestId id, FinishReason end, const std::string& error) {
  executor.end(id);
  auto entry = entries.extract(id);
  TokenEvent answered{.end = end, .error = error, .timing = std::move(entry.mapped().timing)};
  answered.timing.end_s =
      end == FinishReason::length || end == FinishReason::stop ? entry.mapped().last_token_s : now();
  if (answered.timing.output_tokens == 0) answered.timing.end_s = now();
  if (end == FinishReason::failed) answered.timing.error = error;
  if (end == FinishReason::cancelled) answered.timing.error = "cancelled";
  {
    const std::lock_guard lock(mutex);
    ++(end == FinishReason::failed ? state.failed : end == FinishReason::cancelled ? state.cancelled : state.finished);
    state.scheduler = scheduler.state();
  }
  entry.mapped().on_answer(id, answered);
  const std::lock_guard lock(mutex);
  if (--in_flight == 0) answered_all.notify_all();
}

void ServingLoop::Impl::publish() {
  const std::lock_guard lock(mutex);
  state.scheduler = scheduler.state();
  // Who waits although a step has just been made waits for blocks, or for one of those that run.
  free_seats = state.scheduler.waiting > 0 ? 0 : std::max(0, settings.max_num_seqs - state.scheduler.running);
  timeline.add(now(), state.scheduler, state.output_tokens);
}

ServingLoop::ServingLoop(SchedulerSettings settings, Executor& executor, int queue)
    : impl_(std::make_unique<Impl>(std::move(settings), executor, queue)) {}
ServingLoop::~ServingLoop() = default;

RequestId ServingLoop::submit(GenerationRequest ask, OnTokenEvent on_answer) {
  return impl_->submit(std::move(ask), std::move(on_answer));
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
  impl_->answered_all.wait(lock, [&] { return impl_->in_flight == 0; });
}

ServingLoop::State ServingLoop::state() const {
  const std::lock_guard lock(impl_->mutex);
  State state = impl_->state;
  state.scheduler.waiting += impl_->coming;
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
