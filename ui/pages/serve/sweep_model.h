// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the points of a sweep with vLLM's names and units (ms, tokens/s) and marks for audit findings. GUI
// thread.
#pragma once
#include <QAbstractTableModel>

#include "ui/run_views/sweep_lines.h"

namespace mw::ui {

class SweepModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { input_len, request_rate, verdict, audit, first_number };  // then vLLM's metrics
  enum Role { value_role = Qt::UserRole };
  using QAbstractTableModel::QAbstractTableModel;

  void show(SweepViewPtr view);
  bool column_used(int column) const;
  QString csv() const;  // full precision

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const formats::BenchPoint& point(int row) const { return view_->set.points[static_cast<size_t>(row)]; }
  QString text(int row, int column) const;
  QString notes(int row) const;  // all findings for the point
  serve::Verdict worst(int row) const;
  const serve::Finding* finding(int row, int column) const;
  SweepViewPtr view_;
};

}  // namespace mw::ui
