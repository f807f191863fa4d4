// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the data of the document for the Data page on worker threads: all rows for their lengths, and the selected row
// for its tokens. An edit restarts it and drops results of the older document. Drained by the frame clock. GUI thread.
#pragma once
#include <QFileSystemWatcher>
#include <QTimer>
#include <variant>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/views/data_view.h"
#include "ui/session/background_task.h"

namespace mw::ui {

// Reports when a file, or one that a pattern matches, was written, replaced, deleted or created. Combines bursts into
// one change.
class FileWatch : public QObject {
  Q_OBJECT
 public:
  explicit FileWatch(QObject* parent = nullptr);
  void watch(const std::vector<std::filesystem::path>& patterns);  // replaces the watched ones

 signals:
  void changed();

 private:
  using Stamps = std::vector<std::pair<std::filesystem::path, train::FileStamp>>;
  Stamps stamps() const;
  void check();
  void follow();
  QFileSystemWatcher watcher_;
  QTimer due_;
  std::vector<std::filesystem::path> patterns_;
  Stamps seen_;
};

// Rows in rows() at most, at 64 bytes each; the index counts all.
inline constexpr size_t kMostListedRows = 4'000'000;

class DataReader : public QObject {
  Q_OBJECT
 public:
  enum class State { idle, reading, done, failed, stopped };

  explicit DataReader(QObject* parent = nullptr, size_t most_listed = kMostListedRows);
  void read(const experiment::Experiment& experiment);  // does nothing if the data is the same
  void read_again();
  void cancel();                            // keeps the rows read so far
  void show_row(const data::DataRow& row);  // detail() follows
  void drain();

  State state() const { return state_; }
  bool is_outdated() const { return outdated_; }  // the displayed data belongs to an earlier document
  const train::DataIndexRequest& request() const { return request_; }
  const std::vector<data::DataRow>& rows() const { return rows_; }  // the first ones
  std::int64_t rows_read() const { return rows_read_; }             // so far
  bool lists_all() const { return rows_read_ == std::ssize(rows_); }
  const std::shared_ptr<const train::DataIndex>& index() const { return index_; }  // set when all rows have been read
  const std::optional<views::DataEconomy>& economy() const { return economy_; }
  const data::OverlapReport& overlap() const { return overlap_; }     // empty until all rows have been read
  const std::optional<Problem>& problem() const { return problem_; }  // set if the data could not be read
  const std::shared_ptr<const data::Tokenizer>& tokenizer() const { return tokenizer_; }  // null before reading
  const std::optional<views::DataDetail>& detail() const { return detail_; }
  const std::optional<Problem>& detail_problem() const { return detail_problem_; }
  double fraction() const { return fraction_; }  // of the file; 0: unknown
  std::optional<Seconds> eta() const;

 signals:
  void restarted();  // the rows were reset
  void grew();       // rows were added
  void changed();    // anything else changed
  void detail_changed();

 private:
  using Tokenizer = std::shared_ptr<const data::Tokenizer>;
  enum class Pace { at_once, when_quiet };
  struct Request {
    std::uint64_t number = 0;
    experiment::Experiment experiment;
    Pace pace = Pace::when_quiet;
    bool again = false;  // read the file again even if it looks the same
  };
  struct Started {
    train::DataIndexRequest request;
    Tokenizer tokenizer;
  };
  struct Progress {
    double fraction = 0;
  };
  struct Rows {
    std::vector<data::DataRow> listed;
    std::int64_t read = 0;  // with those that are not listed
  };
  struct Done {
    train::DataIndexRequest request;
    std::shared_ptr<const train::DataIndex> index;
    std::optional<views::DataEconomy> economy;
    data::OverlapReport overlap;
  };
  struct Message {
    std::uint64_t number = 0;
    std::variant<Started, Rows, Progress, Done, Problem> body;
  };
  void start(Pace pace, bool again);
  void watch();
  void read_request(const Request& request, const std::stop_token& stop);
  std::shared_ptr<const train::DataIndex> index_of(const Request& request, const train::DataIndexRequest& data,
                                                   const std::stop_token& stop);
  data::OverlapReport overlap_of(const train::DataIndex& index, const train::DataIndexRequest& data,
                                 const std::stop_token& stop) const;
  void take(Started started);
  void take(Rows rows);
  void take(Progress progress);
  void take(Done done);
  void take(Problem problem);

  std::optional<experiment::Experiment> experiment_;
  FileWatch file_;  // of the data
  std::uint64_t requested_ = 0;
  State state_ = State::idle;
  bool outdated_ = false;
  double fraction_ = 0;
  QElapsedTimer clock_;  // since the start of reading
  train::DataIndexRequest request_;
  Tokenizer tokenizer_;
  size_t most_listed_;
  std::vector<data::DataRow> rows_;
  std::int64_t rows_read_ = 0;
  std::shared_ptr<const train::DataIndex> index_;
  std::optional<views::DataEconomy> economy_;
  data::OverlapReport overlap_;
  std::optional<Problem> problem_, detail_problem_;
  std::optional<views::DataDetail> detail_;

  // Cache of the reading thread.
  struct Cache {
    train::DataIndexRequest request;
    std::shared_ptr<const train::DataIndex> index;
    data::OverlapReport overlap;
    std::filesystem::path tokenizer_path;
    Tokenizer tokenizer;
  } cache_;
  Mailbox<Message> messages_;
  LatestTaskWorker<Request> reading_;  // last: it uses the other members
  BackgroundTask<views::DataDetail> detail_task_{"DATA"};
};

}  // namespace mw::ui
