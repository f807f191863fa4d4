// SPDX-License-Identifier: Apache-2.0
#include "core/audit/calibrating.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/formats/results/bench_result.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/plan_request.h"

namespace mw::audit {
namespace {

namespace fs = std::filesystem;

Problem with_file(Problem p, const fs::path& file) {
  if (p.file.empty()) p.file = file.string();
  return p;
}

std::string source_text(const CalibrationRequest& request) {
  std::vector<std::string> all;
  for (const fs::path& file : request.files) all.push_back(file.filename().string());
  all.insert(all.end(), request.runs.begin(), request.runs.end());
  const size_t shown = std::min<size_t>(all.size(), 3);
  std::string out;
  for (size_t i = 0; i < shown; ++i) out += (out.empty() ? "" : ", ") + all[i];
  return all.size() > shown ? out + " and " + std::to_string(all.size() - shown) + " more" : out;
}

class Reader {
 public:
  Reader(const CalibrationRequest& request, const plan::PlanContext& context, std::vector<Problem>& problems)
      : request_(request), context_(context), problems_(problems) {}

  std::vector<plan::Measurement> rows() {
    for (const fs::path& file : request_.files) try {
        plan::Measurements read = plan::read_measurements(file, context_.catalogue, plan::BadRows::collected);
        for (Problem& p : read.problems) problems_.push_back(with_file(std::move(p), file));
        for (plan::Measurement& m : read.rows)
          m.request.stack == model::Stack::engine ? refuse(m, file) : add(std::move(m), file.string());
      } catch (const Error& e) {
        problems_.push_back(with_file(e.problem(), file));
      }
    if (!request_.runs.empty()) try {
        const store::Store store(request_.runs_folder);
        for (const store::RunId& run : request_.runs) read_run(store, run);
      } catch (const Error& e) {
        problems_.push_back(with_file(e.problem(), request_.runs_folder));
      }
    return std::move(rows_);
  }

 private:
  void read_run(const store::Store& store, const store::RunId& run) {
    try {
      add(measured_run(store, run, context_), run);
    } catch (const Error& e) {
      problems_.push_back(e.problem());
    }
  }
  void refuse(const plan::Measurement& m, const fs::path& file) {
    problems_.push_back({.id = "CALIBRATION",
                         .message = "nothing is fitted to rows of this machine, whose plans follow from its benchmark "
                                    "and its runs",
                         .file = file.string(),
                         .place = "rows." + m.id,
                         .found = "target " + m.request.target.id,
                         .expected = "a TPU slice or GPUs",
                         .fix = "leave the row out, and measure this machine with `meshwright bench --save`"});
  }
  void add(plan::Measurement m, const std::string& from) {
    if (ids_.insert(m.id).second) return rows_.push_back(std::move(m));
    problems_.push_back({.id = "MEASUREMENT",
                         .message = "two rows have the same id",
                         .file = from,
                         .place = "rows." + m.id,
                         .found = m.id,
                         .expected = "a unique id for each row",
                         .fix = "change one of the ids, or pass each file and run only once"});
  }

  const CalibrationRequest& request_;
  const plan::PlanContext& context_;
  std::vector<Problem>& problems_;
  std::set<std::string> ids_;
  std::vector<plan::Measurement> rows_;
};

std::vector<double> rates(const store::Store& store, const store::RunId& run) {
  std::vector<double> out;
  for (const auto& [step, value] : store.metric(run, "train/tokens_per_second"))
    if (step > 1 && std::isfinite(value) && value > 0) out.push_back(value);
  return out;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

plan::Measurement measured_run(const store::Store& store, const store::RunId& run, const plan::PlanContext& context) {
  const auto row = store.find(run);
  if (!row) throw Error("RUN-UNKNOWN", "the run does not exist", {.place = run, .expected = "an id of the run store"});
  if (row->state == RunState::failed)
    throw Error("CALIBRATION", "the run failed, so that its steps are not compared",
                {.place = run, .found = "a failed run", .fix = "choose a run that is done or was cancelled"});
  const std::vector<double> steps = rates(store, run);
  if (steps.size() < 2)
    throw Error("CALIBRATION", "the run has too few measured training steps; a comparison needs at least three",
                {.place = run,
                 .found = counted(row->steps_done, "step"),
                 .fix = "train for more steps, or choose another run"});
  plan::Measurement m;
  m.id = run;
  m.purpose = plan::MeasurementUse::holdout;  // nothing is fitted to it
  m.what = plan::MeasuredQuantity::real_tokens_per_second;
  m.unit = "tokens/s without padding";
  m.value = median(steps);
  const experiment::Experiment experiment = store.experiment(run);
  m.request = plan::plan_request(experiment, plan::without_run(context, run));
  if (m.request.target.chip.vendor != hardware::Vendor::cpu || m.request.work != plan::Work::train)
    throw Error("CALIBRATION", "calibration accepts only training runs of this machine",
                {.place = run, .found = "an experiment for " + m.request.target.id, .expected = "kind train on cpu"});
  m.source = run + ", " + row->created;
  const double step_tokens =
      row->tokens > 0 ? static_cast<double>(row->tokens) / static_cast<double>(row->steps_done) : formats::kUnknown;
  if (std::string rows = plan::set_rows_of_run(experiment.config(), step_tokens, m.request); !rows.empty())
    m.assumed = {std::move(rows)};
  return m;
}

CalibrationResult calibrate(const CalibrationRequest& request, const plan::PlanContext& context,
                            const plan::FitProgress& progress, std::stop_token stop) {
  CalibrationResult out;
  try {
    plan::ProposalInput input;
    input.rows = Reader(request, context, out.problems).rows();
    input.published = plan::read_measurements(request.published, context.catalogue).rows;
    input.in_force = plan::calibration_of(context);
    input.basis = {request.date, source_text(request), plan::CalibrationAuthor::user};
    if (!request.names.empty()) input.options.names = input.options.serving = request.names;
    plan::Proposal proposal = plan::propose(std::move(input), progress, std::move(stop));
    // A row that cannot be predicted is reported like a row that cannot be read.
    std::erase_if(proposal.notes, [&](const Problem& note) {
      if (note.severity != Severity::error) return false;
      out.problems.push_back(note);
      return true;
    });
    out.proposal = std::move(proposal);
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::cancelled) throw;
    if (out.problems.empty() || e.problem().message != "nothing to fit") out.problems.push_back(e.problem());
  }
  return out;
}

std::vector<plan::Efficiencies::Named> fittable_efficiencies() {
  std::vector<plan::Efficiencies::Named> out;
  for (const auto& n : plan::Efficiencies::names())
    if (plan::can_fit(n.name)) out.push_back(n);
  return out;
}

}  // namespace mw::audit
