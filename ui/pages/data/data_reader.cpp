// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/data_reader.h"

#include "core/base/files.h"
#include "core/data/dataset/data_file.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

using namespace std::chrono_literals;

constexpr int kBurstMs = 250;         // files are written in pieces
constexpr auto kQuiet = 250ms;        // combines bursts of edits
constexpr auto kChunk = 40ms;         // passes rows on about once per frame
constexpr double kLeastShare = 0.02;  // read before the remaining time is estimated

constexpr qsizetype kMostWatched = 1000;  // the system limits how many a user may watch

// Returns the file of a path, or the files that a pattern matches now.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& pattern) try {
  std::vector<std::filesystem::path> files;
  data::DatasetOptions options;
  options.path = pattern;
  for (data::NumberedFile& file : data::data_files(options)) files.push_back(std::move(file.path));
  return files;
} catch (const Error&) {
  return {};  // no file matches yet
}

// The folder above the first part of a path that is a pattern.
std::filesystem::path fixed_folder(const std::filesystem::path& pattern) {
  std::filesystem::path folder = pattern.parent_path();
  while (data::is_pattern(folder)) folder = folder.parent_path();
  return folder;
}

Problem problem_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->problem();
  return {.id = "DATA", .message = error.what()};
}

}  // namespace

FileWatch::FileWatch(QObject* parent) : QObject(parent) {
  due_.setSingleShot(true);
  due_.setInterval(kBurstMs);
  connect(&due_, &QTimer::timeout, this, &FileWatch::check);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this] { due_.start(); });
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, [this] { due_.start(); });
}

void FileWatch::watch(const std::vector<std::filesystem::path>& patterns) {
  if (patterns == patterns_) return;
  patterns_ = patterns;
  if (const QStringList old = watcher_.files() + watcher_.directories(); !old.isEmpty()) watcher_.removePaths(old);
  due_.stop();
  seen_ = stamps();
  follow();
}

FileWatch::Stamps FileWatch::stamps() const {
  Stamps all;
  for (const auto& pattern : patterns_)
    for (const auto& file : files_of(pattern)) all.emplace_back(file, train::stamp_of(file));
  return all;
}

// Watches the folders, too: a file that is replaced or created is not reported otherwise.
void FileWatch::follow() {
  QStringList wanted;
  const auto add = [&](const std::filesystem::path& path) {
    if (const QString name = qpath(path); !wanted.contains(name) && path_exists(path)) wanted << name;
  };
  for (const auto& pattern : patterns_) add(fixed_folder(pattern));
  for (const auto& [file, stamp] : seen_)
    if (wanted.size() < kMostWatched) {
      add(file);
      add(file.parent_path());
    }
  for (const QString& known : watcher_.files() + watcher_.directories()) wanted.removeAll(known);
  if (!wanted.isEmpty()) watcher_.addPaths(wanted);
}

void FileWatch::check() {
  Stamps now = stamps();
  const bool same = now == seen_;
  seen_ = std::move(now);
  follow();
  if (!same) emit changed();
}

DataReader::DataReader(QObject* parent, size_t most_listed)
    : QObject(parent),
      most_listed_(most_listed),
      reading_([this](Request request, std::stop_token stop, const LatestTaskWorker<Request>::Pause& pause) {
        if (request.pace == Pace::when_quiet && !pause(kQuiet)) return;
        read_request(request, stop);
      }) {
  connect(&detail_task_, &BackgroundWork::ended, this, [this] {
    detail_ = std::move(detail_task_.result());
    detail_problem_ = detail_task_.problem();
    emit detail_changed();
  });
  connect(&file_, &FileWatch::changed, this, [this] {
    if (experiment_) start(Pace::when_quiet, false);
  });
}

// data.path and data.eval_path, otherwise data.lengths.
void DataReader::watch() {
  try {
    std::vector<std::filesystem::path> files;
    for (const char* key : {"data.path", "data.eval_path"})
      if (auto path = experiment_->path(key); !path.empty()) files.push_back(std::move(path));
    if (experiment_->path("data.path").empty()) files = {experiment_->path("data.lengths")};
    std::erase(files, std::filesystem::path());
    file_.watch(files);
  } catch (const Error&) {
    file_.watch({});  // no path: reported by reading
  }
}

void DataReader::read(const experiment::Experiment& experiment) {
  if (experiment_ && train::same_data(*experiment_, experiment)) return;
  const bool first = !experiment_;
  experiment_ = experiment;
  watch();
  start(first ? Pace::at_once : Pace::when_quiet, false);
}

void DataReader::read_again() {
  if (experiment_) start(Pace::at_once, true);
}

void DataReader::start(Pace pace, bool again) {
  outdated_ = true;
  reading_.submit({++requested_, *experiment_, pace, again});
  emit changed();
}

