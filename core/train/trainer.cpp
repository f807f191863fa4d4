// SPDX-License-Identifier: Apache-2.0
#include "core/train/trainer.h"
#include "core/base/counted.h"
#include "core/train/settings.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/train/checkpoint.h"
#include "core/train/model.h"
#include "core/train/traffic.h"

namespace mw::train {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of training steps by what they were spent on, as means over the devices. Without evaluations and samples.
struct StepSeconds {
  long steps = 0;
  double all = 0;
  double compute = 0;      // kernels with products
  double memory = 0;       // other kernels, gradient norm and update
  double collectives = 0;  // without waiting
  double waiting = 0;      // at barriers of collectives
  double host() const { return std::max(0.0, all - compute - memory - collectives - waiting); }
};

Json to_json(const StepSeconds& s) {
  return {{"steps", s.steps},
          {"seconds", s.all},
          {"compute", s.compute},
          {"memory", s.memory},
          {"collectives", s.collectives},
          {"waiting", s.waiting},
          {"host", s.host()}};
}

class TrainingRun {
 public:
  TrainingRun(const TrainRequest& request, const EventSink& sink, std::stop_token stop, PauseGate& gate)
      : request_(request), s_(request.settings), sink_(sink), stop_(std::move(stop)), gate_(gate) {
    if (request.resume) counters_ = read_counters(*request.resume);
    const engine::Arithmetic best = engine::best_arithmetic(s_.model.weights);
    const std::optional<engine::Arithmetic> before = parse<engine::Arithmetic>(counters_.arithmetic);
    s_.model.arithmetic = before && engine::has(*before) ? *before : best;
    resumed_seconds_ = counters_.seconds;
    peaks_ = request.peaks;
  }

  event::Finished operator()() try {
    load();
    start();
    if (counters_.step == 0) before();
    if (is_evaluation_pending()) after_step(counters_.step);  // a stop interrupted it
    while (counters_.step < s_.rate.steps && !is_patience_spent() && !stop_.stop_requested()) {
      gate_.wait(stop_, [&](RunState state) { emit(event::StateChanged{state}); });
      if (stop_.stop_requested() || (budget_spent_ = is_budget_spent()) || !step()) break;
      after_step(counters_.step);
    }
    return finish();
  } catch (const engine::OutOfMemory& e) {
    engine::OutOfMemory::State moment = e.moment;
    moment.phase = phase_;
    throw engine::OutOfMemory(std::move(moment));
  }

 private:
  template <class Body>
  void emit(Body body) {
    sink_({now(), std::move(body)});
  }
  double now() const { return resumed_seconds_ + seconds_since(started_); }
  void log(const std::string& level, const std::string& text) { emit(event::Log{level, text}); }
  void metric(const char* name, double value) { emit(event::Metric{name, counters_.step, value}); }
  // Emits at most ten events a second, and the last one.
  CountProgress progress(const char* phase) {
    return [this, phase, last = Clock::time_point()](long done, long total) mutable {
      const auto time = Clock::now();
      if (done < total && time - last < std::chrono::milliseconds(100)) return;
      last = time;
      emit(event::Progress{phase, done, total});
    };
  }
  engine::Cluster& cluster() { return *model_.cluster; }
  void memory(const char* phase);
  void traffic(const std::vector<data::Batch>& micro);
  void take_profile(StepSeconds* step);

  void load();
  void set_steps_from_epochs();
  void start();
  void before();
  bool step();
  bool micro_batches(const std::vector<data::Batch>& micro, engine::StepOptions options, double& loss_sum);
  bool is_budget_spent() const;
  bool is_patience_spent() const { return s_.patience > 0 && counters_.evaluations.since_best >= s_.patience; }
  bool is_evaluation_pending() const;
  bool keeps_best() const { return s_.keep_best != options::KeepBest::none; }
  void require_evaluations() const;
  void after_step(long step);
  bool evaluate();
  void samples();
  Score answers();
  void checkpoint();
  void save_best() const;
  void summarise(bool is_stopped_early);
  event::Finished finish();
  Json data_info() const;

