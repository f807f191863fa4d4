// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/page_checks.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAccessible>
#include <QApplication>
#include <QButtonGroup>
#include <QComboBox>
#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QTextDocument>
#include <QTextEdit>
#include <QTreeView>
#include <cmath>

#include "ui/charts/chart.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::test {

using namespace ui;

namespace {

constexpr double kLeastContrast = 4.5;  // WCAG 2.1, level AA
constexpr int kTitledChart = 120;       // lower charts have no axis titles; pixels
// Thin strokes are blended with the background at the size of the screen, so pictures are larger.
constexpr int kEnlarged = 3;
constexpr int kMostRows = 12;  // of a table

// Controls, and other widgets that take the focus. Scroll bars and the buttons of a tab bar or a line edit are parts of
// a control, which its own keys reach.
bool is_control(const QWidget& widget) {
  const QWidget* owner = widget.parentWidget();
  if (qobject_cast<const QScrollBar*>(&widget) || qobject_cast<const QTabBar*>(owner) ||
      qobject_cast<const QLineEdit*>(owner) || qobject_cast<const QAbstractItemView*>(owner) || widget.focusProxy() ||
      widget.objectName().startsWith(u"qt_"_s))
    return false;
  return widget.focusPolicy() != Qt::NoFocus || qobject_cast<const QAbstractButton*>(&widget) ||
         qobject_cast<const QAbstractSlider*>(&widget);
}

QString name_of(const QWidget& widget) {
  QString name = QString::fromLatin1(widget.metaObject()->className()).section(u"::"_s, -1);
  const auto* label = qobject_cast<const QLabel*>(&widget);
  const auto* button = qobject_cast<const QAbstractButton*>(&widget);
  QString said = label ? label->text() : button ? button->text() : QString();
  if (label && Qt::mightBeRichText(said)) {
    QTextDocument plain;
    plain.setHtml(said);
    said = plain.toPlainText();
  }
  if (said.isEmpty()) said = widget.accessibleName();
  if (said.isEmpty()) said = widget.objectName();
  return said.isEmpty() ? name : QString(name + u" '"_s + said.left(50).replace(u'\n', u' ') + u'\'');
}

QString path_of(const QWidget& widget) {
  QStringList path{name_of(widget)};
  for (const QWidget* up = widget.parentWidget(); up && !up->isWindow(); up = up->parentWidget()) {
    const QString type = QString::fromLatin1(up->metaObject()->className()).section(u"::"_s, -1);
    const bool named = !up->accessibleName().isEmpty();
    if (type == u"QWidget" && !named) continue;
    path.prepend(named ? QString(type + u" '"_s + up->accessibleName() + u'\'') : type);
  }
  return path.join(u" > "_s);
}

double luminance(QRgb color) {
  const auto linear = [](int channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(qRed(color)) + 0.7152 * linear(qGreen(color)) + 0.0722 * linear(qBlue(color));
}

double contrast(QRgb a, QRgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

// Of the most different colour in the rectangle to its most frequent one. A few pixels do not count.
double contrast_in(const QImage& picture, const QRect& where) {
  constexpr int kLeastPixels = 8;
  QHash<QRgb, int> counts;
  const QRect inside = where.intersected(picture.rect());
  for (int y = inside.top(); y <= inside.bottom(); ++y) {
    const auto* line = reinterpret_cast<const QRgb*>(picture.constScanLine(y));
    for (int x = inside.left(); x <= inside.right(); ++x) ++counts[line[x] & 0xffffffU];
  }
  QRgb background = 0;
  int most = 0;
  for (auto it = counts.cbegin(); it != counts.cend(); ++it)
    if (it.value() > most) most = it.value(), background = it.key();
  double best = 1;
  for (auto it = counts.cbegin(); it != counts.cend(); ++it)
    if (it.value() >= kLeastPixels) best = std::max(best, contrast(it.key(), background));
  return best;
}

// Where the widget shows text, in its coordinates.
QList<QRect> text_places(QWidget& widget) {
  if (const auto* label = qobject_cast<QLabel*>(&widget))
    return label->text().trimmed().isEmpty() ? QList<QRect>() : QList{label->contentsRect()};
  if (const auto* button = qobject_cast<QAbstractButton*>(&widget))
    return button->text().isEmpty() ? QList<QRect>() : QList{button->rect().adjusted(3, 3, -3, -3)};
  if (const auto* line = qobject_cast<QLineEdit*>(&widget))
    return line->text().isEmpty() && line->placeholderText().isEmpty() ? QList<QRect>()
                                                                       : QList{line->rect().adjusted(2, 2, -2, -2)};
  QList<QRect> places;
  if (const auto* bar = qobject_cast<QTabBar*>(&widget))
    for (int i = 0; i < bar->count(); ++i)
      if (bar->isTabVisible(i) && bar->isTabEnabled(i))
        places << bar->tabRect(i).adjusted(2, 2, -2, -3).intersected(bar->rect());
  return places;
}

QList<QRect> cell_places(const QAbstractItemView& view) {
  QList<QRect> places;
  const QAbstractItemModel* model = view.model();
  if (!model) return places;
  int rows = 0;
  for (int y = 2; y < view.viewport()->height() && rows < kMostRows; ++rows) {
    const QModelIndex first = view.indexAt(QPoint(4, y));
    if (!first.isValid()) break;
    for (int c = 0; c < model->columnCount(first.parent()); ++c) {
      const QModelIndex at = first.siblingAtColumn(c);
      if (!view.indexWidget(at) && at.flags().testFlag(Qt::ItemIsEnabled) &&
          !at.data().toString().trimmed().isEmpty() && view.viewport()->rect().contains(view.visualRect(at)))
        places << view.visualRect(at);
    }
    y = view.visualRect(first).bottom() + 3;
  }
  places.removeIf([](const QRect& r) { return r.width() < 12 || r.height() < 8; });
  return places;
}

}  // namespace

void PageChecks::report(const QWidget& widget, const QString& what) {
  QStringList& states = findings_[path_of(widget) + u": "_s + what];
  if (!states.contains(state_)) states << state_;
}

void PageChecks::check_size(QWidget& widget) {
  const auto* label = qobject_cast<QLabel*>(&widget);
  const auto* button = qobject_cast<QAbstractButton*>(&widget);
  const auto* combo = qobject_cast<QComboBox*>(&widget);
  const QString text = label ? label->text() : button ? button->text() : combo ? combo->currentText() : QString();
  if (text.isEmpty() || qobject_cast<ElidedLabel*>(&widget)) return;
  constexpr int kComboFrame = 30, kButtonFrame = 6;  // arrow and paddings
  const int advance = widget.fontMetrics().horizontalAdvance(text);
  const int icon = button && !button->icon().isNull() ? button->iconSize().width() + 4 : 0;
  const int wanted = combo                        ? advance + kComboFrame
                     : button                     ? std::min(advance + icon + kButtonFrame, widget.sizeHint().width())
                     : label && label->wordWrap() ? 0
                                                  : widget.sizeHint().width();
  if (widget.width() < wanted && widget.sizePolicy().horizontalPolicy() != QSizePolicy::Ignored)
    report(widget, u"clipped, %1 of %2 pixels wide"_s.arg(widget.width()).arg(wanted));
  const int high =
      label && label->wordWrap() ? label->heightForWidth(label->width()) : widget.fontMetrics().height() - 4;
  if (widget.height() < high) report(widget, u"clipped, %1 of %2 pixels high"_s.arg(widget.height()).arg(high));
  const QRect shown = widget.visibleRegion().boundingRect();
  const bool scrolls = [&] {  // vertically: the rest can be scrolled to
    for (QWidget* up = widget.parentWidget(); up; up = up->parentWidget())
      if (qobject_cast<QAbstractScrollArea*>(up)) return true;
    return false;
  }();
  if (shown.width() < widget.width() || (!scrolls && shown.height() < widget.height()))
    report(widget, u"cut or covered, %1x%2 of %3x%4 pixels"_s.arg(shown.width())
                       .arg(shown.height())
                       .arg(widget.width())
                       .arg(widget.height()));
}

void PageChecks::check_header(const QHeaderView& header) {
  constexpr int kPaddings = 14, kArrow = 12;
  for (int c = 0; c < header.count(); ++c) {
    if (header.isSectionHidden(c)) continue;
    const QString title = header.model()->headerData(c, Qt::Horizontal).toString();
    const bool sorted = header.isSortIndicatorShown() && header.sortIndicatorSection() == c;
    const int wanted = header.fontMetrics().size(0, title).width() + kPaddings + (sorted ? kArrow : 0);
    if (!title.isEmpty() && header.sectionSize(c) < wanted)
      report(header, u"column '%1' clipped, %2 of %3 pixels wide"_s.arg(title).arg(header.sectionSize(c)).arg(wanted));
  }
}

void PageChecks::check_contrast(QWidget& widget, const QImage& picture, const QWidget& window) {
  if (!widget.isEnabled()) return;
  QWidget* surface = &widget;
  QList<QRect> places = text_places(widget);
  if (const auto* view = qobject_cast<QAbstractItemView*>(&widget); view && !qobject_cast<QHeaderView*>(&widget)) {
    surface = view->viewport();
    places = cell_places(*view);
  }
  for (const QRect& place : places) {
    const QRect visible = place.intersected(surface->visibleRegion().boundingRect());
    if (visible.isEmpty()) continue;
    const QRect there(surface->mapTo(&window, visible.topLeft()) * kEnlarged, visible.size() * kEnlarged);
    const double ratio = contrast_in(picture, there);
    if (ratio < kLeastContrast) report(widget, u"contrast %1:1"_s.arg(ratio, 0, 'f', 1));
  }
}

void PageChecks::check_accessibility(QWidget& widget) {
  QAccessibleInterface* face = QAccessible::queryAccessibleInterface(&widget);
  if (!face) return report(widget, u"no accessible interface"_s);
  if (face->text(QAccessible::Name).trimmed().isEmpty()) report(widget, u"no accessible name"_s);
  if (face->role() == QAccessible::NoRole || face->role() == QAccessible::Client)
    report(widget, u"no accessible role"_s);
  const QAccessible::State state = face->state();
  if (static_cast<bool>(state.disabled) == widget.isEnabled() || state.invisible)
    report(widget, u"accessible state differs from the widget"_s);
  const auto* button = qobject_cast<QAbstractButton*>(&widget);
  if (button && (static_cast<bool>(state.checkable) != button->isCheckable() ||
                 static_cast<bool>(state.checked) != button->isChecked()))
    report(widget, u"accessible state is not that of the check mark"_s);
  if (!widget.isEnabled()) return;
  if (!state.focusable) report(widget, u"not focusable"_s);
  if ((widget.focusPolicy() & Qt::TabFocus) == 0) report(widget, u"Tab does not reach it"_s);
  if (const auto* edit = qobject_cast<QTextEdit*>(&widget); edit && !edit->isReadOnly() && !edit->tabChangesFocus())
    report(widget, u"Tab does not leave it"_s);
  if (const auto* view = qobject_cast<QAbstractItemView*>(&widget); view && view->tabKeyNavigation())
    report(widget, u"Tab does not leave it"_s);
}

void PageChecks::walk_by_tab(QWidget& window, const QString& state) {
  state_ = state;
  QList<QWidget*> missed;
  for (QWidget* widget : window.findChildren<QWidget*>())
    if (is_control(*widget) && widget->isVisible() && widget->isEnabled() && !widget->focusProxy() &&
        widget->window() == &window)
      missed << widget;
  const auto presses = 2 * missed.size();
  QWidget *first = nullptr, *before = nullptr;
  QImage focused;  // picture of `before` with the focus
  for (qsizetype i = 0; i < presses; ++i) {
    QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, Qt::Key_Tab);
    QWidget* now = QApplication::focusWidget();
    if (before && before != now && before->grab().toImage() == focused) report(*before, u"focus is not visible"_s);
    if (!now || now == first) break;
    if (!first) first = now;
    before = now;
    focused = now->grab().toImage();
    missed.removeAll(now);
    // Arrow keys reach the other buttons of a group.
    if (const auto* button = qobject_cast<QAbstractButton*>(now); button && button->group())
      if (button->group()->exclusive())
        for (QAbstractButton* other : button->group()->buttons()) missed.removeAll(other);
  }
  for (const QWidget* widget : missed) report(*widget, u"not reached by Tab"_s);
}

// The window, and every page of it, which a stack keeps as large as the largest.
void PageChecks::check_smallest(QWidget& root) {
  constexpr QSize kSmallest(1000, 650);
  const auto least_of = [](const QWidget& w) { return w.minimumSizeHint().expandedTo(w.minimumSize()); };
  const QSize least = least_of(*root.window());
  if (least.width() <= kSmallest.width() && least.height() <= kSmallest.height()) return;
  report(*root.window(), u"needs %1x%2 pixels"_s.arg(least.width()).arg(least.height()));
  for (QWidget* widget : root.findChildren<QWidget*>())
    if (const QSize own = least_of(*widget);
        widget->isVisible() && !widget->isWindow() && (own.width() > kSmallest.width() - 270 || own.height() > 560))
      report(*widget, u"needs %1x%2 pixels"_s.arg(own.width()).arg(own.height()));
}

void PageChecks::check_scroll_bars(QWidget& root) {
  for (const QAbstractScrollArea* area : root.findChildren<QAbstractScrollArea*>()) {
    const QScrollBar* bar = area->horizontalScrollBar();
    if (area->isVisible() && !area->visibleRegion().isEmpty() && bar->isVisible() && bar->maximum() > bar->minimum())
      report(*area, u"horizontal scroll bar"_s);
  }
}

void PageChecks::check_fit(QWidget& root, const QString& state) {
  state_ = state;
  QTest::qWait(60);
  check_smallest(root);
  check_scroll_bars(root);
}

void PageChecks::check(QWidget& root, const QString& state) {
  check_fit(root, state);
  QWidget& window = *root.window();
  QImage picture(window.size() * kEnlarged, QImage::Format_RGB32);
  picture.setDevicePixelRatio(kEnlarged);
  window.render(&picture);
  for (QWidget* widget : root.findChildren<QWidget*>()) {
    if (!widget->isVisible() || widget->visibleRegion().isEmpty()) continue;
    if (const auto* header = qobject_cast<QHeaderView*>(widget); header && header->orientation() == Qt::Horizontal)
      check_header(*header);
    if (is_control(*widget)) check_accessibility(*widget);
    if (const auto* chart = qobject_cast<Chart*>(widget); chart && !chart->empty() && chart->height() >= kTitledChart) {
      if (chart->link().x_name().isEmpty()) report(*widget, u"no title of the x axis"_s);
      if (chart->options().unit.isEmpty() && chart->options().title.isEmpty())
        report(*widget, u"no title of the y axis"_s);
    }
    check_size(*widget);
    check_contrast(*widget, picture, window);
  }
}

void PageChecks::walk_tabs(QWidget& root, const QString& state, QSet<QString>& walked) {
  check(root, state);
  for (QTabBar* tabs : root.findChildren<QTabBar*>()) {
    if (!tabs->isVisible() || !tabs->isEnabled()) continue;
    // A bar may offer other tabs while another one chooses what it is about.
    QString offered = QString::number(reinterpret_cast<quintptr>(tabs), 16);
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->isTabVisible(i)) offered += u'|' + tabs->tabText(i);
    if (walked.contains(offered)) continue;
    walked.insert(offered);
    const int before = tabs->currentIndex();
    for (int i = 0; i < tabs->count(); ++i) {
      if (i == before || !tabs->isTabEnabled(i) || !tabs->isTabVisible(i)) continue;
      tabs->setCurrentIndex(i);
      walk_tabs(root, state + u", "_s + tabs->tabText(i), walked);
    }
    tabs->setCurrentIndex(before);
  }
}

void PageChecks::walk(QWidget& root, const QString& state) {
  QSet<QString> walked;
  walk_tabs(root, state, walked);
}

}  // namespace mw::test
