// SPDX-License-Identifier: GPL-3.0-or-later
// Reads results and training logs of other tools into the run store, on a thread of its own. GUI thread.
#pragma once
#include <QObject>
#include <thread>

#include "core/base/error.h"
#include "core/base/mailbox.h"
#include "core/store/store.h"

namespace mw::ui {

class ResultImporter : public QObject {
  Q_OBJECT
 public:
  explicit ResultImporter(std::filesystem::path runs_folder) : folder_(std::move(runs_folder)) {}
  void import(std::vector<std::filesystem::path> files);  // waits for an earlier one
  void drain();

 signals:
  void imported(const QStringList& runs);
  void problem(const mw::Problem& problem);

 private:
  struct Result {
    std::vector<runs::RunId> runs;
    std::vector<Problem> problems;
  };
  std::filesystem::path folder_;
  Mailbox<Result> results_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw::ui