  const TrainRequest& request_;
  Settings s_;
  const EventSink& sink_;
  std::stop_token stop_;
  PauseGate& gate_;
  Clock::time_point started_ = Clock::now();
  TrainingCounters with_execution(TrainingCounters counters);
  std::string notice_of_rounding();
  std::string rounding_notice_;
  double resumed_seconds_ = 0;
  TrainingCounters counters_;
  LoadedModel model_;
  data::TokenizedDataset dataset_;
  std::vector<data::Example> prompts_;  // held-out ones that are answered during the run
  std::unique_ptr<data::BatchStream> batches_;
  std::optional<TrafficPlan> traffic_plan_;
  std::vector<Bytes> peaks_;  // per device
  Json summary_ = Json::object();
  std::vector<engine::KernelTime> kernels_;  // of the whole run
  StepSeconds step_seconds_;                 // but of the first step, which also fills caches, where there are others
  bool is_warm_ = false;
  long checkpointed_at_ = -1;
  double last_step_seconds_ = 0;
  bool budget_spent_ = false;
  std::string phase_ = "loading the weights";  // for out-of-memory reports
};

void TrainingRun::memory(const char* phase) {
  peaks_.resize(static_cast<size_t>(cluster().devices()));
  for (int d = 0; d < cluster().devices(); ++d) {
    engine::Arena& arena = cluster().device(d).arena;
    const Ledger at_peak = arena.use().at_peak;
    Bytes& peak = peaks_[static_cast<size_t>(d)];
    peak = std::max(peak, at_peak.total());
    emit(event::Memory{d, counters_.step, phase, at_peak, peak});
    arena.reset_peak();
  }
}

void TrainingRun::traffic(const std::vector<data::Batch>& micro) {
  if (cluster().devices() == 1) return;
  event::StepTraffic traffic = traffic_of(cluster(), counters_.step, *traffic_plan_, micro);
  for (const event::StepTraffic::Entry& e : traffic.entries) {
    step_seconds_.collectives += e.seconds - e.waited;
    step_seconds_.waiting += e.waited;
  }
  emit(std::move(traffic));
}

// Adds the kernels since the last call to those of the run, and to the seconds of a step if there is one.
void TrainingRun::take_profile(StepSeconds* step) {
  for (engine::KernelTime& k : cluster().take_profile()) {
    if (step) (k.flops > 0 ? step->compute : step->memory) += k.seconds / cluster().devices();
    const auto same =
        std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& known) { return known.name == k.name; });
    if (same == kernels_.end()) {
      kernels_.push_back(std::move(k));
    } else {
      same->seconds += k.seconds;
      same->calls += k.calls;
      same->flops += k.flops;
    }
  }
}

void TrainingRun::load() {
  emit(event::StateChanged{RunState::running});
  std::optional<formats::PeftAdapter> adapter;
  if (s_.method == model::TrainMethod::lora && !s_.lora.adapter.empty())
    adapter = read_adapter(s_.lora.adapter, s_.model.path);
  s_.model.context = s_.data.max_len;
  model_ = load_model(s_.model, progress("loading weights"));
  if (s_.method == model::TrainMethod::lora) {
    if (adapter) s_.lora = lora_options(*adapter, s_.lora);
    phase_ = "adding the adapters";
    cluster().add_lora(s_.lora, s_.seed);
  }
  phase_ = "allocating gradients and moments";
  cluster().train(s_.method, s_.adamw);
  if (adapter) copy_adapter(*adapter, cluster());
  traffic_plan_.emplace(cluster(), s_);
  dataset_ = data::open_dataset(s_.data, *model_.tokenizer, stop_, progress("reading data"));
  prompts_ =
      with_prompts(dataset_.eval, std::max(s_.answers, s_.sample_every > 0 ? s_.sample_prompts : 0), *model_.tokenizer);
  set_steps_from_epochs();
  require_evaluations();
  if (request_.resume) {
    counters_ = restore_checkpoint(*request_.resume, cluster());
    rounding_notice_ = notice_of_rounding();
    checkpointed_at_ = counters_.step;
    if (keeps_best()) save_best();  // the process may have died before, or after an evaluation that is repeated
  }
  counters_ = with_execution(counters_);
  batches_ = std::make_unique<data::BatchStream>(dataset_.train, batch_options(s_), model_.tokenizer->pad(),
                                                 static_cast<std::int64_t>(counters_.step) * s_.accumulation);
}

// Without values to compare no checkpoint would be the best one, and the run would end early.
void TrainingRun::require_evaluations() const {
  const bool by_answers = s_.keep_best == options::KeepBest::answers;
  if (!s_.decides_by_evaluation() || (by_answers ? !prompts_.empty() : evaluation_rows(s_, dataset_.eval).size() > 0))
    return;
  throw Error("KEEP-BEST", "no held-out rows decide which checkpoint is the best",
              {.place = keeps_best() ? "train.keep_best" : "train.patience",
               .found = by_answers ? "no held-out row with a prompt" : "no held-out row",
               .fix = "raise data.eval_fraction, or set data.eval_path"});
}

