// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/sizing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/generate/scorer.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRepeatUntil = 1.0;  // s; shorter points are repeated and their median is reported
constexpr int kMaxRepeats = 5;
constexpr long kProgressTotal = 1000;

std::vector<int> random_ids(std::uint64_t seed, std::uint64_t row, int count, int vocab) {
  const Rng rng{seed, 0x73697a65, row};
  std::vector<int> ids;
  for (int i = 0; i < count; ++i)
    ids.push_back(static_cast<int>(rng.at(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(vocab)));
  return ids;
}

// Relative cost of a point, for progress reports: operations, and the weights that every decode step reads.
double expected_work(const SizingRequest& r, options::Workload workload, int batch) {
  constexpr double kReadCost = 20;  // operations in the time of reading one weight
  const SizingSettings& s = r.settings;
  const double weights = static_cast<double>(model::TensorInventory(r.config).parameters());
  const double operations = 2 * weights, rows = batch;
  if (workload == options::Workload::rollout)
    return s.new_tokens * (kReadCost * weights + rows * operations) + rows * s.prompt_len * operations;
  return rows * (s.prompt_len + s.new_tokens) * operations;
}

class SizingRunner {
 public:
  SizingRunner(const SizingRequest& request, const SizingCallbacks& callbacks, std::stop_token stop)
      : request_(request), settings_(request.settings), callbacks_(callbacks), stop_(std::move(stop)) {
    for (const options::Workload workload : settings_.workloads)
      for (const int batch : settings_.batches)
        if (predicted(workload, batch).total() <= request_.capacity)
          total_work_ += expected_work(request_, workload, batch);
  }

  bool run() {
    for (const options::Workload workload : settings_.workloads)
      for (const int batch : settings_.batches) {
        if (callbacks_.before_point) callbacks_.before_point();
        if (stop_.stop_requested()) return false;
        MeasuredSize point{.workload = workload,
                           .batch = batch,
                           .adapters = !request_.model.lora.empty(),
                           .predicted = predicted(workload, batch),
                           .capacity = request_.capacity,
                           .largest_batch = 0,
                           .measured = std::nullopt,
                           .predicted_time = std::nullopt,
                           .error = {}};
        if (!point.fits())
          point.largest_batch = largest_fitting(workload, batch);
        else if (!measure(point))
          return false;
        callbacks_.point(point);
      }
    return true;
  }

 private:
  Ledger predicted(options::Workload workload, int batch) const {
    if (workload == options::Workload::rollout)
      return plan::predict_memory(request_.config, request_.model,
                                  engine::GenerationWork{batch, settings_.prompt_len, settings_.new_tokens})
          .at_peak;
    const bool chunked = workload == options::Workload::chunked_forward;
    return plan::predict_memory(request_.config, request_.model,
                                engine::ScoringWork{batch, settings_.prompt_len + settings_.new_tokens,
                                                    chunked ? settings_.chunk : 0, chunked ? settings_.top_k : 0})
        .at_peak;
  }

  // The largest batch that fits, below one that does not; 0: none.
  int largest_fitting(options::Workload workload, int too_large) const {
    int fits = 0;
    while (too_large - fits > 1) {
      const int middle = fits + (too_large - fits) / 2;
      (predicted(workload, middle).total() <= request_.capacity ? fits : too_large) = middle;
    }
    return fits;
  }

  // Returns false if it was stopped.
  bool measure(MeasuredSize& point) {
    phase_ = std::string(to_string(point.workload)) + ", batch " + std::to_string(point.batch);
    progress(0);
    if (!network_) network_ = &request_.network();
    std::vector<MeasuredSize::Measured> times;
    try {
      network_->release_step_memory();
      network_->device().arena.reset_peak();
      for (double spent = 0; times.empty() || (spent < kRepeatUntil && times.size() < kMaxRepeats);) {
        const auto once = point.workload == options::Workload::rollout ? rollout(point.batch) : forward(point);
        if (!once) return false;
        times.push_back(*once);
        spent += once->seconds;
      }
    } catch (const Error& error) {
      if (error.problem().id != "MEMORY") throw;
      point.error = error.what();  // predicted too little, or the machine has less memory than it reports
    }
    work_ += expected_work(request_, point.workload, point.batch);
    progress(0);
    if (!point.error.empty()) return true;
    std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    point.measured = times[times.size() / 2];
    point.measured->repeats = static_cast<int>(times.size());
    point.measured->memory = network_->device().arena.use().at_peak;
    network_->release_step_memory();
    return true;
  }

  std::optional<MeasuredSize::Measured> rollout(int batch) {
    std::vector<std::vector<int>> prompts;
    for (int row = 0; row < batch; ++row)
      prompts.push_back(
          random_ids(settings_.seed, static_cast<std::uint64_t>(row), settings_.prompt_len, request_.config.vocab));
    MeasuredSize::Measured m;
    const auto start_time = Clock::now();
    const double work = expected_work(request_, options::Workload::rollout, batch);
    engine::Sampler(*network_).generate_batch(
        prompts, {.max_new_tokens = settings_.new_tokens}, stop_, [&](int row, int) {
          if (++m.tokens == batch) m.prefill_seconds = seconds_since(start_time);
          if (row == 0)
            progress(work * static_cast<double>(m.tokens) / static_cast<double>(batch) / settings_.new_tokens);
          return true;
        });
    m.seconds = seconds_since(start_time);
    if (m.tokens < std::int64_t{batch} * settings_.new_tokens) return std::nullopt;
    if (settings_.new_tokens > 1) m.step_seconds = (m.seconds - m.prefill_seconds) / (settings_.new_tokens - 1);
    return m;
  }

  std::optional<MeasuredSize::Measured> forward(const MeasuredSize& point) {
    const bool chunked = point.workload == options::Workload::chunked_forward;
    const int len = settings_.prompt_len + settings_.new_tokens, batch = point.batch;
    std::vector<int> ids, targets, positions, segments(static_cast<size_t>(batch) * static_cast<size_t>(len), 0);
    for (int row = 0; row < batch; ++row) {
      const auto text = random_ids(settings_.seed, static_cast<std::uint64_t>(row), len + 1, request_.config.vocab);
      ids.insert(ids.end(), text.begin(), text.end() - 1);
      targets.insert(targets.end(), text.begin() + 1, text.end());
      for (int i = 0; i < len; ++i) positions.push_back(i);
    }
    const double work = expected_work(request_, point.workload, batch);
    MeasuredSize::Measured m;
    m.tokens = std::int64_t{batch} * len;
    const auto start_time = Clock::now();
    const auto scores = engine::Scorer(*network_).score(
        {batch, len, ids, targets, positions, segments},
        {.chunk = chunked ? settings_.chunk : 0, .top_k = chunked ? settings_.top_k : 0}, stop_,
        [&](long done) { progress(work * static_cast<double>(done) / static_cast<double>(m.tokens)); });
    if (!scores) return std::nullopt;
    m.seconds = seconds_since(start_time);
    return m;
  }

  void progress(double of_point) {
    if (!callbacks_.progress || total_work_ <= 0) return;
    share_ = std::max(share_, std::min(1.0, (work_ + of_point) / total_work_));  // repeats do not reduce it
    callbacks_.progress(phase_, std::lround(share_ * kProgressTotal), kProgressTotal);
  }

  const SizingRequest& request_;
  const SizingSettings& settings_;
  const SizingCallbacks& callbacks_;
  std::stop_token stop_;
  engine::Network* network_ = nullptr;
  std::string phase_;
  double total_work_ = 0, work_ = 0, share_ = 0;
};

}  // namespace

