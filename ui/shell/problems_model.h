// SPDX-License-Identifier: GPL-3.0-or-later
// All that is wrong, by where it was found: the document, its prediction, files, runs. Errors first.
#pragma once
#include <QAbstractTableModel>
#include <initializer_list>
#include <map>
#include <vector>

#include "core/planning/diagnostics.h"

namespace mw::ui {

enum class ProblemSource { document, prediction, checker, file, run, store };

class ProblemsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { severity, place, message, fix, columns };
  using QAbstractTableModel::QAbstractTableModel;
  void set_diagnostics(ProblemSource source, std::vector<planning::Diagnostic> diagnostics);
  void set(ProblemSource source, const std::vector<Problem>& problems);
  void clear(ProblemSource source) { set(source, std::vector<Problem>{}); }
  const planning::Diagnostic& diagnostic(int row) const { return rows_[static_cast<size_t>(row)]; }
  const Problem& problem(int row) const { return diagnostic(row).problem; }
  int count(Severity of) const;
  int count(Severity of, std::initializer_list<ProblemSource> from) const;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 signals:
  void counted();

 private:
  std::map<ProblemSource, std::vector<planning::Diagnostic>> by_source_;
  std::vector<planning::Diagnostic> rows_;
};

}  // namespace mw::ui
