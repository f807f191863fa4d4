// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/canvas_pair.h"

#include "core/plan/request/local_model.h"

namespace mw::ui {
namespace {

constexpr int kHeading = 36;  // two lines

CanvasDesign canvas_design(const views::DesignPtr& design,
                           const std::shared_ptr<const model::TensorInventory>& inventory) {
  const plan::Request& r = design->request();
  return {.choice = views::choice_of(*design),
          .target = r.target,
          .inventory = inventory,
          .placement = std::shared_ptr<const mesh::Placement>(design, &design->placement),
          .adapters = plan::adapter_shapes(r, *inventory),
          .use = r.work == plan::Work::train ? mesh::ShardingUse::training : mesh::ShardingUse::sampling,
          .caption = CanvasPair::tr("%1, %2").arg(qs(r.target.id), devices_text(r.mesh.devices()))};
}

bool same_work(const views::Design& a, const views::Design& b) {
  const plan::Request &r = a.request(), &s = b.request();
  return r.model == s.model && r.target.id == s.target.id && r.work == s.work && r.method == s.method &&
         r.lora.rank == s.lora.rank && r.targets == s.targets && r.adapted == s.adapted;
}

QString line_of(const std::vector<views::HeadingPart>& parts, const QString& between) {
  QStringList out;
  for (const views::HeadingPart& p : parts) {
    const QString text = qs(p.text).toHtmlEscaped().replace(u' ', QChar::Nbsp);
    out << (p.changed ? u"<b style='color:%1'>%2</b>"_s.arg(theme().accent.name(), text) : text);
  }
  return out.join(between);
}

}  // namespace

CanvasPair::CanvasPair(QWidget* parent) : QSplitter(Qt::Horizontal, parent) {
  setHandleWidth(5);
  setChildrenCollapsible(false);
  pinned_ = pane(Editing::none);
  live_ = pane(Editing::allowed);
  pinned_.frame->hide();
  live_.heading->hide();
  const auto link = [](MeshCanvas* from, MeshCanvas* to) {
    connect(from, &MeshCanvas::device_selected, to, &MeshCanvas::select_device);
  };
  link(pinned_.canvas, live_.canvas);
  link(live_.canvas, pinned_.canvas);
  connect(this, &QSplitter::splitterMoved, this, [this] {
    const QList<int> s = sizes();
    if (s[0] + s[1] > 0) share_ = static_cast<double>(s[0]) / (s[0] + s[1]);
  });
}

CanvasPair::Pane CanvasPair::pane(Editing editing) {
  Pane p;
  p.frame = new QWidget(this);
  p.heading = new QLabel(p.frame);
  p.heading->setTextFormat(Qt::RichText);
  p.heading->setFont(small_font());
  p.heading->setFixedHeight(kHeading);
  p.heading->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  p.heading->setContentsMargins(8, 0, 0, 0);
  p.canvas = new MeshCanvas(editing, p.frame);
  auto* column = flush_layout<QVBoxLayout>(p.frame, 2);
  column->addWidget(p.heading);
  column->addWidget(p.canvas, 1);
  addWidget(p.frame);
  return p;
}

void CanvasPair::show_designs(const views::DesignPtr& live, const views::DesignPtr& pinned, bool stale) {
  live_.shown = live;
  pinned_.shown = pinned;
  show(live_, pinned.get(), stale);
  if (pinned) show(pinned_, nullptr, false);
  if (pinned_.frame->isHidden() == (shown() == Meshes::both)) arrange();
}

void CanvasPair::show_nothing() {
  for (Pane* p : {&pinned_, &live_}) {
    p->shown.reset();
    p->on_canvas.reset();
    p->heading->clear();
    p->heading->setToolTip({});
    p->canvas->set_design({});
    p->canvas->set_memory({});
    p->canvas->set_traffic({});
  }
  arrange();
}

void CanvasPair::show(Pane& pane, const views::Design* other, bool stale) {
  const views::Design& design = *pane.shown;
  const views::Heading heading = views::heading(design, other);
  const QString name = &pane == &pinned_ ? tr("Pinned") : tr("This");
  pane.heading->setText(u"<b>%1</b> &nbsp; %2<br>%3"_s.arg(name, line_of(heading.what, u" &nbsp; "_s),
                                                           line_of(heading.comes_to, u" \u00B7 "_s)));
  pane.heading->setToolTip(pane.heading->text());
  pane.heading->setEnabled(!stale);
  // A new prediction for the same mesh or an outdated one must not disturb an edit in progress.
  const bool same =
      pane.on_canvas && same_work(*pane.on_canvas, design) && pane.canvas->given() == views::choice_of(design);
  if (!pane.on_canvas || !(same || stale || pane.canvas->is_previewing())) {
    if (!pane.on_canvas || !(pane.on_canvas->request().model == design.request().model))
      pane.inventory = std::make_shared<const model::TensorInventory>(design.request().model);
    pane.on_canvas = pane.shown;
    pane.canvas->set_design(canvas_design(pane.shown, pane.inventory));
  }
  const plan::DeviceMemory& memory = design.plan().memory;
  pane.canvas->set_memory({memory.capacity.value > 0 ? memory.at_peak.total() / memory.capacity : 0});
  show_traffic(pane);
}

void CanvasPair::show_traffic(Pane& pane) {
  std::vector<CanvasTraffic> lines;
  if (pane.shown)
    for (const views::Traffic& t : views::traffic(*pane.shown, pane.canvas->tensor()))
      lines.push_back({qs(t.axis), qs(t.text), qs(t.label)});  // one label per axis: its sum
  pane.canvas->set_traffic(std::move(lines));
}

void CanvasPair::set_tensor(const std::string& name) {
  for (Pane* p : {&pinned_, &live_}) {
    p->canvas->set_tensor(name);
    show_traffic(*p);
  }
}

// --- One or both ---

void CanvasPair::set_wanted(Meshes meshes) {
  wanted_ = meshes;
  arrange();
}

Meshes CanvasPair::shown() const {
  return wanted_ == Meshes::both && pinned_.shown ? Meshes::both : Meshes::one;
}

void CanvasPair::arrange() {
  const bool both = shown() == Meshes::both;
  const bool changed = pinned_.frame->isHidden() == both;
  if (changed && both) pinned_.canvas->select_device(live_.canvas->selected_device());
  pinned_.frame->setVisible(both);
  live_.heading->setVisible(both);
  const int least = 2 * live_.canvas->minimumSizeHint().width() + handleWidth();
  const Qt::Orientation wanted = both && width() < least ? Qt::Vertical : Qt::Horizontal;
  if (orientation() != wanted) setOrientation(wanted);
  if (both) setSizes({static_cast<int>(share_ * 10000), static_cast<int>((1 - share_) * 10000)});
  if (changed) updateGeometry();
}

void CanvasPair::resizeEvent(QResizeEvent* event) {
  QSplitter::resizeEvent(event);
  arrange();
}

QSize CanvasPair::minimumSizeHint() const {
  const QSize one = live_.canvas->minimumSizeHint();
  if (shown() == Meshes::one) return one;
  const int each = one.height() + kHeading + 2;
  return {one.width(), orientation() == Qt::Horizontal ? each : 2 * each + handleWidth()};
}

QByteArray CanvasPair::save_layout() const {
  QByteArray out;
  QDataStream(&out, QIODevice::WriteOnly) << share_ << (wanted_ == Meshes::both);
  return out;
}

void CanvasPair::restore_layout(const QByteArray& state) {
  double share = 0;
  bool both = true;
  QDataStream stream(state);
  stream >> share >> both;
  if (stream.status() != QDataStream::Ok || !(share > 0 && share < 1)) return;
  share_ = share;
  set_wanted(both ? Meshes::both : Meshes::one);
}

// --- Planned or measured ---

MeasuredSwitch::MeasuredSwitch(QWidget* planned, QWidget* parent)
    : QStackedWidget(parent), measured_(new MeasuredMesh), button_(new QPushButton(tr("Measured"))) {
  addWidget(planned);
  addWidget(measured_);
  button_->setCheckable(true);
  button_->hide();
  connect(button_, &QPushButton::clicked, this, &MeasuredSwitch::show_measured);
}

void MeasuredSwitch::show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot,
                                   MeasuredMesh::PlayheadMode mode) {
  offered_ = on_a_mesh(run);
  run_name_ = run ? qs(run->id.empty() ? run->name : run->id) : QString();
  if (offered_) measured_->show_snapshot(run, snapshot, mode);
  show_measured(is_measured_shown());
}

void MeasuredSwitch::show_measured(bool on) {
  on = on && offered_;
  setCurrentIndex(on ? 1 : 0);
  const QSignalBlocker quiet(button_);
  button_->setVisible(offered_);
  button_->setChecked(on);
  button_->setText(on ? tr("Show Plan") : tr("Show Measured: %1").arg(run_name_));
  button_->setToolTip(on ? tr("Show the planned mesh of the document")
                         : tr("Show the memory and traffic of %1 as measured at the playhead").arg(run_name_));
}

}  // namespace mw::ui

#include "moc_canvas_pair.cpp"
