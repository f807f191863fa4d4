// SPDX-License-Identifier: GPL-3.0-or-later
// Reads runs of the store and result files for the tray, each on a thread of its own. GUI thread.
#pragma once
#include <QObject>
#include <functional>
#include <list>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/base/mailbox.h"
#include "core/compare/comparison.h"

namespace mw::ui {

class ComparedReader : public QObject {
  Q_OBJECT
 public:
  struct Folders {
    std::filesystem::path runs, results, hardware, own_hardware;  // results: what is shipped
  };
  explicit ComparedReader(Folders folders) : folders_(std::move(folders)) {}
  void read_run(const runs::RunId& run);
  void read_file(const std::filesystem::path& file);  // every set in it
  void drain();
  int pending() const { return pending_; }
  const Folders& folders() const { return folders_; }

 signals:
  void read(std::vector<mw::runs::Compared>& runs);  // to be moved from
  void problem(const mw::Problem& problem);
  void settled();

 private:
  struct Result {
    std::vector<runs::Compared> runs;
    Problem problem;
    bool good = false;
    std::uint64_t number = 0;
  };
  using Work = std::function<std::vector<runs::Compared>()>;
  void start(Work work);
  Folders folders_;
  Mailbox<Result> results_;
  int pending_ = 0;
  std::uint64_t asked_ = 0, told_ = 0;
  std::map<std::uint64_t, Result> early_;  // read before what was asked for before them: the order is the user's
  std::list<std::jthread> threads_;        // last: they use the others
};

}  // namespace mw::ui
