// SPDX-License-Identifier: GPL-3.0-or-later
// The appearance: a light and a dark palette for the Fusion style, chart colours that are distinguishable with colour
// vision deficiency, and spacings. A value type.
#pragma once
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>
#include <QStyledItemDelegate>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/ledger.h"

class QApplication;

namespace mw::ui {

enum class Shade { light, dark };

struct Theme {
  Shade shade = Shade::light;
  QColor window, panel, field, text, muted, faint, line, accent, accent_text, hover;
  QColor good, warn, bad;

  QPalette palette() const;
  QString style_sheet() const;
  QColor series(int index) const;         // of lines; never encode meaning by colour alone
  QColor memory(MemoryCategory c) const;  // of areas in stacked charts
  QColor state(RunState state) const;
  QColor severity(Severity severity) const;
};

Theme make_theme(Shade shade);
Shade system_shade();  // from the palette the application started with; Qt 6.4 has no colour-scheme hint
// Applies style, palette and style sheet to the whole application.
void apply(const Theme& theme, QApplication& application);
// Applies style and palette without the style sheet, while a window is built: under a style sheet, each widget that
// joins a layout polishes everything inside it again, which is half of the window's start.
void apply_palette(const Theme& theme, QApplication& application);
// The theme that apply() set last, for widgets that paint themselves. GUI thread.
const Theme& theme();
// Painting uses this theme during the lifetime of the object, e.g. for files, which are always light. Widgets keep
// theirs.
class ThemeOverride {
 public:
  explicit ThemeOverride(const Theme& theme);
  ~ThemeOverride();
  ThemeOverride(const ThemeOverride&) = delete;
  ThemeOverride& operator=(const ThemeOverride&) = delete;

 private:
  Theme before_;
};

QFont mono_font(double scale = 1.0);
QFont small_font();
QFont demi_bold(QFont font);
// Blends `over` with weight `share` (0..1) on `under`.
QColor mix(const QColor& under, const QColor& over, double share);

// The colour of a mesh axis, which depends on its name alone: the same in every view.
QColor axis_color(const QString& axis);       // of areas and lines
QColor axis_text_color(const QString& axis);  // readable as text on a panel

// Paints names of axes in a table's text, such as "fsdp 1, tp 4" or "(tp, -)", in their colours.
class AxisTextDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace mw::ui
