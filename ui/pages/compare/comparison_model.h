// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of a comparison: a row per key, a column per run, changes against the first run, marks for audit findings
// and missed SLOs. GUI thread.
#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "core/compare/comparison.h"

namespace mw::ui {

enum class RowsShown { differing, all };

class ComparisonModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role { marked_role = Qt::UserRole, impossible_role, over_slo_role };
  using QAbstractTableModel::QAbstractTableModel;
  using Ptr = std::shared_ptr<const compare::Comparison>;

  void show(Ptr comparison);
  void set_shown(RowsShown shown);
  RowsShown shown() const { return shown_; }
  void set_slo(const serve::Slo& slo);
  void set_emphasis(int column);  // of a run; -1: none
  const compare::ComparisonRow& row(int row) const { return comparison_->rows[rows_[static_cast<size_t>(row)]]; }
  int marked_cells() const;
  int cells_over_slo() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  void refill();
  bool over_slo(const compare::ComparisonRow& row, size_t column) const;
  QString cell(const compare::ComparisonRow& row, size_t column) const;
  QString tip(const compare::ComparisonRow& row, size_t column) const;
  Ptr comparison_;
  std::vector<size_t> rows_;
  RowsShown shown_ = RowsShown::differing;
  serve::Slo slo_;
  int emphasis_ = -1;
};

// "▼ 96 %", "▲ 3.2 x", "=": the glyph shows the direction independently of colour.
QString delta_text(double delta);
// The SLO limit for the key of a result, in ms; 0: none.
double slo_of_key(const serve::Slo& slo, std::string_view key);

}  // namespace mw::ui
