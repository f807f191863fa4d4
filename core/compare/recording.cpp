// SPDX-License-Identifier: Apache-2.0
#include "core/compare/recording.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/results/bench_import.h"
#include "core/import/import_files.h"
#include "core/plan/document/engine_request.h"
#include "core/serve/load/load.h"
#include "core/serve/load/simulated_backend.h"

namespace mw::compare {
namespace {

Error nothing_recorded(const std::string& file, const std::string& found) {
  return Error("REPLAY", "no requests are recorded; a replay needs the lengths and the arrival time of each request",
               {.file = file,
                .place = "requests",
                .found = found,
                .expected = "results with their requests, or a workload",
                .fix = "save results in detail (vllm bench: --save-detailed)"});
}

bool has_usable_requests(const formats::BenchPoint& p) {
  return std::any_of(p.requests.begin(), p.requests.end(),
                     [](const auto& r) { return r.completed() && r.prompt_tokens > 0 && r.output_tokens > 0; });
}

// Copies conditions of the set to keys that the document does not set. Ignores unknown values.
void fill_in(experiment::Experiment& e, const formats::BenchSet& set) {
  constexpr std::pair<const char*, const char*> kKeys[] = {{"kv_dtype", "serve.kv_dtype"},
                                                           {"weight_dtype", "train.dtype"},
                                                           {"prefix_cache", "serve.prefix_cache"},
                                                           {"chunked_prefill", "serve.chunked_prefill"},
                                                           {"sliding_window_kv", "serve.sliding_window_kv"},
                                                           {"block_size", "serve.block_size"},
                                                           {"max_num_seqs", "serve.max_num_seqs"},
                                                           {"max_num_batched_tokens", "serve.max_num_batched_tokens"},
                                                           {"max_model_len", "serve.max_model_len"},
                                                           {"tp", "mesh.tp"}};
  const bool no_mesh = e.valid_values().mesh.axes.empty();
  for (const auto& [condition, key] : kKeys) {
    const auto recorded = set.conditions.find(condition);
    const bool axis = std::string_view(key).starts_with("mesh.");
    if (recorded == set.conditions.end() || (axis ? !no_mesh : e.has(key))) continue;
    std::string text = recorded->second.substr(0, recorded->second.find_first_of(" _"));  // "fp8_e5m2 (claimed)"
    if (text == "on") text = "true";
    if (text == "off") text = "false";
    try {
      e.set(key, text);
    } catch (const Error&) {  // a value of another tool: keeps the default
    }
  }
}

Recording recording_of(formats::BenchSet set, experiment::Experiment server, const std::string& file) {
  Recording out;
  const options::Sweep sweep = server.valid_values().sweep;
  out.shared_prefix = sweep.shared_prefix;
  out.shared_prefixes = sweep.shared_prefixes;
  out.server = std::move(server);
  const size_t all = set.points.size();
  std::erase_if(set.points, [](const auto& p) { return !has_usable_requests(p); });
  out.summaries = all - set.points.size();
  if (set.points.empty()) throw nothing_recorded(file, counted(all, "point") + " without requests");
  out.set = std::move(set);
  return out;
}

// Converts a workload to a point with lengths and arrival times but no results.
formats::BenchSet set_of(const std::vector<serve::RecordedRequest>& workload, const std::filesystem::path& file) {
  formats::BenchPoint p;
  double prompts = 0, answers = 0;
  for (const serve::RecordedRequest& r : workload) {
    formats::RequestResult request;
    request.intended_s = request.sent_s = r.at_s;
    request.prompt_tokens = r.prompt_len, request.output_tokens = r.output_len;
    p.requests.push_back(std::move(request));
    prompts += r.prompt_len, answers += r.output_len;
  }
  const auto n = static_cast<double>(workload.size());
  p.num_prompts = static_cast<long>(workload.size());
  p.input_len = static_cast<int>(std::lround(prompts / n));
  p.output_len = static_cast<int>(std::lround(answers / n));
  const double span = workload.back().at_s - workload.front().at_s;
  p.request_rate = span > 0 ? (n - 1) / span : std::numeric_limits<double>::infinity();
  return {.name = file.stem().string(), .tool = "workload", .source = file.string(), .points = {std::move(p)}};
}

}  // namespace

long Recording::requests() const {
  long n = 0;
  for (const auto& p : set.points) n += static_cast<long>(p.requests.size());
  return n;
}

std::optional<size_t> Recording::index_of(const formats::BenchPoint& point) const {
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (size_t i = 0; i < set.points.size(); ++i) {
    const formats::BenchPoint& p = set.points[i];
    if (p.input_len == point.input_len && same(p.request_rate, point.request_rate) &&
        p.max_concurrency == point.max_concurrency && same(p.duration_s, point.duration_s))
      return i;
  }
  return std::nullopt;
}

experiment::Experiment server_of(const ComparedRun& run) {
  experiment::Experiment e =
      run.experiment.has("kind") || !run.sweep ? run.experiment : importing::experiment_of(run.sweep->set);
  if (run.sweep) fill_in(e, run.sweep->set);
  return e;
}

bool has_requests(const ComparedRun& run) {
  return run.sweep && std::any_of(run.sweep->set.points.begin(), run.sweep->set.points.end(), has_usable_requests);
}

Recording recording_of(const ComparedRun& run) {
  if (!run.sweep) throw nothing_recorded(run.id, "a training run");
  formats::BenchSet set = run.sweep->set;
  set.name = run.name;
  if (set.source.empty()) set.source = run.id;
  return recording_of(std::move(set), server_of(run), run.id);
}

Recording recording_of(const std::filesystem::path& file) {
  std::optional<std::vector<formats::BenchSet>> results;
  try {
    results = formats::read_bench(file);
  } catch (const Error&) {  // not a result file: reads it as a workload
  }
  if (!results) return recording_of(set_of(serve::read_workload(file), file), {}, file.string());
  std::erase_if(*results, [](const formats::BenchSet& s) {
    return std::none_of(s.points.begin(), s.points.end(), has_usable_requests);
  });
  if (results->empty()) throw nothing_recorded(file.string(), "results without their requests");
  if (results->size() > 1)
    throw Error("REPLAY", "the file has more than one result",
                {.file = file.string(),
                 .found = counted(results->size(), "set") + " with requests",
                 .expected = "one",
                 .fix = "import the file and replay one of the runs"});
  formats::BenchSet& set = results->front();
  experiment::Experiment server = importing::experiment_of(set);
  fill_in(server, set);
  return recording_of(std::move(set), std::move(server), file.string());
}

namespace {

bool same_engine(const experiment::BoundExperiment& recorded, const experiment::BoundExperiment& server) {
  const auto parts = [](const experiment::BoundExperiment& config) {
    return std::tuple(config.model.id, config.model.path, config.target.id, config.target.threads, config.train.dtype,
                      config.serve.adapters, config.lora.adapter);
  };
  return server.target.id == "cpu" && parts(recorded) == parts(server);
}

}  // namespace

std::optional<RecordedSteps> RecordedSteps::of(const Recording& recording, const experiment::Experiment& server) {
  std::vector<formats::TimedStep> steps;
  for (const formats::BenchPoint& point : recording.set.points)
    steps.insert(steps.end(), point.steps.begin(), point.steps.end());
  const experiment::BoundExperiment serving = server.config();
  if (steps.size() < 2 * serve::MeasuredStepModel::kTerms || !same_engine(recording.server.valid_values(), serving))
    return std::nullopt;
  const model::Config config = formats::read_config(serving.model.path);
  RecordedSteps out(steps, config, plan::engine_server(serving, config));
  for (const formats::TimedStep& s : steps) out.seconds_ += s.count * s.seconds, out.steps_ += s.count;
  return out;
}

RecordedSteps::RecordedSteps(std::vector<formats::TimedStep> steps, model::Config config,
                             serve::SchedulerSettings settings)
    : steps_of_all_(std::move(steps)),
      model_(serve::MeasuredStepModel(steps_of_all_).scaled_to(steps_of_all_)),
      settings_(std::move(settings)),
      made_(std::make_unique<serve::ReplayExecutor>(serve::ReplayStepModel(model_, {}), std::move(config))),
      executor_(made_.get()) {}

jobs::BackendParts RecordedSteps::parts() {
  jobs::BackendParts parts;
  parts.backend = serve::make_simulated_backend(std::move(made_), settings_);
  parts.conditions["kv_dtype"] = "f32";  // the engine's type, regardless of the document
  parts.conditions["max_model_len"] = std::to_string(settings_.max_model_len);
  parts.conditions["calibration"] =
      "the recording's own " + counted(std::lround(steps_), "step") + " in " + number_text(seconds_, 3) + " s";
  parts.notes.push_back(
      "all values are predicted from recorded steps; each load uses its own steps first, in their order; model of all "
      "steps: " +
      model_.describe());
  return parts;
}

void RecordedSteps::take_speed_of(const formats::BenchPoint& point, const serve::Load& load) {
  executor_->use(serve::ReplayStepModel::fit_load(point.steps, steps_of_all_), load);
}

}  // namespace mw::compare
