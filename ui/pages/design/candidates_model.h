// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the plans that a search found, best first; sortable by every column through a proxy. GUI thread.
#pragma once
#include <QAbstractTableModel>

#include <memory>

#include "core/planning/search_experiment.h"

namespace mw::ui {

class CandidatesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { pareto, target, mesh, batch, remat, loss, step, speed, hours, usd, memory, columns };
  enum Role { value_role = Qt::UserRole };  // the number behind the text
  using QAbstractTableModel::QAbstractTableModel;
  void show(std::shared_ptr<const planning::ExperimentSearch> found);
  const plan::Candidate& candidate(int row) const { return found_->result.candidates[static_cast<size_t>(row)]; }
  bool column_used(int column) const;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant number(const plan::Candidate& c, int column) const;
  QString text(const plan::Candidate& c, int column) const;
  bool serving() const { return found_->request.work != plan::Work::train; }
  std::shared_ptr<const planning::ExperimentSearch> found_;
};

}  // namespace mw::ui
