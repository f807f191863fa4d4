// SPDX-License-Identifier: GPL-3.0-or-later
// Table models of a proposed calibration: predicted and measured rows, and the resulting efficiencies. GUI thread.
#pragma once
#include <QAbstractTableModel>
#include <memory>

#include "core/planning/calibrating.h"

namespace mw::ui {

using CalibratedPtr = std::shared_ptr<const planning::CalibrationResult>;

class CalibrationModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;
  void show(CalibratedPtr calibrated);  // null or without a proposal: empty
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 protected:
  virtual QString title(int column) const = 0;
  virtual QString text(int row, int column) const = 0;
  virtual QString help(int row) const = 0;
  virtual bool number(int column) const = 0;  // aligned to the right
  virtual QVariant color(int row, int column) const = 0;
  const plan::Proposal* proposal() const {
    return calibrated_ && calibrated_->proposal ? &*calibrated_->proposal : nullptr;
  }

 private:
  CalibratedPtr calibrated_;
};

class CalibrationRowsModel : public CalibrationModel {
  Q_OBJECT
 public:
  enum Column {
    row,
    chip,
    stack,
    use,
    measured,
    now,
    held_out,
    fitted,
    error_now,
    error_held_out,
    error_fitted,
    columns
  };
  using CalibrationModel::CalibrationModel;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;

 protected:
  QString title(int column) const override;
  QString text(int row, int column) const override;
  QString help(int row) const override;
  bool number(int column) const override { return column >= measured; }
  QVariant color(int row, int column) const override;
};

class EfficienciesModel : public CalibrationModel {
  Q_OBJECT
 public:
  enum Column { name, chip, stack, before, after, interval, rows, columns };
  using CalibrationModel::CalibrationModel;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;

 protected:
  QString title(int column) const override;
  QString text(int row, int column) const override;
  QString help(int row) const override;
  bool number(int column) const override { return column >= before; }
  QVariant color(int row, int column) const override;
};

}  // namespace mw::ui
