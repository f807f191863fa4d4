// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/train_page.h"

#include <QStackedWidget>
#include <algorithm>

#include "core/experiment/bound_experiment.h"
#include "core/launch/launch.h"
#include "core/store/run_settings.h"
#include "ui/run_views/run_lines.h"
#include "ui/session/action_registry.h"
#include "ui/session/frame_clock.h"
#include "ui/session/session.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

TrainPage::TrainPage(RunController& runs, QWidget* parent)
    : QWidget(parent), runs_(runs), stack_(new QStackedWidget(this)) {
  setObjectName(u"pageBody"_s);
  by_step_.set_x(tr("step"), AxisQuantity::count);
  by_time_.set_x(tr("time"), AxisQuantity::seconds);
  build();
  connect(&runs_, &RunController::shown_changed, this, &TrainPage::adopt);
  connect(&runs_, &RunController::shown_updated, this, [this] {
    rebind();
    changed_ = unread_ = true;
  });
  connect(&runs_, &RunController::state_changed, this, [this] { changed_ = true; });
  connect_charts();
  adopt();
}

void TrainPage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  dialogs_ = new TrainDialogs(workspace, *window());
  register_chart_actions(workspace);
  connect(&workspace.clock(), &FrameClock::show, this, [this] {
    if (window()->isVisible()) follow();
  });
  connect(&workspace.document(), &Document::changed, this, [this] { compare_form_ = changed_ = true; });
}

void TrainPage::register_chart_actions(Workspace& workspace) {
  ActionRegistry& actions = workspace.actions();
  actions.add({u"view.follow"_s, tr("Follow the Newest Step"), tr("Keep the newest step of the charts visible"),
               Qt::CTRL | Qt::Key_End},
              [this, &workspace] {
                if (!workspace.current_page().follow_newest()) follow_newest();
              });
  actions.add({u"view.step_back"_s, tr("Move Playhead Back"), tr("Move the playhead one step back and hold it"),
               Qt::ALT | Qt::Key_Left},
              [this] { playhead_->step_by(-1); });
  actions.add({u"view.step_on"_s, tr("Move Playhead Forward"), tr("Move the playhead one step forward and hold it"),
               Qt::ALT | Qt::Key_Right},
              [this] { playhead_->step_by(1); });
  actions.add(
      {u"view.log_scale"_s, tr("Toggle Logarithmic Loss"), tr("Switch the loss chart between linear and logarithmic")},
      [this] { loss_->set_scale(loss_->content().scale == Scale::linear ? Scale::logarithmic : Scale::linear); });
}

void TrainPage::update_actions() {
  workspace_->actions()[u"run.attach"_s]->setEnabled(!runs_.live());
  workspace_->actions()[u"run.detach"_s]->setEnabled(runs_.is_remote());
}

void TrainPage::save_state(Session& session) const {
  session.set_value(u"layout/train_rows"_s, rows_->saveState());
  dialogs_->save_state(session);
}

void TrainPage::restore_state(const Session& session) {
  rows_->restoreState(session.value(u"layout/train_rows"_s).toByteArray());
  dialogs_->restore_state(session);
}

bool TrainPage::follow_newest() {
  by_step_.set_playhead(std::nullopt);
  by_step_.set_following(true);
  return true;
}

std::optional<NamedExperiment> TrainPage::provable_run() const {
  return offers_proof() ? std::optional(run_experiment(*run_)) : std::nullopt;
}

void TrainPage::connect_charts() {
  connect(&by_step_, &ChartLink::cursor_changed, this,
          [this] { follow_axis(by_step_, by_time_, views::time_of_step); });
  connect(&by_time_, &ChartLink::cursor_changed, this,
          [this] { follow_axis(by_time_, by_step_, views::step_of_time); });
  connect(playhead_, &PlayheadBar::smoothing_changed, this, [this](double weight) {
    if (!run_) return;
    run_->view.set_smoothing(weight);
    rebind();
  });
  connect(mesh_, &MeasuredMesh::device_selected, memory_, &DeviceMemoryView::choose);
  connect(memory_, &DeviceMemoryView::device_changed, mesh_, &MeasuredMesh::select_device);
}

