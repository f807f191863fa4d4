// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers: layout and theme, recent files, and a journal of the unsaved document that is brought
// back at the next start instead of a question at closing. One folder; empty path: nothing is read or written.
// The journal belongs to one window at a time: a second one that is opened meanwhile neither reads nor writes it.
#pragma once
#include <QByteArray>
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

  struct Left {
    Document::Snapshot snapshot;
    std::filesystem::path file;  // may be empty
    bool dirty = false;
  };
  // A journal that cannot be read is set aside under another name, never deleted.
  std::optional<Left> journal() const;
  void write_journal(const Document& document);  // throws Error when the folder refuses
  bool persistent() const { return !folder_.empty(); }
  bool has_journal() const { return journal_lock_ != nullptr; }  // false: unsaved edits do not outlive the window

 private:
  std::filesystem::path folder_;
  std::unique_ptr<QLockFile> journal_lock_;
};

std::filesystem::path default_session_folder();  // $XDG_CONFIG_HOME/meshwright or its usual place

}  // namespace mw::ui
