// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/cost_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/theme/tables.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

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
              columns.push_back(number_column<CostRow>(
                  qs(to_string(c)), [c](const CostRow& r) { return r.texts[static_cast<size_t>(c)]; }));
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
  struct Bar {
    double less = 0, more = 0;
  };
  const auto bars = std::make_shared<std::vector<Bar>>();
  std::vector<Tick> stops;
  const auto& on_demand = cost.classes.front().cost;
  const double base = on_demand ? on_demand->total() : 0;
  for (size_t i = 0; i < std::min(kMostSwings, cost.swings.size()); ++i) {
    const plan::Swing& s = cost.swings[i];
    const auto [low, high] = std::minmax(s.low_usd, s.high_usd);
    bars->push_back({std::max(0.0, base - low), std::max(0.0, high - base)});
    stops.push_back({static_cast<double>(i), brief(s.input)});
  }
  const auto count = static_cast<double>(bars->size());
  by_input_.set_x(tr("input, moved by %1 %").arg(100 * cost.variation, 0, 'f', 0), Quantity::plain);
  by_input_.set_stops(std::move(stops));
  by_input_.set_data({-0.5, std::max(0.5, count - 0.5)});
  ChartStack stack;
  if (!bars->empty()) {
    stack.shape = Shape::bars;
    stack.layers = {{tr("saves"), theme().good}, {tr("adds"), theme().warn}};
    stack.sample = [bars](double x0, double x1, int) {
      Stack out;
      out.values.resize(2);
      for (size_t i = 0; i < bars->size(); ++i) {
        const auto x = static_cast<double>(i);
        if (x < x0 || x > x1) continue;
        out.x.push_back(x);
        out.values[0].push_back((*bars)[i].less);
        out.values[1].push_back((*bars)[i].more);
      }
      return out;
    };
    stack.at = [bars](double x) {
      const auto i = static_cast<size_t>(std::clamp(std::round(x), 0.0, static_cast<double>(bars->size() - 1)));
      return std::vector<double>{(*bars)[i].less, (*bars)[i].more};
    };
    stack.highest = [bars](double, double) {
      double most = 0;
      for (const Bar& bar : *bars) most = std::max(most, bar.less + bar.more);
      return most;
    };
    stack.origin = [](double) { return Origin::predicted; };
  }
  chart_->set_stack(std::move(stack));
}

}  // namespace mw::ui

#include "moc_cost_view.cpp"
