// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/design_page.h"

#include <QScrollArea>

#include "core/plan/calibration/plan_context.h"
#include "core/plan/document/plan_request.h"
#include "core/store/store.h"
#include "ui/session/action_registry.h"
#include "ui/session/session.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

constexpr quint32 kLayout = 3;  // version of the saved layout
constexpr qint64 kDimAfterMs = 150;
constexpr int kMostColumn = 260, kMostPlanColumn = 142, kNarrowPlan = 460, kTabsWidth = 356;  // pixels

QString mesh_text(const views::Design& design) {
  const hardware::Target& target = design.request().target;
  const int devices = design.request().mesh.devices();
  return DesignPage::tr("%1, %n device(s): %2", nullptr, devices)
      .arg(qs(target.id), qs(mesh::to_text(design.request().mesh)));
}

QString title_text(const views::Design& design) {
  return u"%1   %2"_s.arg(qs(design.request().model.id), mesh_text(design));
}

ChartBar time_bar_of(const views::Design& design, const QString& name) {
  const plan::StepTime& step = design.plan().step;
  const double collectives = step.communication.value - step.hidden;
  return {
      .name = name,
      .values = {step.compute.value, step.memory.value, std::max(0.0, collectives), step.fixed.value},
      .text =
          qs(to_text(Seconds(step.compute.value + step.memory.value + std::max(0.0, collectives) + step.fixed.value)))};
}

ChartBars time_bars(const views::Design& design, const views::DesignPtr& pinned) {
  ChartBars all{.layers = {{DesignPage::tr("compute"), theme().series(0)},
                           {DesignPage::tr("memory"), theme().series(4)},
                           {DesignPage::tr("collectives"), theme().series(3)},
                           {DesignPage::tr("fixed"), theme().series(7)}},
                .text_title = DesignPage::tr("Total")};
  all.bars.push_back(time_bar_of(design, DesignPage::tr("this")));
  if (pinned) all.bars.push_back(time_bar_of(*pinned, DesignPage::tr("pinned")));
  return all;
}

}  // namespace

DesignPage::DesignPage(Document& document, Predictor& predictor, SharedPlanContext& context, QWidget* parent)
    : QWidget(parent), document_(document), predictor_(predictor), context_(context), calibrator_(context) {
  setObjectName(u"pageBody"_s);
  build();
  connect(&document_, &Document::replaced, this, [this] {
    pinned_is_other_ = has_pinned();
    show_pin_buttons();
  });
  connect(&shards_, &ShardsModel::spec_typed, this, &DesignPage::set_spec);
  wire_canvas();
  document_.complete_after("target.id", [this](const experiment::Experiment& before, experiment::Experiment& next) {
    try {
      plan::follow_target(before, next, *context_.context());
    } catch (const Error&) {
      // The prediction reports a catalogue that cannot be read.
    }
  });
  connect(pin_, &QPushButton::toggled, this, [this](bool on) { on ? pin() : unpin(); });
  connect(both_, &QPushButton::toggled, this, [this](bool on) { set_meshes(on ? Meshes::both : Meshes::one); });
  connect(swap_, &QPushButton::clicked, this, &DesignPage::swap_pinned);
}

void DesignPage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  calibrate_ = new CalibrateDialog(calibrator_, window());
  proof_window_ = new ProofWindow(views::prove_view, window());
  residuals_ = new ResidualsDialog(workspace.runs().runs_folder(), context_.loader(), window());
  register_actions(workspace);
  const auto report = [&workspace](const Problem& p) { workspace.report(ProblemSource::file, p); };
  connect(alternatives_, &Alternatives::problem, this, report);
  connect(&calibrator_, &Calibrator::problem, this, report);
  connect(&calibrator_, &Calibrator::accepted_changed, this, [this, &workspace] {
    workspace.clear_problems(ProblemSource::file);
    workspace.update_actions();
  });
  connect(&context_, &SharedPlanContext::changed, this, [this] {
    predictor_.request(document_);
    alternatives_->clear();
  });
  connect(&proof_window_->task(), &BackgroundWork::changed, this, [&workspace] { workspace.update_actions(); });
  connect(&proof_window_->task(), &BackgroundWork::ended, this, [&workspace] { workspace.work_ended(); });
  connect(proof_window_, &ProofWindow::again_wanted, this, &DesignPage::prove_again);
  connect(proof_window_, &ProofWindow::tensor_chosen, this, &DesignPage::select_tensor);
  connect(proof_window_, &ProofWindow::problem, this, report);
}