Json to_json(const MeasuredSize& p) {
  Json predicted{{"fits", p.fits()}, {"capacity_bytes", p.capacity.value}, {"memory", to_json(p.predicted)}};
  if (!p.fits()) predicted["largest_batch"] = p.largest_batch;
  if (p.predicted_time) {
    const MeasuredSize::PredictedTime& t = *p.predicted_time;
    predicted.update({{"seconds", t.seconds},
                      {"seconds_low", t.low},
                      {"seconds_high", t.high},
                      {"origin", to_string(t.origin)},
                      {"tokens", t.tokens},
                      {"seconds_per_token", t.seconds_per_token()},
                      {"tokens_per_second", t.tokens_per_second()}});
  }
  Json measured = nullptr;
  if (p.measured) {
    const MeasuredSize::Measured& m = *p.measured;
    measured = {{"seconds", m.seconds},
                {"tokens", m.tokens},
                {"seconds_per_token", m.seconds_per_token()},
                {"tokens_per_second", m.tokens_per_second()},
                {"repeats", m.repeats},
                {"memory", to_json(m.memory)}};
    if (p.workload == options::Workload::rollout)
      measured.update({{"prefill_seconds", m.prefill_seconds}, {"step_seconds", m.step_seconds}});
  }
  Json out{{"mode", to_string(p.workload)},
           {"batch", p.batch},
           {"adapters", p.adapters},
           {"predicted", predicted},
           {"measured", measured}};
  if (!p.error.empty()) out["error"] = p.error;
  return out;
}

bool measure_sizes(const SizingRequest& request, const SizingCallbacks& callbacks, std::stop_token stop) {
  return SizingRunner(request, callbacks, std::move(stop)).run();
}

}  // namespace mw::serve
