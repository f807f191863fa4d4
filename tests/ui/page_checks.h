// SPDX-License-Identifier: GPL-3.0-or-later
// Looks for what a page must not have: horizontal scroll bars, clipped text, controls without an accessible name, role
// or state or out of reach of the Tab key, text of low contrast, charts without axis titles.
// Knows no page.
#pragma once
#include <QMap>
#include <QSet>
#include <QString>
#include <QStringList>

class QHeaderView;
class QImage;
class QWidget;

namespace mw::test {

class PageChecks {
 public:
  // Everything visible below `root`, and then again with each tab of its tab bars, also of those that a tab shows.
  // `state` is what findings are reported for.
  void walk(QWidget& root, const QString& state);
  // Only whether the window can be made as small as 1000x650, and that nothing scrolls sideways.
  void check_fit(QWidget& root, const QString& state);
  // "CompareTray > QPushButton 'Add': clipped, 40 of 62 pixels" with the states in which it was found.
  const QMap<QString, QStringList>& findings() const { return findings_; }
  // Presses Tab until the focus is back where it was. Reports the controls that it did not reach, and those that look
  // the same with and without the focus.
  void walk_by_tab(QWidget& window, const QString& state);

 private:
  void check(QWidget& root, const QString& state);
  void check_accessibility(QWidget& widget);
  void check_size(QWidget& widget);
  void check_header(const QHeaderView& header);
  void check_contrast(QWidget& widget, const QImage& picture, const QWidget& window);
  void check_smallest(QWidget& root);
  void check_scroll_bars(QWidget& root);
  void walk_tabs(QWidget& root, const QString& state, QSet<QString>& walked);
  void report(const QWidget& widget, const QString& what);
  QString state_;
  QMap<QString, QStringList> findings_;
};

}  // namespace mw::test