void DesignPage::register_actions(Workspace& workspace) {
  ActionRegistry& actions = workspace.actions();
  const auto on_page = [&workspace](auto run) {
    return [&workspace, run] {
      workspace.show_page(Page::design);
      run();
    };
  };
  actions.add(
      {u"run.prove"_s, tr("Prove the Mesh"),
       tr("Run a step of this experiment on its mesh and on one device, and compare every tensor"), Qt::Key_F8},
      [this, &workspace] { prove(workspace.current_page().provable_run().value_or(form_experiment(document_))); });
  actions.bind(*prove_, u"run.prove"_s);
  actions.add(
      {u"view.measured"_s, tr("Toggle Measured Mesh"),
       tr("Switch the Design page between the plan and the measurements of the displayed run"), Qt::CTRL | Qt::Key_M},
      on_page([this] { measured_->show_measured(!measured_->is_measured_shown()); }));
  actions.add({u"design.pin"_s, tr("Pin the Design"), tr("Pin this design for comparison with later ones"),
               Qt::CTRL | Qt::Key_P},
              on_page([this] { has_pinned() ? unpin() : pin(); }));
  actions.add({u"design.both"_s, tr("Show Both Meshes"), tr("Show the pinned mesh beside the current one, or hide it"),
               Qt::CTRL | Qt::Key_B},
              on_page([this] { set_meshes(canvases_->wanted() == Meshes::both ? Meshes::one : Meshes::both); }));
  actions.add({u"design.swap"_s, tr("Swap with Pinned Design"), tr("Swap current and pinned designs"),
               Qt::CTRL | Qt::SHIFT | Qt::Key_B},
              on_page([this] { swap_pinned(); }));
  actions.add({u"plan.calibrate"_s, tr("Calibrate the Plan…"),
               tr("Fit the efficiencies of the plan to your own measurements and show held-out errors")},
              [this] { calibrate_->open(); });
  actions.add({u"run.residuals"_s, tr("Predicted and Measured…"),
               tr("Show predicted minus measured for each term of the selected or displayed run")},
              [this, &workspace] {
                const store::RunId run = run_with_residuals();
                run.empty() ? workspace.show_page(Page::runs) : residuals_->show_run(run);
              });
  actions.add(
      {u"plan.undo_calibration"_s, tr("Undo the Calibration"), tr("Undo the last accepted or removed calibration")},
      [this] { calibrator_.undo(); });
}

void DesignPage::update_actions() {
  ActionRegistry& actions = workspace_->actions();
  actions[u"run.prove"_s]->setEnabled(!workspace_->runs().live() && !proof_window_->task().is_busy());
  for (const auto& id : {u"design.both"_s, u"design.swap"_s}) actions[id]->setEnabled(has_pinned());
  actions[u"design.pin"_s]->setText(has_pinned() ? tr("Unpin the Design") : tr("Pin the Design"));
  actions[u"plan.undo_calibration"_s]->setEnabled(calibrator_.can_undo());
}

store::RunId DesignPage::run_with_residuals() const {
  const WindowPage& page = workspace_->current_page();
  if (const auto selected = page.runs_to_compare(); !selected.empty()) return selected.front();
  const RunPtr shown = page.shown_run();
  return shown ? shown->id : store::RunId();
}

QStringList DesignPage::unfinished_work() const {
  return proof_window_->task().is_busy() ? QStringList{tr("the proof of the mesh")} : QStringList();
}

