// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/jobs/job.h"
#include "core/present/table.h"
#include "core/train/settings.h"

namespace mw::jobs {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostTrials = 1000;
constexpr long kEnd = std::numeric_limits<long>::max();  // a rung: the end of a run
constexpr const char* kTuneFile = "tune.json";

[[noreturn]] void refuse_tuning(const std::string& message, const std::string& place, const std::string& found,
                                const std::string& expected) {
  throw Error("TUNE", message, {.place = place, .found = found, .expected = expected});
}

// Splits at commas outside brackets and quotes.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (!is_quoted) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0 && !is_quoted)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

std::optional<VariedKey::Range> parse_range(std::string_view text) {
  VariedKey::Range range;
  range.is_log = text.starts_with("log:");
  if (range.is_log) text.remove_prefix(4);
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto low = parse_number<double>(text.substr(0, dots)), high = parse_number<double>(text.substr(dots + 2));
  if (!low || !high) return std::nullopt;
  range.low = *low, range.high = *high;
  return range;
}

bool is_integer(const std::string& key) {
  const experiment::Parameter* p = experiment::find_parameter(key);
  return p && p->type == experiment::ParamType::integer;
}

// The value of a key in a trial: draw `index` of the key's stream.
std::string drawn_value(const VariedKey& varied, const Rng& rng, std::uint64_t index) {
  const double share = static_cast<double>(rng.at(index) >> 11) * 0x1p-53;
  if (!varied.range) {
    const auto count = static_cast<double>(varied.values.size());
    return varied.values[std::min(varied.values.size() - 1, static_cast<size_t>(share * count))];
  }
  const VariedKey::Range& r = *varied.range;
  const double value = r.is_log ? r.low * std::pow(r.high / r.low, share) : r.low + (r.high - r.low) * share;
  if (is_integer(varied.key)) return std::to_string(std::llround(value));
  return number_text(value, 6);
}

std::vector<std::vector<std::string>> grid_trials(const std::vector<VariedKey>& keys) {
  std::vector<std::vector<std::string>> trials{{}};
  for (const VariedKey& varied : keys) {
    if (varied.range)
      refuse_tuning("a grid needs values, not a range", varied.key, "a range",
                    "values, or the method random or halving");
    std::vector<std::vector<std::string>> longer;
    for (const auto& sets : trials)
      for (const std::string& value : varied.values) {
        longer.push_back(sets);
        longer.back().push_back(varied.key + "=" + value);
      }
    trials = std::move(longer);
    if (trials.size() > kMostTrials)
      refuse_tuning("the grid has too many trials", varied.key, "more than " + std::to_string(kMostTrials),
                    "fewer values, or the method random");
  }
  return trials;
}

// Without repetitions, unless the values have no more combinations.
std::vector<std::vector<std::string>> random_trials(const std::vector<VariedKey>& keys, const TuneOptions& options) {
  constexpr std::uint64_t kStream = 0x74756e65, kMostDraws = 100;
  std::vector<std::vector<std::string>> trials;
  std::set<std::vector<std::string>> known;
  const auto wanted = static_cast<size_t>(options.trials);
  for (std::uint64_t draw = 0; trials.size() < wanted && draw < kMostDraws * wanted; ++draw) {
    std::vector<std::string> sets;
    for (size_t k = 0; k < keys.size(); ++k)
      sets.push_back(keys[k].key + "=" + drawn_value(keys[k], Rng{options.seed, kStream, k}, draw));
    if (known.insert(sets).second) trials.push_back(std::move(sets));
  }
  return trials;
}

bool is_larger_better(const std::string& metric) {
  return metric == "eval/answers_right";
}

// The metric whose arrival says that the step has been evaluated: the last one that an evaluation emits.
std::string last_metric_of_evaluation(const TuneOptions& options, const experiment::BoundExperiment& config) {
  if (options.metric == "train/loss") return options.metric;
  return config.train.keep_best == options::KeepBest::answers ? "eval/answers_right" : "eval/loss";
}

void check_metric(const TuneOptions& options, const experiment::BoundExperiment& config) {
  static constexpr const char* kMetrics[] = {"eval/loss", "train/loss", "eval/answers_right"};
  if (std::find(std::begin(kMetrics), std::end(kMetrics), options.metric) == std::end(kMetrics))
    refuse_tuning("trials are not compared by this metric", "--metric", options.metric,
                  "eval/loss, train/loss or eval/answers_right");
  if (options.metric == "eval/answers_right" && config.train.answers == 0)
    refuse_tuning("no answers are scored", "--metric", "train.answers is 0", "train.answers above 0");
  if (options.method != TuneMethod::halving) return;
  if (config.train.epochs > 0)
    refuse_tuning("halving needs the number of steps before the data are read", "train.epochs",
                  number_text(config.train.epochs), "train.steps");
  if (options.metric != "train/loss" && config.train.eval_every == 0)
    refuse_tuning("halving compares evaluations during the runs", "train.eval_every", "0", "a number above 0");
  if (options.metric == "eval/answers_right" && config.train.keep_best != options::KeepBest::answers)
    refuse_tuning("answers are scored during the runs only if they decide the best checkpoint", "train.keep_best",
                  std::string(to_string(config.train.keep_best)), "answers");
}

Json options_json(const TuneOptions& o) {
  return {{"varied", o.varied}, {"method", to_string(o.method)},
          {"trials", o.trials}, {"reduction", o.reduction},
          {"seed", o.seed},     {"metric", o.metric}};
}

TuneOptions options_of(const Json& json, const std::string& file) {
  TuneOptions o;
  for (const Json& text : list_member(json, "varied", file))
    if (text.is_string()) o.varied.push_back(text.get<std::string>());
  o.method = parse<TuneMethod>(string_member(json, "method", file)).value_or(TuneMethod::grid);
  o.trials = static_cast<long>(int_member(json, "trials", file));
  o.reduction = static_cast<int>(int_member(json, "reduction", file));
  o.seed = static_cast<std::uint64_t>(int_member(json, "seed", file));
  o.metric = string_member(json, "metric", file);
  return o;
}

class Tuning {
 public:
  Tuning(const TuneRequest& request, std::stop_token stop)
      : request_(request), store_(request.runs_folder), stop_(std::move(stop)) {
    if (request.resume)
      open(*request.resume);
    else
      create();
    save();
  }

