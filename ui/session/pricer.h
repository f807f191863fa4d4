// SPDX-License-Identifier: GPL-3.0-or-later
// Prices the document at every edit: what the run would need of this machine's memory or, on another target, its whole
// design: memory, time, cost. On its own thread; a newer document cancels the older question, stale answers are
// dropped.
#pragma once
#include <QObject>
#include <optional>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/planning/diagnostics.h"
#include "core/planning/predict.h"
#include "core/views/design.h"

namespace mw::ui {

class Document;

class Pricer : public QObject {
  Q_OBJECT
 public:
  enum class About { design, memory };  // of the target; of a run here, by the engine's own formulas
  struct Answer {
    std::uint64_t question = 0;
    About about = About::memory;
    bool last = false;                                 // nothing better will come for this question
    std::optional<planning::Prediction> prediction{};  // of the engine's memory here
    views::DesignPtr design{};
    std::vector<Problem> problems{};                  // why there is none
    std::vector<planning::Diagnostic> diagnostics{};  // what the checker finds; comes with the design
  };
  // Where the hardware catalogue and the user's own are.
  struct Folders {
    std::filesystem::path hardware, own_hardware;
  };
  explicit Pricer(Folders folders, QObject* parent = nullptr);
  // A document with errors has no prediction: that of its last valid state goes at once, and the answer brings only
  // what else is wrong.
  void ask(const Document& document);
  void ask(const experiment::Experiment& experiment);  // a preview of a change to the document
  void hardware_changed() { ++hardware_; }             // chips, prices or calibration: read again for the next question
  void drain();
  // Nothing is predicted for the document, and nothing will be before it changes: it has errors, or the planner refused
  // it. prediction() and design() are null then.
  bool has_no_prediction() const;
  // The last one there was, until its successor comes. An exact one stays, outdated, until the next exact one: it does
  // not jump to the upper bound in between.
  const std::optional<planning::Prediction>& prediction() const { return prediction_; }
  // Of the target, this machine included; null before the first.
  const views::DesignPtr& design() const { return design_; }
  bool design_outdated() const { return designed_ != asked_; }
  const std::vector<Problem>& problems() const { return problems_; }
  const std::vector<planning::Diagnostic>& diagnostics() const { return diagnostics_; }
  bool stale() const { return answered_ != asked_; }      // no answer yet
  bool outdated() const { return predicted_ != asked_; }  // the prediction is of an earlier document: dim it
  bool settled() const { return settled_ == asked_; }     // no more answers will come

 signals:
  void changed();

 private:
  struct Question {  // the newest replaces an older one
    std::uint64_t number = 0;
    experiment::Experiment experiment;
    int hardware = 0;
  };
  void ask_worker(const experiment::Experiment& experiment);
  void work(const Question& question, const std::stop_token& stop, const LatestTaskWorker<Question>::Pause& pause);
  static Answer predict(const Question& question, planning::ReadData read_data, std::stop_token cancel);
  Answer design(const Question& question);
  void take_design(Answer answer);
  void take_prediction(Answer answer);
  // Designs that nobody shows any more: thousands of small pieces, put away by the worker and not by the window.
  using Bin = Mailbox<std::unique_ptr<const views::Design>>;
  std::shared_ptr<Bin> bin_ = std::make_shared<Bin>();
  Mailbox<Answer> answers_;
  Folders folders_;
  std::optional<hardware::Catalogue> catalogue_;  // the worker's
  int hardware_ = 0, loaded_ = 0;                 // asked for; the worker's
  bool invalid_ = false;                          // the document that was asked for last has errors
  std::uint64_t asked_ = 0, answered_ = 0, predicted_ = 0, designed_ = 0, settled_ = 0;
  views::DesignPtr design_;
  std::optional<planning::Prediction> prediction_, bound_;  // bound_: held back while an exact one is shown
  std::vector<Problem> problems_;
  std::vector<planning::Diagnostic> diagnostics_;
  LatestTaskWorker<Question> worker_;  // last: it uses the others
};

}  // namespace mw::ui