// A proof during a run would slow both and distort the timings of the run.
void DesignPage::prove(const NamedExperiment& experiment) {
  proof_window_->show();
  proof_window_->activateWindow();
  if (workspace_->runs().is_busy() || proof_window_->task().is_busy()) return;
  proved_run_ = experiment.run;
  proof_window_->start(experiment.name, experiment.experiment);
}

// Repeats the proof for the same run or for the current form.
void DesignPage::prove_again() {
  if (proved_run_.empty()) return prove(form_experiment(document_));
  workspace_->runs().store().read(
      *this, [run = proved_run_](const store::Store& store) { return store.experiment(run); },
      [this, run = proved_run_](const experiment::Experiment& experiment) {
        prove({qs(run), experiment, {}, run});
      },
      [this](const Problem& problem) { workspace_->report(ProblemSource::store, problem); });
}

void DesignPage::build() {
  auto* column = make_layout<QVBoxLayout>(this, {8, 4, 8, 6}, 3);
  canvases_ = new CanvasPair;
  // Two meshes below each other are higher than a low window.
  auto* scroll = new QScrollArea;
  scroll->setMinimumSize(canvases_->minimumSizeHint() + QSize(style()->pixelMetric(QStyle::PM_ScrollBarExtent), 0));
  scroll->setWidgetResizable(true);
  scroll->setWidget(canvases_);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  measured_ = new MeasuredSwitch(scroll);
  column->addWidget(header());
  memory_ = new MemoryPanel;
  memory_->setProperty("panel", true);
  alternatives_ = new Alternatives(document_, context_.loader());
  shards_table_ = table(shards_, tr("Sharding of every tensor"));
  shards_table_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  shards_table_->setItemDelegateForColumn(ShardsModel::spec, new AxisTextDelegate(shards_table_));
  add_column_menu();
  figures_ = new FigureStrip;
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setMinimumWidth(kTabsWidth);
  tabs_->setAccessibleName(tr("Memory, plan, alternatives and total cost"));
  tabs_->addTab(memory_, tr("Memory"));
  tabs_->addTab(plan_panel(), tr("Plan"));
  tabs_->addTab(alternatives_, tr("Alternatives"));
  cost_ = new CostView;
  tabs_->addTab(cost_, tr("Total Cost"));
  connect(cost_, &CostView::setting_wanted, this, [this](const QString& key) { workspace_->show_setting(ss(key)); });
  auto* right = new QWidget;
  auto* right_column = flush_layout<QVBoxLayout>(right, 2);
  right_column->addWidget(figures_);
  right_column->addWidget(tabs_, 1);
  rows_ = make_splitter(Qt::Vertical, this);
  columns_ = make_splitter(Qt::Horizontal, rows_);
  for (QSplitter* s : {columns_, rows_}) s->setChildrenCollapsible(false);
  columns_->addWidget(measured_);
  columns_->addWidget(right);
  set_shares(*columns_, {600, 400}, {60, 40});
  rows_->addWidget(shards_table_);
  set_shares(*rows_, {380, 180}, {2, 1});
  column->addWidget(rows_, 1);
}

// Optional columns are switched in the context menu of the table and of its header.
void DesignPage::add_column_menu() {
  for (QWidget* widget : std::initializer_list<QWidget*>{shards_table_, shards_table_->horizontalHeader()})
    widget->setContextMenuPolicy(Qt::ActionsContextMenu);
  for (int column = ShardsModel::count; column <= ShardsModel::rule; ++column) {
    auto* action = new QAction(shards_.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString(), shards_table_);
    action->setCheckable(true);
    connect(action, &QAction::toggled, this, [this, column](bool on) {
      shards_table_->setColumnHidden(column, !on);
      update_columns();
    });
    shards_table_->setColumnHidden(column, true);
    shards_table_->addAction(action);
    shards_table_->horizontalHeader()->addAction(action);
  }
}