  TuneReport run() {
    if (request_.on_id) request_.on_id(report_.id);
    store_.recover();
    std::vector<size_t> going(report_.trials.size());
    std::iota(going.begin(), going.end(), size_t{0});
    const size_t rungs = rungs_.empty() ? 0 : rungs_.front().size();
    for (size_t rung = 0; rung < rungs && report_.state == RunState::done; ++rung) {
      for (size_t i = 0; i < going.size() && report_.state == RunState::done; ++i) {
        if (stop_.stop_requested())
          report_.state = RunState::cancelled;
        else
          run_until(going[i], rung);
      }
      if (report_.state != RunState::done) break;
      sort_by_value(going);
      if (rung + 1 < rungs)
        going.resize(std::max<size_t>(1, going.size() / static_cast<size_t>(report_.options.reduction)));
    }
    if (!going.empty() && report_.state == RunState::done && report_.trials[going.front()].value)
      report_.best = going.front();
    has_ended_ = report_.state == RunState::done;
    save();
    return report_;
  }

 private:
  void create() {
    report_.options = request_.options;
    base_ = request_.experiment;
    prepare();
    for (int n = 1;; ++n) {
      report_.id = "tune-" + std::to_string(n);
      folder_ = request_.runs_folder / report_.id;
      if (make_new_folder(folder_)) break;
    }
    lock_ = std::make_unique<store::RunLock>(folder_, report_.id);
  }

