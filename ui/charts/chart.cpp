// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart.h"

#include <QAccessible>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMessageBox>
#include <QMouseEvent>
#include <QPainter>
#include <QPointer>
#include <QPushButton>
#include <QTableView>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "ui/charts/chart_export.h"
#include "ui/charts/chart_strokes.h"
#include "ui/charts/chart_table.h"
#include "ui/charts/chart_types.h"
#include "ui/theme/accessible_role.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr double kHeader = 25;
constexpr double kTickPadding = 5, kTitlePadding = 2;  // of Qt Charts, beside labels and around titles
double title_height() {
  return QFontMetricsF(small_font()).height() + 8 + 2 * kTitlePadding;  // a text item has margins of 4 pixels
}
double bottom_margin(int height) {
  return QFontMetricsF(small_font()).height() + kTickPadding + (height < kTitledHeight ? 2 : title_height());
}
constexpr double kNear = 9;  // pixels between the mouse and a sample
constexpr int kTableMs = 400;
}  // namespace

Chart::Chart(ChartOptions options, ChartLink& link, QWidget* parent)
    : QWidget(parent),
      options_(std::move(options)),
      link_(link),
      log_(new QToolButton(this)),
      more_(new QToolButton(this)),
      jump_(new QPushButton(tr("Jump to Now"), this)) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Chart);
  setAccessibleName(tr("%1 chart").arg(options_.title));
  for (QToolButton* b : {log_, more_}) {
    b->setProperty("flat", true);
    b->setFont(small_font());
    b->setFocusPolicy(Qt::TabFocus);
  }
  log_->setText(tr("Log"));
  log_->setCheckable(true);
  log_->setToolTip(tr("Use a logarithmic scale"));
  log_->setAccessibleName(tr("Logarithmic scale of %1").arg(options_.title));
  log_->setVisible(!options_.from_zero && !options_.rows);
  more_->setIcon(icon(Glyph::more));
  more_->setToolTip(tr("Open the menu of this chart"));
  more_->setAccessibleName(tr("Menu of %1").arg(options_.title));
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  more_->setMenu(make_menu());
  jump_->setObjectName(u"pill"_s);
  jump_->hide();
  table_due_.setSingleShot(true);
  table_due_.setInterval(kTableMs);
  connect(&table_due_, &QTimer::timeout, this, [this] {
    if (is_table_shown()) table_model_->load(*this);
  });
  connect(log_, &QToolButton::toggled, this, [this](bool on) { set_scale(on ? Scale::logarithmic : Scale::linear); });
  connect(jump_, &QPushButton::clicked, this, [this] {
    link_.set_playhead(std::nullopt);
    link_.set_following(true);
  });
  connect(&link_, &ChartLink::range_changed, this, &Chart::refresh);
  connect(&link_, &ChartLink::cursor_changed, this, qOverload<>(&QWidget::update));
  connect(&link_, &ChartLink::following_changed, this,
          [this](bool on) { jump_->setVisible(options_.jump_to_now && !on && !is_table_shown()); });
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
        {.title = tr("Export Chart"), .start = options_.title.toLower() + u".png"_s, .filters = chart_file_filter()},
        [chart = QPointer(this)](const auto& files) {
          if (chart) chart->export_to(files.front());
        });
  });
  return menu;
}

void Chart::set_lines(std::vector<ChartLine> lines) {
  lines_ = std::move(lines);
  refresh();
}

void Chart::set_stack(ChartStack stack) {
  stack_ = std::move(stack);
  refresh();
}

void Chart::set_bars(ChartBars bars) {
  if (bars == bars_) return;
  bars_ = std::move(bars);
  std::vector<Tick> stops;
  for (const ChartBar& bar : bars_.bars) stops.push_back({static_cast<double>(stops.size()), bar.name});
  link_.set_data({-0.5, std::max(0.5, static_cast<double>(stops.size()) - 0.5)});
  link_.set_stops(std::move(stops));
  set_stack(bar_stack(bars_));
}

void Chart::set_levels(std::vector<LevelLine> levels) {
  if (levels == levels_) return;
  levels_ = std::move(levels);
  refresh();
}

void Chart::set_limits(std::vector<LevelLine> limits) {
  if (limits == limits_) return;
  limits_ = std::move(limits);
  refresh();
}

void Chart::set_notes(std::vector<ChartNote> notes, const QString& caption) {
  if (notes == notes_ && caption == caption_) return;
  notes_ = std::move(notes);
  caption_ = caption;
  setToolTip(caption);  // the caption may be elided
  refresh();
}