void TrainPage::build() {
  auto* column = make_layout<QVBoxLayout>(this, {8, 4, 8, 6}, 4);
  column->addLayout(build_top());
  column->addWidget(stack_, 1);
  stack_->addWidget(empty_page(tr("No run yet"),
                               tr("Run the experiment on the left to see loss, memory, speed and samples here while it "
                                  "trains,\nor open an earlier run."),
                               {{tr("Run Experiment"), trigger(u"run.start"_s)},
                                {tr("Show Earlier Runs"), trigger(u"page.runs"_s)},
                                {tr("Attach\u2026"), trigger(u"run.attach"_s)}},
                               this)
                        .page);

  auto* charts = new QWidget(this);
  auto* inner = flush_layout<QVBoxLayout>(charts, 3);
  inner->addWidget(build_banner());
  rows_ = make_splitter(Qt::Vertical, charts);
  upper_ = make_splitter(Qt::Horizontal);
  loss_ = new Chart({.title = tr("Loss"), .unit = tr("nats/token"), .jump_to_now = true}, by_step_);
  memory_ = new DeviceMemoryView(by_time_);
  upper_->addWidget(loss_);
  upper_->addWidget(memory_);
  upper_->setSizes({500, 460});
  auto* small = new QWidget;
  small_ = flush_layout<QGridLayout>(small, 5);
  speed_ = new Chart({.title = tr("Speed"), .unit = tr("tokens/s"), .from_zero = true}, by_step_, small);
  rate_ = new Chart({.title = tr("Learning rate"), .from_zero = true}, by_step_, small);
  gradient_ = new Chart({.title = tr("Gradient norm")}, by_step_, small);
  answers_ =
      new Chart({.title = tr("Scored answers"), .quantity = AxisQuantity::percent, .from_zero = true}, by_step_, small);
  budget_ = new Chart({.title = tr("Budget left"), .unit = tr("%"), .from_zero = true}, by_step_, small);
  constexpr int kNarrowest = 116;    // beside the samples, in a window of 1000 pixels
  constexpr int kLowest = 126;       // a chart with axis titles
  constexpr int kLowestSmall = 110;  // without: two rows of them fit a window of 650 pixels
  for (Chart* chart : {speed_, rate_, gradient_, budget_, answers_}) {
    chart->setMinimumSize(kNarrowest, kLowestSmall);
    chart->show();
  }
  collectives_ = new CollectivesPanel(by_step_);
  mesh_ = new MeasuredMesh;
  views_ = new QTabWidget;
  views_->setDocumentMode(true);
  views_->setAccessibleName(tr("Charts of the run"));
  views_->tabBar()->setAccessibleName(tr("Charts of the run"));
  views_->addTab(small, tr("Speed, Rate and Norm"));
  views_->addTab(collectives_, tr("Collectives"));
  views_->addTab(mesh_, tr("Mesh"));
  below_ = make_splitter(Qt::Vertical);
  lower_ = new QTabWidget;
  lower_->setDocumentMode(true);
  lower_->setAccessibleName(tr("Samples and record"));
  samples_ = new SamplesView(by_step_);
  record_ = new RecordView(runs_.context(), nullptr);
  lower_->addTab(samples_, tr("Samples"));
  lower_->addTab(record_, tr("Record"));
  below_->addWidget(views_);
  below_->addWidget(lower_);
  upper_->setMinimumHeight(kLowest);
  rows_->addWidget(upper_);
  rows_->addWidget(below_);
  set_shares(*rows_, {280, 330}, {5, 6});
  inner->addWidget(rows_, 1);
  playhead_ = new PlayheadBar(by_step_, charts);
  inner->addWidget(playhead_);
  stack_->addWidget(charts);
  arrange();
}

QFrame* TrainPage::build_banner() {
  banner_ = new QFrame(this);
  banner_->setObjectName(u"notice"_s);
  auto* row = make_layout<QHBoxLayout>(banner_, {10, 3, 6, 3});
  banner_text_ = new ElidedLabel(Qt::ElideRight, banner_);
  row->addWidget(banner_text_, 1);
  QPushButton* show = add_button(*row, tr("Show in Form"), tr("Load the experiment of this run into the form"));
  connect(show, &QPushButton::clicked, this, [this] { workspace_->clone_run(run_->id); });
  banner_->hide();
  return banner_;
}

QLayout* TrainPage::build_top() {
  auto* top = new QHBoxLayout;
  header_ = new RunHeader(runs_, this);
  top->addWidget(header_, 1);
  const auto button = [&](const QString& text, const QString& help, const std::function<void()>& run) {
    QPushButton* b = add_button(*top, text, help);
    connect(b, &QPushButton::clicked, this, run);
    return b;
  };
  resume_ = button({}, {}, [this] {
    if (run_) workspace_->resume_run(run_->id);
  });
  detach_ = button(tr("Detach"), tr("Stop following the job, which keeps running; use Stop to end it"),
                   trigger(u"run.detach"_s));
  merge_ = button(tr("Merge\u2026"), tr("Merge the adapter of this run into its base model"), trigger(u"run.merge"_s));
  prove_ =
      button(tr("Prove"), tr("Compute a step of this run's experiment on its mesh and on one device, and compare them"),
             trigger(u"run.prove"_s));
  export_ = button(tr("Export\u2026"),
                   tr("Export the experiment of this run or of the form as a recipe, a folder that runs it elsewhere"),
                   trigger(u"file.export"_s));
  launch_ = button(tr("Launch\u2026"),
                   tr("Start the experiment of this run or of the form on another machine and follow it here"),
                   trigger(u"run.launch"_s));
  for (QPushButton* b : {resume_, detach_, merge_, prove_}) b->hide();
  return top;
}