QWidget* DesignPage::header() {
  auto* bar = new QWidget(this);
  auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 0, 0}, 6);
  title_ = new ElidedLabel(Qt::ElideRight, bar);
  title_->setFont(demi_bold(font()));
  pinned_title_ = new ElidedLabel(Qt::ElideRight, bar);
  pinned_title_->setProperty("muted", true);
  errors_ = new ErrorLink(bar);
  errors_->hide();
  row->addWidget(title_);
  row->addWidget(errors_);
  row->addWidget(pinned_title_);
  row->addStretch(1);
  row->addWidget(&measured_->button());
  QPushButton* calibrate =
      add_button(*row, tr("Calibrate…"), tr("Fit the efficiencies of the plan to your own measurements"));
  prove_ = add_button(*row, tr("Prove"), {});
  both_ = add_button(*row, tr("Show Both Meshes"), tr("Show the pinned mesh beside the current one (Ctrl+B)"));
  swap_ = add_button(*row, tr("Swap Designs"), {});
  pin_ = add_button(*row, tr("Pin to Compare"), tr("Pin this design for comparison with later ones (Ctrl+P)"));
  for (QPushButton* b : {both_, pin_}) b->setCheckable(true);
  connect(calibrate, &QPushButton::clicked, this, trigger(u"plan.calibrate"_s));
  prove_->setObjectName(u"prove"_s);
  return bar;
}

QWidget* DesignPage::plan_panel() {
  auto* panel = new QWidget;
  auto* column = make_layout<QVBoxLayout>(panel, {0, 2, 0, 0}, 3);
  time_link_.set_x(tr("design"), AxisQuantity::count);
  time_ =
      new Chart({.title = tr("Time of a step"), .quantity = AxisQuantity::seconds, .rows = true}, time_link_, panel);
  plan_table_ = table(plan_, tr("Figures of the plan"));
  column->addWidget(time_);
  column->addWidget(plan_table_, 1);
  return panel;
}

QTableView* DesignPage::table(QAbstractTableModel& model, const QString& name) {
  QTableView* t = make_table(model, name);
  t->setSelectionMode(QAbstractItemView::SingleSelection);
  t->horizontalHeader()->setMinimumSectionSize(40);
  t->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  return t;
}

// Predicts the previewed mesh while an axis is dragged; the document changes with the drop.
void DesignPage::wire_canvas() {
  connect(&canvas(), &MeshCanvas::previewed, this, [this](const designer::MeshDesign& choice) {
    if (shown_) predictor_.request(views::with_choice(document_.experiment(), canvases_->given(), choice));
  });
  connect(&canvas(), &MeshCanvas::preview_ended, this, [this] { predictor_.request(document_); });
  connect(&canvas(), &MeshCanvas::dropped, this, [this](const designer::MeshDesign& choice, const QString& text) {
    document_.replace(views::with_choice(document_.experiment(), canvases_->given(), choice), text);
  });
  connect(shards_table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& at) {
            if (at.isValid()) canvases_->set_tensor(shards_.row(at.row()).first);
          });
}

// --- Pinned ---

// A row represents all layers; the canvas shows the given one.
void DesignPage::select_tensor(const QString& name) {
  if (const int row = shards_.row_of(name); row >= 0) shards_table_->selectRow(row);
  canvases_->set_tensor(ss(name));
}

void DesignPage::pin() {
  set_pinned(shown_);
  show_pins();
}

void DesignPage::unpin() {
  set_pinned(nullptr);
  show_pins();
}

void DesignPage::set_pinned(const views::DesignPtr& design) {
  pinned_ = design;
  pinned_is_other_ = false;
  pinned_lines_ = design ? views::plan_lines(*design) : std::vector<views::PlanLine>();
  pinned_rows_ = design ? views::shard_rows(*design) : std::vector<views::ShardRow>();
}

void DesignPage::show_pins() {
  changed_ = true;
  show_frame();
  show_pin_buttons();
  workspace_->update_actions();
}

void DesignPage::set_meshes(Meshes meshes) {
  canvases_->set_wanted(meshes);
  show_pins();
}

