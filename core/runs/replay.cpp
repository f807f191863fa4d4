// SPDX-License-Identifier: Apache-2.0
#include "core/runs/replay.h"

#include <algorithm>
#include <cmath>

#include "core/runs/plan_request.h"
#include "core/runs/sweep_run.h"
#include "core/serve/model_backend.h"

namespace mw::runs {
namespace {

std::unique_ptr<serve::Backend> server_of(const Experiment& e, const hardware::Catalogue& catalogue) {
  const plan::Request request = plan_request(e, catalogue);
  return serve::model_backend(request, scheduler_settings(e));
}

// One user; what replayed prompts find in the cache is what an earlier round of them left.
formats::BenchPoint alone(const serve::SweepSettings& sweep, const LoadPoint& point, serve::Backend& backend) {
  serve::LoadSettings settings = sweep.load;
  settings.arrival = serve::Arrival::closed;
  settings.concurrency = 1;
  settings.input_len = point.input_len;
  const serve::Load load = serve::make_load(settings);
  if (settings.prompts == serve::Prompts::replayed) backend.play(load, {}, {});
  return serve::summarise(load, backend.play(load, {}, {}), sweep.slo);
}

serve::Load load_of(const std::vector<serve::Recorded>& requests, std::uint64_t seed) {
  serve::Load load;
  load.settings.num_prompts = static_cast<int>(requests.size());
  load.settings.request_rate = formats::kUnknown;
  load.settings.lengths = serve::LengthLaw::recorded;
  load.settings.seed = seed;
  double prompts = 0, answers = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const serve::Recorded& r = requests[i];
    // Neighbouring integers as seeds would do: what is made of them is hashed.
    load.requests.push_back({.id = static_cast<std::int64_t>(i),
                             .at_s = r.at_s,
                             .prompt_len = r.prompt_len,
                             .output_len = r.output_len,
                             .prompt_seed = seed + i});
    prompts += r.prompt_len, answers += r.output_len;
  }
  const auto n = static_cast<double>(requests.size());
  load.settings.input_len = static_cast<int>(std::lround(prompts / n));
  load.settings.output_len = static_cast<int>(std::lround(answers / n));
  const double span = requests.back().at_s - requests.front().at_s;
  load.settings.request_rate = span > 0 ? (n - 1) / span : std::numeric_limits<double>::infinity();
  return load;
}

formats::BenchPoint play(const serve::Load& load, const Experiment& server, const hardware::Catalogue& catalogue) {
  const auto backend = server_of(server, catalogue);
  return serve::summarise(load, backend->play(load, {}, {}), sweep_settings(server).slo);
}

Error nothing_recorded(const std::string& found) {
  return Error({.id = "REPLAY",
                .message = "no requests were recorded at this point",
                .place = "requests",
                .found = found,
                .expected = "requests with their lengths and times",
                .fix = "save results in detail (vllm bench: --save-detailed)"});
}

}  // namespace

formats::BenchPoint simulated_point(const Experiment& e, const LoadPoint& point, const hardware::Catalogue& catalogue,
                                    Queueing queueing) {
  serve::SweepSettings sweep = sweep_settings(e);
  const auto backend = server_of(e, catalogue);
  if (queueing == Queueing::none) return alone(sweep, point, *backend);
  std::erase_if(sweep.request_rates, [&](double rate) { return rate >= point.request_rate; });
  sweep.request_rates.push_back(point.request_rate);
  sweep.input_lens = {point.input_len};
  sweep.repeats = 1;
  formats::BenchPoint last;
  serve::run_sweep(sweep, *backend, {}, {.point = [&](const formats::BenchPoint& p) { last = p; }}, {});
  return last;
}

Experiment counterfactual(Experiment e, const std::vector<std::pair<std::string, std::string>>& changes,
                          const hardware::Catalogue& catalogue) {
  for (const auto& [key, value] : changes)
    if (key == "target.id")
      retarget(e, value, catalogue);
    else
      e.set(key, value);
  return e;
}

Replayed replay(const formats::BenchPoint& recorded, const Experiment& server, const hardware::Catalogue& catalogue) {
  Replayed out{.recorded = recorded, .predicted = {}, .notes = {}};
  std::vector<serve::Recorded> requests;
  for (const formats::RequestResult& r : recorded.requests)
    if (r.completed() && r.prompt_tokens > 0 && r.output_tokens > 0)
      requests.push_back({.at_s = r.intended_s, .prompt_len = r.prompt_tokens, .output_len = r.output_tokens});
  if (requests.empty()) throw nothing_recorded(std::to_string(recorded.requests.size()) + " requests");
  std::stable_sort(requests.begin(), requests.end(), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  if (const size_t lost = recorded.requests.size() - requests.size(); lost > 0)
    out.notes.push_back(std::to_string(lost) + " requests that failed are left out");
  if (recorded.prefix_hits > 0)
    out.notes.push_back("the recorded server found " + number_text(100 * recorded.prefix_hits, 3) +
                        " % of the prompts in its prefix cache; prompts' texts are not recorded, here each is new");
  if (std::isnan(recorded.request_rate) && recorded.max_concurrency > 0)
    out.notes.push_back(
        "a closed loop was recorded: its times are kept, although another server would have been sent "
        "the next request sooner or later");
  out.predicted = play(load_of(requests, 1), server, catalogue);
  return out;
}

Replayed replay(const std::vector<serve::Recorded>& workload, const Experiment& server,
                const hardware::Catalogue& catalogue) {
  if (workload.empty()) throw nothing_recorded("an empty workload");
  const serve::Load load = load_of(workload, 1);
  Replayed out;
  out.recorded.num_prompts = static_cast<long>(workload.size());
  out.recorded.input_len = load.settings.input_len;
  out.recorded.output_len = load.settings.output_len;
  out.recorded.request_rate = load.settings.request_rate;
  out.predicted = play(load, server, catalogue);
  return out;
}

}  // namespace mw::runs
