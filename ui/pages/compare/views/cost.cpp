// SPDX-License-Identifier: GPL-3.0-or-later
// The cost of tokens against the rate, and the cost of serving over time with what was paid once.
#include <QLineEdit>

#include "ui/pages/compare/compare_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

class CostView : public CompareView {
 public:
  explicit CostView(const CompareInput& input) : CompareView(input) {
    auto* bar = new QWidget(this);
    auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 2, 0});
    demand_ = add_line(*row, CompareView::tr("Demand (tokens/s)"), CompareView::tr("one server"),
                       CompareView::tr("Output tokens per second to serve, which determines the number of servers"));
    once_ = add_line(
        *row, CompareView::tr("Paid once (USD)"), CompareView::tr("0, 0"),
        CompareView::tr("Costs before serving begins, such as training and porting: one number per run, in order"));
    once_->setObjectName(u"paidOnce"_s);
    break_even_ = new ElidedLabel(Qt::ElideRight, bar);
    break_even_->setAccessibleName(CompareView::tr("Break-even"));
    row->addWidget(break_even_, 1);
    column_->addWidget(bar);
    add_charts({token_cost_spec(), share_spec(CompareView::tr("Cost of serving"), u"USD"_s,
                                              CompareView::tr("The prices of these runs are unknown"), 1)});
  }

  void fill() override {
    const views::LoadAxis loads = compare::load_axis(in_.runs, in_.input_len);
    set_axis(axis(), CompareView::tr("rate (requests/s)"), ticks_of(loads));
    const auto lines = compare::lines_by_load(in_.runs, in_.input_len, loads, views::SweepMetric::cost);
    charts()[0]->set_lines(sweep_lines(in_, lines, views::SweepMetric::cost));
    std::vector<double> once;
    for (const QString& part : once_->text().split(u',', Qt::SkipEmptyParts)) once.push_back(part.trimmed().toDouble());
    show_costs(compare::serving_costs(in_.runs, demand_->text().toDouble(), once));
  }

 private:
  QLineEdit* add_line(QHBoxLayout& row, const QString& text, const QString& hint, const QString& tip) {
    auto* edit = new QLineEdit;
    edit->setPlaceholderText(hint);
    edit->setToolTip(tip);
    edit->setMaximumWidth(110);
    add_labelled(row, text, edit);
    connect(edit, &QLineEdit::textChanged, this, &CostView::fill);
    return edit;
  }

  void show_costs(const std::vector<compare::ServingCost>& costs) {
    constexpr double kMonth = 720;  // hours
    double most = kMonth / 10;
    QStringList texts;
    std::vector<LevelLine> limits;
    for (size_t i = 1; i < costs.size(); ++i)
      if (const auto hours = compare::break_even(costs[0], costs[i])) {
        most = std::max(most, *hours * 1.6);
        texts << CompareView::tr("%1 and %2 cost the same after %3 h")
                     .arg(in_.run_name(costs[0].column), in_.run_name(costs[i].column))
                     .arg(*hours, 0, 'f', *hours < 10 ? 1 : 0);
        limits.push_back({CompareView::tr("break-even"), *hours, theme().series(static_cast<int>(costs[i].column)),
                          LineOrigin::requested, CompareView::tr("%1 h").arg(*hours, 0, 'f', 0)});
      }
    std::vector<ChartLine> all;
    for (const auto& cost : costs) {
      all.push_back(path_line(in_, {{0, cost.at(0)}, {most, cost.at(most)}}, cost.column));
      if (QString& name = all.back().name; cost.servers > 1)
        name = CompareView::tr("%1, %n server(s)", nullptr, plural_count(cost.servers)).arg(name);
    }
    axis(1).set_x(CompareView::tr("hours"), AxisQuantity::plain);
    axis(1).set_data({0, most});
    charts()[1]->set_lines(std::move(all));
    charts()[1]->set_limits(std::move(limits));
    break_even_->setText(texts.isEmpty() && costs.size() > 1
                             ? CompareView::tr("No break-even: one run is always cheaper")
                             : texts.join(u"; "_s));
  }

  QLineEdit *demand_, *once_;
  ElidedLabel* break_even_;
};

}  // namespace

CompareViewSpec cost_view() {
  return {.id = u"cost"_s,
          .name = CompareView::tr("Cost"),
          .place = 5,
          .kind = compare::ComparedKind::serving,
          .controls = prompt_length,
          .make = [](const CompareInput& in) { return new CostView(in); },
          .opens = false};
}

}  // namespace mw::ui