// Swaps only the design of the document, not a preview or the design of another document.
void DesignPage::swap_pinned() {
  if (!pinned_ || pinned_is_other_ || !shown_ || !(shown_->experiment == document_.experiment())) return;
  const views::DesignPtr next = pinned_;
  set_pinned(shown_);
  document_.replace(rebased(next->experiment, document_.experiment().folder()),
                    tr("swap with %1").arg(mesh_text(*next)));
  show_pins();
}

void DesignPage::restyle() {
  alternatives_->restyle();
  changed_ = true;
  show_frame();
}

// Whether the figures are dimmed: the prediction is late. During a drag the next one usually arrives earlier.
bool DesignPage::is_prediction_late() {
  if (!predictor_.is_outdated()) {
    outdated_for_.invalidate();
    return false;
  }
  if (!outdated_for_.isValid()) outdated_for_.start();
  return outdated_for_.elapsed() > kDimAfterMs;
}

void DesignPage::show_frame() {
  if (!isVisible()) return;
  const bool late = is_prediction_late();
  const bool nothing = predictor_.has_no_prediction() && !canvas().is_editing();  // an edit on the canvas continues
  if (!changed_ && predictor_.design() == drawn_ && late == dimmed_ && nothing == no_prediction_) return;
  changed_ = false;
  dimmed_ = late;
  no_prediction_ = nothing;
  drawn_ = predictor_.design();
  if (nothing) return show_nothing();
  if (!drawn_) return;
  shown_ = drawn_;
  update_all();
}

void DesignPage::show_nothing() {
  shown_.reset();
  given_.reset();
  figures_->show({}, {}, false);
  title_->hide();
  errors_->show();
  show_pin_buttons();
  memory_->show_nothing();
  time_->hide();
  plan_.show({}, {}, false);
  cost_->show_cost(nullptr, nullptr);
  shards_.show({}, {}, false);
  canvases_->show_nothing();
}

void DesignPage::update_all() {
  title_->setText(title_text(*shown_));
  title_->show();
  errors_->hide();
  show_pin_buttons();
  memory_->show_design(shown_, pinned_, dimmed_);
  ChartBars times = time_bars(*shown_, pinned_);
  times.is_outdated = dimmed_;
  time_->setFixedHeight(bars_height(times.bars.size()));
  time_->set_bars(std::move(times));
  time_->show();
  alternatives_->set_searchable(!plan::runs_here(shown_->request()));
  const std::vector<views::PlanLine> lines = views::plan_lines(*shown_);
  show_change(lines);
  plan_.show(lines, pinned_lines_, dimmed_);
  const auto cost_of = [](const views::DesignPtr& d) { return d && d->planned.cost ? &*d->planned.cost : nullptr; };
  cost_->show_cost(cost_of(shown_), cost_of(pinned_));
  shards_.show(views::shard_rows(*shown_), pinned_rows_, dimmed_);
  if (!canvas().is_editing()) update_columns();  // columns would jump during a drag, and measuring is slow
  canvases_->show_designs(shown_, pinned_, predictor_.is_outdated());
  if (canvas().tensor().empty() && shards_.rowCount() > 0)
    shards_table_->selectRow(std::max(0, shards_.find(u"layers.0.q_proj"_s)));
}

// The headline figures are compared with the pinned design, else, during a preview, with the design of the document.
void DesignPage::show_change(const std::vector<views::PlanLine>& lines) {
  if (shown_->experiment == document_.experiment()) given_ = shown_;
  const bool previewed =
      canvas().is_previewing() && given_ && given_ != shown_ && views::choice_of(*shown_) == canvas().shown();
  canvas().set_preview_text(previewed ? qs(views::change_text(*given_, *shown_)) : QString());
  figures_->show(lines, pinned_ || !previewed ? pinned_lines_ : views::plan_lines(*given_), dimmed_);
}