  void open(const std::string& id) {
    report_.id = id;
    folder_ = request_.runs_folder / id;
    const fs::path file = folder_ / kTuneFile;
    if (!id.starts_with("tune-") || id.find('/') != std::string::npos || !is_file(file))
      throw Error("TUNE-UNKNOWN", "the tuning does not exist",
                  {.file = request_.runs_folder.string(),
                   .place = id,
                   .fix = "`meshwright tune` prints the id when it starts; it is the tag of its runs"});
    lock_ = std::make_unique<store::RunLock>(folder_, report_.id);
    const Json json = read_json(file);
    report_.options = options_of(member(json, "options", file.string()), file.string());
    base_ = experiment::Experiment::from_json(member(json, "experiment", file.string()),
                                              string_member(json, "folder", file.string()));
    prepare();
    const Json& runs = list_member(json, "runs", file.string());
    for (size_t i = 0; i < std::min(runs.size(), report_.trials.size()); ++i)
      if (runs[i].is_string()) report_.trials[i].run = runs[i].get<std::string>();
  }

  // Checks every trial before the first one starts.
  void prepare() {
    const TuneOptions& options = report_.options;
    const experiment::BoundExperiment config = base_.config();
    if (config.kind != experiment::Kind::train)
      refuse_tuning("only training runs are tuned", "kind", std::string(to_string(config.kind)), "train");
    check_metric(options, config);
    for (std::vector<std::string>& sets : tune_trials(options)) {
      report_.trials.push_back({.sets = sets});
      const experiment::BoundExperiment trial = experiment_of(report_.trials.size() - 1).config();
      train::require_weights(train::train_settings(trial).model);
      planned_steps_.push_back(trial.train.epochs > 0 ? 0 : trial.train.rate.steps);
      rungs_.push_back(options.method == TuneMethod::halving
                           ? tune_rungs(options, trial.train.rate.steps, trial.train.eval_every)
                           : std::vector<long>{kEnd});
    }
    if (std::any_of(rungs_.begin(), rungs_.end(), [&](const auto& own) { return own.size() != rungs_[0].size(); }))
      refuse_tuning("the trials cannot be compared at the same steps", "--vary", "different steps or evaluations",
                    "other keys, or the method grid or random");
  }

  experiment::Experiment experiment_of(size_t trial) const {
    experiment::Experiment e = base_;
    experiment::apply_sets(e, report_.trials[trial].sets);
    return e;
  }

  // Whole or not at all, before the first event of each run: a run that a killed process began is found again.
  void save() const {
    Json runs = Json::array();
    for (const TuneTrial& trial : report_.trials) runs.push_back(trial.run);
    const Json json{{"schema", 1},
                    {"options", options_json(report_.options)},
                    {"experiment", base_.json()},
                    {"folder", base_.folder().string()},
                    {"ended", has_ended_},
                    {"runs", runs}};
    write_file_atomically(folder_ / kTuneFile, json.dump(2) + "\n");
  }

  void run_until(size_t index, size_t rung) {
    TuneTrial& trial = report_.trials[index];
    const bool is_last = rung + 1 == rungs_[index].size();
    const long until = is_last ? kEnd : rungs_[index][rung];
    const experiment::Experiment e = experiment_of(index);
    const std::string marker = last_metric_of_evaluation(report_.options, e.config());
    if (!has_reached(trial, until, marker)) make_steps(index, until, marker);
    read_result(trial, until);
  }

  // Whether the trial has been evaluated at that step, or will not be.
  bool has_reached(TuneTrial& trial, long until, const std::string& marker) {
    const auto row = trial.run.empty() ? std::nullopt : store_.find(trial.run);
    if (!row) {
      trial.run.clear();  // the user removed it: it starts again
      return false;
    }
    if (row->state == RunState::done || (row->state == RunState::failed && !row->interrupted())) return true;
    const auto values = store_.metric(trial.run, marker);
    return std::any_of(values.begin(), values.end(), [&](const auto& point) { return point.first >= until; });
  }

