// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/cost_view.h"

#include <QScrollArea>
#include <QStackedWidget>
#include <map>

#include "ui/charts/chart_types.h"

namespace mw::ui {
namespace {

using plan::CostClass;

constexpr size_t kMostSwings = 6;

// The names of the inputs are longer than the ticks of a narrow chart.
QString brief(const std::string& input) {
  static const std::map<std::string, const char*> kBrief{
      {"requests per day", QT_TRANSLATE_NOOP("QObject", "requests")},
      {"capacity of a server", QT_TRANSLATE_NOOP("QObject", "capacity")},
      {"price of serving", QT_TRANSLATE_NOOP("QObject", "serve $")},
      {"price of training", QT_TRANSLATE_NOOP("QObject", "train $")},
      {"training hours", QT_TRANSLATE_NOOP("QObject", "train h")},
      {"start of a server", QT_TRANSLATE_NOOP("QObject", "start")}};
  const auto known = kBrief.find(input);
  return known == kBrief.end() ? qs(input) : QObject::tr(known->second);
}

}  // namespace

CostModel::CostModel()
    : TableModel(
          [] {
            Columns columns{{.title = tr("Cost"), .text = [](const CostRow& r) { return r.name; }}};
            for (const CostClass c : all_values<CostClass>())
              columns.push_back(
                  number(qs(to_string(c)), [c](const auto& r) { return r.texts[static_cast<size_t>(c)]; }));
            return columns;
          }(),
          [](const CostRow& r, int, int role) { return role == Qt::ToolTipRole ? QVariant(r.tooltip) : QVariant(); }) {}

void CostModel::show(const plan::CostPlan& cost) {
  std::vector<CostRow> rows;
  const auto add = [&](const QString& name, const QString& tooltip, auto text) {
    CostRow& row = rows.emplace_back(CostRow{name, tooltip});
    for (size_t c = 0; c < row.texts.size(); ++c)
      row.texts[c] = cost.classes[c].cost ? text(*cost.classes[c].cost) : tr("no price");
  };
  const auto usd = [](double value) { return qs(to_text(Usd(value))); };
  using Total = plan::TotalCost;
  add(tr("Training"), tr("Hours of training at this price"), [&](const Total& c) { return usd(c.training); });
  add(tr("Serving"), tr("Servers for the peak of every month"), [&](const Total& c) { return usd(c.serving); });
  add(tr("Starts"), tr("Compilation before each server serves"), [&](const Total& c) { return usd(c.starting); });
  add(tr("Preempted"), tr("Work that is lost when machines are taken away"),
      [&](const Total& c) { return usd(c.preempted); });
  add(tr("Total"), tr("Training and serving over all months"), [&](const Total& c) { return usd(c.total()); });
  add(tr("Servers"), tr("In the first and in the last month"),
      [](const Total& c) { return tr("%1 to %2").arg(c.first_servers).arg(c.last_servers); });
  add(tr("1M requests"), tr("Total cost of a million requests"),
      [&](const Total& c) { return usd(c.requests > 0 ? c.total() / c.requests * 1e6 : 0); });
  set_rows(std::move(rows), [](const CostRow& a, const CostRow& b) { return a.name == b.name; });
}

CostView::CostView(QWidget* parent)
    : QWidget(parent),
      stack_(new QStackedWidget(this)),
      load_(new QLabel),
      break_even_(new QLabel),
      table_(make_table(model_, tr("Total cost by price class"))),
      chart_(new Chart({.title = tr("What moves the total"), .unit = tr("USD"), .from_zero = true}, by_input_)) {
  flush_layout<QVBoxLayout>(this, 0)->addWidget(stack_);
  stack_->addWidget(empty_page(tr("No total cost yet"),
                               tr("Say how many requests a day are served,\nand for a training on which target."),
                               {{tr("Set Requests"), [this] { emit setting_wanted(u"cost.requests_per_day"_s); }},
                                {tr("Set Serving Target"), [this] { emit setting_wanted(u"serve.target"_s); }}},
                               this)
                        .page);
  auto* body = new QWidget;
  body->setObjectName(u"panelBody"_s);
  body->setAttribute(Qt::WA_StyledBackground);
  auto* column = make_layout<QVBoxLayout>(body, {2, 2, 0, 0}, 3);
  for (QLabel* label : {load_, break_even_}) {
    label->setWordWrap(true);
    label->setContentsMargins(8, 0, 8, 0);
    column->addWidget(label);
  }
  load_->setAccessibleName(tr("Load and servers"));
  break_even_->setAccessibleName(tr("Break-even with the pinned design"));
  constexpr int kTableHeight = 190, kChartHeight = 150;
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setFixedHeight(kTableHeight);
  chart_->setMinimumHeight(kChartHeight);
  column->addWidget(table_);
  column->addWidget(chart_, 1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(body);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  stack_->addWidget(scroll);
}

QString CostView::load() const {
  return load_->text();
}

QString CostView::break_even() const {
  return break_even_->text();
}

void CostView::show_cost(const plan::CostPlan* cost, const plan::CostPlan* pinned) {
  stack_->setCurrentIndex(cost ? 1 : 0);
  if (!cost) return;
  load_->setText(qs(plan::load_text(*cost)).trimmed());
  break_even_->setText(pinned ? qs(plan::break_even_text(*pinned, *cost)) : QString());
  break_even_->setVisible(pinned);
  model_.show(*cost);
  show_swings(*cost);
}

// Bars of what an input saves and adds, when it is lower or higher by the variation.
void CostView::show_swings(const plan::CostPlan& cost) {
  ChartBars bars{.layers = {{tr("saves"), theme().good}, {tr("adds"), theme().warn}}};
  std::vector<Tick> stops;
  const auto& on_demand = cost.classes.front().cost;
  const double base = on_demand ? on_demand->total() : 0;
  for (size_t i = 0; i < std::min(kMostSwings, cost.swings.size()); ++i) {
    const plan::Swing& s = cost.swings[i];
    const auto [low, high] = std::minmax(s.low_usd, s.high_usd);
    bars.bars.push_back({.values = {std::max(0.0, base - low), std::max(0.0, high - base)}});
    stops.push_back({static_cast<double>(i), brief(s.input)});
  }
  const auto count = static_cast<double>(bars.bars.size());
  by_input_.set_x(tr("input, moved by %1 %").arg(100 * cost.variation, 0, 'f', 0), AxisQuantity::plain);
  by_input_.set_stops(std::move(stops));
  by_input_.set_data({-0.5, std::max(0.5, count - 0.5)});
  if (!bars.bars.empty()) bars.overall = bars.bars.back().values;
  chart_->set_stack(bar_stack(bars));
}

}  // namespace mw::ui

#include "moc_cost_view.cpp"
