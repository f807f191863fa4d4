// SPDX-License-Identifier: GPL-3.0-or-later
// The look: two palettes on the Fusion style, colours for charts that stay apart for colour-blind eyes, and the sizes
// everything is spaced by. A value; the window hands it to whoever paints.
#pragma once
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QString>

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
  QColor series(int index) const;         // lines; never carry meaning by colour alone
  QColor memory(MemoryCategory c) const;  // areas of a stacked chart
  QColor state(RunState state) const;
  QColor severity(Severity severity) const;
};

Theme make_theme(Shade shade);
Shade system_shade();  // from the palette the application started with; Qt 6.4 has no colour-scheme hint
// Palette and style sheet for the whole application, and Fusion.
void apply(const Theme& theme, QApplication& application);
// The theme in force, as apply() left it: for widgets that paint themselves. GUI thread.
const Theme& theme();
// Painting within its life is done with this theme; widgets keep theirs. For files, which are always light.
class PaintedWith {
 public:
  explicit PaintedWith(const Theme& theme);
  ~PaintedWith();
  PaintedWith(const PaintedWith&) = delete;
  PaintedWith& operator=(const PaintedWith&) = delete;

 private:
  Theme before_;
};

QFont mono_font(double scale = 1.0);
QFont small_font();
// `over` at `share` (0..1) on `under`.
QColor mix(const QColor& under, const QColor& over, double share);

}  // namespace mw::ui
