// SPDX-License-Identifier: GPL-3.0-or-later
// The colour of a mesh axis, which depends on its name alone: the same in every view. GUI thread.
#pragma once
#include <QColor>
#include <QString>
#include <QStyledItemDelegate>

namespace mw::ui {

QColor axis_color(const QString& axis);       // of areas and lines
QColor axis_text_color(const QString& axis);  // readable as text on a panel

// Paints names of axes in a table's text, such as "fsdp 1, tp 4" or "(tp, -)", in their colours.
class AxisTextDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace mw::ui