// Returns the counters with the arithmetic, threads and mesh of this run, which decide the bits of what follows.
TrainingCounters TrainingRun::with_execution(TrainingCounters counters) {
  mesh::Mesh mesh = s_.model.mesh;
  std::erase_if(mesh.axes, [](const mesh::MeshAxis& a) { return a.size == 1; });
  counters.arithmetic = to_string(*s_.model.arithmetic);
  counters.threads = cluster().device(0).pool.threads();
  counters.mesh = mesh.axes.empty() ? "one device" : to_text(mesh);
  return counters;
}

// Says why the last bits of a resumed run may differ from those of an uninterrupted one; empty if they do not.
std::string TrainingRun::notice_of_rounding() {
  const TrainingCounters &before = counters_, now = with_execution(counters_);
  const std::optional<engine::Arithmetic> known = parse<engine::Arithmetic>(before.arithmetic);
  std::vector<std::string> reasons;
  if (before.arithmetic.empty())
    reasons.push_back("the checkpoint does not name the arithmetic of its products, which in version 1.0 was another");
  else if (!known || !engine::gives_same_bits(*known, *s_.model.arithmetic, s_.model.weights))
    reasons.push_back("the checkpoint's products have the arithmetic " + before.arithmetic +
                      ", which this processor lacks or MESHWRIGHT_CPU excludes; those of this run have " +
                      now.arithmetic);
  if (!before.mesh.empty() && before.mesh != now.mesh)
    reasons.push_back("the checkpoint was computed on " + before.mesh + " and this run has " + now.mesh);
  if (before.threads > 0 && before.threads != now.threads)
    reasons.push_back("the checkpoint was computed with " + counted(before.threads, "thread") + " and this run has " +
                      std::to_string(now.threads));
  if (reasons.empty()) return {};
  return joined(reasons, "; ") + ": results may differ in their last bits from those of an uninterrupted run";
}

// A resumed run keeps its number of steps, which determines the learning rate.
void TrainingRun::set_steps_from_epochs() {
  if (request_.total_steps && s_.epochs > 0) {
    s_.rate.steps = *request_.total_steps;
    s_.epochs = 0;
  }
  train::set_steps_from_epochs(s_, dataset_.train);
}

Json TrainingRun::data_info() const {
  const data::DatasetReport& r = dataset_.report;
  return {{"rows", r.rows},
          {"kept", r.kept},
          {"train", dataset_.train.size()},
          {"held_out", dataset_.eval.size()},
          {"dropped_long", r.dropped_long},
          {"truncated", r.truncated},
          {"skipped_bad", r.skipped_bad},
          {"no_loss", r.no_loss},
          {"dropped_repeated", r.dropped_repeated},
          {"dropped_held_out", r.dropped_held_out},
          {"tokens", r.tokens},
          {"loss_tokens", r.loss_tokens},
          {"chat_template", template_record(s_.data.chat)}};
}

void TrainingRun::start() {
  const Trainable trained = trainable(s_, cluster().config());
  Json info = request_.info;
  info["steps"] = s_.rate.steps;
  info["model"] = {{"path", s_.model.path.string()},
                   {"name", cluster().config().id},
                   {"parameters", cluster().inventory().parameters()},
                   {"trainable", trained.params}};
  info["trainable"] = to_json(trained);
  info["device"] = {{"id", "cpu"},
                    {"threads", cluster().device(0).pool.threads()},
                    {"arithmetic", to_string(*s_.model.arithmetic)},
                    {"kernels", engine::describe_kernels(s_.model.weights, *s_.model.arithmetic)}};
  info["devices"] = cluster().devices();
  info["mesh"] = mesh_json(s_.model.mesh);
  info["capacity_bytes"] = cluster().device(0).arena.capacity().value;
  info["data"] = data_info();
  if (request_.predict)
    info["predicted"] = request_.predict(data_facts(s_, cluster().config(), dataset_, *model_.tokenizer));
  if (s_.budget.is_set()) info["budget"] = {{"seconds", s_.budget.seconds}, {"tokens", s_.budget.tokens}};
  if (request_.resume) info["resumed_from"] = counters_.step;
  emit(event::Started{std::move(info)});
  for (const Problem& p : dataset_.report.problems) log("warning", to_text(p));
  const data::DatasetReport& r = dataset_.report;
  log("info",
      counted(r.rows, "row") + ": " + std::to_string(dataset_.train.size()) + " for training, " +
          std::to_string(dataset_.eval.size()) + " held out, " + std::to_string(r.dropped_long) +
          " too long and dropped, " + std::to_string(r.truncated) + " truncated, " + std::to_string(r.skipped_bad) +
          " malformed and skipped" +
          (s_.data.drops_duplicates ? ", " + std::to_string(r.dropped_repeated) + " repeated and dropped, " +
                                          std::to_string(r.dropped_held_out) + " equal to held-out rows and dropped"
                                    : ""));
  if (request_.resume) log("info", "resumed from step " + std::to_string(counters_.step));
  if (!rounding_notice_.empty()) log("warning", rounding_notice_);
  if (const engine::Arithmetic own = *s_.model.arithmetic, best = engine::best_arithmetic(s_.model.weights);
      own != best)
    log("info", "continues in the checkpoint's arithmetic (" + std::string(to_string(own)) +
                    "); this processor would use " + std::string(to_string(best)));
  memory("load");
}

