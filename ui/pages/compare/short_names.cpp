// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/short_names.h"

#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr qsizetype kMost = 26;
enum class Kept { both_ends, beginning, end };

QString shortened(const QString& name, Kept kept) {
  if (name.size() <= kMost) return name;
  switch (kept) {
    case Kept::both_ends:
      return name.left(kMost / 2) + u'\u2026' + name.right(kMost / 2 - 1);
    case Kept::beginning:
      return name.left(kMost - 1) + u'\u2026';
    case Kept::end:
      return u'\u2026' + name.right(kMost - 1);
  }
  return name;
}

}  // namespace

QStringList short_names(const QStringList& names) {
  QStringList all;
  for (const QString& name : names) all << shortened(name, Kept::both_ends);
  for (const Kept kept : {Kept::beginning, Kept::end}) {
    const QStringList before = all;
    for (qsizetype i = 0; i < all.size(); ++i)
      if (before.count(before[i]) > 1) all[i] = shortened(names[i], kept);
  }
  return all;
}

QStringList short_names(const std::vector<compare::ComparedRun>& runs) {
  QStringList names;
  for (const compare::ComparedRun& run : runs) names << qs(run.name);
  return short_names(names);
}

}  // namespace mw::ui
