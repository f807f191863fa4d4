// SPDX-License-Identifier: GPL-3.0-or-later
// The charts of the Data page: the lengths of the rows, and the composition of the batches of one epoch, with and
// without packing, as a chart: tokens with loss, other tokens without padding, and padding in percent, with seconds and
// dollars if they are known. GUI thread.
#pragma once
#include <QWidget>

#include "core/views/data_view.h"
#include "ui/charts/chart.h"
#include "ui/charts/chart_data.h"

namespace mw::ui {

class EconomyView : public QWidget {
  Q_OBJECT
 public:
  explicit EconomyView(QWidget* parent = nullptr);
  // `in_force`: the current packing of the document.
  void show_economy(std::optional<views::DataEconomy> economy, data::Packing in_force);
  void set_price(const views::TokenPrice& price, views::PadTo pad_to);  // of the target and its padding
  Chart& chart() { return *chart_; }
  const QString& cost_text() const { return chart_->content().caption; }  // empty: unknown

 private:
  void show_cost();
  ChartLink link_;
  Chart* chart_;
  std::optional<views::DataEconomy> economy_;
  data::Packing in_force_ = data::Packing::none;
  views::TokenPrice price_;
  views::PadTo priced_ = views::PadTo::longest;
};

// The lengths of the rows as data of the histogram.
struct LengthChart {
  ChartStack stack{};
  AxisRange range{};
  QString caption{};
  std::vector<LevelLine> limits{};  // vertical lines
};
LengthChart length_chart(const train::DataIndex& index, const train::DataIndexRequest& request);

}  // namespace mw::ui