void TrainingRun::before() {
  evaluate();
  if (s_.answers > 0) {
    const Score score = counters_.evaluations.answered == 0 ? counters_.evaluations.answers : answers();
    counters_.answers_asked = score.asked;
    counters_.answers_before = score.right;
  }
  samples();
}

// Whether another step like those so far would exceed the budget. The first step is always made.
bool TrainingRun::is_budget_spent() const {
  if (counters_.step == 0 || !s_.budget.is_set()) return false;
  const std::int64_t tokens = counters_.tokens + counters_.tokens / counters_.step;
  return (s_.budget.seconds > 0 && now() + last_step_seconds_ > s_.budget.seconds) ||
         (s_.budget.tokens > 0 && tokens > s_.budget.tokens);
}

bool TrainingRun::step() {
  take_profile(nullptr);  // of an evaluation or samples before the step
  if (step_seconds_.steps > 0 && !std::exchange(is_warm_, true)) step_seconds_ = {};
  const auto start_time = Clock::now();
  std::vector<data::Batch> micro;
  std::int64_t loss_tokens = 0, real_tokens = 0;
  for (int i = 0; i < s_.accumulation; ++i) {
    micro.push_back(batches_->next());
    loss_tokens += micro.back().loss_tokens;
    real_tokens += micro.back().real_tokens;
  }
  const long step = ++counters_.step;
  phase_ = "forward and backward of step " + std::to_string(step);
  engine::StepOptions options = step_options(s_);
  options.step = static_cast<std::uint64_t>(step);
  options.gradient_scale = loss_tokens > 0 ? 1.0f / static_cast<float>(loss_tokens) : 0.0f;
  cluster().zero_gradients();
  cluster().clear_traffic();
  double loss_sum = 0;
  if (!micro_batches(micro, options, loss_sum)) {
    --counters_.step;  // the step was not completed
    return false;
  }
  const double loss = loss_sum / static_cast<double>(std::max<std::int64_t>(1, loss_tokens));
  const auto update_time = Clock::now();
  const double norm = cluster().gradient_norm();
  if (!std::isfinite(loss) || !std::isfinite(norm))
    throw Error("NAN-LOSS", "the loss or the gradient norm is not finite in step " + std::to_string(step),
                {.place = "step " + std::to_string(step),
                 .found = "loss " + std::to_string(loss) + ", gradient norm " + std::to_string(norm),
                 .expected = "finite values",
                 .fix = "lower train.learning_rate, or resume from the last good checkpoint" +
                        (checkpointed_at_ >= 0 ? " (step " + std::to_string(checkpointed_at_) + ")" : std::string())},
                Error::Kind::failed);
  phase_ = "the update of step " + std::to_string(step);
  const double rate = learning_rate(s_.rate, step);
  cluster().update(step, static_cast<float>(rate), static_cast<float>(s_.clip), norm);
  step_seconds_.memory += seconds_since(update_time);
  counters_.tokens += real_tokens;
  counters_.seconds = now();
  metric("train/loss", loss);
  metric("train/grad_norm", norm);
  metric("train/learning_rate", rate);
  last_step_seconds_ = seconds_since(start_time);
  ++step_seconds_.steps;
  step_seconds_.all += last_step_seconds_;
  take_profile(&step_seconds_);
  metric("train/tokens_per_second", static_cast<double>(real_tokens) / std::max(1e-9, last_step_seconds_));
  if (s_.budget.is_set()) metric("budget/left", 100 * s_.budget.share_left(now(), counters_.tokens));
  emit(event::Progress{"training", step, s_.rate.steps});
  memory("step");
  traffic(micro);
  return true;
}

