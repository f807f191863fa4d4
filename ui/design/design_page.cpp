// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/design/design_page.h"

#include <QDataStream>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "core/plan/local_model.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

QString mesh_text(const runs::Design& d) {
  const hardware::Target& target = d.request().target;
  return DesignPage::tr("%1, %2 devices: %3")
      .arg(qs(target.id))
      .arg(d.request().mesh.devices())
      .arg(qs(mesh::to_text(d.request().mesh)));
}

QString title_text(const runs::Design& d) {
  return u"<b>%1</b> &nbsp; %2"_s.arg(qs(d.request().model.id).toHtmlEscaped(), mesh_text(d).toHtmlEscaped());
}

Bar time_bar_of(const runs::Design& d, const QString& name) {
  const plan::StepTime& step = d.plan().step;
  Bar bar{.name = name};
  const auto part = [&](const QString& what, int color, double seconds) {
    if (seconds > 0) bar.parts.push_back({what, theme().series(color), seconds, qs(to_text(Seconds(seconds)))});
  };
  part(DesignPage::tr("compute"), 0, step.compute.value);
  part(DesignPage::tr("memory"), 4, step.memory.value);
  part(DesignPage::tr("collectives"), 3, step.communication.value - step.hidden);
  part(DesignPage::tr("fixed"), 7, step.fixed.value);
  return bar;
}

}  // namespace

DesignPage::DesignPage(Document& document, Pricer& pricer, const Pricer::Folders& hardware, QWidget* parent)
    : QWidget(parent), document_(document), pricer_(pricer) {
  setObjectName(u"pageBody"_s);
  build(hardware);
  connect(&pricer_, &Pricer::changed, this, [this] { changed_ = true; });
  connect(&shards_, &ShardsModel::spec_typed, this, &DesignPage::set_spec);
  wire_canvas();
  connect(pin_, &QPushButton::toggled, this, [this](bool on) { on ? pin() : unpin(); });
}

void DesignPage::build(const Pricer::Folders& hardware) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 4, 8, 6);
  column->setSpacing(3);
  column->addWidget(header());
  memory_ = new MemoryPanel;
  memory_->setProperty("panel", true);
  alternatives_ = new Alternatives(document_, hardware);
  connect(alternatives_, &Alternatives::problem, this, &DesignPage::problem);
  shards_table_ = table(shards_, tr("Where every tensor lies"));
  shards_table_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  columns_ = new QSplitter(Qt::Horizontal, this);
  left_ = new QSplitter(Qt::Vertical, columns_);
  right_ = new QSplitter(Qt::Vertical, columns_);
  for (QSplitter* s : {columns_, left_, right_}) {
    s->setHandleWidth(5);
    s->setChildrenCollapsible(false);
  }
  canvas_ = new MeshCanvas;
  left_->addWidget(canvas_);
  left_->addWidget(shards_table_);
  left_->setStretchFactor(0, 3);
  left_->setStretchFactor(1, 2);
  right_->addWidget(memory_);
  right_->addWidget(plan_panel());
  right_->addWidget(alternatives_);
  columns_->setSizes({520, 430});
  columns_->setStretchFactor(0, 11);
  columns_->setStretchFactor(1, 9);
  column->addWidget(columns_, 1);
}

QWidget* DesignPage::header() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(2, 0, 0, 0);
  row->setSpacing(8);
  title_ = new QLabel(bar);
  title_->setTextFormat(Qt::RichText);
  pinned_title_ = new QLabel(bar);
  pinned_title_->setProperty("muted", true);
  pin_ = new QPushButton(tr("Pin to Compare"), bar);
  pin_->setCheckable(true);
  pin_->setToolTip(tr("Keep this design on screen beside the ones that follow"));
  row->addWidget(title_);
  row->addWidget(pinned_title_);
  row->addStretch(1);
  row->addWidget(pin_);
  return bar;
}

QWidget* DesignPage::plan_panel() {
  auto* panel = new QWidget;
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 2, 0, 0);
  column->setSpacing(3);
  time_ = new StackBar(panel);
  time_->setAccessibleName(tr("Predicted seconds of a step by kind"));
  time_->setContentsMargins(8, 0, 8, 0);
  plan_table_ = table(plan_, tr("Figures of the plan"));
  column->addWidget(time_);
  column->addWidget(plan_table_, 1);
  return panel;
}

QTableView* DesignPage::table(QAbstractTableModel& model, const QString& name) {
  auto* t = new QTableView;
  t->setModel(&model);
  t->setAccessibleName(name);
  t->setSelectionBehavior(QAbstractItemView::SelectRows);
  t->setSelectionMode(QAbstractItemView::SingleSelection);
  t->setAlternatingRowColors(true);
  t->setShowGrid(false);
  t->setWordWrap(false);
  t->setTabKeyNavigation(false);
  t->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  t->verticalHeader()->hide();
  t->verticalHeader()->setDefaultSectionSize(22);
  t->horizontalHeader()->setHighlightSections(false);
  t->horizontalHeader()->setStretchLastSection(true);
  t->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  return t;
}

// What is carried over the canvas is priced as if it were dropped; the document changes with the drop.
void DesignPage::wire_canvas() {
  connect(canvas_, &MeshCanvas::previewed, this, [this](const mesh::Choice& choice) {
    if (shown_) pricer_.ask(runs::with_choice(document_.experiment(), given_, choice));
  });
  connect(canvas_, &MeshCanvas::preview_ended, this, [this] { pricer_.ask(document_.experiment()); });
  connect(canvas_, &MeshCanvas::dropped, this, [this](const mesh::Choice& choice, const QString& text) {
    document_.replace(runs::with_choice(document_.experiment(), given_, choice), text);
  });
  connect(shards_table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& at) {
            if (!at.isValid()) return;
            canvas_->set_tensor(shards_.row(at.row()).first);
            show_traffic();
          });
}

