// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/server_simulation.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/error.h"

namespace mw::serve {

using formats::RequestResult;

ServerSimulation::ServerSimulation(const SimulatedServer& server, Options options)
    : server_(server), options_(std::move(options)) {
  server_.scheduler.set_outside_queue(this);
}

ServerSimulation::~ServerSimulation() {
  server_.scheduler.set_outside_queue(nullptr);
}

void ServerSimulation::send(std::uint32_t index, const TimedRequest& request, double sent_s) {
  const SentRequest sent{index, sends_++, request.at_s, sent_s, request.prompt_len, request.output_len};
  server_.executor.begin(id_of(sent.position), {});
  unknown_.push(sent);
}

double ServerSimulation::next_s() const {
  switch (phase_) {
    case Phase::running:
      return step_ends_;
    case Phase::ready:
      return now_;
    case Phase::idle:
      break;
  }
  return unknown_.empty() ? kNever : std::max(now_, known_s(unknown_.top()));
}

ServerSimulation::Event ServerSimulation::proceed() {
  event_ = {};
  if (phase_ == Phase::running) {
    end_step();
    return event_;
  }
  now_ = next_s();
  admit_due();
  if (server_.scheduler.is_idle()) {
    busy_ = false;  // no step was planned ahead
    phase_ = Phase::idle;
    return event_;
  }
  begin_step();
  event_.is_step = phase_ != Phase::running;
  return event_;
}

void ServerSimulation::abandon() {
  for (const SentRequest& waiting : std::exchange(known_, {})) server_.executor.end(id_of(waiting.position));
  for (SentQueue* queue : {&unknown_, &ranked_})
    for (; !queue->empty(); queue->pop()) server_.executor.end(id_of(queue->top().position));
  if (phase_ == Phase::running) server_.scheduler.advance(step_);  // nothing is removed within a step
  phase_ = Phase::idle;
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i] >= 0 && !at(first_slot_ + i).is_finished) {
      server_.scheduler.abort(id_of(first_slot_ + i));
      server_.executor.end(id_of(first_slot_ + i));
    }
}

void ServerSimulation::take_results(std::vector<std::pair<std::uint32_t, RequestResult>>& out) {
  for (const std::int32_t slot : slots_) {
    if (slot < 0) continue;
    Kept& k = kept_[static_cast<size_t>(slot)];
    if (k.is_finished) out.emplace_back(k.index, std::move(k.result));
  }
}

ScheduledRequest ServerSimulation::take() {
  const SentRequest sent = ranked_.empty() ? known_.front() : ranked_.top();
  if (ranked_.empty())
    known_.pop_front();
  else
    ranked_.pop();
  RequestResult& r = keep(sent).result;
  r.sent_s = sent.sent_s;
  r.intended_s = options_.arrival == options::Arrival::closed ? sent.sent_s : sent.at_s;
  r.prompt_tokens = sent.prompt_len;
  ScheduledRequest request{.id = id_of(sent.position),
                           .prompt_len = sent.prompt_len,
                           .max_new_tokens = sent.output_len,
                           .arrival_s = sent.sent_s};
  if (server_.settings.prefix_cache == PrefixCache::on && server_.settings.kv_tracking == KvTracking::blocks) {
    const TimedRequest t = options_.restore(sent);
    request.prompt_blocks =
        hash_synthetic_blocks(t.shared_seed, t.shared, t.prompt_seed, t.prompt_len, server_.settings.kv.block_size);
  }
  return request;
}

ServerSimulation::Kept& ServerSimulation::keep(const SentRequest& sent) {
  if (sent.position >= first_slot_ + slots_.size()) slots_.resize(sent.position - first_slot_ + 1, kNotTaken);
  std::int32_t& slot = slots_[sent.position - first_slot_];
  if (vacant_.empty()) {
    slot = static_cast<std::int32_t>(kept_.size());
    kept_.emplace_back();
  } else {
    slot = vacant_.back();
    vacant_.pop_back();
  }
  return kept_[static_cast<size_t>(slot)] = {.index = sent.index, .output_len = sent.output_len};
}

void ServerSimulation::remove(size_t position) {
  std::int32_t& slot = slots_[position - first_slot_];
  vacant_.push_back(std::exchange(slot, kRemoved));
  for (; !slots_.empty() && slots_.front() == kRemoved; slots_.pop_front()) ++first_slot_;
}

bool ServerSimulation::is_known_later(const SentRequest& a, const SentRequest& b) const {
  return std::tuple(known_s(a), a.position) > std::tuple(known_s(b), b.position);
}

