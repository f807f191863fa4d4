// SPDX-License-Identifier: GPL-3.0-or-later
// The chapters of the manual as text: their headings, and a search over all of them. Plain values; any thread.
#pragma once
#include <QString>
#include <filesystem>
#include <vector>

namespace mw::ui {

struct ManualSection {
  QString heading, anchor;  // anchor as GitHub makes it; that of the chapter's title is empty
  int level = 1;            // 1: the chapter itself
  QString text;             // Markdown below the heading, up to the next one
};

struct ManualChapter {
  QString file;  // "03-training.md"
  QString title;
  std::vector<ManualSection> sections;
};

struct ManualHit {
  QString file, anchor, chapter, heading;
  QString excerpt;  // one line around the first match
  bool in_heading = false;
};

class ManualBook {
 public:
  // Reads the chapters NN-name.md of the folder, in their order. A chapter that cannot be read is left out.
  explicit ManualBook(const std::filesystem::path& folder);
  const std::vector<ManualChapter>& chapters() const { return chapters_; }
  const ManualChapter* find(const QString& file) const;
  // Sections that contain every word of the query, whatever their case: matches in headings first.
  std::vector<ManualHit> search(const QString& query) const;

 private:
  std::vector<ManualChapter> chapters_;
};

QString manual_anchor(const QString& heading);  // "Your own hardware" becomes "your-own-hardware"

}  // namespace mw::ui
