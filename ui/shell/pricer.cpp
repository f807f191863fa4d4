// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/pricer.h"

#include <chrono>

namespace mw::ui {
Pricer::Pricer(QObject* parent) : QObject(parent), thread_([this](std::stop_token stop) { work(std::move(stop)); }) {}

Pricer::~Pricer() {
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    current_.request_stop();
  }
  wake_.notify_all();
}

void Pricer::ask(const runs::Experiment& experiment) {
  {
    const std::lock_guard lock(mutex_);
    next_ = Question{++asked_, experiment};
    bound_.reset();
    current_.request_stop();
  }
  wake_.notify_one();
  emit changed();
}

// At once with every row as long as it may be; then, when nothing newer came for a moment, with the data's real rows.
void Pricer::work(std::stop_token stop) {
  using namespace std::chrono_literals;
  while (!stop.stop_requested()) {
    Question question;
    std::stop_token cancel;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return next_.has_value(); })) return;
      question = std::move(*next_);
      next_.reset();
      current_ = std::stop_source();
      cancel = current_.get_token();
    }
    Answer bound = predict(question, runs::ReadData::no, cancel);
    bound.last = !bound.prediction;
    const bool failed = bound.last;
    answers_.push(std::move(bound), Delivery::state);
    if (failed) continue;
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, stop, 400ms, [this] { return next_.has_value(); })) continue;
    }
    if (stop.stop_requested()) return;
    Answer exact = predict(question, runs::ReadData::yes, cancel);
    exact.last = true;
    answers_.push(std::move(exact), Delivery::state);
  }
}

Pricer::Answer Pricer::predict(const Question& question, runs::ReadData read_data, std::stop_token cancel) {
  Answer answer{.question = question.number};
  try {
    answer.prediction = runs::predict(question.experiment, read_data, std::move(cancel));
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled) answer.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    answer.problems.push_back({.id = "PREDICT", .severity = Severity::warning, .message = error.what()});
  }
  return answer;
}

void Pricer::drain() {
  for (Answer& answer : answers_.drain().items) {
    if (answer.question != asked_) continue;
    take(std::move(answer));
    emit changed();
  }
}

void Pricer::take(Answer answer) {
  answered_ = answer.question;
  problems_ = std::move(answer.problems);
  if (!answer.last && prediction_ && prediction_->basis == runs::Basis::exact) {
    bound_ = std::move(answer.prediction);
    return;
  }
  if (answer.last) {
    settled_ = answer.question;
    if (!answer.prediction)
      answer.prediction = std::move(bound_);  // the data cannot be read: the bound is all there is
    bound_.reset();
  }
  if (!answer.prediction) return;
  prediction_ = std::move(answer.prediction);
  predicted_ = answered_;
}

}  // namespace mw::ui