bool TrainPage::offers_proof() const {
  return on_a_mesh(run_) && !(run_->view.info().is_object() && run_->view.info().contains("launched"));
}

void TrainPage::show_buttons() {
  const bool busy = runs_.is_busy();
  const bool launched = run_ && run_->view.info().is_object() && run_->view.info().contains("launched");
  const bool ended = run_ && run_->view.ended();
  prove_->setVisible(offers_proof());
  prove_->setEnabled(!busy);
  const bool detached = launched && !run_->is_live && !ended;
  resume_->setVisible(detached || (ended && run_->view.is_resumable()));
  resume_->setEnabled(!busy);
  resume_->setText(detached ? tr("Reattach") : tr("Resume"));
  resume_->setToolTip(detached ? tr("Follow the job of this run again from the end of its record")
                               : tr("Continue this run from its last checkpoint"));
  detach_->setVisible(run_ && run_->is_live && runs_.is_remote());
  if (!ended) mergeable_.reset();
  if (ended && !mergeable_ && !run_->id.empty()) look_for_adapter();
  merge_->setVisible(mergeable_.value_or(false));
}

// An error is reported when the user merges.
void TrainPage::look_for_adapter() {
  mergeable_ = false;
  runs_.store().read(
      *this, [run = run_->id](const store::Store& store) { return launch::merge_offer(store, run).has_value(); },
      [this, run = run_](bool found) {
        if (run != run_ || !run->view.ended()) return;
        mergeable_ = found;
        merge_->setVisible(found);
      });
}

// Names the settings of the form that differ from those of the run.
void TrainPage::show_banner() {
  if (!compare_form_ || !workspace_) return;
  compare_form_ = false;
  std::vector<store::SettingChange> changes;
  if (run_ && !run_->id.empty() && !run_->view.is_imported())
    changes = store::setting_changes(store::settings_of(run_->record),
                                     store::settings_of(workspace_->document().experiment()));
  banner_->setVisible(!changes.empty());
  constexpr size_t kNamed = 3;
  QStringList named;
  for (size_t i = 0; i < std::min(kNamed, changes.size()); ++i)
    named << tr("%1 %2 instead of %3")
                 .arg(qs(changes[i].label), qs(changes[i].after.empty() ? "none" : changes[i].after),
                      qs(changes[i].before.empty() ? "none" : changes[i].before));
  if (changes.size() > kNamed) named << tr("and %1 more").arg(changes.size() - kNamed);
  banner_text_->setText(tr("The form shows another experiment than this run: %1").arg(named.join(u"; "_s)));
}

void TrainPage::adopt() {
  const RunPtr run = runs_.shown(RunKind::train);
  if (run && run == run_) return;
  run_ = run;
  by_step_.reset();
  by_time_.reset();
  if (run_) run_->view.set_smoothing(playhead_->smoothing());
  stack_->setCurrentIndex(run_ ? 1 : 0);
  compare_form_ = true;
  mergeable_.reset();
  samples_->show_run(run_);
  record_->show_run(run_);
  rebind();
  changed_ = unread_ = true;
  follow();
  show_frame();
}

// Called for every batch of events, because the series of a resumed run may have been replaced. Copies a few pointers.
void TrainPage::rebind() {
  loss_->set_lines(loss_lines(run_));
  speed_->set_lines(metric_line(run_, "train/tokens_per_second", tr("tokens without padding"), 2, true));
  rate_->set_lines(metric_line(run_, "train/learning_rate", tr("rate"), 4, false));
  gradient_->set_lines(metric_line(run_, "train/grad_norm", tr("norm"), 3, true));
  for (Chart* p : {loss_, speed_, rate_, gradient_}) p->set_empty_text(absent_text(run_, Comes::with_a_step));
  const auto scored = run_ ? run_->view.answers() : std::vector<store::ScoredAnswers>();
  answers_->setVisible(!scored.empty());
  if (!scored.empty()) answers_->set_unit(qs(to_text(scored.back())));
  answers_->set_lines(scored.empty() ? std::vector<ChartLine>() : std::vector{answers_line(scored)});
  budget_->setVisible(run_ && run_->view.metric("budget/left"));
  budget_->set_lines(metric_line(run_, "budget/left", tr("left"), 5, false));
  memory_->show_run(run_);
  collectives_->show_run(run_);
  arrange();
}

