// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/request_timeline.h"

#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr double kTimelineHeader = 25, kTimelineBottom = 19, kLeft = 10, kTimelineRight = 10;
constexpr double kLeast = 3, kMost = 13;  // minimum and maximum height of a row

struct Colors {
  QColor client, queued, prefill, decode, failed;
};
Colors colors() {
  const Theme& t = theme();
  return {mix(t.panel, t.muted, 0.25), mix(t.panel, t.warn, 0.7), t.series(1), t.series(0), t.bad};
}

QString time(double seconds) {
  return value_text(seconds, AxisQuantity::seconds);
}

}  // namespace

RequestTimeline::RequestTimeline(ChartLink& link, QWidget* parent) : QAbstractScrollArea(parent), link_(link) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  set_accessible_role(*this, QAccessible::Chart);
  setAccessibleName(tr("Timeline of the requests"));
  viewport()->setMouseTracking(true);
  viewport()->setAutoFillBackground(false);
  connect(&link_, &ChartLink::range_changed, viewport(), qOverload<>(&QWidget::update));
  connect(&link_, &ChartLink::cursor_changed, viewport(), qOverload<>(&QWidget::update));
}

void RequestTimeline::show_point(const formats::BenchPoint* point, const QString& title) {
  title_ = title;
  rows_.clear();
  queue_known_ = false;
  if (point) {
    rows_.reserve(point->requests.size());
    for (const auto& r : point->requests) {
      rows_.push_back({views::phases_of(r), r.prompt_tokens, r.output_tokens, r.cached_tokens, r.preemptions, r.error});
      queue_known_ |= rows_.back().phases.queue_known;
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return a.phases.intended < b.phases.intended; });
  }
  setAccessibleDescription(tr("%1: %n request(s)", nullptr, requests()).arg(title));
  verticalScrollBar()->setValue(0);
  fit();
  viewport()->update();
}

QRectF RequestTimeline::area() const {
  return {kLeft, kTimelineHeader, std::max(10.0, viewport()->width() - kLeft - kTimelineRight),
          std::max(10.0, viewport()->height() - kTimelineHeader - kTimelineBottom)};
}

double RequestTimeline::row_height() const {
  return rows_.empty() ? kMost : std::clamp(std::floor(area().height() / requests()), kLeast, kMost);
}

void RequestTimeline::fit() {
  const int shown = static_cast<int>(area().height() / row_height());
  verticalScrollBar()->setPageStep(shown);
  verticalScrollBar()->setRange(0, std::max(0, requests() - shown));
}

double RequestTimeline::to_x(double seconds) const {
  const QRectF a = area();
  const AxisRange r = link_.range();
  return a.left() + std::clamp((seconds - r.low) / r.size(), -1.0, 2.0) * a.width();
}

int RequestTimeline::row_at(double y) const {
  const QRectF a = area();
  if (y < a.top() || y >= a.bottom()) return -1;
  const int row = verticalScrollBar()->value() + static_cast<int>((y - a.top()) / row_height());
  return row < requests() ? row : -1;
}

void RequestTimeline::paint_row(QPainter& painter, const Row& row, double top, double height) const {
  const auto& p = row.phases;
  const Colors c = colors();
  const auto bar = [&](double from, double to, const QColor& color) {
    const double left = to_x(from), right = to_x(to);
    if (right > left) painter.fillRect(QRectF(left, top, std::max(1.0, right - left), height), color);
  };
  if (p.failed) {
    bar(p.intended, p.end, mix(theme().panel, c.failed, 0.45));
    painter.fillRect(QRectF(to_x(p.end) - 1, top, 3, height), c.failed);
    return;
  }
  bar(p.intended, p.sent, c.client);
  bar(p.sent, p.scheduled, c.queued);
  bar(p.scheduled, p.first_token, c.prefill);
  bar(p.first_token, p.end, c.decode);
}

void RequestTimeline::paint_header(QPainter& painter) const {
  const Theme& t = theme();
  const QFont bold = demi_bold(small_font());
  painter.setFont(bold);
  painter.setPen(t.text);
  const double room = viewport()->width() - 20;
  const QString title = QFontMetricsF(bold).elidedText(tr("Requests"), Qt::ElideRight, room);
  painter.drawText(QPointF(10, 17), title);
  double x = 10 + QFontMetricsF(bold).horizontalAdvance(title) + 6;
  painter.setFont(small_font());
  const QFontMetricsF metrics(small_font());
  painter.setPen(t.muted);
  if (const double w = metrics.horizontalAdvance(title_); x + w < room) {
    painter.drawText(QPointF(x, 17), title_);
    x += w + 14;
  }
  const Colors c = colors();
  const bool failed = std::any_of(rows_.begin(), rows_.end(), [](const Row& r) { return r.phases.failed; });
  std::vector<std::pair<QString, QColor>> legend{{tr("client"), c.client}};
  if (queue_known_) legend.emplace_back(tr("queued"), c.queued);
  legend.emplace_back(queue_known_ ? tr("prefill") : tr("queue and prefill"), c.prefill);
  legend.emplace_back(tr("decode"), c.decode);
  if (failed) legend.emplace_back(tr("failed"), c.failed);
  for (const auto& [name, color] : legend) {
    const double w = 13 + metrics.horizontalAdvance(name);
    if (x + w > room + 10) break;
    painter.fillRect(QRectF(x, 9, 9, 9), color);
    painter.setPen(t.muted);
    painter.drawText(QPointF(x + 13, 17), name);
    x += w + 10;
  }
}

