// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/why_view.h"

#include <QComboBox>
#include <algorithm>
#include <cmath>

#include "core/compare/recording.h"

namespace mw::ui {
namespace {

constexpr compare::WaterfallMetric kMetrics[] = {
    compare::WaterfallMetric::median_ttft_ms, compare::WaterfallMetric::median_tpot_ms,
    compare::WaterfallMetric::median_e2el_ms, compare::WaterfallMetric::output_throughput};

QString difference_text(double delta, double most) {
  return (delta >= 0 ? u"+"_s : u"\u2212"_s) + QString::number(std::abs(delta), 'f', most < 100 ? 1 : 0);
}

ChartBar end_bar(const QString& name, double value, size_t layer, double most) {
  ChartBar bar{.name = name, .values = std::vector<double>(4), .origin = LineOrigin::measured, .is_strong = true};
  bar.values[layer] = value;
  bar.text = QString::number(value, 'f', most < 100 ? 1 : 0);
  return bar;
}

// Both ends are solid; simulated parts are hatched.
ChartBars waterfall_bars(const compare::Waterfall& waterfall, const QString& from, const QString& to) {
  const Theme& t = theme();
  double most = std::max(waterfall.from, waterfall.to);
  for (const auto& part : waterfall.parts) most = std::max({most, part.before, part.after});
  ChartBars all{.layers = {{from, t.series(0)},
                           {WhyView::tr("worse"), t.warn},
                           {WhyView::tr("better"), t.good},
                           {to == from ? WhyView::tr("%1 (compared)").arg(to) : to, t.series(1)}},
                .text_title = WhyView::tr("Difference")};
  all.bars.push_back(end_bar(from, waterfall.from, 0, most));
  all.overall = {waterfall.from, 0, 0, waterfall.to};
  for (const auto& part : waterfall.parts) {
    const bool worse = (part.delta() > 0) == (waterfall.metric != compare::WaterfallMetric::output_throughput);
    const bool predicted = part.source == formats::ResultProvenance::predicted;
    ChartBar bar{.name = qs(part.name),
                 .detail = qs(part.text),
                 .values = std::vector<double>(4),
                 .start = std::min(part.before, part.after),
                 .origin = predicted ? LineOrigin::predicted : LineOrigin::measured,
                 .text = difference_text(part.delta(), most)};
    bar.values[worse ? 1 : 2] = std::abs(part.delta());
    all.overall[worse ? 1 : 2] += std::abs(part.delta());
    bar.tip = WhyView::tr("%1: %2\n%3 to %4, %5")
                  .arg(bar.name, bar.detail)
                  .arg(part.before, 0, 'g', 4)
                  .arg(part.after, 0, 'g', 4)
                  .arg(qs(formats::to_string(part.source)));
    all.bars.push_back(std::move(bar));
  }
  all.bars.push_back(end_bar(to, waterfall.to, 3, most));
  return all;
}

}  // namespace

WhyView::WhyView(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent)
    : QWidget(parent),
      runs_(runs),
      context_(std::move(context)),
      other_(new QComboBox(this)),
      metric_(new QComboBox(this)),
      chart_(new Chart({.title = tr("Why"), .rows = true}, link_, this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* row = make_layout<QHBoxLayout>(nullptr, {2, 0, 2, 0});
  add_labelled(*row, tr("Compared run"), other_);
  add_labelled(*row, tr("Metric"), metric_);
  other_->setMaximumWidth(240);
  link_.set_x(tr("factor"), AxisQuantity::count);
  metric_->addItems({tr("Median TTFT (ms)"), tr("Median TPOT (ms)"), tr("Median E2E (ms)"), tr("Output tokens/s")});
  row->addStretch(1);
  column->addLayout(row);
  column->addWidget(chart_, 1);
  for (QComboBox* box : {other_, metric_}) connect(box, &QComboBox::currentIndexChanged, this, &WhyView::compute);
  connect(&task_, &BackgroundWork::ended, this, &WhyView::show_result);
}

void WhyView::show_message(const QString& text) {
  shown_.reset();
  chart_->set_bars({});
  chart_->set_empty_text(text);
}

QString WhyView::message() const {
  return chart_->options().empty;
}

void WhyView::show_cell(const QStringList& names, int input_len, const std::string& load) {
  if (names != names_) {
    names_ = names;
    const QSignalBlocker quiet(other_);
    other_->clear();
    other_->addItems(names.mid(1));
    computed_key_.clear();
  }
  input_len_ = input_len;
  load_ = load;
  compute();
}

void WhyView::compute() {
  const auto at = static_cast<size_t>(other_->currentIndex() + 1);
  if (runs_.size() < 2 || at >= runs_.size() || at == 0)
    return show_message(tr("Compare two serving results to see an explanation of the gap between them"));
  const auto metric = kMetrics[static_cast<size_t>(std::max(0, metric_->currentIndex()))];
  const auto* from = compare::point_at(runs_.front(), input_len_, load_);
  const auto* to = compare::point_at(runs_[at], input_len_, load_);
  const auto* either = from ? from : to;
  if (!either || std::isnan(either->request_rate))
    return show_message(tr("Choose a cell with a request rate; others cannot be simulated"));
  const std::string key = runs_.front().id + runs_.front().name + "|" + runs_[at].id + runs_[at].name + "|" + load_ +
                          "|" + std::to_string(input_len_) + "|" + std::to_string(metric_->currentIndex());
  if (key == computed_key_) return shown_ ? show_bars() : void();
  computed_key_ = key;
  compare::WaterfallEnds ends;
  if (from && runs_.front().provenance != formats::ResultProvenance::predicted)
    ends.from = known(compare::value_of(*from, metric));
  if (to && runs_[at].provenance != formats::ResultProvenance::predicted)
    ends.to = known(compare::value_of(*to, metric));
  show_message(tr("Simulating one factor after another\u2026"));
  task_.start([baseline = compare::server_of(runs_.front()), other = compare::server_of(runs_[at]),
               point = plan::LoadPoint{either->request_rate, input_len_}, metric, ends,
               load = context_](const ReportProgress&, const std::stop_token& stop) {
    return compare::waterfall({baseline, other, point, metric, ends}, *load(), stop);
  });
}

void WhyView::show_result() {
  if (task_.problem()) return show_message(qs(to_text(*task_.problem())));
  if (!task_.result()) return;
  shown_ = *task_.result();
  show_bars();
}

void WhyView::show_bars() {
  const auto at = static_cast<size_t>(other_->currentIndex() + 1);
  chart_->set_unit(metric_->currentText());
  chart_->set_bars(waterfall_bars(*shown_, names_.value(0), names_.value(static_cast<qsizetype>(at))));
}

}  // namespace mw::ui

#include "moc_why_view.cpp"