void DesignPage::show_canvas() {
  if (canvas_->previewing()) return;  // it shows what is carried
  const plan::Request& r = shown_->request();
  // A new price of the same mesh leaves alone what the hand is doing there.
  const auto same = [&](const plan::Request& last) {
    return last.mesh == r.mesh && last.places == r.places && last.rules == r.rules && last.model == r.model &&
           last.target.id == r.target.id && last.work == r.work && last.method == r.method && last.rank == r.rank &&
           last.targets == r.targets;
  };
  if (on_canvas_ && same(on_canvas_->request())) return;
  on_canvas_ = shown_;
  given_ = runs::choice_of(*shown_);
  const auto inventory = std::make_shared<const model::TensorInventory>(r.model);
  canvas_->set_design({.choice = given_,
                       .target = r.target,
                       .inventory = inventory,
                       .placement = std::shared_ptr<const mesh::Placement>(shown_, &shown_->placement),
                       .adapters = plan::adapter_shapes(r, *inventory),
                       .use = r.work == plan::Work::train ? mesh::Use::training : mesh::Use::sampling,
                       .caption = mesh_text(*shown_)});
}

void DesignPage::show_traffic() {
  std::vector<CanvasTraffic> lines;
  if (shown_)
    for (const runs::Traffic& t : runs::traffic(*shown_, canvas_->tensor()))
      lines.push_back({qs(t.axis), qs(t.text), qs(t.label)});  // one label per axis: its sum
  canvas_->set_traffic(std::move(lines));
}

void DesignPage::pin() {
  pinned_ = shown_;
  changed_ = true;
  show_frame();
}

void DesignPage::unpin() {
  pinned_ = nullptr;
  changed_ = true;
  show_frame();
}

void DesignPage::restyle() {
  alternatives_->restyle();
  changed_ = true;
  show_frame();
}

void DesignPage::show_frame() {
  if (!changed_ || !isVisible()) return;
  changed_ = false;
  if (const runs::DesignPtr& design = pricer_.design(); design && !runs::is_here(*design))
    shown_ = design;
  else if (design && pricer_.prediction())
    shown_ = std::make_shared<const runs::Design>(runs::with_prediction(*design, *pricer_.prediction()));
  else
    return;
  update_all();
}

void DesignPage::update_all() {
  const bool stale = pricer_.design_outdated();
  title_->setText(title_text(*shown_));
  pinned_title_->setText(pinned_ ? tr("pinned: %1").arg(mesh_text(*pinned_)) : QString());
  const QSignalBlocker quiet(pin_);
  pin_->setChecked(pinned_ != nullptr);
  pin_->setText(pinned_ ? tr("Unpin") : tr("Pin to Compare"));
  memory_->show_design(shown_, pinned_, stale);
  std::vector<Bar> times{time_bar_of(*shown_, pinned_ ? tr("this") : QString())};
  if (pinned_) times.push_back(time_bar_of(*pinned_, tr("pinned")));
  time_->show_bars(std::move(times), stale);
  time_->setVisible(!runs::is_here(*shown_));
  alternatives_->set_searchable(!runs::is_here(*shown_));
  plan_.show(runs::plan_lines(*shown_), pinned_ ? runs::plan_lines(*pinned_) : std::vector<runs::PlanLine>(), stale);
  shards_.show(runs::shard_rows(*shown_), pinned_ ? runs::shard_rows(*pinned_) : std::vector<runs::ShardRow>(), stale);
  update_columns();
  show_canvas();
  const plan::DeviceMemory& memory = shown_->plan().memory;
  canvas_->set_memory({memory.capacity.value > 0 ? memory.at_peak.total() / memory.capacity : 0});
  if (canvas_->tensor().empty() && shards_.rowCount() > 0)
    shards_table_->selectRow(std::max(0, shards_.find(u"layers.0.q_proj"_s)));
  show_traffic();
}

void DesignPage::update_columns() {
  plan_table_->setColumnHidden(PlanModel::pinned, !plan_.compares());
  plan_table_->setColumnHidden(PlanModel::change, !plan_.compares());
  for (QTableView* t : {plan_table_, shards_table_})
    for (int c = 0; c + 1 < t->model()->columnCount(); ++c) {
      const QAbstractItemView& view = *t;
      const int wanted = std::max(view.sizeHintForColumn(c), t->horizontalHeader()->sectionSizeHint(c));
      t->setColumnWidth(c, std::min(wanted + 6, 260));
    }
}

// A typed spec is a rule for the tensors of that row, before the others.
void DesignPage::set_spec(const QString& tensor, const QString& spec) {
  const std::string pattern = ss(QString(tensor).replace(u".*."_s, u"."_s + u"\\d+"_s + u"."_s));
  Json rules = document_.experiment().value("sharding.overrides");
  Json kept = Json::array({pattern + " = " + ss(spec)});
  for (const Json& rule : rules)
    if (!rule.is_string() || rule.get<std::string>().compare(0, pattern.size() + 3, pattern + " = ") != 0)
      kept.push_back(rule);
  document_.set("sharding.overrides", kept);
}

QByteArray DesignPage::save_layout() const {
  QByteArray out;
  QDataStream stream(&out, QIODevice::WriteOnly);
  stream << columns_->saveState() << left_->saveState() << right_->saveState();
  return out;
}

void DesignPage::restore_layout(const QByteArray& state) {
  QDataStream stream(state);
  for (QSplitter* s : {columns_, left_, right_}) {
    QByteArray one;
    stream >> one;
    if (!one.isEmpty()) s->restoreState(one);
  }
}

}  // namespace mw::ui
