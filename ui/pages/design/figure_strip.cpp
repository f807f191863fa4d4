// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/figure_strip.h"

#include <QPainter>
#include <algorithm>

#include "ui/theme/widgets.h"

namespace mw::ui {

FigureStrip::FigureStrip(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Predicted figures"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void FigureStrip::show(std::vector<views::PlanLine> lines, const std::vector<views::PlanLine>& baseline, bool stale) {
  lines_ = std::move(lines);
  std::erase_if(lines_, [](const views::PlanLine& line) { return line.headline.empty(); });
  changes_.clear();
  for (const views::PlanLine& line : lines_) {
    const auto other =
        std::find_if(baseline.begin(), baseline.end(), [&](const views::PlanLine& l) { return l.key == line.key; });
    changes_ << (other == baseline.end() ? QString() : qs(difference(*other, line)));
  }
  stale_ = stale;
  setAccessibleDescription(text());
  update();
}

QString FigureStrip::text() const {
  QStringList parts;
  for (size_t i = 0; i < lines_.size(); ++i)
    parts << QString(qs(lines_[i].headline) % u' ' % qs(lines_[i].short_value) % u' ' %
                     changes_[static_cast<qsizetype>(i)])
                 .trimmed();
  return parts.join(u", "_s);
}

QSize FigureStrip::sizeHint() const {
  return {340, 2 * QFontMetrics(small_font()).height() + QFontMetrics(font()).height() + 8};
}

QRectF FigureStrip::cell(size_t index) const {
  const double wide = (width() - 8.0) / std::max<double>(1, static_cast<double>(lines_.size()));
  return {8 + static_cast<double>(index) * wide, 2, wide - 4, height() - 4.0};
}

void FigureStrip::paintEvent(QPaintEvent*) {
  QPainter p(this);
  const Theme& t = theme();
  const double small = QFontMetrics(small_font()).height();
  for (size_t i = 0; i < lines_.size(); ++i) {
    const QRectF box = cell(i);
    const QString& change = changes_[static_cast<qsizetype>(i)];
    const bool bad = lines_[i].tone == views::PlanLine::Tone::bad;
    p.setFont(small_font());
    draw_elided(p, QRectF(box.left(), box.top(), box.width(), small), Qt::AlignLeft, qs(lines_[i].headline), t.muted);
    const bool differs = !change.isEmpty() && change != tr("same");
    draw_elided(p, QRectF(box.left(), box.bottom() - small, box.width(), small), Qt::AlignLeft,
                change.isEmpty() ? qs(lines_[i].note) : change, differs ? t.accent : t.muted);
    p.setFont(demi_bold(font()));
    draw_elided(p, box.adjusted(0, small, 0, -small), Qt::AlignLeft | Qt::AlignVCenter, qs(lines_[i].short_value),
                stale_ ? t.faint
                : bad  ? t.bad
                       : t.text);
  }
}

bool FigureStrip::event(QEvent* event) {
  const auto provenance = [this](QPoint at) -> QString {
    for (size_t i = 0; i < lines_.size(); ++i)
      if (cell(i).contains(at))
        return qs(lines_[i].label) % u": "_s % qs(lines_[i].value) % u'\n' %
               (lines_[i].estimate ? qs(views::provenance(*lines_[i].estimate)) : tr("predicted"));
    return QString();
  };
  return show_tooltip(event, *this, provenance) || QWidget::event(event);
}

}  // namespace mw::ui

#include "moc_figure_strip.cpp"