  void make_steps(size_t index, long until, const std::string& marker) {
    TuneTrial& trial = report_.trials[index];
    const experiment::Experiment e = experiment_of(index);
    std::stop_source own;
    const std::stop_callback chained(stop_, [&] { own.request_stop(); });
    JobRequest request{.experiment = e, .runs_folder = request_.runs_folder, .resume = std::nullopt};
    request.context = request_.context;
    if (!trial.run.empty()) request.resume = trial.run;
    request.on_run = [&](const store::RunId& run) {
      trial.run = run;
      save();
      store_.set_tags(run, report_.id);
    };
    started_ = std::chrono::steady_clock::now();
    const EventSink sink = [&](const Event& event) {
      const auto* metric = std::get_if<event::Metric>(&event.body);
      if (!metric) return;
      if (metric->name == "train/loss") {
        ++made_;
        report_progress(index, metric->step, std::min(until, planned_steps_[index]));
      }
      if (metric->name == marker && metric->step >= until) own.request_stop();
    };
    const store::RunOutcome outcome = run_blocking(request, sink, own.get_token());
    seconds_ += seconds_since(started_);
    if (stop_.stop_requested() && outcome.finished.state == RunState::cancelled) report_.state = RunState::cancelled;
  }

  void report_progress(size_t index, long step, long until) {
    if (!request_.on_progress) return;
    TuneProgress progress{.trial = index + 1,
                          .trials = report_.trials.size(),
                          .run = report_.trials[index].run,
                          .step = step,
                          .until = until};
    const double each = (seconds_ + seconds_since(started_)) / static_cast<double>(std::max(1L, made_));
    if (const auto left = steps_left(index, step)) progress.eta_seconds = each * static_cast<double>(*left);
    request_.on_progress(progress);
  }

  // Steps left of this trial and, with halving up to their first comparison, of those not started. Empty with epochs.
  std::optional<long> steps_left(size_t index, long step) const {
    long left = 0;
    for (size_t i = 0; i < report_.trials.size(); ++i) {
      if (planned_steps_[i] <= 0) return std::nullopt;
      const long first = std::min(rungs_[i].front(), planned_steps_[i]);
      if (i == index) left += std::max(0L, planned_steps_[i] - step);
      if (i != index && report_.trials[i].run.empty()) left += first;
    }
    return left;
  }

  void read_result(TuneTrial& trial, long until) {
    trial.value.reset();
    const auto row = trial.run.empty() ? std::nullopt : store_.find(trial.run);
    if (!row) return;
    trial.state = row->state;
    trial.steps = row->steps_done;
    if (row->state == RunState::failed) return;
    for (const auto& [step, value] : store_.metric(trial.run, report_.options.metric))
      if (step <= until && std::isfinite(value)) trial.value = value;
  }