void Chart::set_empty_text(const QString& text) {
  if (text == options_.empty) return;
  options_.empty = text;
  refresh();
}

void Chart::set_title(const QString& title) {
  if (title == options_.title) return;
  options_.title = title;
  setAccessibleName(tr("%1 chart").arg(title));
  refresh();
}

void Chart::set_unit(const QString& unit) {
  if (unit == options_.unit) return;
  options_.unit = unit;
  refresh();
}

void Chart::set_header_inset(int pixels) {
  if (pixels == inset_) return;
  inset_ = pixels;
  place_children();
  refresh();
}

bool Chart::empty() const {
  if (stack_.sample) return false;
  return std::all_of(lines_.begin(), lines_.end(), [](const ChartLine& l) { return !l.raw || l.raw->empty(); });
}

void Chart::refresh() {
  stale_ = true;
  if (is_table_shown() && !table_due_.isActive()) table_due_.start();
  if (QAccessible::isActive()) setAccessibleDescription(summary());
  update();
}

void Chart::redraw() {
  cache_ = {};  // the next picture waits for no turn
  refresh();
}

QString Chart::summary() const {
  QStringList parts;
  if (options_.rows)
    parts = row_summaries();
  else
    parts = legend_texts();
  if (!caption_.isEmpty()) parts << caption_;
  return parts.isEmpty() ? options_.empty : QString(options_.title + u": "_s + parts.join(u", "_s));
}

void Chart::set_scale(Scale scale) {
  if (scale == scale_) return;
  scale_ = scale;
  const QSignalBlocker quiet(log_);
  log_->setChecked(scale == Scale::logarithmic);
  y_ = {0, 0};
  redraw();
}

QRectF Chart::area() const {
  const bool labels_above = options_.rows && !levels_.empty();
  const double top = kHeader + 18 * (legend_rows_ - 1) + (caption_.isEmpty() ? 0 : kCaption) +
                     (labels_above ? kCaption : 0) + (caption_.isEmpty() && legend_rows_ == 1 ? 0 : kTickOverhang);
  return QRectF(left_margin_, top, std::max(10.0, width() - left_margin_ - right_margin_),
                std::max(10.0, height() - top - bottom_margin(height())));
}

double Chart::to_x(const QRectF& area, double x) const {
  const Span r = link_.range();
  return area.left() + (x - r.low) / r.size() * area.width();
}

double Chart::to_y(const QRectF& area, double y) const {
  const double low = axis_y(y_.low), share = (axis_y(y) - low) / (axis_y(y_.high) - low);
  return area.bottom() - share * area.height();
}

double Chart::x_at(QPointF at) const {
  const QRectF a = area();
  const double share = options_.rows ? (at.y() - a.top()) / a.height() : (at.x() - a.left()) / a.width();
  return link_.range().low + share * link_.range().size();
}

Span Chart::wanted_y() const {
  const Span x = link_.range();
  double low = INFINITY, high = -INFINITY;
  for (const ChartLine& line : lines_) {
    if (hidden(line.name)) continue;
    for (const auto* s : {line.raw.get(), line.smooth.get(), line.low.get(), line.high.get()})
      if (s)
        if (const auto range = s->y_range(x.low, x.high)) {
          low = std::min(low, range->min);
          high = std::max(high, range->max);
        }
  }
  if (stack_.highest) {
    low = 0;
    high = std::max(high, stack_.highest(x.low, x.high));
  }
  // The axis includes a level only if the data comes near it; otherwise its label is at the upper edge.
  for (const LevelLine& level : levels_)
    if (level.value > high && level.value < high * 2.2) high = level.value * 1.08;
  if (options_.from_zero || options_.rows) low = std::min(low, 0.0);
  return {low, high};
}

void Chart::update_y() {
  Span wanted = wanted_y();
  if (!(wanted.low <= wanted.high)) {
    y_ = {0, 1};
    return;
  }
  if (scale_ == Scale::logarithmic && wanted.low <= 0) wanted.low = wanted.high > 0 ? wanted.high * 1e-4 : 0;
  const Span room = padded(wanted, scale_);
  const double low = options_.from_zero || options_.rows ? 0 : room.low;
  // Hysteresis: the axis changes only if the data leaves it or fills too little of it.
  const bool inside = wanted.low >= y_.low && wanted.high <= y_.high;
  const bool small = room.high - low < y_.size() * 0.7;
  if (!inside || small || y_.size() <= 0) y_ = {low, room.high};
}