// A single device has no collectives: its charts are in one row above the samples. On a mesh they are in tabs beside
// the samples.
void TrainPage::arrange() {
  const bool mesh = on_a_mesh(run_);
  const auto orientation = mesh ? Qt::Horizontal : Qt::Vertical;
  views_->tabBar()->setVisible(mesh);
  views_->setFocusPolicy(mesh ? Qt::TabFocus : Qt::NoFocus);  // Tab stops at a hidden bar
  if (!mesh) views_->setCurrentIndex(0);
  place_small(mesh ? 2 : kSmallCharts);
  if (below_->orientation() == orientation) return;
  below_->setOrientation(orientation);
  below_->setSizes(mesh ? QList{560, 400} : QList{500, 500});
}

// In rows; a chart that is alone in the last one fills it.
void TrainPage::place_small(int columns) {
  std::vector<Chart*> shown;
  for (Chart* chart : {speed_, rate_, gradient_, budget_, answers_})
    if (!chart->isHidden()) shown.push_back(chart);
  if (shown == placed_ && columns == small_columns_) return;
  while (QLayoutItem* item = small_->takeAt(0)) delete item;
  for (int i = 0; i < static_cast<int>(shown.size()); ++i) {
    const bool is_alone = i + 1 == static_cast<int>(shown.size()) && i % columns == 0;
    small_->addWidget(shown[static_cast<size_t>(i)], i / columns, i % columns, 1, is_alone ? columns : 1);
  }
  for (int column = 0; column < kSmallCharts; ++column)
    small_->setColumnStretch(column, column < std::min(columns, static_cast<int>(shown.size())) ? 1 : 0);
  placed_ = std::move(shown);
  small_columns_ = columns;
}

// Like the legends of the charts: at the cursor, otherwise at the playhead, otherwise the newest.
views::Playhead TrainPage::reading() const {
  return {by_step_.reading(), by_instant_ ? by_time_.reading() : std::nullopt};
}

MeasuredMesh::PlayheadMode TrainPage::playhead_mode() const {
  return by_step_.cursor()     ? MeasuredMesh::PlayheadMode::hovered
         : by_step_.playhead() ? MeasuredMesh::PlayheadMode::held
                               : MeasuredMesh::PlayheadMode::newest;
}

void TrainPage::update_snapshot() {
  snapshot_ = run_ ? views::step_snapshot(run_->view, reading()) : views::StepSnapshot();
  playhead_->set_reading(qs(to_text(snapshot_)));
  if (on_a_mesh(run_)) mesh_->show_snapshot(run_, snapshot_, playhead_mode());
  emit snapshot_changed();
}

void TrainPage::restyle() {
  rebind();
  record_->show_run(run_);
  changed_ = true;
  show_frame();
}

void TrainPage::show_frame() {
  follow();
  if (!changed_ || !isVisible()) return;
  changed_ = false;
  show_buttons();
  show_banner();
  header_->show_run(run_, RunKind::train);
  if (!run_) return;
  samples_->grow();
  const int samples = samples_->rows().rowCount();
  lower_->setTabText(0, samples > 0 ? tr("Samples (%1)").arg(samples) : tr("Samples"));
  record_->grow();
}

// The mesh of the Design page follows too, whichever page is visible.
void TrainPage::follow() {
  if (!unread_) return;
  unread_ = false;
  if (!run_) return update_snapshot();
  double last = 1;
  for (const auto& [name, metric] : run_->view.metrics())
    if (!metric.raw.empty()) last = std::max(last, metric.raw.back().x);
  const Growth growth = run_->is_live ? Growth::growing : Growth::complete;
  by_step_.set_data({0, last}, growth);
  by_time_.set_data({0, std::max(run_->view.last_time(), 0.5)}, growth);
  playhead_->set_data({0, last});
  update_snapshot();
}

// The x axis of the memory chart is time, because loading has no step; its cursor is at the time of the step.
void TrainPage::follow_axis(ChartLink& from, ChartLink& to, ConvertPosition convert) {
  if (translating_) return;
  by_instant_ = &from == &by_time_;
  if (run_) {
    const auto converted = [&](std::optional<double> at) { return at ? convert(run_->view, *at) : std::nullopt; };
    translating_ = true;
    to.set_cursor(converted(from.cursor()));
    to.set_playhead(converted(from.playhead()));
    translating_ = false;
  }
  samples_->follow_playhead();
  update_snapshot();
}

}  // namespace mw::ui

#include "moc_train_page.cpp"
