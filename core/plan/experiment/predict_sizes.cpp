// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/predict_sizes.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/prediction/device_memory.h"
#include "core/plan/request/local_model.h"

namespace mw::plan {
namespace {

mesh::ShardingUse use_of(Work work) {
  return work == Work::rollout ? mesh::ShardingUse::sampling : mesh::ShardingUse::training;
}

bool fits(const Request& request) {
  const LocalModel model = local_model(request, use_of(request.work));
  return (request.work == Work::rollout ? rollout_memory(model) : forward_memory(model)).fits();
}

// Memory grows with the batch. 0: not even one row fits.
std::int64_t largest_fitting(const Request& request, const options::Sizing& size, SizeCase too_large) {
  std::int64_t fitting = 0;
  for (std::int64_t above = too_large.batch; above - fitting > 1;) {
    const std::int64_t middle = fitting + (above - fitting) / 2;
    (fits(with_case(request, size, {too_large.workload, middle})) ? fitting : above) = middle;
  }
  return fitting;
}

std::int64_t tokens_of(const Request& request) {
  return request.work == Work::rollout ? request.rollout.batch * request.rollout.new_tokens
                                       : request.forward.batch * request.forward.len;
}

serve::MeasuredSize predicted_point(const Request& request, const SizeCase& size) {
  const Plan plan = predict(request);
  serve::MeasuredSize point;
  point.workload = size.workload;
  point.batch = static_cast<int>(size.batch);
  point.predicted = plan.memory.at_peak;
  point.capacity = plan.memory.capacity;
  if (point.fits()) point.predicted_time = predicted_time(request, plan);
  return point;
}

void check_context(const PredictedSizes& sizes) {
  const options::Sizing& s = sizes.size;
  const int longest = std::max(s.prompt_len + s.new_tokens, s.forward_len), most = sizes.plain.model.max_positions;
  if (most > 0 && longest > most)
    throw Error("CONTEXT", "prompt and answer are longer than the model's context",
                {.place = s.forward_len > s.prompt_len + s.new_tokens ? "size.forward_len" : "size.new_tokens",
                 .found = counted(longest, "token"),
                 .expected = "at most " + std::to_string(most)});
}

}  // namespace

serve::MeasuredSize::PredictedTime predicted_time(const Request& request, const Plan& plan) {
  const Estimate& seconds = plan.step.seconds;
  return {.seconds = seconds.value,
          .low = seconds.low,
          .high = seconds.high,
          .origin = seconds.origin,
          .tokens = tokens_of(request)};
}

PredictedSizes predicted_sizes(const experiment::Experiment& e, const PlanContext& context) {
  PredictedSizes sizes{.size = e.config().size, .cases = {}, .plain = {}, .adapted = {}};
  sizes.cases = size_cases(sizes.size);
  if (sizes.cases.empty())
    throw Error(
        "MISSING", "the list is empty",
        {.place = sizes.size.workloads.empty() ? "size.workloads" : "size.batches", .expected = "at least one"});
  const auto same = [](const SizeCase& a, const SizeCase& b) { return a.workload == b.workload && a.batch == b.batch; };
  std::stable_sort(sizes.cases.begin(), sizes.cases.end(), [](const SizeCase& a, const SizeCase& b) {
    return a.workload == b.workload ? a.batch < b.batch : a.workload < b.workload;
  });
  sizes.cases.erase(std::unique(sizes.cases.begin(), sizes.cases.end(), same), sizes.cases.end());
  experiment::Experiment of_kind = e;
  of_kind.set_value("kind", "size");
  for (const bool adapters : {false, true}) {
    of_kind.set_value("size.adapters", adapters);
    Request& request = adapters ? sizes.adapted : sizes.plain;
    request = plan_request(of_kind, context);
    const Request first = with_case(request, sizes.size, sizes.cases.front());
    require_runnable(of_kind, context, first, predict(first));
  }
  check_context(sizes);
  return sizes;
}

bool predict_sizes(const PredictedSizes& sizes, const std::function<void(const serve::MeasuredSize&)>& report,
                   const std::stop_token& stop) {
  for (size_t begin = 0, end = 0; begin < sizes.cases.size(); begin = end) {
    const options::Workload workload = sizes.cases[begin].workload;
    while (end < sizes.cases.size() && sizes.cases[end].workload == workload) ++end;
    for (const Request* request : {&sizes.plain, &sizes.adapted}) {
      std::optional<std::int64_t> largest;  // the same for all batches that do not fit
      for (size_t i = begin; i < end; ++i) {
        if (stop.stop_requested()) return false;
        const SizeCase& size = sizes.cases[i];
        serve::MeasuredSize point = predicted_point(with_case(*request, sizes.size, size), size);
        point.adapters = request == &sizes.adapted;
        if (!point.fits()) {
          if (!largest) largest = largest_fitting(*request, sizes.size, size);
          point.largest_batch = static_cast<int>(*largest);
        }
        report(point);
      }
    }
  }
  return true;
}

}  // namespace mw::plan
