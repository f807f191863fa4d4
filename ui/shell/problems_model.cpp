// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problems_model.h"

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

QString message_text(const Problem& p) {
  const QString s = capitalized(qs(p.message));
  QStringList notes;
  if (!p.found.empty()) notes << ProblemsModel::tr("found %1").arg(qs(p.found));
  if (!p.expected.empty()) notes << ProblemsModel::tr("expected %1").arg(qs(p.expected));
  return notes.isEmpty() ? s : QString(s + u" ("_s + notes.join(u"; "_s) + u')');
}

QString severity_text(const Problem& p) {
  return p.severity == Severity::error     ? ProblemsModel::tr("\u25CF Error")
         : p.severity == Severity::warning ? ProblemsModel::tr("\u25B2 Warning")
                                           : ProblemsModel::tr("\u2022 Note");
}

QString place_text(const Problem& p) {
  if (p.file.empty() || p.file == "experiment") return qs(p.place);
  const QString file = qs(p.file.substr(p.file.find_last_of('/') + 1));
  return p.place.empty() ? file : QString(file + u", "_s + qs(p.place));
}

QString fix_text(const lint::Diagnostic& d) {
  return capitalized(qs(d.fixes.empty() ? d.problem.fix : d.fixes.front().label));
}

}  // namespace

ProblemsModel::ProblemsModel()
    : TableModel({{.title = tr("Severity"), .text = [](const auto& d) { return severity_text(d.problem); }},
                  {.title = tr("Place"), .text = [](const auto& d) { return place_text(d.problem); }},
                  {.title = tr("Message"), .text = [](const auto& d) { return message_text(d.problem); }},
                  {.title = tr("What to do"), .text = [](const auto& d) { return fix_text(d); }},
                  {.title = tr("Fix"), .text = [](const auto&) { return QString(); }}},
                 [](const lint::Diagnostic& d, int column, int role) -> QVariant {
                   if (role == Qt::ToolTipRole) return qs(to_text(d.problem));
                   const bool coloured = role == Qt::ForegroundRole && column == severity;
                   return coloured ? QVariant(theme().severity(d.problem.severity)) : QVariant();
                 }) {}

void ProblemsModel::set(ProblemSource source, const std::vector<Problem>& problems) {
  std::vector<lint::Diagnostic> diagnostics;
  for (const Problem& p : problems) diagnostics.push_back({.problem = p, .why = {}, .evidence = {}});
  set_diagnostics(source, std::move(diagnostics));
}

void ProblemsModel::set_diagnostics(ProblemSource source, std::vector<lint::Diagnostic> diagnostics) {
  if (by_source_[source] == diagnostics) return;
  by_source_[source] = std::move(diagnostics);
  std::vector<lint::Diagnostic> all;
  for (const auto& [from, list] : by_source_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.problem.severity > b.problem.severity; });
  set_rows(std::move(all));
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

}  // namespace mw::ui

#include "moc_problems_model.cpp"
