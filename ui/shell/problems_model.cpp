// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problems_model.h"

#include <QColor>
#include <algorithm>
#include <tuple>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

auto fields(const Problem& p) {
  return std::tie(p.id, p.severity, p.message, p.file, p.place, p.found, p.expected, p.fix);
}

bool same(const std::vector<Problem>& a, const std::vector<Problem>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Problem& x, const Problem& y) { return fields(x) == fields(y); });
}

QString message_text(const Problem& p) {
  QString s = qs(p.message);
  if (!s.isEmpty()) s[0] = s[0].toUpper();
  QStringList notes;
  if (!p.found.empty()) notes << ProblemsModel::tr("found %1").arg(qs(p.found));
  if (!p.expected.empty()) notes << ProblemsModel::tr("expected %1").arg(qs(p.expected));
  return notes.isEmpty() ? s : QString(s + u" ("_s + notes.join(u"; "_s) + u')');
}

}  // namespace

void ProblemsModel::set(ProblemSource source, std::vector<Problem> problems) {
  if (same(by_source_[source], problems)) return;
  by_source_[source] = std::move(problems);
  std::vector<Problem> all;
  for (const auto& [from, list] : by_source_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(), [](const Problem& a, const Problem& b) { return a.severity > b.severity; });
  beginResetModel();
  rows_ = std::move(all);
  endResetModel();
  emit counted();
}

int ProblemsModel::count(Severity of) const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [&](const Problem& p) { return p.severity == of; }));
}

int ProblemsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int ProblemsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant ProblemsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Problem& p = problem(index.row());
  if (role == Qt::ToolTipRole) return qs(to_text(p));
  if (role == Qt::ForegroundRole && index.column() == severity) return theme().severity(p.severity);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case severity:
      return p.severity == Severity::error     ? QString(u"\u25CF "_s + tr("Error"))
             : p.severity == Severity::warning ? QString(u"\u25B2 "_s + tr("Warning"))
                                               : QString(u"\u2022 "_s + tr("Note"));
    case place: {
      if (p.file.empty() || p.file == "experiment") return qs(p.place);
      const QString file = qs(p.file.substr(p.file.find_last_of('/') + 1));
      return p.place.empty() ? file : QString(file + u", "_s + qs(p.place));
    }
    case message:
      return message_text(p);
    case fix: {
      QString s = qs(p.fix);
      if (!s.isEmpty()) s[0] = s[0].toUpper();
      return s;
    }
  }
  return {};
}

QVariant ProblemsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case severity:
      return tr("Severity");
    case place:
      return tr("Place");
    case message:
      return tr("Message");
    case fix:
      return tr("Fix");
  }
  return {};
}

}  // namespace mw::ui
