// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/compare/compare_charts.h"

#include <QComboBox>
#include <QStackedWidget>
#include <QTabBar>
#include <algorithm>

#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/runs_at_playhead.h"

namespace mw::ui {
namespace {

constexpr const char* kChosen = "chosen";  // by the user

// Keeps the user's choice if it is still available, otherwise selects the default.
void offer(QComboBox& box, const QStringList& texts, const QString& usual) {
  const QString before = box.property(kChosen).toBool() ? box.currentText() : QString();
  const QSignalBlocker quiet(box);
  box.clear();
  box.addItems(texts);
  const int kept = static_cast<int>(texts.indexOf(before));
  box.setCurrentIndex(kept >= 0 ? kept : std::max(0, static_cast<int>(texts.indexOf(usual))));
}

size_t place_of(const QString& id) {
  return static_cast<size_t>(std::ranges::find(compare_views(), id, &CompareViewSpec::id) - compare_views().begin());
}

}  // namespace

CompareCharts::CompareCharts(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent)
    : QWidget(parent),
      runs_(runs),
      playhead_(new RunsAtPlayhead(runs, names_, this)),
      input_{.runs = runs, .names = names_, .context = std::move(context), .steps = playhead_->link()},
      tabs_(new QTabBar(this)),
      stack_(new QStackedWidget(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 3);
  auto* top = flush_layout<QHBoxLayout>(nullptr, 5);
  tabs_->setAccessibleName(tr("What the charts show"));
  tabs_->setDrawBase(false);
  tabs_->setExpanding(false);
  top->addWidget(tabs_, 1);
  length_label_ = add_labelled(*top, tr("Prompt"), length_ = new QComboBox);
  load_label_ = add_labelled(*top, tr("Load"), load_ = new QComboBox);
  metric_label_ = add_labelled(*top, tr("Metric"), metric_ = new QComboBox);
  for (const auto metric : all_values<views::SweepMetric>()) metric_->addItem(qs(views::label_of(metric)));
  column->addLayout(top);
  for (const CompareViewSpec& spec : compare_views()) add_view(spec);
  column->addWidget(stack_, 1);
  column->addWidget(playhead_);
  connect(playhead_, &RunsAtPlayhead::axis_changed, this, &CompareCharts::fill_shown);
  connect(tabs_, &QTabBar::currentChanged, this, &CompareCharts::fill_shown);
  connect(tabs_, &QTabBar::tabBarClicked, this, [this] { chosen_ = true; });
  for (QComboBox* box : {length_, load_, metric_}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    connect(box, &QComboBox::currentIndexChanged, this, &CompareCharts::fill_shown);
    connect(box, &QComboBox::activated, this, [box] { box->setProperty(kChosen, true); });
  }
  refresh();
}

void CompareCharts::add_view(const CompareViewSpec& spec) {
  CompareView* view = views_.emplace_back(spec.make(input_));
  tabs_->addTab(spec.name);
  stack_->addWidget(view);
  connect(view, &CompareView::hovered, this, &CompareCharts::hovered);
  connect(view, &CompareView::cell_chosen, this, [this](int input_len, const QString& load) {
    choose_cell(input_len, load);
    show_view(u"distribution"_s);
  });
}

const CompareViewSpec& CompareCharts::spec() const {
  return compare_views()[static_cast<size_t>(tabs_->currentIndex())];
}

CompareView& CompareCharts::view_of(const QString& id) const {
  return at(place_of(id));
}

bool CompareCharts::is_offered(const CompareViewSpec& spec) const {
  const auto kind = runs_.empty() ? compare::ComparedKind::serving : compare::kind_of(runs_.front());
  return spec.kind == kind && (!spec.is_offered || std::ranges::any_of(runs_, spec.is_offered));
}

QStringList CompareCharts::views() const {
  QStringList ids;
  for (const CompareViewSpec& spec : compare_views())
    if (is_offered(spec)) ids << spec.id;
  return ids;
}

void CompareCharts::show_view(const QString& id) {
  chosen_ = true;
  tabs_->setCurrentIndex(static_cast<int>(place_of(id)));
}

void CompareCharts::choose_cell(int input_len, const QString& load) {
  for (QComboBox* box : {length_, load_}) box->setProperty(kChosen, true);
  length_->setCurrentText(QString::number(input_len));
  load_->setCurrentText(load);
}

void CompareCharts::set_slo(const options::Slo& slo) {
  input_.slo = slo;
  fill_shown();
}

void CompareCharts::set_emphasis(int run) {
  for (CompareView* view : views_) view->set_emphasis(run);
}

void CompareCharts::read_choices() {
  input_.input_len = length_->currentText().toInt();
  input_.load = ss(load_->currentText());
  input_.metric = static_cast<views::SweepMetric>(std::max(0, metric_->currentIndex()));
  input_.by_time = playhead_->by_time();
}

void CompareCharts::fill_choices() {
  QStringList lens, loads;
  for (const int len : compare::input_lens(runs_)) lens << QString::number(len);
  for (const auto& text : compare::loads_of(runs_)) loads << qs(text);
  offer(*length_, lens, QString::number(compare::usual_input_len(runs_)));
  offer(*load_, loads, qs(compare::usual_load(runs_)));
}

// Shows the first view with a line of several points, unless the user has chosen one that the runs have, too.
void CompareCharts::refresh() {
  names_ = short_names(runs_);
  fill_choices();
  read_choices();
  const auto& specs = compare_views();
  std::optional<size_t> best;
  if (chosen_ && is_offered(spec())) best = static_cast<size_t>(tabs_->currentIndex());
  for (size_t i = 0; i < specs.size() && !best; ++i) {
    if (!is_offered(specs[i]) || !specs[i].opens) continue;
    at(i).fill();
    if (at(i).has_curves()) best = i;
  }
  for (size_t i = 0; i < specs.size(); ++i) tabs_->setTabVisible(static_cast<int>(i), is_offered(specs[i]));
  tabs_->setCurrentIndex(static_cast<int>(best.value_or(place_of(views().front()))));
  fill_shown();
}

bool CompareCharts::has_curves() const {
  const auto& specs = compare_views();
  for (size_t i = 0; i < specs.size(); ++i)
    if (is_offered(specs[i]) && specs[i].opens && at(i).has_curves()) return true;
  return false;
}

void CompareCharts::fill_shown() {
  const int controls = spec().controls;
  for (const auto& [label, control] : {std::pair{length_label_, prompt_length}, std::pair{load_label_, request_load},
                                       std::pair{metric_label_, shown_metric}}) {
    label->setVisible((controls & control) != 0);
    label->buddy()->setVisible((controls & control) != 0);
  }
  stack_->setCurrentIndex(tabs_->currentIndex());
  playhead_->setVisible((controls & steps_and_playhead) != 0);
  read_choices();
  at(static_cast<size_t>(tabs_->currentIndex())).fill();
  if ((controls & steps_and_playhead) != 0) playhead_->refresh();
}

}  // namespace mw::ui

#include "moc_compare_charts.cpp"
