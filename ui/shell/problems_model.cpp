// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problems_model.h"

#include <QColor>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

bool same(const std::vector<planning::Diagnostic>& a, const std::vector<planning::Diagnostic>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return planning::same(x, y); });
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

void ProblemsModel::set(ProblemSource source, const std::vector<Problem>& problems) {
  std::vector<planning::Diagnostic> diagnostics;
  for (const Problem& p : problems) diagnostics.push_back({.problem = p, .why = {}, .evidence = {}});
  set_diagnostics(source, std::move(diagnostics));
}

void ProblemsModel::set_diagnostics(ProblemSource source, std::vector<planning::Diagnostic> diagnostics) {
  if (same(by_source_[source], diagnostics)) return;
  by_source_[source] = std::move(diagnostics);
  std::vector<planning::Diagnostic> all;
  for (const auto& [from, list] : by_source_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.problem.severity > b.problem.severity; });
  beginResetModel();
  rows_ = std::move(all);
  endResetModel();
  emit counted();
}

int ProblemsModel::count(Severity of) const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [&](const auto& d) { return d.problem.severity == of; }));
}

int ProblemsModel::count(Severity of, std::initializer_list<ProblemSource> from) const {
  std::ptrdiff_t n = 0;
  for (const ProblemSource source : from)
    if (const auto list = by_source_.find(source); list != by_source_.end())
      n += std::count_if(list->second.begin(), list->second.end(),
                         [&](const auto& d) { return d.problem.severity == of; });
  return static_cast<int>(n);
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
