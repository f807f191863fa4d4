// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/manual/manual_book.h"

#include <QDir>
#include <QRegularExpression>
#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr qsizetype kExcerpt = 140, kBefore = 12;  // characters

// The displayed text of a Markdown line, without markup.
QString plain_text(QString markdown) {
  static const QRegularExpression kLink(u"!?\\[([^\\]]*)\\]\\([^)]*\\)"_s), kComment(u"<!--.*?-->"_s);
  markdown.replace(kComment, QString()).replace(kLink, u"\\1"_s);
  return markdown.remove(u'`').remove(u'*').replace(u'|', u' ').simplified();
}

ManualChapter read_chapter(const QString& file, const QString& text) {
  ManualChapter chapter{.file = file, .title = file, .sections = {}};
  bool fenced = false;
  for (const QString& line : text.split(u'\n')) {
    if (line.startsWith(u"```"_s)) fenced = !fenced;
    const qsizetype level = fenced ? 0 : line.indexOf(u' ');
    const bool heading = level > 0 && level <= 6 && line.left(level) == QString(level, u'#');
    if (heading) {
      const QString title = plain_text(line.mid(level + 1));
      chapter.sections.push_back({title, level == 1 ? QString() : manual_anchor(title), static_cast<int>(level), {}});
      if (level == 1) chapter.title = title;
    } else if (!chapter.sections.empty()) {
      chapter.sections.back().text += line + u'\n';
    }
  }
  return chapter;
}

QString excerpt_around(const QString& text, const QString& word) {
  const QString line = plain_text(text);
  const qsizetype at = std::max<qsizetype>(0, line.indexOf(word, 0, Qt::CaseInsensitive) - kBefore);
  return (at > 0 ? u"\u2026"_s : QString()) + line.mid(at, kExcerpt) +
         (at + kExcerpt < line.size() ? u"\u2026"_s : QString());
}

}  // namespace

QString manual_anchor(const QString& heading) {
  QString out;
  for (const QChar c : heading) {
    if (c.isLetterOrNumber() || c == u'_' || c == u'-')
      out += c.toLower();
    else if (c == u' ')
      out += u'-';
  }
  return out;
}

ManualBook::ManualBook(const std::filesystem::path& folder) {
  const QDir dir(qpath(folder));
  for (const QString& file : dir.entryList({u"[0-9][0-9]-*.md"_s}, QDir::Files, QDir::Name)) try {
      chapters_.push_back(read_chapter(file, qs(read_file(fspath(dir.filePath(file))))));
    } catch (const Error&) {  // the other chapters can be read
    }
}

const ManualChapter* ManualBook::find(const QString& file) const {
  const auto at = std::find_if(chapters_.begin(), chapters_.end(), [&](const auto& c) { return c.file == file; });
  return at == chapters_.end() ? nullptr : &*at;
}

std::vector<ManualHit> ManualBook::search(const QString& query) const {
  const QStringList words = query.simplified().split(u' ', Qt::SkipEmptyParts);
  std::vector<ManualHit> hits;
  if (words.isEmpty()) return hits;
  const auto contains_all = [&](const QString& text) {
    return std::all_of(words.begin(), words.end(),
                       [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
  };
  for (const ManualChapter& chapter : chapters_)
    for (const ManualSection& section : chapter.sections) {
      const bool in_heading = contains_all(section.heading);
      if (!in_heading && !contains_all(section.heading + u' ' + section.text)) continue;
      hits.push_back({chapter.file, section.anchor, chapter.title, section.heading,
                      excerpt_around(section.text, words.front()), in_heading});
    }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const ManualHit& a, const ManualHit& b) { return a.in_heading > b.in_heading; });
  return hits;
}

}  // namespace mw::ui
