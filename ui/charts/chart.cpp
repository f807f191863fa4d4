// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart.h"

#include <QMenu>
#include <QMessageBox>
#include <QPainter>
#include <QTableView>
#include <algorithm>

#include "ui/charts/chart_paint.h"
#include "ui/charts/chart_table.h"
#include "ui/charts/chart_types.h"

namespace mw::ui {

Chart::Chart(ChartOptions options, ChartLink& link, QWidget* parent)
    : QWidget(parent),
      content_{.options = std::move(options)},
      link_(link),
      axes_(content_, link),
      legend_(axes_),
      gestures_(axes_, link),
      log_(new QToolButton(this)),
      more_(new QToolButton(this)),
      jump_(new QPushButton(tr("Jump to Now"), this)) {
  const QString& title = content_.options.title;
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Chart);
  setAccessibleName(tr("%1 chart").arg(title));
  for (QToolButton* b : {log_, more_}) {
    b->setProperty("flat", true);
    b->setFont(small_font());
    b->setFocusPolicy(Qt::TabFocus);
  }
  log_->setText(tr("Log"));
  log_->setCheckable(true);
  log_->setToolTip(tr("Use a logarithmic scale"));
  log_->setAccessibleName(tr("Logarithmic scale of %1").arg(title));
  log_->setVisible(!this->options().from_zero && !this->options().rows);
  more_->setIcon(icon(Glyph::more));
  more_->setToolTip(tr("Open the menu of this chart"));
  more_->setAccessibleName(tr("Menu of %1").arg(title));
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  more_->setMenu(make_menu());
  jump_->setObjectName(u"pill"_s);
  jump_->hide();
  connect(log_, &QToolButton::toggled, this, [this](bool on) { set_scale(on ? Scale::logarithmic : Scale::linear); });
  connect(jump_, &QPushButton::clicked, this, [this] {
    link_.set_playhead(std::nullopt);
    link_.set_following(true);
  });
  connect(&link_, &ChartLink::range_changed, this, &Chart::refresh);
  connect(&link_, &ChartLink::cursor_changed, this, qOverload<>(&QWidget::update));
  connect(&link_, &ChartLink::following_changed, this,
          [this](bool on) { jump_->setVisible(this->options().jump_to_now && !on && !is_table_shown()); });
}

Chart::~Chart() = default;

QMenu* Chart::make_menu() {
  auto* menu = new QMenu(this);
  QAction* table = menu->addAction(tr("View as Table"));
  table->setCheckable(true);
  connect(table, &QAction::toggled, this, &Chart::show_table);
  connect(menu, &QMenu::aboutToShow, table, [this, table] {
    const QSignalBlocker quiet(table);
    table->setChecked(is_table_shown());
  });
  menu->addAction(tr("Reset Zoom"), this, [this] { link_.set_following(true); });
  menu->addSeparator();
  menu->addAction(tr("Copy Data as CSV"), this, [this] { copy_csv(*this); });
  menu->addAction(tr("Export…"), this, [this] {
    open_save_dialog(
        window(),
        {.title = tr("Export Chart"), .start = options().title.toLower() + u".png"_s, .filters = chart_file_filter()},
        [chart = QPointer(this)](const auto& files) {
          if (chart) chart->export_to(files.front());
        });
  });
  return menu;
}

void Chart::set_lines(std::vector<ChartLine> lines) {
  content_.lines = std::move(lines);
  refresh();
}

void Chart::set_stack(ChartStack stack) {
  content_.stack = std::move(stack);
  refresh();
}

void Chart::set_bars(ChartBars bars) {
  if (bars == content_.bars) return;
  content_.bars = std::move(bars);
  std::vector<Tick> stops;
  for (const ChartBar& bar : content_.bars.bars) stops.push_back({static_cast<double>(stops.size()), bar.name});
  link_.set_data({-0.5, std::max(0.5, static_cast<double>(stops.size()) - 0.5)});
  link_.set_stops(std::move(stops));
  set_stack(bar_stack(content_.bars));
}

template <class Value>
void Chart::set(Value& member, Value value) {
  if (member == value) return;
  member = std::move(value);
  refresh();
}

void Chart::set_levels(std::vector<LevelLine> levels) {
  set(content_.levels, std::move(levels));
}

void Chart::set_limits(std::vector<LevelLine> limits) {
  set(content_.limits, std::move(limits));
}

void Chart::set_notes(std::vector<ChartNote> notes, const QString& caption) {
  setToolTip(caption);  // the caption may be elided
  set(content_.caption, caption);
  set(content_.notes, std::move(notes));
}

void Chart::set_empty_text(const QString& text) {
  set(content_.options.empty, text);
}

void Chart::set_title(const QString& title) {
  setAccessibleName(tr("%1 chart").arg(title));
  set(content_.options.title, title);
}

void Chart::set_unit(const QString& unit) {
  set(content_.options.unit, unit);
}

void Chart::set_header_inset(int pixels) {
  if (pixels == inset_) return;
  inset_ = pixels;
  place_children();
  refresh();
}

void Chart::set_emphasis(int group) {
  if (group == content_.emphasis) return;
  content_.emphasis = group;
  redraw();
}

void Chart::set_scale(Scale scale) {
  if (scale == content_.scale) return;
  content_.scale = scale;
  const QSignalBlocker quiet(log_);
  log_->setChecked(scale == Scale::logarithmic);
  axes_.forget_y();
  redraw();
}

void Chart::refresh() {
  stale_ = true;
  if (is_table_shown()) table_->refresh();
  if (QAccessible::isActive()) setAccessibleDescription(summary());
  update();
}

void Chart::redraw() {
  picture_ = {};  // the next one waits for no turn
  refresh();
}

