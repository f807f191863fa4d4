// SPDX-License-Identifier: GPL-3.0-or-later
// Our few icons, drawn from SVG paths in the theme's colours (there is no icon theme to rely on).
#pragma once
#include <QIcon>

namespace mw::ui {

enum class Glyph {
  none,
  run,
  pause,
  stop,
  open,
  save,
  undo,
  redo,
  theme,
  command,
  reset,
  slider,
  more,
  search,
  clone,
  trash,
  restore,
  refresh,
  close,
  copy,
  browse
};

// In the theme in force; ask again after a theme change.
QIcon icon(Glyph glyph);
QIcon icon(Glyph glyph, const QColor& color);

}  // namespace mw::ui
