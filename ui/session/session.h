// SPDX-License-Identifier: GPL-3.0-or-later
// Stores the state of the window between sessions in one folder: layout, theme, recent files, and a journal of the
// unsaved document. With an empty path nothing is read or written. Every window has a journal of its own, which a lock
// protects from the others. That of the first window is restored at the next start; that of a further window is removed
// when the window is closed, and otherwise offered at the next start. GUI thread.
#pragma once
#include <QDateTime>
#include <QLockFile>
#include <QStringList>
#include <QVariant>
#include <filesystem>
#include <memory>
#include <vector>

#include "ui/session/document.h"

namespace mw::ui {

class Session {
 public:
  explicit Session(std::filesystem::path folder);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  QVariant value(const QString& key, const QVariant& fallback = {}) const;
  void set_value(const QString& key, const QVariant& value);
  QStringList recent() const;
  void add_recent(const QString& file);

  struct Journal {
    Document::Snapshot snapshot;
    std::filesystem::path file;  // may be empty
    bool dirty = false;
  };
  // Renames a journal that cannot be read instead of deleting it.
  std::optional<Journal> read_journal() const;
  void write_journal(const Document& document);  // throws Error if it cannot be written
  bool is_persistent() const { return !folder_.empty(); }
  // Whether the next start restores the journal. If not, closing the window loses unsaved edits.
  bool has_journal() const { return slot_ == 0; }
  // Keeps the journal of a further window that closes without asking; the next start offers it.
  void keep_journal() { keep_journal_ = true; }

  // A window that ended without being closed, for example in a crash.
  struct LostWindow {
    int slot = 0;
    std::optional<Journal> edits{};       // unsaved; empty: none, or restored by this window
    bool restored_here = false;           // this window has its journal
    QDateTime when{};                     // of the last change to its files
    std::optional<std::string> report{};  // see core/base/crash_report.h
    std::shared_ptr<QLockFile> lock{};    // other windows do not offer it meanwhile
  };
  // Found when this object was made.
  const std::vector<LostWindow>& lost_windows() const { return lost_; }
  void forget(int slot);                            // removes the files of the lost window
  std::filesystem::path crash_report_file() const;  // of this window; empty: none

 private:
  void find_lost_windows();
  void choose_slot();
  std::filesystem::path folder_;
  int slot_ = -1;  // of this window; -1: none
  std::unique_ptr<QLockFile> lock_;
  bool keep_journal_ = false;
  std::vector<LostWindow> lost_;
};

std::filesystem::path default_session_folder();  // $XDG_CONFIG_HOME/meshwright, by default ~/.config/meshwright

}  // namespace mw::ui
