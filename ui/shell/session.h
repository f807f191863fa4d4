// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers: layout and theme, recent files, and a journal of the unsaved document that is brought
// back at the next start instead of a question at closing. One folder; empty path: nothing is read or written.
#pragma once
#include <QByteArray>
#include <QStringList>
#include <QVariant>
#include <filesystem>
#include <optional>

#include "ui/shell/document.h"

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

 private:
  std::filesystem::path folder_;
};

std::filesystem::path default_session_folder();  // $XDG_CONFIG_HOME/meshwright or its usual place

}  // namespace mw::ui