void Chart::paintEvent(QPaintEvent*) {
  lay_out_legend();
  QPainter painter(this);
  if (!is_table_shown()) {
    const qreal ratio = devicePixelRatioF();
    const bool fits = cache_.size() == size() * ratio;
    if (!fits || (stale_ && link_.take_turn(*this))) {
      cache_ = QPixmap(size() * ratio);
      cache_.setDevicePixelRatio(ratio);
      cache_.fill(theme().panel);
      QPainter still(&cache_);
      draw(still);
      stale_ = false;
    }
    painter.drawPixmap(0, 0, cache_);
    paint_cursor(painter, area());
  } else {
    painter.fillRect(rect(), theme().panel);
  }
  paint_header(painter);
  paint_edge(painter, *this);
}

void Chart::draw(QPainter& painter) {
  if (empty()) {
    painter.setPen(theme().faint);
    painter.setFont(small_font());
    painter.drawText(area().adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap, options_.empty);
    return;
  }
  update_y();
  fit_margin();
  SceneItems shown = items(area());
  cut_bars_ = std::move(shown.cut_bars);
  scene_.update(std::move(shown), size(), area().adjusted(-kAir, 0, kAir, 0));
  scene_.paint(painter);
  paint_annotations(painter, area());
}

// The left margin fits the widest label and only grows, so that the data does not jitter.
void Chart::fit_margin() {
  if (options_.rows) return fit_row_margins();
  const QFontMetricsF metrics(small_font());
  double widest = 24;
  for (const Tick& t : y_ticks(area())) widest = std::max(widest, metrics.horizontalAdvance(t.label));
  widest += (height() < kTitledHeight ? 0 : title_height()) + kTickPadding + kAir + 3;
  if (widest > left_margin_ || widest < left_margin_ - 14) left_margin_ = std::ceil(widest);
}

void Chart::paint_whole(QPainter& painter) {
  place_children();  // a chart that has not been shown has no layout yet
  lay_out_legend();
  painter.fillRect(rect(), theme().panel);
  draw(painter);
  paint_header(painter);
  painter.setPen(theme().line);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

void Chart::set_emphasis(int group) {
  if (group == emphasis_) return;
  emphasis_ = group;
  redraw();
}

void Chart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  stale_ = true;
  legend_rows_ = 1;
  place_children();
}

void Chart::place_children() {
  int right = width() - 4 - inset_;
  for (QToolButton* b : {more_, log_}) {
    if (b->isHidden()) continue;
    const QSize s(std::max(20, b->sizeHint().width()), 20);
    right -= s.width();
    b->setGeometry(QRect(QPoint(right, 3), s));
    right -= 2;
  }
  jump_->adjustSize();
  jump_->move(width() - jump_->width() - static_cast<int>(kRight) - 6,
              height() - static_cast<int>(bottom_margin(height())) - jump_->height() - 6);
  const int top = static_cast<int>(area().top());
  if (table_) table_->setGeometry(1, top, width() - 2, height() - top - 1);
}

double Chart::header_end() const {
  return log_->isHidden() ? more_->x() : log_->x();
}

void Chart::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) redraw();
}

bool Chart::is_table_shown() const {
  return table_ && !table_->isHidden();
}

void Chart::show_table(bool on) {
  if (on && !table_) {
    table_model_ = new ChartTableModel(this);
    table_ = make_table(*table_model_, tr("%1 as a table").arg(options_.title), this);
    table_->horizontalHeader()->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter);
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  }
  if (table_) table_->setVisible(on);
  if (on) table_model_->load(*this);
  place_children();
  jump_->setVisible(options_.jump_to_now && !on && !link_.is_following());
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

// --- Mouse, wheel and keys ---

void Chart::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (dragging_ && !options_.rows) {
    if (std::abs(at.x() - pressed_at_.x()) > 3) moved_ = true;
    if (moved_) {
      const double by = (pressed_at_.x() - at.x()) / area().width() * pressed_range_.size();
      link_.show_range({pressed_range_.low + by, pressed_range_.high + by});
    }
  }
  const bool over_legend = std::any_of(legend_.begin(), legend_.end(),
                                       [&](const LegendEntry& e) { return e.color.isValid() && e.at.contains(at); });
  setCursor(over_legend ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (const int group = group_at(at); group != hovered_) {
    hovered_ = group;
    emit group_hovered(group);
  }
  if (area().adjusted(options_.rows ? -left_margin_ : -1, 0, 1, 0).contains(at) && !empty())
    link_.set_cursor(x_at(at));
  else
    link_.set_cursor(std::nullopt);
}

