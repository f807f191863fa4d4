// SPDX-License-Identifier: GPL-3.0-or-later
// Adds an adapter into its base model on a thread of its own: one at a time, with progress, cancelled by a word. GUI
// thread.
#pragma once
#include <QObject>
#include <thread>

#include "core/base/error.h"
#include "core/base/mailbox.h"
#include "core/jobs/merge_adapter.h"

namespace mw::ui {

class Merger : public QObject {
  Q_OBJECT
 public:
  void start(runs::MergeRequest request);  // ignored while busy
  void cancel();
  void drain();
  bool busy() const { return thread_.joinable(); }
  int percent() const { return percent_; }
  bool checking() const { return checking_; }  // all is written; base and adapter against it

 signals:
  void changed();
  void merged(const QString& verdict);      // in words
  void failed(const mw::Problem& problem);  // no message: it was cancelled

 private:
  struct Said {
    int percent = 0;
    bool checking = false, last = false;
    QString verdict{};
    std::optional<Problem> problem{};
  };
  Said work(const runs::MergeRequest& request, const std::stop_token& stop);
  int percent_ = 0;
  bool checking_ = false;
  Mailbox<Said> said_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw::ui
