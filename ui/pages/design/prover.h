// SPDX-License-Identifier: GPL-3.0-or-later
// Proves on a thread of its own that an experiment computes on its mesh what it computes on one device: one proof at a
// time, with progress, cancelled by a word. drain() takes what the thread left, on the GUI thread.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/mailbox.h"
#include "core/experiment/experiment.h"
#include "core/views/proof_view.h"

namespace mw::ui {

using ProofPtr = std::shared_ptr<const runs::ProofView>;

class Prover : public QObject {
  Q_OBJECT
 public:
  using Progress = std::function<void(const event::Progress&)>;
  // What proves, on the thread: throws Error; of kind cancelled where it was stopped.
  using Prove =
      std::function<runs::ProofView(const runs::Experiment&, const Progress& progress, const std::stop_token& stop)>;

  explicit Prover(Prove prove, QObject* parent = nullptr);
  ~Prover() override;  // stops and waits
  void start(const runs::Experiment& experiment);
  void stop();
  void drain();
  bool busy() const { return thread_.joinable(); }
  bool stopping() const { return thread_.get_stop_token().stop_requested(); }
  const event::Progress& progress() const { return progress_; }
  std::optional<double> eta_seconds() const;  // from the share that is done
  double seconds() const { return static_cast<double>(clock_.elapsed()) / 1000; }
  const ProofPtr& proof() const { return proof_; }  // the last one
  const std::optional<Problem>& failed() const { return failed_; }
  bool cancelled() const { return cancelled_; }

 signals:
  void changed();

 private:
  struct Said {
    std::optional<event::Progress> progress{};
    ProofPtr proof{};
    std::optional<Problem> failed{};
    bool last = false, cancelled = false;
  };
  void take(const Said& said);
  Prove prove_;
  event::Progress progress_;
  ProofPtr proof_;
  std::optional<Problem> failed_;
  bool cancelled_ = false;
  QElapsedTimer clock_;
  Mailbox<Said> said_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace mw::ui