// Returns false after a stop; the step is then not applied.
bool TrainingRun::micro_batches(const std::vector<data::Batch>& micro, engine::StepOptions options,
                                double& loss_sum) try {
  for (size_t i = 0; i < micro.size(); ++i) {
    options.micro_batch = i;
    loss_sum += cluster().forward_backward(token_batch(micro[i]), options, stop_).sum;
  }
  return true;
} catch (const Error& e) {
  if (e.kind() != Error::Kind::cancelled) throw;
  return false;
}

bool TrainingRun::is_evaluation_pending() const {
  const std::optional<long>& last = counters_.evaluations.last;
  return request_.resume && last && *last != counters_.step && counters_.step < s_.rate.steps && s_.eval_every > 0 &&
         counters_.step % s_.eval_every == 0;
}

// Evaluation, samples and checkpoints after a step; does not affect the next step.
void TrainingRun::after_step(long step) {
  const auto due = [&](long every) { return every > 0 && step % every == 0; };
  bool is_best = false;
  if (step < s_.rate.steps) {  // finish() evaluates after the last step
    if (due(s_.eval_every)) is_best = evaluate() && keeps_best();
    if (is_patience_spent()) return;  // finish() samples and saves
    if (due(s_.sample_every)) samples();
  }
  if ((due(s_.checkpoint_every) || is_best) && checkpointed_at_ != step) checkpoint();
  if (is_best) save_best();
}

// Returns whether this evaluation is the best so far. One that a stop interrupts is repeated when the run is resumed.
bool TrainingRun::evaluate() {
  phase_ = "the evaluation after step " + std::to_string(counters_.step);
  EvaluationHistory& history = counters_.evaluations;
  auto value = held_out_loss(model_, evaluation_rows(s_, dataset_.eval), eval_options(s_), step_options(s_), stop_);
  if (value) {
    metric("eval/loss", *value);
    if (s_.label_smoothing == 0) metric("eval/perplexity", std::exp(*value));
    memory("eval");
  } else if (stop_.stop_requested()) {
    return false;
  }
  if (s_.keep_best == options::KeepBest::answers) {
    const Score score = answers();
    if (history.answered != counters_.step) return false;
    value = score.share();
  }
  history.last = counters_.step;
  return s_.decides_by_evaluation() && counters_.step > 0 && value &&
         add_evaluation(history, s_.keep_best, counters_.step, *value);
}

void TrainingRun::samples() {
  if (s_.sample_prompts <= 0 || s_.sample_every <= 0) return;
  phase_ = "sampling after step " + std::to_string(counters_.step);
  answer_prompts(model_, prompts_, s_.sample_prompts, s_.data.chat, s_.sample, stop_,
                 [&](event::Sample sample, long, long) {
                   sample.step = counters_.step;
                   emit(std::move(sample));
                 });
  memory("generate");
}

Score TrainingRun::answers() {
  phase_ = "answering after step " + std::to_string(counters_.step);
  const Score score = answer_prompts(model_, prompts_, s_.answers, s_.data.chat, s_.sample, stop_,
                                     [&](event::Sample sample, long done, long total) {
                                       sample.step = counters_.step;
                                       emit(event::Progress{"answering held-out prompts", done, total});
                                       emit(std::move(sample));
                                     });
  if (score.asked > 0) metric("eval/answers_right", score.share());
  log("info", std::to_string(score.right) + " of " + std::to_string(score.asked) +
                  " held-out prompts answered correctly after step " + std::to_string(counters_.step));
  memory("generate");
  if (score.asked == std::min(s_.answers, static_cast<long>(prompts_.size()))) {
    counters_.evaluations.answered = counters_.step;
    counters_.evaluations.answers = score;
  }
  return score;
}

void TrainingRun::checkpoint() {
  phase_ = "the checkpoint of step " + std::to_string(counters_.step);
  counters_.seconds = now();
  const std::filesystem::path folder = request_.run_folder();
  write_checkpoint(folder, counters_, s_, cluster());
  prune_checkpoints(folder, s_.keep_checkpoints,
                    keeps_best() ? std::optional(counters_.evaluations.best_step) : std::nullopt);
  checkpointed_at_ = counters_.step;
  emit(event::Checkpoint{counters_.step, checkpoint_path(folder, counters_.step).string()});
}