void RequestTimeline::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  const Theme& t = theme();
  painter.fillRect(viewport()->rect(), t.panel);
  const QRectF a = area();
  painted_ = 0;
  paint_header(painter);
  if (rows_.empty()) {
    painter.setPen(t.faint);
    painter.drawText(a.adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap,
                     title_.isEmpty() ? tr("Choose a point of the sweep to see its requests")
                                      : tr("This result does not record its requests"));
  } else {
    painter.setFont(small_font());
    const QFontMetricsF metrics(small_font());
    const QColor grid = mix(t.panel, t.line, 0.65);
    for (const Tick& tick :
         ticks(link_.range(), std::max(2, static_cast<int>(a.width() / 78)), AxisQuantity::seconds, Scale::linear)) {
      const double x = std::round(to_x(tick.value)) + 0.5, w = metrics.horizontalAdvance(tick.label);
      painter.setPen(grid);
      painter.drawLine(QPointF(x, a.top()), QPointF(x, a.bottom()));
      painter.setPen(t.muted);
      painter.drawText(QPointF(std::clamp(x - w / 2, 2.0, std::max(2.0, viewport()->width() - w - 2)), a.bottom() + 14),
                       tick.label);
    }
    painter.save();
    painter.setClipRect(a);
    const double height = row_height();
    double top = a.top();
    for (int row = verticalScrollBar()->value(); row < requests() && top < a.bottom(); ++row, top += height) {
      paint_row(painter, rows_[static_cast<size_t>(row)], top, height > 4 ? height - 1 : height);
      ++painted_;
    }
    if (const auto at = link_.reading()) {
      painter.setPen(QPen(t.muted, 1, Qt::DotLine));
      painter.drawLine(QPointF(to_x(*at), a.top()), QPointF(to_x(*at), a.bottom()));
    }
    painter.restore();
  }
  painter.setPen(hasFocus() ? t.accent : t.line);
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.drawRoundedRect(QRectF(viewport()->rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

QString RequestTimeline::row_text(int at) const {
  if (at < 0 || at >= requests()) return {};
  const Row& r = rows_[static_cast<size_t>(at)];
  const auto& p = r.phases;
  QString text = tr("Request %1: %n prompt token(s)", nullptr, plural_count(r.prompt)).arg(at + 1);
  if (r.cached > 0) text = tr("%1 (%2 of them cached)").arg(text, QString::number(r.cached));
  text = tr("%1, %2 generated").arg(text, QString::number(r.output));
  if (r.preemptions > 0) text = tr("%1, preempted %n time(s)", nullptr, plural_count(r.preemptions)).arg(text);
  QStringList parts;
  if (p.failed) {
    parts << text << tr("failed after %1: %2").arg(time(p.end - p.sent), qs(r.error));
    return parts.join(u'\n');
  }
  if (p.sent > p.intended) parts << tr("%1 in the client").arg(time(p.sent - p.intended));
  if (p.queue_known) parts << tr("%1 queued").arg(time(p.scheduled - p.sent));
  parts << (p.queue_known ? tr("%1 prefill") : tr("%1 to the first token")).arg(time(p.first_token - p.scheduled));
  parts << tr("%1 decode").arg(time(p.end - p.first_token));
  return text + u'\n' + parts.join(u", "_s);
}

bool RequestTimeline::viewportEvent(QEvent* event) {
  if (show_tooltip(event, *viewport(), [this](QPoint at) { return row_text(row_at(at.y())); })) return true;
  if (event->type() == QEvent::Leave) link_.set_cursor(std::nullopt);
  return QAbstractScrollArea::viewportEvent(event);
}

void RequestTimeline::mouseMoveEvent(QMouseEvent* event) {
  const QRectF a = area();
  const double share = (event->position().x() - a.left()) / a.width();
  if (share < 0 || share > 1 || rows_.empty())
    link_.set_cursor(std::nullopt);
  else
    link_.set_cursor(link_.range().low + share * link_.range().size());
}

void RequestTimeline::mousePressEvent(QMouseEvent*) {
  setFocus();
}

// The wheel scrolls the rows; with Ctrl it zooms as in the charts.
void RequestTimeline::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return QAbstractScrollArea::wheelEvent(event);
  const QRectF a = area();
  const double share = (event->position().x() - a.left()) / a.width();
  link_.zoom(std::pow(0.8, event->angleDelta().y() / 120.0), link_.range().low + share * link_.range().size());
  event->accept();
}

void RequestTimeline::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  fit();
}

}  // namespace mw::ui

#include "moc_request_timeline.cpp"