void DesignPage::show_pin_buttons() {
  const bool both = canvases_->wanted() == Meshes::both;
  pinned_title_->setText(pinned_ ? tr("pinned: %1").arg(mesh_text(*pinned_)) : QString());
  pinned_title_->setVisible(pinned_ && !both);  // its canvas shows it
  const QSignalBlocker quiet_pin(pin_), quiet_both(both_);
  pin_->setChecked(pinned_ != nullptr);
  pin_->setText(pinned_ ? tr("Unpin") : tr("Pin to Compare"));
  pin_->setEnabled(pinned_ || shown_);
  swap_->setEnabled(shown_ && !pinned_is_other_);
  swap_->setToolTip(pinned_is_other_ ? tr("The pinned design belongs to another document")
                                     : tr("Swap current and pinned designs (Ctrl+Shift+B)"));
  both_->setChecked(both);
  for (QPushButton* b : {both_, swap_}) b->setVisible(pinned_ != nullptr);
}

// One column of each table takes the remaining width, so that neither scrolls sideways.
void DesignPage::update_columns() {
  plan_table_->setColumnHidden(PlanModel::change, !plan_.has_pinned());
  plan_table_->setColumnHidden(PlanModel::pinned, !plan_.has_pinned() || plan_table_->width() < kNarrowPlan);
  plan_table_->setColumnHidden(PlanModel::detail, plan_.has_pinned());
  shards_table_->setColumnHidden(ShardsModel::change, !shards_.has_pinned());
  const int of_plan = plan_.has_pinned() ? PlanModel::figure : PlanModel::detail;
  for (const auto& [table, stretched] : {std::pair{plan_table_, of_plan}, std::pair{shards_table_, 0}}) {
    QHeaderView& header = *table->horizontalHeader();
    const QAbstractItemView& view = *table;
    const int most = table == plan_table_ ? kMostPlanColumn : kMostColumn;
    for (int c = 0; c < header.count(); ++c) {
      header.setSectionResizeMode(c, c == stretched ? QHeaderView::Stretch : QHeaderView::Interactive);
      if (c == stretched || table->isColumnHidden(c)) continue;
      table->setColumnWidth(c, std::min(std::max(view.sizeHintForColumn(c), header.sectionSizeHint(c)) + 6, most));
    }
  }
}

// Adds the typed spec as the first rule, for the tensors of that row.
void DesignPage::set_spec(const QString& tensor, const QString& spec) {
  const std::string pattern = ss(QString(tensor).replace(u".*."_s, u"."_s + u"\\d+"_s + u"."_s));
  Json rules = document_.experiment().value("sharding.overrides");
  Json kept = Json::array({pattern + " = " + ss(spec)});
  for (const Json& rule : rules)
    if (!rule.is_string() || rule.get<std::string>().compare(0, pattern.size() + 3, pattern + " = ") != 0)
      kept.push_back(rule);
  document_.set("sharding.overrides", kept);
}

void DesignPage::save_state(Session& session) const {
  QByteArray out;
  QDataStream stream(&out, QIODevice::WriteOnly);
  QList<int> shown;
  const QList<QAction*> optional = shards_table_->actions();
  for (int i = 0; i < optional.size(); ++i)
    if (optional[i]->isChecked()) shown << i;
  stream << kLayout << columns_->saveState() << rows_->saveState() << canvases_->save_layout() << tabs_->currentIndex()
         << shown;
  session.set_value(u"layout/design"_s, out);
}

void DesignPage::restore_state(const Session& session) {
  QDataStream stream(session.value(u"layout/design"_s).toByteArray());
  quint32 version = 0;
  QByteArray columns, rows, canvases;
  int tab = 0;
  QList<int> shown;
  stream >> version;
  if (version != kLayout) return;
  stream >> columns >> rows >> canvases >> tab >> shown;
  columns_->restoreState(columns);
  rows_->restoreState(rows);
  canvases_->restore_layout(canvases);
  tabs_->setCurrentIndex(tab);
  const QList<QAction*> optional = shards_table_->actions();
  for (const int i : shown)
    if (i >= 0 && i < optional.size()) optional[i]->setChecked(true);
}

}  // namespace mw::ui

#include "moc_design_page.cpp"
