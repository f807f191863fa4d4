// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/token_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>

#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kChipAir = 5, kChipGap = 3, kEdge = 8;  // inside a chip, between chips, around all chips
constexpr int kLongestPiece = 80;                     // characters shown; the tooltip has the rest
constexpr int kNarrowest = 14;

bool ends_line(const std::string& piece) {
  return piece.find('\n') != std::string::npos || piece == "<0x0A>";
}

}  // namespace

QColor loss_color(double nats) {
  return mix(theme().panel, theme().bad, 0.55 * std::clamp(nats / kFullLoss, 0.0, 1.0));
}

QString piece_text(const std::string& piece) {
  QString out;
  for (const QChar c : qs(piece)) {
    if (c == u'\n')
      out += u"\\n"_s;
    else if (c == u'\t')
      out += u"\\t"_s;
    else if (c == u'\r')
      out += u"\\r"_s;
    else if (c.category() == QChar::Other_Control || c.category() == QChar::Other_Format)
      out += u"\\u%1"_s.arg(static_cast<uint>(c.unicode()), 4, 16, QChar(u'0'));
    else
      out += c == u' ' ? QChar(0x2423) : c;  // blanks of the vocabulary are already marked
  }
  return out.isEmpty() ? u"\u2205"_s : out;
}

std::optional<double> shown_loss(const RowContext& context, int token) {
  const auto& losses = context.losses.tuned.empty() ? context.losses.base : context.losses.tuned;
  return static_cast<size_t>(token) < losses.size() ? losses[static_cast<size_t>(token)] : std::nullopt;
}

QString token_text(const views::DataDetail& detail, const RowContext& context, int token) {
  const views::DataToken& t = detail.tokens[static_cast<size_t>(token)];
  QStringList parts{TokenView::tr("token %1 of %2").arg(grouped(token + 1), grouped(detail.row.tokens)),
                    TokenView::tr("id %1").arg(t.id), piece_text(t.piece)};
  if (t.kind == views::TokenKind::special) parts << TokenView::tr("special");
  const bool unused = token >= detail.row.used;
  parts << (unused ? TokenView::tr("not used") : t.loss ? TokenView::tr("carries loss") : TokenView::tr("no loss"));
  if (const auto loss = shown_loss(context, token)) {
    const bool both = !context.losses.tuned.empty();
    const double base = context.losses.base[static_cast<size_t>(token)].value_or(0);
    parts << (both ? TokenView::tr("%1 nats, base %2").arg(*loss, 0, 'f', 2).arg(base, 0, 'f', 2)
                   : TokenView::tr("%1 nats").arg(*loss, 0, 'f', 2));
  }
  const jobs::AttendedTokens seen = jobs::attended(token, context.window);
  parts << (seen.sliding > 0 ? TokenView::tr("sees tokens 1 to %1, from token %2 with a sliding window")
                                   .arg(grouped(token + 1), grouped(seen.sliding + 1))
                             : TokenView::tr("sees tokens 1 to %1").arg(grouped(token + 1)));
  if (context.difference.token == token)
    parts << TokenView::tr("a server encodes %1 here").arg(piece_text(context.difference.served));
  return parts.join(u"  \u00B7  "_s);
}

TokenView::TokenView(QWidget* parent) : QAbstractScrollArea(parent) {
  setFocusPolicy(Qt::StrongFocus);
  set_accessible_role(*this, QAccessible::Document);
  setAccessibleName(tr("Tokens of the row"));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFrameShape(QFrame::NoFrame);
  viewport()->setMouseTracking(true);
  viewport()->setAutoFillBackground(false);
  clear({});
}

void TokenView::show_tokens(views::DataDetail detail) {
  detail_ = std::move(detail);
  context_ = {};
  current_ = hovered_ = -1;
  lay_out();
  verticalScrollBar()->setValue(0);
  emit pointed(-1);
}

void TokenView::show_context(const RowContext& context) {
  context_ = context;
  viewport()->update();
}

void TokenView::clear(const QString& why) {
  why_empty_ = why;
  show_tokens({});
}

int TokenView::width_of(const std::string& piece) {
  const auto [at, added] = widths_.try_emplace(piece);
  if (added) {
    const QString text = piece_text(piece).left(kLongestPiece);
    at->second = std::max(kNarrowest, fontMetrics().horizontalAdvance(text) + 2 * kChipAir);
  }
  return at->second;
}