void TrainingRun::save_best() const {
  const EvaluationHistory& history = counters_.evaluations;
  if (history.best_step > 0)
    write_best_checkpoint(
        request_.run_folder(),
        {.step = history.best_step, .metric = best_metric(s_.keep_best), .value = history.best_value});
  else
    remove_best_checkpoint(request_.run_folder());
}

// Adds to the summary what the evaluations decided.
void TrainingRun::summarise(bool is_stopped_early) {
  const EvaluationHistory& history = counters_.evaluations;
  const std::string metric = best_metric(s_.keep_best);
  if (keeps_best() && history.best_step > 0) {
    summary_["best"] = {{"step", history.best_step}, {"metric", metric}, {"value", history.best_value}};
    log("info", "the best checkpoint is that of step " + std::to_string(history.best_step) + ", with " + metric + " " +
                    number_text(history.best_value));
  }
  if (!is_stopped_early) return;
  summary_["early_stop"] = {{"step", counters_.step},         {"steps_left", s_.rate.steps - counters_.step},
                            {"patience", s_.patience},        {"metric", metric},
                            {"best_step", history.best_step}, {"best_value", history.best_value}};
  log("info", "stopped early after step " + std::to_string(counters_.step) + " of " + std::to_string(s_.rate.steps) +
                  ": " + metric + " has not improved in " + std::to_string(history.since_best) +
                  " evaluations since step " + std::to_string(history.best_step) + " (train.patience)");
}

event::Finished TrainingRun::finish() {
  const bool is_stopped_early = counters_.step < s_.rate.steps && is_patience_spent();
  const bool whole = counters_.step >= s_.rate.steps || budget_spent_ || is_stopped_early;
  // Before the final evaluation, so that a run killed during it repeats it when resumed.
  if (checkpointed_at_ != counters_.step && counters_.step > 0) checkpoint();
  if (whole && counters_.evaluations.last != counters_.step && evaluate() && keeps_best()) save_best();
  if (whole && s_.answers > 0) {
    const EvaluationHistory& history = counters_.evaluations;
    const Score after = history.answered == counters_.step ? history.answers : answers();
    summary_["answers"] = {
        {"asked", after.asked}, {"base_right", counters_.answers_before}, {"tuned_right", after.right}};
  }
  if (whole) samples();
  summarise(is_stopped_early);
  take_profile(nullptr);
  if (budget_spent_) {
    summary_["budget"] = {{"spent", true}, {"steps_left", s_.rate.steps - counters_.step}};
    log("info", "the budget is spent after step " + std::to_string(counters_.step) + " of " +
                    std::to_string(s_.rate.steps) + "; resume with a larger budget to continue");
  }
  Json profile = Json::array();
  for (const auto& k : kernels_)
    profile.push_back({{"kernel", k.name},
                       {"seconds", k.seconds},
                       {"calls", k.calls},
                       {"gflops", k.seconds > 0 ? k.flops / k.seconds * 1e-9 : 0.0}});
  summary_["profile"] = std::move(profile);
  summary_["step_seconds"] = to_json(step_seconds_);
  return {.state = whole ? RunState::done : RunState::cancelled,
          .steps = counters_.step,
          .tokens = static_cast<long>(counters_.tokens),
          .seconds = now(),
          .peak = peaks_.empty() ? Bytes(0) : *std::max_element(peaks_.begin(), peaks_.end()),
          .error = {},
          .summary = summary_};
}

}  // namespace

void PauseGate::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void PauseGate::resume() {
  {
    const std::lock_guard lock(mutex_);
    paused_ = false;
  }
  changed_.notify_all();
}

void PauseGate::wait(std::stop_token stop, const std::function<void(RunState)>& on_change) {
  std::unique_lock lock(mutex_);
  if (!paused_) return;
  lock.unlock();
  on_change(RunState::paused);
  lock.lock();
  changed_.wait(lock, stop, [&] { return !paused_; });
  lock.unlock();
  if (!stop.stop_requested()) on_change(RunState::running);
}

event::Finished train(const TrainRequest& request, const EventSink& sink, std::stop_token stop, PauseGate& gate) {
  return TrainingRun(request, sink, std::move(stop), gate)();
}

}  // namespace mw::train
