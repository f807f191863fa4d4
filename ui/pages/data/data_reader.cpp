// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/data_reader.h"

namespace mw::ui {
namespace {

using namespace std::chrono_literals;

constexpr auto kQuiet = 250ms;        // combines bursts of edits
constexpr auto kChunk = 40ms;         // passes rows on about once per frame
constexpr double kLeastShare = 0.02;  // read before the remaining time is estimated

Problem problem_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->problem();
  return {.id = "DATA", .message = error.what()};
}

}  // namespace

DataReader::DataReader(QObject* parent)
    : QObject(parent),
      reading_([this](Question question, std::stop_token stop, const LatestTaskWorker<Question>::Pause& pause) {
        if (question.pace == Pace::when_quiet && !pause(kQuiet)) return;
        read(question, stop);
      }) {
  connect(&detail_task_, &BackgroundWork::ended, this, [this] {
    detail_ = std::move(detail_task_.result());
    detail_problem_ = detail_task_.problem();
    emit detail_changed();
  });
  connect(&file_, &FileWatch::changed, this, [this] {
    if (asked_for_) start(Pace::when_quiet, false);
  });
}

// data.path, otherwise data.lengths.
void DataReader::watch() {
  try {
    const auto rows = asked_for_->path("data.path");
    file_.watch(rows.empty() ? asked_for_->path("data.lengths") : rows);
  } catch (const Error&) {
    file_.watch({});  // no path: reported by reading
  }
}

void DataReader::ask(const experiment::Experiment& experiment) {
  if (asked_for_ && planning::same_data(*asked_for_, experiment)) return;
  const bool first = !asked_for_;
  asked_for_ = experiment;
  watch();
  start(first ? Pace::at_once : Pace::when_quiet, false);
}

void DataReader::read_again() {
  if (asked_for_) start(Pace::at_once, true);
}

void DataReader::start(Pace pace, bool again) {
  outdated_ = true;
  reading_.submit({++asked_, *asked_for_, pace, again});
  emit changed();
}

void DataReader::cancel() {
  if (state_ != State::reading) return;
  ++asked_;
  reading_.cancel();
  state_ = State::stopped;
  emit changed();
}

void DataReader::read(const Question& question, const std::stop_token& stop) {
  try {
    const planning::DataIndexRequest data = planning::data_index_request(question.experiment);
    if (!kept_.index || question.again || !kept_.question.same_rows(data)) {
      kept_.index.reset();
      kept_.index = index_of(question, data, stop);
      kept_.question = data;
    }
    answers_.push({question.number, Done{data, kept_.index, views::economy_of(*kept_.index, data)}}, Delivery::state);
  } catch (const std::exception& error) {
    if (!stop.stop_requested()) answers_.push({question.number, problem_of(error)}, Delivery::state);
  }
}

std::shared_ptr<const planning::DataIndex> DataReader::index_of(const Question& question,
                                                                const planning::DataIndexRequest& data,
                                                                const std::stop_token& stop) {
  if (data.source == planning::DataSource::rows && (data.tokenizer != kept_.tokenizer_path || question.again)) {
    kept_.tokenizer = data::load_tokenizer(data.tokenizer);
    kept_.tokenizer_path = data.tokenizer;
  }
  answers_.push({question.number, Began{data, kept_.tokenizer}}, Delivery::state);
  std::vector<planning::DataRow> rows;
  auto handed_over = std::chrono::steady_clock::now();
  const auto hand_over = [&] {
    if (!rows.empty()) answers_.push({question.number, std::move(rows)}, Delivery::state);
    rows = {};
    handed_over = std::chrono::steady_clock::now();
  };
  auto index = planning::index_data(
      data, kept_.tokenizer.get(), stop,
      [&](long done, long total) {
        if (std::chrono::steady_clock::now() - handed_over < kChunk) return;
        hand_over();
        const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
        answers_.push({question.number, Progress{fraction}}, Delivery::telemetry);
      },
      [&](const planning::DataRow& row) { rows.push_back(row); });
  hand_over();
  return std::make_shared<const planning::DataIndex>(std::move(index));
}

void DataReader::look_at(const planning::DataRow& row) {
  if (!tokenizer_) return;
  detail_task_.start(
      [question = question_, tokenizer = tokenizer_, row](const ReportProgress&, const std::stop_token&) {
        return views::detail_of(question, *tokenizer, row);
      });
}

void DataReader::drain() {
  for (Answer& answer : answers_.drain().items)
    if (answer.number == asked_) std::visit([this](auto& body) { take(std::move(body)); }, answer.body);
}

void DataReader::take(Began began) {
  state_ = State::reading;
  outdated_ = false;
  fraction_ = 0;
  clock_.start();
  question_ = std::move(began.question);
  tokenizer_ = std::move(began.tokenizer);
  rows_.clear();
  index_.reset();
  economy_.reset();
  problem_.reset();
  detail_task_.abandon();
  emit restarted();
  emit changed();
}

void DataReader::take(std::vector<planning::DataRow> rows) {
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  emit grew();
}

void DataReader::take(Progress progress) {
  fraction_ = progress.fraction;
  emit changed();
}

void DataReader::take(Done done) {
  state_ = done.question.source == planning::DataSource::none ? State::idle : State::done;
  outdated_ = false;
  question_ = std::move(done.question);
  index_ = std::move(done.index);
  economy_ = done.economy;
  problem_.reset();
  fraction_ = 1;
  emit changed();
}

void DataReader::take(Problem problem) {
  state_ = State::failed;
  outdated_ = false;
  problem_ = std::move(problem);
  rows_.clear();
  index_.reset();
  economy_.reset();
  emit restarted();
  emit changed();
}

std::optional<Seconds> DataReader::eta() const {
  if (state_ != State::reading || fraction_ < kLeastShare) return std::nullopt;
  return Seconds(static_cast<double>(clock_.elapsed()) * 1e-3 * (1 - fraction_) / fraction_);
}

}  // namespace mw::ui