void TokenView::lay_out() {
  const QFont wanted = mono_font(0.95);
  if (font() != wanted) {
    setFont(wanted);
    widths_.clear();
  }
  chip_height_ = fontMetrics().height() + 3;
  line_height_ = chip_height_ + 4;
  lines_.clear();
  left_.assign(detail_.tokens.size(), 0);
  wide_.assign(detail_.tokens.size(), 0);
  const int limit = std::max(60, viewport()->width() - kEdge);
  int x = kEdge, begin = 0;
  const auto break_line = [&](int token) {
    if (token > begin) lines_.push_back({begin, token});
    begin = token;
    x = kEdge;
  };
  for (int t = 0; t < size(); ++t) {
    const std::string& piece = detail_.tokens[static_cast<size_t>(t)].piece;
    const int wide = std::min(width_of(piece), limit - kEdge);
    if (t == used()) {
      break_line(t);
      lines_.push_back({t, t});
    }
    if (x + wide > limit) break_line(t);
    left_[static_cast<size_t>(t)] = x;
    wide_[static_cast<size_t>(t)] = wide;
    x += wide + kChipGap;
    if (ends_line(piece)) break_line(t + 1);
  }
  break_line(size());
  const int height = static_cast<int>(lines_.size()) * line_height_ + 2 * kEdge;
  verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(line_height_);
  viewport()->update();
}

int TokenView::line_of(int token) const {
  const auto after =
      std::upper_bound(lines_.begin(), lines_.end(), token, [](int t, const Line& line) { return t < line.begin; });
  return static_cast<int>(after - lines_.begin()) - 1;
}

QRect TokenView::chip(int token) {
  const auto t = static_cast<size_t>(token);
  const int top = kEdge + line_of(token) * line_height_ - verticalScrollBar()->value();
  return {left_[t], top, wide_[t], chip_height_};
}

int TokenView::at(const QPoint& point) {
  const int y = point.y() + verticalScrollBar()->value() - kEdge;
  const int line = y < 0 ? -1 : y / line_height_;
  if (line < 0 || line >= static_cast<int>(lines_.size())) return -1;
  for (int t = lines_[static_cast<size_t>(line)].begin; t < lines_[static_cast<size_t>(line)].end; ++t)
    if (chip(t).adjusted(-1, 0, 1, 0).contains(point)) return t;
  return -1;
}

int TokenView::beside(int token, int by) const {
  int line = line_of(token) + by;
  const int step = by < 0 ? -1 : 1;
  while (line > 0 && line + 1 < static_cast<int>(lines_.size()) &&
         lines_[static_cast<size_t>(line)].begin == lines_[static_cast<size_t>(line)].end)
    line += step;  // skips the note
  const Line& to = lines_[static_cast<size_t>(std::clamp<int>(line, 0, static_cast<int>(lines_.size()) - 1))];
  if (to.begin == to.end) return token;
  const auto middle = [this](int t) { return left_[static_cast<size_t>(t)] + wide_[static_cast<size_t>(t)] / 2; };
  int best = to.begin;
  for (int t = to.begin; t < to.end; ++t)
    if (std::abs(middle(t) - middle(token)) < std::abs(middle(best) - middle(token))) best = t;
  return best;
}

void TokenView::set_current(int token) {
  if (size() == 0) return;
  current_ = std::clamp(token, 0, size() - 1);
  hovered_ = -1;
  const QRect where = chip(current_);
  QScrollBar* bar = verticalScrollBar();
  if (where.top() < kEdge) bar->setValue(bar->value() + where.top() - kEdge);
  if (where.bottom() > viewport()->height() - kEdge)
    bar->setValue(bar->value() + where.bottom() - viewport()->height() + kEdge);
  setAccessibleDescription(token_text(detail_, context_, current_));
  emit pointed(current_);
  viewport()->update();
}

void TokenView::hover(int token) {
  if (token == hovered_) return;
  hovered_ = token;
  emit pointed(pointed_at());
  viewport()->update();
}

QString TokenView::tokens_as_table() const {
  const bool losses = !context_.losses.base.empty();
  QStringList lines{u"position\tid\tpiece\tloss"_s + (losses ? u"\tnats"_s : QString())};
  for (int t = 0; t < size(); ++t) {
    const views::DataToken& token = detail_.tokens[static_cast<size_t>(t)];
    lines << u"%1\t%2\t%3\t%4"_s.arg(t + 1)
                 .arg(token.id)
                 .arg(piece_text(token.piece))
                 .arg(!cut_off(t) && token.loss ? 1 : 0);
    if (!losses) continue;
    const auto loss = shown_loss(context_, t);
    lines.back() += u'\t' + (loss ? QString::number(*loss, 'g', 6) : QString());
  }
  return lines.join(u'\n') + u'\n';
}

QString TokenView::note() const {
  return used() == 0 ? tr("Not used for training:") : tr("Truncated at data.max_len:");
}