void Chart::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  for (const LegendEntry& e : legend_) {
    if (!e.at.contains(event->position()) || !e.color.isValid()) continue;
    if (!hidden_.erase(e.name)) hidden_.insert(e.name);
    y_ = {0, 0};
    redraw();
    return;
  }
  dragging_ = area().contains(event->position());
  moved_ = false;
  pressed_at_ = event->position();
  pressed_range_ = link_.range();
}

void Chart::mouseReleaseEvent(QMouseEvent* event) {
  if (dragging_ && !moved_ && event->button() == Qt::LeftButton && !empty())
    link_.set_playhead(x_at(event->position()));
  dragging_ = false;
}

void Chart::mouseDoubleClickEvent(QMouseEvent*) {
  dragging_ = false;
  link_.set_playhead(std::nullopt);
  link_.set_following(true);
}

void Chart::wheelEvent(QWheelEvent* event) {
  if (options_.rows) return event->ignore();
  if (!area().contains(event->position()) || empty()) return;
  if (std::abs(event->angleDelta().x()) > std::abs(event->angleDelta().y()))
    link_.pan(-event->angleDelta().x() / 1200.0);
  else
    link_.zoom(std::pow(0.8, event->angleDelta().y() / 120.0), x_at(event->position()));
  event->accept();
}

int Chart::group_at(QPointF at) const {
  for (const LegendEntry& e : legend_)
    if (e.group >= 0 && e.at.contains(at)) return e.group;
  const QRectF a = area();
  if (!a.contains(at)) return -1;
  int group = -1;
  double nearest = kNear;
  for (const ChartLine& line : lines_) {
    if (line.group < 0 || !line.raw || line.raw->empty() || hidden(line.name)) continue;
    const auto sample = line.raw->nearest(x_at(at));
    if (!sample) continue;
    const views::Point p = (*line.raw)[*sample];
    const double distance = std::hypot(to_x(a, p.x) - at.x(), to_y(a, p.y) - at.y());
    if (distance < nearest) nearest = distance, group = line.group;
  }
  return group;
}

bool Chart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (folded_at_.contains(help->pos())) {
    QToolTip::showText(help->globalPos(), folded_legend(), this);
    return true;
  }
  if (const QString tip = row_tip(help->pos()); !tip.isEmpty()) {
    QToolTip::showText(help->globalPos(), tip, this);
    return true;
  }
  const QRectF a = area();
  for (const ChartLine& line : lines_)
    for (const ChartFlag& flag : line.flags)
      if (!hidden(line.name) && QLineF(QPointF(to_x(a, flag.x), to_y(a, flag.y)), help->pos()).length() < kNear) {
        QToolTip::showText(help->globalPos(), flag.text, this);
        return true;
      }
  return QWidget::event(event);
}

void Chart::leaveEvent(QEvent*) {
  if (hovered_ >= 0) {
    hovered_ = -1;
    emit group_hovered(-1);
  }
  link_.set_cursor(std::nullopt);
}

void Chart::keyPressEvent(QKeyEvent* event) {
  if (options_.rows) return press_row_key(event);
  const Span r = link_.range();
  const int far = event->modifiers() & Qt::ShiftModifier ? 10 : 1;
  const double at = link_.playhead().value_or(std::min(r.high, link_.data().high));
  switch (event->key()) {
    case Qt::Key_Left:
      link_.set_playhead(link_.x_beside(at, -far));
      break;
    case Qt::Key_Right:
      link_.set_playhead(link_.x_beside(at, far));
      break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      link_.zoom(0.7, link_.playhead().value_or((r.low + r.high) / 2));
      break;
    case Qt::Key_Minus:
      link_.zoom(1 / 0.7, link_.playhead().value_or((r.low + r.high) / 2));
      break;
    case Qt::Key_PageUp:
      link_.pan(-0.5);
      break;
    case Qt::Key_PageDown:
      link_.pan(0.5);
      break;
    case Qt::Key_Home:
      link_.set_playhead(link_.data().low);
      break;
    case Qt::Key_End:
    case Qt::Key_Escape:
      link_.set_playhead(std::nullopt);
      link_.set_following(true);
      break;
    default:
      QWidget::keyPressEvent(event);
  }
}

void Chart::contextMenuEvent(QContextMenuEvent* event) {
  more_->menu()->popup(event->globalPos());
}

}  // namespace mw::ui

#include "moc_chart.cpp"