  // The best trial first, those without a value last; equal ones in their order.
  void sort_by_value(std::vector<size_t>& trials) const {
    const double sign = is_larger_better(report_.options.metric) ? -1 : 1;
    const auto place = [&](size_t i) {
      return report_.trials[i].value ? sign * *report_.trials[i].value : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(trials.begin(), trials.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  }

  const TuneRequest& request_;
  store::Store store_;
  std::stop_token stop_;
  fs::path folder_;
  std::unique_ptr<store::RunLock> lock_;
  experiment::Experiment base_;
  std::vector<std::vector<long>> rungs_;  // by trial: the steps at which it is compared
  std::vector<long> planned_steps_;       // by trial; 0: only known once the data are read
  TuneReport report_;
  std::chrono::steady_clock::time_point started_{};  // the current run
  bool has_ended_ = false;
  long made_ = 0;       // steps of this process
  double seconds_ = 0;  // of its finished runs
};

}  // namespace

VariedKey parse_varied_key(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse_tuning("a varied key has no values", "--vary", text, "key=value,value or key=low..high");
  VariedKey varied{.key = text.substr(0, equals)};
  const std::string values = text.substr(equals + 1);
  if (!experiment::find_parameter(varied.key))
    refuse_tuning("the key is unknown", varied.key, text, "a key such as " + experiment::nearest_key(varied.key));
  varied.range = parse_range(values);
  if (!varied.range) {
    varied.values = split_values(values);
    return varied;
  }
  const VariedKey::Range& r = *varied.range;
  if (!std::isfinite(r.low) || !std::isfinite(r.high) || r.low >= r.high || (r.is_log && r.low <= 0))
    refuse_tuning("the range is empty or not finite", varied.key, values,
                  r.is_log ? "two numbers above 0, the lower one first" : "two numbers, the lower one first");
  return varied;
}

std::vector<std::vector<std::string>> tune_trials(const TuneOptions& options) {
  std::vector<VariedKey> keys;
  for (const std::string& text : options.varied) keys.push_back(parse_varied_key(text));
  if (keys.empty()) refuse_tuning("nothing is varied", "--vary", "nothing", "key=value,value");
  if (options.method == TuneMethod::grid) return grid_trials(keys);
  if (options.reduction < 2)
    refuse_tuning("halving keeps every trial", "--reduction", std::to_string(options.reduction), "2 or more");
  if (options.trials < 1 || options.trials > static_cast<long>(kMostTrials))
    refuse_tuning("the number of trials is out of range", "--trials", std::to_string(options.trials),
                  "1 to " + std::to_string(kMostTrials));
  return random_trials(keys, options);
}

std::vector<long> tune_rungs(const TuneOptions& options, long steps, long eval_every) {
  const long multiple = options.metric == "train/loss" ? 1 : std::max(1L, eval_every);
  std::vector<long> rungs{steps};
  for (long left = options.trials / options.reduction; left >= 1; left /= options.reduction) {
    const long earlier = (rungs.front() + options.reduction - 1) / options.reduction;
    const long rounded = (earlier + multiple - 1) / multiple * multiple;
    if (rounded >= rungs.front()) break;
    rungs.insert(rungs.begin(), rounded);
  }
  return rungs;
}

TuneReport tune(const TuneRequest& request, std::stop_token stop) {
  return Tuning(request, std::move(stop)).run();
}

std::vector<std::string> unfinished_tunings(const fs::path& runs_folder) {
  std::vector<std::string> ids;
  std::error_code error;
  for (fs::directory_iterator at(runs_folder, error), end; !error && at != end; at.increment(error)) {
    std::string id = at->path().filename().string();
    if (!id.starts_with("tune-") || !is_file(at->path() / kTuneFile)) continue;
    try {
      const Json json = read_json(at->path() / kTuneFile);
      if (json.is_object() && json.value("ended", Json()) == false) ids.push_back(std::move(id));
    } catch (const Error&) {  // a resume reports it
    }
  }
  const auto by_number = [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) > std::pair(b.size(), b);
  };
  std::sort(ids.begin(), ids.end(), by_number);
  return ids;
}

Json to_json(const TuneReport& report) {
  Json trials = Json::array();
  for (const TuneTrial& t : report.trials)
    trials.push_back({{"run", t.run.empty() ? Json(nullptr) : Json(t.run)},
                      {"set", t.sets},
                      {"state", to_string(t.state)},
                      {"steps", t.steps},
                      {"value", t.value ? Json(*t.value) : Json(nullptr)}});
  return {{"tune", report.id},
          {"state", to_string(report.state)},
          {"method", to_string(report.options.method)},
          {"metric", report.options.metric},
          {"trials", std::move(trials)},
          {"best", report.best ? Json(report.trials[*report.best].run) : Json(nullptr)}};
}

std::string to_text(const TuneReport& report) {
  const double sign = is_larger_better(report.options.metric) ? -1 : 1;
  std::vector<const TuneTrial*> sorted;
  for (const TuneTrial& t : report.trials) sorted.push_back(&t);
  // Those that were trained longest first: values of fewer steps say less.
  std::stable_sort(sorted.begin(), sorted.end(), [&](const TuneTrial* a, const TuneTrial* b) {
    if (a->steps != b->steps) return a->steps > b->steps;
    if (!a->value || !b->value) return a->value.has_value() && !b->value;
    return sign * *a->value < sign * *b->value;
  });
  std::string out = report.id + ": " + counted(sorted.size(), "trial") + " by " + report.options.metric + "\n";
  present::Table table = present::figure_table({"run", "steps", report.options.metric.c_str()});
  table.columns.push_back({.title = "settings", .align = present::Align::left});
  for (const TuneTrial* t : sorted)
    table.add({t->run.empty() ? "-" : t->run, std::to_string(t->steps), t->value ? number_text(*t->value) : "-",
               joined(t->sets, "  ") + (report.best && t == &report.trials[*report.best] ? "  (best)" : "")});
  return out + present::to_text(table);
}

}  // namespace mw::jobs
