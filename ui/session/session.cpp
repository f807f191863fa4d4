// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/session.h"

#include <QSettings>
#include <QStandardPaths>

#include "core/base/file_system.h"
#include "core/base/files.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;
namespace {

constexpr int kRecent = 10;
constexpr int kLayoutVersion = 2;  // layouts of other versions are discarded
constexpr int kJournalVersion = 1;

QSettings settings(const fs::path& folder) {
  return QSettings(qpath(folder / "window.ini"), QSettings::IniFormat);
}

fs::path journal_file(const fs::path& folder) {
  return folder / "unsaved.json";
}

Session::Journal parse_journal(const fs::path& file) {
  const Json j = read_json(file);
  const std::string name = file.string();
  if (int_member(j, "version", name) != kJournalVersion)
    throw Error({.id = "JOURNAL", .message = "a journal of another version", .file = name});
  Session::Journal journal;
  journal.file = string_member(j, "file", name);
  journal.dirty = member(j, "dirty", name) == Json(true);
  journal.snapshot.experiment =
      experiment::Experiment::from_json(member(j, "experiment", name), string_member(j, "folder", name));
  if (j.contains("text") && j["text"].is_string()) journal.snapshot.text = j["text"].get<std::string>();
  return journal;
}

// Null if another window holds the lock or the folder cannot be written.
std::unique_ptr<QLockFile> lock_journal(const fs::path& folder) {
  try {
    make_folders(folder);
  } catch (const Error&) {
    return nullptr;
  }
  auto lock = std::make_unique<QLockFile>(qpath(folder / "unsaved.lock"));
  lock->setStaleLockTime(0);  // the lock of a dead process is stale at any age
  return lock->tryLock(0) ? std::move(lock) : nullptr;
}

}  // namespace

Session::Session(fs::path folder) : folder_(std::move(folder)) {
  if (is_persistent()) {
    keep_private(folder_);  // documents may contain URLs with passwords
    journal_lock_ = lock_journal(folder_);
  }
  if (is_persistent() && settings(folder_).value(u"layout_version"_s, 0).toInt() != kLayoutVersion) {
    QSettings s = settings(folder_);
    s.remove(u"layout"_s);
    s.setValue(u"layout_version"_s, kLayoutVersion);
  }
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
  if (!has_journal()) return std::nullopt;
  const fs::path file = journal_file(folder_);
  if (!path_exists(file)) return std::nullopt;
  try {
    return parse_journal(file);
  } catch (const Error&) {
    file_system().rename(file.c_str(), fs::path(file).concat(".unreadable").c_str());
    return std::nullopt;
  }
}

void Session::write_journal(const Document& document) {
  if (!has_journal()) return;
  Json j{{"version", kJournalVersion},
         {"file", document.file().string()},
         {"folder", document.experiment().folder().string()},
         {"dirty", document.is_dirty()},
         {"experiment", document.experiment().json()}};
  if (document.snapshot().text) j["text"] = valid_utf8(*document.snapshot().text);
  write_file_atomically(journal_file(folder_), j.dump(1, ' ', false, Json::error_handler_t::replace));
}

fs::path default_session_folder() {
  return fspath(QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)) / "meshwright";
}

}  // namespace mw::ui
