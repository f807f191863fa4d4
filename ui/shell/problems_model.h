// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of all problems by source: document, prediction, files, runs. Errors come first. GUI thread.
#pragma once
#include <initializer_list>
#include <map>
#include <vector>

#include "core/lint/fixes/diagnostics.h"
#include "ui/session/workspace.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class ProblemsModel : public TableModel<lint::Diagnostic> {
  Q_OBJECT
 public:
  enum Column { severity, place, message, fix, apply };
  ProblemsModel();
  void set_diagnostics(ProblemSource source, std::vector<lint::Diagnostic> diagnostics);
  void set(ProblemSource source, const std::vector<Problem>& problems);
  void clear(ProblemSource source) { set(source, std::vector<Problem>{}); }
  const Problem& problem(int at) const { return row(at).problem; }
  int count(Severity of) const;
  int count(Severity of, std::initializer_list<ProblemSource> from) const;

 signals:
  void counted();

 private:
  std::map<ProblemSource, std::vector<lint::Diagnostic>> by_source_;
};

}  // namespace mw::ui
