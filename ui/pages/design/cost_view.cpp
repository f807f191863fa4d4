// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/cost_view.h"

#include <QHeaderView>
#include <QLabel>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "ui/theme/tables.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using planning::CostOfClass;

constexpr size_t kMostSwings = 6;

TableColumn<CostOfClass> usd_column(const QString& title, const QString& tooltip,
                                    std::function<double(const plan::TotalCost&)> usd) {
  auto column = number_column<CostOfClass>(
      title, [usd](const CostOfClass& c) { return c.cost ? qs(to_text(Usd(usd(*c.cost)))) : QString(); },
      [usd](const CostOfClass& c) { return c.cost ? usd(*c.cost) : -1.0; });
  column.tooltip = tooltip;
  return column;
}

// The names of the inputs are longer than the ticks of a narrow chart.
QString brief(const std::string& input) {
  static const std::map<std::string, const char*> kBrief{
      {"requests per day", QT_TR_NOOP("requests")}, {"capacity of a server", QT_TR_NOOP("capacity")},
      {"price of serving", QT_TR_NOOP("serve $")},  {"price of training", QT_TR_NOOP("train $")},
      {"training hours", QT_TR_NOOP("train h")},    {"start of a server", QT_TR_NOOP("start")}};
  const auto known = kBrief.find(input);
  return known == kBrief.end() ? qs(input) : QObject::tr(known->second);
}

}  // namespace

CostModel::CostModel()
    : TableModel({{.title = tr("Price"), .text = [](const CostOfClass& c) { return qs(to_string(c.price_class)); }},
                  usd_column(tr("Training"), tr("Hours of training at this price"),
                             [](const plan::TotalCost& c) { return c.training; }),
                  usd_column(tr("Serving"), tr("Servers for the peak of every month"),
                             [](const plan::TotalCost& c) { return c.serving; }),
                  usd_column(tr("Starts"), tr("Compilation before each server serves"),
                             [](const plan::TotalCost& c) { return c.starting; }),
                  usd_column(tr("Preempted"), tr("Work that is lost when machines are taken away"),
                             [](const plan::TotalCost& c) { return c.preempted; }),
                  usd_column(tr("Total"), tr("Training and serving over all months"),
                             [](const plan::TotalCost& c) { return c.total(); }),
                  number_column<CostOfClass>(
                      tr("Servers"),
                      [](const CostOfClass& c) {
                        return c.cost ? tr("%1 to %2").arg(c.cost->first_servers).arg(c.cost->last_servers)
                                      : tr("no price");
                      },
                      [](const CostOfClass& c) { return c.cost ? c.cost->last_servers : -1; }),
                  usd_column(tr("1M requests"), tr("Total cost of a million requests"), [](const plan::TotalCost& c) {
                    return c.requests > 0 ? c.total() / c.requests * 1e6 : 0;
                  })}) {}

CostView::CostView(QWidget* parent)
    : QWidget(parent),
      stack_(new QStackedWidget(this)),
      load_(new QLabel),
      break_even_(new QLabel),
      table_(make_table(model_, tr("Total cost by price class"))),
      chart_(new Chart({.title = tr("What moves the total"), .unit = tr("USD"), .from_zero = true}, by_input_)) {
  flush_layout<QVBoxLayout>(this, 0)->addWidget(stack_);
  stack_->addWidget(empty_page(tr("No total cost yet"),
                               tr("Say how many requests a day are served, and for a training\non which target."),
                               {{tr("Set Requests"), [this] { emit setting_wanted(u"cost.requests_per_day"_s); }},
                                {tr("Set Serving Target"), [this] { emit setting_wanted(u"serve.target"_s); }}},
                               this)
                        .page);
  auto* body = new QWidget;
  auto* column = make_layout<QVBoxLayout>(body, {2, 2, 0, 0}, 3);
  for (QLabel* label : {load_, break_even_}) {
    label->setWordWrap(true);
    label->setContentsMargins(8, 0, 8, 0);
    column->addWidget(label);
  }
  load_->setAccessibleName(tr("Load and servers"));
  break_even_->setAccessibleName(tr("Break-even with the pinned design"));
  table_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  column->addWidget(table_, 1);
  column->addWidget(chart_, 2);
  stack_->addWidget(body);
}

QString CostView::load() const {
  return load_->text();
}

QString CostView::break_even() const {
  return break_even_->text();
}

void CostView::show_cost(const planning::CostPlan* cost, const planning::CostPlan* pinned) {
  stack_->setCurrentIndex(cost ? 1 : 0);
  if (!cost) return;
  load_->setText(qs(planning::load_text(*cost)).trimmed());
  break_even_->setText(pinned ? qs(planning::break_even_text(*pinned, *cost)) : QString());
  break_even_->setVisible(pinned);
  model_.set_rows({cost->classes.begin(), cost->classes.end()},
                  [](const CostOfClass& a, const CostOfClass& b) { return a.price_class == b.price_class; });
  table_->resizeColumnsToContents();
  show_swings(*cost);
}

// Bars of what an input saves and adds, when it is lower or higher by the variation.
void CostView::show_swings(const planning::CostPlan& cost) {
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