// The order of options::SchedulingPolicy::priority, of requests of equal priority.
bool ServerSimulation::ranks_after(const SentRequest& a, const SentRequest& b) const {
  return std::tuple(a.sent_s, known_s(a), a.position) > std::tuple(b.sent_s, known_s(b), b.position);
}

// The scheduler can take the requests that it knew when it planned the next step.
void ServerSimulation::admit_due() {
  const double known_until = busy_ && server_.host.scheduling == plan::Scheduling::ahead ? step_began_ : now_;
  for (; !unknown_.empty() && known_s(unknown_.top()) <= known_until; unknown_.pop()) {
    if (server_.settings.policy == options::SchedulingPolicy::priority)
      ranked_.push(unknown_.top());
    else
      known_.push_back(unknown_.top());
  }
}

void ServerSimulation::begin_step() {
  step_ = server_.scheduler.next();
  phase_ = Phase::ready;
  if (server_.stop_at_preemption && !step_.preempted.empty()) {
    was_preempted_ = true;
    return;
  }
  for (const RequestId id : step_.preempted) ++at(position_of(id)).result.preemptions;
  for (const RequestId id : step_.rejected) reject(position_of(id));
  if (step_.items.empty()) {
    if (step_.rejected.empty() && step_.preempted.empty())
      fail("no request can be scheduled", server_.scheduler.state().waiting);
    return;
  }
  record_admissions(step_.items);
  busy_ = true;
  step_began_ = now_;
  result_ = server_.executor.run(step_, server_.scheduler);
  if (!(result_.seconds >= 0 && std::isfinite(result_.seconds)))
    fail("the time of a step is not finite", result_.seconds);
  step_ends_ = now_ + result_.seconds;
  phase_ = Phase::running;
}

void ServerSimulation::end_step() {
  now_ = step_ends_;
  phase_ = Phase::ready;
  event_.is_step = true;
  server_.scheduler.advance(step_);
  record();
}

// New requests are the last items, possibly mixed with readmitted ones.
void ServerSimulation::record_admissions(const std::vector<StepItem>& items) {
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    RequestResult& r = at(position_of(item->id)).result;
    if (std::isnan(r.scheduled_s)) {
      r.scheduled_s = now_;
      r.cached_tokens = server_.scheduler.cached_tokens(item->id);
    } else if (r.preemptions == 0) {
      return;
    }
  }
}

void ServerSimulation::record() {
  LoadStatistics* const statistics = options_.statistics;
  ended_.clear();
  float gap = 0;  // that most requests of a step have
  std::int64_t equal = 0;
  for (const SampledToken& s : result_.sampled) {
    Kept& kept = at(position_of(s.id));
    RequestResult& r = kept.result;
    if (r.output_tokens++ == 0) {
      r.first_token_s = now_;
      if (!statistics) r.gaps_ms.reserve(static_cast<size_t>(kept.output_len - 1));
    } else if (const auto own = static_cast<float>(1e3 * (now_ - r.end_s)); !statistics) {
      r.gaps_ms.push_back(own);
    } else {
      if (own != gap && equal > 0) statistics->gaps(gap, std::exchange(equal, 0));
      gap = own;
      ++equal;
    }
    r.end_s = now_;
    if (r.output_tokens == kept.output_len) ended_.push_back(s.id);
  }
  const auto sampled = static_cast<std::int64_t>(result_.sampled.size());
  tokens_ += sampled;
  if (statistics) {
    statistics->gaps(gap, equal);
    statistics->tokens(now_, sampled);
  }
  server_.scheduler.finish(ended_);
  for (const RequestId id : ended_) finish(id);
}

void ServerSimulation::reject(size_t position) {
  Kept& kept = at(position);
  RequestResult& r = kept.result;
  r.error = explain_rejection(server_.settings, r.prompt_tokens, kept.output_len);
  if (r.error.empty()) r.error = "the KV cache is too small for the request";
  r.end_s = now_;
  finish(id_of(position));
}

void ServerSimulation::finish(RequestId id) {
  server_.executor.end(id);
  ++event_.ended;
  Kept& kept = at(position_of(id));
  kept.is_finished = true;
  prompt_ += kept.result.completed() ? kept.result.prompt_tokens : 0;
  cached_ += kept.result.cached_tokens;
  if (!options_.statistics) return;
  options_.statistics->finished(static_cast<std::int64_t>(kept.index), kept.result);
  remove(position_of(id));
}

void ServerSimulation::fail(const char* what, double found) const {
  throw Error("SERVE", std::string("the simulated server cannot continue: ") + what, {.found = number_text(found)},
              Error::Kind::failed);
}

}  // namespace mw::serve
