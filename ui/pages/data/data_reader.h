// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the document's data for the Data page, on threads of its own: all rows for their lengths, and the one looked at
// for its tokens. An edit restarts it, what belongs to an older document is dropped. Drained by the frame clock.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <memory>
#include <variant>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/views/data_view.h"
#include "ui/pages/data/file_watch.h"

namespace mw::ui {

class DataReader : public QObject {
  Q_OBJECT
 public:
  enum class State { idle, reading, done, failed, stopped };

  explicit DataReader(QObject* parent = nullptr);
  void ask(const experiment::Experiment& experiment);  // nothing happens where the data is the same
  void read_again();
  void cancel();                               // the rows read so far stay
  void look_at(const planning::DataRow& row);  // detail() comes
  void drain();

  State state() const { return state_; }
  bool outdated() const { return outdated_; }  // what is shown is of an earlier document
  const planning::DataIndexRequest& question() const { return question_; }
  const std::vector<planning::DataRow>& rows() const { return rows_; }
  const std::shared_ptr<const planning::DataIndex>& index() const { return index_; }  // once all is read
  const std::optional<views::DataEconomy>& economy() const { return economy_; }
  const std::optional<Problem>& problem() const { return problem_; }  // why nothing could be read
  const std::optional<views::DataDetail>& detail() const { return detail_; }
  const std::optional<Problem>& detail_problem() const { return detail_problem_; }
  double fraction() const { return fraction_; }  // of the file; 0: not known yet
  std::optional<Seconds> eta() const;

 signals:
  void restarted();  // the rows begin anew
  void grew();       // rows came
  void changed();    // anything but rows
  void detail_changed();

 private:
  using Tokenizer = std::shared_ptr<const data::Tokenizer>;
  enum class Pace { at_once, when_quiet };
  struct Question {
    std::uint64_t number = 0;
    experiment::Experiment experiment;
    Pace pace = Pace::when_quiet;
    bool again = false;  // the file, even where it looks the same
  };
  struct Began {
    planning::DataIndexRequest question;
    Tokenizer tokenizer;
  };
  struct Progress {
    double fraction = 0;
  };
  struct Done {
    planning::DataIndexRequest question;
    std::shared_ptr<const planning::DataIndex> index;
    std::optional<views::DataEconomy> economy;
  };
  struct Answer {
    std::uint64_t number = 0;
    std::variant<Began, std::vector<planning::DataRow>, Progress, Done, Problem> body;
  };
  struct DetailQuestion {
    std::uint64_t number = 0;
    planning::DataIndexRequest question;
    Tokenizer tokenizer;
    planning::DataRow row;
  };
  struct DetailAnswer {
    std::uint64_t number = 0;
    std::variant<views::DataDetail, Problem> body;
  };
  void start(Pace pace, bool again);
  void watch();
  void read(const Question& question, const std::stop_token& stop);
  std::shared_ptr<const planning::DataIndex> index_of(const Question& question, const planning::DataIndexRequest& data,
                                                      const std::stop_token& stop);
  void take(Began began);
  void take(std::vector<planning::DataRow> rows);
  void take(Progress progress);
  void take(Done done);
  void take(Problem problem);

  std::optional<experiment::Experiment> asked_for_;
  FileWatch file_;  // that is read
  std::uint64_t asked_ = 0, detail_asked_ = 0;
  State state_ = State::idle;
  bool outdated_ = false;
  double fraction_ = 0;
  QElapsedTimer clock_;  // since reading began
  planning::DataIndexRequest question_;
  Tokenizer tokenizer_;
  std::vector<planning::DataRow> rows_;
  std::shared_ptr<const planning::DataIndex> index_;
  std::optional<views::DataEconomy> economy_;
  std::optional<Problem> problem_, detail_problem_;
  std::optional<views::DataDetail> detail_;

  // Of the reading thread alone: what it has, to be used again.
  struct Kept {
    planning::DataIndexRequest question;
    std::shared_ptr<const planning::DataIndex> index;
    std::filesystem::path tokenizer_path;
    Tokenizer tokenizer;
  } kept_;
  Mailbox<Answer> answers_;
  Mailbox<DetailAnswer> details_;
  Newest<Question> reading_;  // last: they use the others
  Newest<DetailQuestion> looking_;
};

}  // namespace mw::ui