void TokenView::paint_chip(QPainter& painter, int token, const QRect& where) const {
  const Theme& t = theme();
  const views::DataToken& it = detail_.tokens[static_cast<size_t>(token)];
  const bool special = it.kind == views::TokenKind::special, loss = it.loss && !cut_off(token);
  const bool dark = t.shade == Shade::dark;
  const auto nats = shown_loss(context_, token);
  const QColor ground = nats   ? loss_color(*nats)
                        : loss ? mix(t.panel, t.accent, dark ? 0.40 : 0.26)
                               : mix(t.panel, t.text, dark ? 0.07 : 0.05);
  painter.setPen(Qt::NoPen);
  painter.setBrush(cut_off(token) ? t.panel : ground);
  const QRectF box = QRectF(where).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.drawRoundedRect(box, 3, 3);
  if (special || cut_off(token)) {
    painter.setPen(QPen(special ? t.muted : t.line, 1, special ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(box, 3, 3);
  }
  if (loss) painter.fillRect(QRectF(box.left() + 2, box.bottom() - 1.5, box.width() - 4, 2), t.accent);
  if (const int from = pointed_at(); from >= 0 && token <= from && !cut_off(from)) {
    const bool near = token >= jobs::attended(from, context_.window).sliding;
    painter.fillRect(QRectF(box.left() + 1, box.top() - 2, box.width() - 2, 1.5), near ? t.accent : t.faint);
  }
  if (context_.difference.token == token)
    painter.fillRect(QRectF(box.left() - 2, box.top(), 2.5, box.height()), t.warn);
  if (token == current_ || token == hovered_) {
    painter.setPen(QPen(token == current_ ? t.accent : t.muted, token == current_ ? 2 : 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(box, 3, 3);
  }
  painter.setPen(cut_off(token) ? t.faint : special && !loss ? t.muted : t.text);
  const QString text = piece_text(it.piece).left(kLongestPiece);
  painter.drawText(where, Qt::AlignCenter, painter.fontMetrics().elidedText(text, Qt::ElideRight, where.width() - 4));
}

void TokenView::paintEvent(QPaintEvent* event) {
  const Theme& t = theme();
  QPainter painter(viewport());
  painter.fillRect(event->rect(), t.panel);
  painter.setRenderHint(QPainter::Antialiasing);
  if (size() == 0) {
    painter.setPen(t.muted);
    painter.setFont(QGuiApplication::font());
    painter.drawText(viewport()->rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap, why_empty_);
  } else {
    paint_tokens(painter, event->rect());
  }
  if (hasFocus()) paint_focus(painter, viewport()->rect());
}

void TokenView::paint_tokens(QPainter& painter, const QRect& dirty) const {
  painter.setFont(font());
  const int top = verticalScrollBar()->value() - kEdge;
  const int first = std::max(0, (top + dirty.top()) / line_height_);
  const int last = std::min(static_cast<int>(lines_.size()) - 1, (top + dirty.bottom()) / line_height_);
  for (int l = first; l <= last; ++l) {
    const Line& line = lines_[static_cast<size_t>(l)];
    const int y = l * line_height_ - top;
    if (line.begin == line.end) {
      painter.setPen(theme().warn);
      painter.drawText(QRect(kEdge, y, viewport()->width(), chip_height_), Qt::AlignVCenter, note());
    }
    for (int c = line.begin; c < line.end; ++c)
      paint_chip(painter, c, {left_[static_cast<size_t>(c)], y, wide_[static_cast<size_t>(c)], chip_height_});
  }
}

void TokenView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  const int first = at({kEdge + 2, kEdge + 2});
  lay_out();
  if (first > 0) verticalScrollBar()->setValue(line_of(first) * line_height_);  // keeps the same tokens visible
}

void TokenView::mouseMoveEvent(QMouseEvent* event) {
  hover(at(event->position().toPoint()));
}

void TokenView::mousePressEvent(QMouseEvent* event) {
  const int token = at(event->position().toPoint());
  if (event->button() == Qt::LeftButton && token >= 0) set_current(token);
}

void TokenView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    if (size() > 0) QGuiApplication::clipboard()->setText(tokens_as_table());
    return;
  }
  if (size() == 0) return QAbstractScrollArea::keyPressEvent(event);
  const int now = std::max(0, current_), page = std::max(1, viewport()->height() / line_height_ - 1);
  switch (event->key()) {
    case Qt::Key_Left:
      return set_current(now - 1);
    case Qt::Key_Right:
      return set_current(current_ < 0 ? 0 : now + 1);
    case Qt::Key_Up:
      return set_current(beside(now, -1));
    case Qt::Key_Down:
      return set_current(current_ < 0 ? 0 : beside(now, 1));
    case Qt::Key_PageUp:
      return set_current(beside(now, -page));
    case Qt::Key_PageDown:
      return set_current(beside(now, page));
    case Qt::Key_Home:
      return set_current(0);
    case Qt::Key_End:
      return set_current(size() - 1);
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

void TokenView::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) lay_out();
}

bool TokenView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) hover(-1);
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const int token = at(help->pos()); token >= 0)
      QToolTip::showText(help->globalPos(), token_text(detail_, context_, token), viewport(), chip(token));
    else
      QToolTip::hideText();
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

}  // namespace mw::ui

#include "moc_token_view.cpp"
