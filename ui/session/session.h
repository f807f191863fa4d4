// SPDX-License-Identifier: GPL-3.0-or-later
// Stores the state of the window between sessions in one folder: layout, theme, recent files, and a journal of the
// unsaved document, which is restored at the next start. With an empty path nothing is read or written. A lock assigns
// the journal to one window; other windows neither read nor write it. GUI thread.
#pragma once
#include <QLockFile>
#include <QStringList>
#include <QVariant>
#include <filesystem>
#include <memory>
#include <optional>

#include "ui/session/document.h"

namespace mw::ui {

class Session {
 public:
  explicit Session(std::filesystem::path folder);

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
  bool has_journal() const { return journal_lock_ != nullptr; }  // false: unsaved edits are lost with the window

 private:
  std::filesystem::path folder_;
  std::unique_ptr<QLockFile> journal_lock_;
};

std::filesystem::path default_session_folder();  // $XDG_CONFIG_HOME/meshwright, by default ~/.config/meshwright

}  // namespace mw::ui