QString Chart::summary() const {
  QStringList parts = options().rows ? row_summaries(axes_) : legend_.texts();
  if (!content_.caption.isEmpty()) parts << content_.caption;
  return parts.isEmpty() ? options().empty : QString(options().title + u": "_s + parts.join(u", "_s));
}

void Chart::lay_out_legend() {
  if (legend_.lay_out(header_end())) stale_ = true;
  axes_.legend_rows = legend_.rows();
}

void Chart::paintEvent(QPaintEvent*) {
  lay_out_legend();
  QPainter painter(this);
  if (!is_table_shown()) {
    const qreal ratio = devicePixelRatioF();
    const bool fits = picture_.size() == size() * ratio;
    if (!fits || (stale_ && link_.take_turn(*this))) {
      picture_ = QPixmap(size() * ratio);
      picture_.setDevicePixelRatio(ratio);
      picture_.fill(theme().panel);
      QPainter still(&picture_);
      draw(still);
      stale_ = false;
    }
    painter.drawPixmap(0, 0, picture_);
    paint_cursor(painter, axes_, area());
  } else {
    painter.fillRect(rect(), theme().panel);
  }
  legend_.paint(painter, !is_table_shown());
  paint_edge(painter, *this);
}

void Chart::draw(QPainter& painter) {
  if (empty()) {
    painter.setPen(theme().faint);
    painter.setFont(small_font());
    painter.drawText(area().adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap, options().empty);
    return;
  }
  axes_.update();
  SceneItems shown = chart_items(axes_, area());
  cut_bars_ = std::move(shown.cut_bars);
  scene_.update(std::move(shown), size(), area().adjusted(-ChartAxes::kAir, 0, ChartAxes::kAir, 0));
  scene_.paint(painter);
  paint_annotations(painter, axes_, area(), cut_bars_);
}

void Chart::paint_whole(QPainter& painter) {
  place_children();  // a chart that has not been shown has no layout yet
  lay_out_legend();
  painter.fillRect(rect(), theme().panel);
  draw(painter);
  legend_.paint(painter, !is_table_shown());
  painter.setPen(theme().line);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

void Chart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  stale_ = true;
  legend_.forget_rows();
  axes_.legend_rows = 1;
  place_children();
}

void Chart::place_children() {
  axes_.size = size();
  int right = width() - 4 - inset_;
  for (QToolButton* b : {more_, log_}) {
    if (b->isHidden()) continue;
    const QSize s(std::max(20, b->sizeHint().width()), 20);
    right -= s.width();
    b->setGeometry(QRect(QPoint(right, 3), s));
    right -= 2;
  }
  jump_->adjustSize();
  jump_->move(width() - jump_->width() - static_cast<int>(ChartAxes::kRight) - 6,
              height() - static_cast<int>(axes_.below()) - jump_->height() - 6);
  const int top = static_cast<int>(area().top());
  if (table_) table_->view().setGeometry(1, top, width() - 2, height() - top - 1);
}

double Chart::header_end() const {
  return log_->isHidden() ? more_->x() : log_->x();
}

void Chart::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) redraw();
}

bool Chart::is_table_shown() const {
  return table_ && !table_->view().isHidden();
}

void Chart::show_table(bool on) {
  if (on && !table_) table_ = std::make_unique<ChartTable>(*this);
  if (table_) table_->view().setVisible(on);
  if (on) table_->load();
  place_children();
  jump_->setVisible(options().jump_to_now && !on && !link_.is_following());
  update();
}

void Chart::export_to(const std::filesystem::path& file) {
  try {
    export_chart(*this, file);
  } catch (const Error& error) {
    auto* box = new QMessageBox(QMessageBox::Warning, tr("Export Chart"), qs(error.what()), QMessageBox::Ok, window());
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
  }
}

int Chart::group_at(QPointF at) const {
  if (const LegendEntry* entry = legend_.entry_at(at); entry && entry->group >= 0) return entry->group;
  return area().contains(at) ? nearest_group(axes_, at) : -1;
}

void Chart::hover(QPointF at) {
  const LegendEntry* entry = legend_.entry_at(at);
  setCursor(entry && entry->color.isValid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (const int group = group_at(at); std::exchange(hovered_, group) != group) emit group_hovered(group);
}

bool Chart::toggle(QPointF at) {
  const LegendEntry* entry = legend_.entry_at(at);
  if (!entry || !entry->color.isValid()) return false;
  if (!content_.hidden.erase(entry->name)) content_.hidden.insert(entry->name);
  axes_.forget_y();
  redraw();
  return true;
}

bool Chart::show_tip(const QHelpEvent& help) {
  const QString tip = legend_.folded_at().contains(help.pos()) ? legend_.folded() : tip_at(axes_, help.pos());
  if (!tip.isEmpty()) QToolTip::showText(help.globalPos(), tip, this);
  return !tip.isEmpty();
}

bool Chart::event(QEvent* event) {
  const auto* mouse = dynamic_cast<QMouseEvent*>(event);
  if (event->type() == QEvent::ToolTip && show_tip(static_cast<QHelpEvent&>(*event))) return true;
  if (event->type() == QEvent::MouseMove) hover(mouse->position());
  if (event->type() == QEvent::Leave && std::exchange(hovered_, -1) >= 0) emit group_hovered(-1);
  if (event->type() == QEvent::MouseButtonPress && mouse->button() == Qt::LeftButton && toggle(mouse->position()))
    return true;
  return gestures_.handle(*event) || QWidget::event(event);
}

void Chart::contextMenuEvent(QContextMenuEvent* event) {
  more_->menu()->popup(event->globalPos());
}

}  // namespace mw::ui

#include "moc_chart.cpp"
