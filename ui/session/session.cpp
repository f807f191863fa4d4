// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/session.h"

#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>

#include "core/base/crash_report.h"
#include "core/base/file_system.h"
#include "core/base/files.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

constexpr int kRecent = 10;
constexpr int kLayoutVersion = 2;  // layouts of other versions are discarded
constexpr int kJournalVersion = 1;
constexpr int kMostWindows = 32;  // with a journal

QSettings settings(const fs::path& folder) {
  return QSettings(qpath(folder / "window.ini"), QSettings::IniFormat);
}

// The files of a window: "unsaved.json" of the first, "unsaved-2.json" of the second.
fs::path file_of(const fs::path& folder, const char* stem, int slot, const char* ending) {
  return folder / (stem + (slot > 0 ? "-" + std::to_string(slot + 1) : std::string()) + ending);
}
fs::path journal_file(const fs::path& folder, int slot) {
  return file_of(folder, "unsaved", slot, ".json");
}
fs::path report_file(const fs::path& folder, int slot) {
  return file_of(folder, "crash", slot, ".txt");
}
// The report of the window before this one in the first slot, whose own report has the same name.
fs::path previous_report(const fs::path& folder) {
  return folder / "crash-previous.txt";
}

Session::Journal parse_journal(const fs::path& file) {
  const Json j = read_json(file);
  const std::string name = file.string();
  if (int_member(j, "version", name) != kJournalVersion)
    throw Error("JOURNAL", "a journal of another version", {.file = name});
  Session::Journal journal;
  journal.file = string_member(j, "file", name);
  journal.dirty = member(j, "dirty", name) == Json(true);
  journal.snapshot.experiment =
      experiment::Experiment::from_json(member(j, "experiment", name), string_member(j, "folder", name));
  if (j.contains("text") && j["text"].is_string()) journal.snapshot.text = j["text"].get<std::string>();
  return journal;
}

// Null if another window holds the lock or the folder cannot be written.
std::unique_ptr<QLockFile> lock_slot(const fs::path& folder, int slot) {
  auto lock = std::make_unique<QLockFile>(qpath(file_of(folder, "unsaved", slot, ".lock")));
  lock->setStaleLockTime(0);  // the lock of a dead process is stale at any age
  return lock->tryLock(0) ? std::move(lock) : nullptr;
}

std::optional<Session::Journal> journal_in(const fs::path& file) {
  if (!path_exists(file)) return std::nullopt;
  try {
    return parse_journal(file);
  } catch (const Error&) {
    file_system().rename(file.c_str(), fs::path(file).concat(".unreadable").c_str());
    return std::nullopt;
  }
}

QDateTime time_of(const fs::path& file) {
  return QFileInfo(qpath(file)).lastModified();
}

}  // namespace

Session::Session(fs::path folder) : folder_(std::move(folder)) {
  if (!is_persistent()) return;
  keep_private(folder_);  // documents may contain URLs with passwords
  try {
    make_folders(folder_);
    choose_slot();
    find_lost_windows();
  } catch (const Error&) {
    // Without a folder for it, nothing is remembered.
  }
  if (settings(folder_).value(u"layout_version"_s, 0).toInt() != kLayoutVersion) {
    QSettings s = settings(folder_);
    s.remove(u"layout"_s);
    s.setValue(u"layout_version"_s, kLayoutVersion);
  }
}

Session::~Session() {
  if (slot_ > 0 && !keep_journal_) file_system().unlink(journal_file(folder_, slot_).c_str());
}

// The first free slot. A further window leaves the slots of lost windows alone.
void Session::choose_slot() {
  for (int slot = 0; slot < kMostWindows && slot_ < 0; ++slot) {
    if (slot > 0 && (path_exists(journal_file(folder_, slot)) || path_exists(report_file(folder_, slot)))) continue;
    if ((lock_ = lock_slot(folder_, slot))) slot_ = slot;
  }
}

void Session::find_lost_windows() {
  if (slot_ == 0 && path_exists(report_file(folder_, 0)))
    file_system().rename(report_file(folder_, 0).c_str(), previous_report(folder_).c_str());
  for (int slot = 0; slot < kMostWindows; ++slot) {
    const fs::path journal = journal_file(folder_, slot);
    const fs::path report = slot > 0 ? report_file(folder_, slot) : previous_report(folder_);
    if (slot == 0 && slot_ != 0) continue;  // the first window is open
    // The journal of the first window also remains when it is closed.
    if (!path_exists(report) && (slot == 0 || !path_exists(journal))) continue;
    LostWindow lost{.slot = slot, .restored_here = slot == slot_};
    if (!lost.restored_here && !(lost.lock = lock_slot(folder_, slot))) continue;  // it is open
    if (const auto left = lost.restored_here ? std::nullopt : journal_in(journal); left && left->dirty)
      lost.edits = left;
    lost.report = read_crash_report(report);
    lost.when = time_of(path_exists(report) ? report : journal);
    lost_.push_back(std::move(lost));
  }
}

void Session::forget(int slot) {
  if (slot == 0) {
    file_system().unlink(previous_report(folder_).c_str());
  } else {
    file_system().unlink(report_file(folder_, slot).c_str());
    file_system().unlink(journal_file(folder_, slot).c_str());
  }
  lost_.erase(std::remove_if(lost_.begin(), lost_.end(), [&](const LostWindow& lost) { return lost.slot == slot; }),
              lost_.end());
}

fs::path Session::crash_report_file() const {
  return slot_ < 0 ? fs::path() : report_file(folder_, slot_);
}

QVariant Session::value(const QString& key, const QVariant& fallback) const {
  return is_persistent() ? settings(folder_).value(key, fallback) : fallback;
}

void Session::set_value(const QString& key, const QVariant& value) {
  if (is_persistent()) settings(folder_).setValue(key, value);
}

QStringList Session::recent() const {
  QStringList files = value(u"recent"_s).toStringList();
  files.erase(std::remove_if(files.begin(), files.end(), [](const QString& f) { return !path_exists(fspath(f)); }),
              files.end());
  return files;
}

void Session::add_recent(const QString& file) {
  QStringList files = value(u"recent"_s).toStringList();
  files.removeAll(file);
  files.prepend(file);
  while (files.size() > kRecent) files.removeLast();
  set_value(u"recent"_s, files);
}

std::optional<Session::Journal> Session::read_journal() const {
  return has_journal() ? journal_in(journal_file(folder_, slot_)) : std::nullopt;
}

void Session::write_journal(const Document& document) {
  if (slot_ < 0) return;
  if (slot_ > 0 && !document.is_dirty()) {
    file_system().unlink(journal_file(folder_, slot_).c_str());
    return;
  }
  Json j{{"version", kJournalVersion},
         {"file", document.file().string()},
         {"folder", document.experiment().folder().string()},
         {"dirty", document.is_dirty()},
         {"experiment", document.experiment().json()}};
  if (document.snapshot().text) j["text"] = valid_utf8(*document.snapshot().text);
  write_file_atomically(journal_file(folder_, slot_), j.dump(1, ' ', false, Json::error_handler_t::replace));
}

fs::path default_session_folder() {
  return fspath(QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)) / "meshwright";
}

}  // namespace mw::ui
