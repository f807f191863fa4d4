// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/parity_charts.h"

#include <QTableView>
#include <QVBoxLayout>

#include "ui/theme/tables.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kParityChartHeight = 170, kParityTableHeight = 120;

TableColumn<views::ParityRow> difference_column(const QString& title, double views::ParityRow::*member) {
  return number_column<views::ParityRow>(
      title, [member](const views::ParityRow& r) { return value_text(r.*member, Quantity::plain); },
      [member](const views::ParityRow& r) { return r.*member; });
}

TableModel<views::ParityRow>::Columns parity_columns() {
  return {{.title = ParityCharts::tr("Merged model"), .text = [](const views::ParityRow& r) { return qs(r.name); }},
          {.title = ParityCharts::tr("Verdict"), .text = [](const views::ParityRow& r) { return qs(r.verdict); }},
          difference_column(ParityCharts::tr("Largest"), &views::ParityRow::largest),
          difference_column(ParityCharts::tr("Mean"), &views::ParityRow::mean),
          difference_column(ParityCharts::tr("RMS"), &views::ParityRow::rms),
          number_column<views::ParityRow>(ParityCharts::tr("Allowed"),
                                          [](const views::ParityRow& r) -> QString {
                                            return qs(r.measure) + u" "_s + value_text(r.allowed, Quantity::plain);
                                          }),
          {.title = ParityCharts::tr("Text and reason"), .text = [](const views::ParityRow& r) { return qs(r.text); }}};
}

}  // namespace

ParityCharts::ParityCharts(QWidget* parent) : QWidget(parent), rows_(parity_columns()) {
  auto* column = flush_layout<QVBoxLayout>(this, 6);
  auto* charts = make_splitter(Qt::Horizontal, this);
  logits_ =
      new Chart({.title = tr("Difference of logits"), .unit = tr("largest at each position")}, positions_link_, charts);
  layers_ = new Chart({.title = tr("Difference of hidden states"),
                       .unit = tr("relative to the adapter's"),
                       .empty = tr("This model is not run layer by layer")},
                      layers_link_, charts);
  for (Chart* chart : {logits_, layers_}) {
    chart->set_scale(Scale::logarithmic);
    chart->setMinimumHeight(kParityChartHeight);
    charts->addWidget(chart);
  }
  positions_link_.set_x(tr("position"), Quantity::count);
  layers_link_.set_x(tr("layer"), Quantity::count);
  column->addWidget(charts, 1);
  table_ = make_table(rows_, tr("Forms of the merged model"), this);
  copy_on_ctrl_c(*table_);
  table_->setFixedHeight(kParityTableHeight);
  column->addWidget(table_);
  hide();
}

void ParityCharts::show_parity(const train::Parity& parity) {
  const views::ParityView view = views::parity_view(parity);
  std::vector<ChartLine> logits, layers;
  constexpr Marks kShapes[] = {Marks::points, Marks::squares, Marks::triangles};
  for (size_t i = 0; i < view.lines.size(); ++i) {
    const views::ParityLine& line = view.lines[i];
    const auto add = [&](std::vector<ChartLine>& to, const std::shared_ptr<const views::Series>& series) {
      if (!series->empty())
        to.push_back({.name = qs(line.name),
                      .color = theme().series(static_cast<int>(i)),
                      .raw = series,
                      .marks = kShapes[i % std::size(kShapes)]});
    };
    add(logits, line.largest);
    add(layers, line.layers);
  }
  positions_link_.set_data({1, std::max(2.0, view.positions)});
  layers_link_.set_data({0, std::max(1.0, view.layers)});
  logits_->set_lines(std::move(logits));
  layers_->set_lines(std::move(layers));
  rows_.set_rows(view.rows);
  table_->resizeColumnsToContents();
  setVisible(!view.lines.empty());
}

void ParityCharts::clear() {
  hide();
}

}  // namespace mw::ui

#include "moc_parity_charts.cpp"
