// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/pricer.h"

namespace mw::ui {
namespace {

Pricer::Answer price(const runs::Experiment& experiment, runs::ReadData read, std::stop_token cancel) {
  Pricer::Answer answer;
  try {
    answer.prediction = runs::predict(experiment, read, std::move(cancel));
  } catch (const Error& error) {
    answer.problems.push_back(error.problem());
  } catch (const std::exception& error) {
    answer.problems.push_back({.id = "PREDICT", .severity = Severity::warning, .message = error.what()});
  }
  return answer;
}

}  // namespace

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
    current_.request_stop();
  }
  wake_.notify_one();
  emit changed();
}

void Pricer::work(std::stop_token stop) {
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
    // At once with every row as long as it may be, then with the real lengths, unless a newer edit came.
    for (const runs::ReadData read : {runs::ReadData::no, runs::ReadData::yes}) {
      if (cancel.stop_requested()) break;
      Answer answer = price(question.experiment, read, cancel);
      answer.question = question.number;
      const bool failed = !answer.problems.empty();
      if (!cancel.stop_requested()) answers_.push(std::move(answer), Delivery::state);
      if (failed) break;
    }
  }
}

void Pricer::drain() {
  for (Answer& answer : answers_.drain().items) {
    if (answer.question != asked_) continue;
    answered_ = answer.question;
    problems_ = std::move(answer.problems);
    if (answer.prediction) prediction_ = std::move(answer.prediction);
    emit changed();
  }
}

}  // namespace mw::ui