void DataReader::cancel() {
  if (state_ != State::reading) return;
  ++requested_;
  reading_.cancel();
  state_ = State::stopped;
  emit changed();
}

void DataReader::read_request(const Request& request, const std::stop_token& stop) {
  try {
    const train::DataIndexRequest data = train::data_index_request(request.experiment);
    if (!cache_.index || request.again || !cache_.request.same_rows(data)) {
      cache_.index.reset();
      auto index = index_of(request, data, stop);
      cache_.overlap = overlap_of(*index, data, stop);
      cache_.index = std::move(index);
      cache_.request = data;
    }
    messages_.push({request.number, Done{data, cache_.index, views::economy_of(*cache_.index, data), cache_.overlap}},
                   Delivery::state);
  } catch (const std::exception& error) {
    if (!stop.stop_requested()) messages_.push({request.number, problem_of(error)}, Delivery::state);
  }
}

std::shared_ptr<const train::DataIndex> DataReader::index_of(const Request& request,
                                                             const train::DataIndexRequest& data,
                                                             const std::stop_token& stop) {
  if (data.source == train::DataSource::rows && (data.tokenizer != cache_.tokenizer_path || request.again)) {
    cache_.tokenizer = data::load_tokenizer(data.tokenizer);
    cache_.tokenizer_path = data.tokenizer;
  }
  messages_.push({request.number, Started{data, cache_.tokenizer}}, Delivery::state);
  Rows rows;
  size_t listed = 0;
  auto handed_over = std::chrono::steady_clock::now();
  const auto hand_over = [&] {
    if (rows.read > 0) messages_.push({request.number, std::move(rows)}, Delivery::state);
    rows = {};
    handed_over = std::chrono::steady_clock::now();
  };
  auto index = train::index_data(
      data, cache_.tokenizer.get(), stop,
      [&](long done, long total) {
        if (std::chrono::steady_clock::now() - handed_over < kChunk) return;
        hand_over();
        const double fraction = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
        messages_.push({request.number, Progress{fraction}}, Delivery::telemetry);
      },
      [&](const data::DataRow& row) {
        ++rows.read;
        if (listed == most_listed_) return;
        ++listed;
        rows.listed.push_back(row);
      });
  hand_over();
  return std::make_shared<const train::DataIndex>(std::move(index));
}

// Only of data that is read to its end.
data::OverlapReport DataReader::overlap_of(const train::DataIndex& index, const train::DataIndexRequest& data,
                                           const std::stop_token& stop) const {
  if (data.source != train::DataSource::rows || index.ended || !cache_.tokenizer) return {};
  return train::overlap_of(data, *cache_.tokenizer, stop);
}

void DataReader::show_row(const data::DataRow& row) {
  if (!tokenizer_) return;
  detail_task_.start([request = request_, tokenizer = tokenizer_, row](const ReportProgress&, const std::stop_token&) {
    return views::detail_of(request, *tokenizer, row);
  });
}

void DataReader::drain() {
  for (Message& message : messages_.drain().items)
    if (message.number == requested_) std::visit([this](auto& body) { take(std::move(body)); }, message.body);
}

void DataReader::take(Started started) {
  state_ = State::reading;
  outdated_ = false;
  fraction_ = 0;
  clock_.start();
  request_ = std::move(started.request);
  tokenizer_ = std::move(started.tokenizer);
  rows_.clear();
  rows_read_ = 0;
  index_.reset();
  economy_.reset();
  overlap_ = {};
  problem_.reset();
  detail_task_.abandon();
  emit restarted();
  emit changed();
}

void DataReader::take(Rows rows) {
  rows_.insert(rows_.end(), rows.listed.begin(), rows.listed.end());
  rows_read_ += rows.read;
  emit grew();
}

void DataReader::take(Progress progress) {
  fraction_ = progress.fraction;
  emit changed();
}

void DataReader::take(Done done) {
  state_ = done.request.source == train::DataSource::none ? State::idle : State::done;
  outdated_ = false;
  request_ = std::move(done.request);
  index_ = std::move(done.index);
  economy_ = done.economy;
  overlap_ = std::move(done.overlap);
  problem_.reset();
  fraction_ = 1;
  emit changed();
}

void DataReader::take(Problem problem) {
  state_ = State::failed;
  outdated_ = false;
  problem_ = std::move(problem);
  rows_.clear();
  rows_read_ = 0;
  index_.reset();
  economy_.reset();
  overlap_ = {};
  emit restarted();
  emit changed();
}

std::optional<Seconds> DataReader::eta() const {
  if (state_ != State::reading || fraction_ < kLeastShare) return std::nullopt;
  return Seconds(static_cast<double>(clock_.elapsed()) * 1e-3 * (1 - fraction_) / fraction_);
}

}  // namespace mw::ui

#include "moc_data_reader.cpp"
