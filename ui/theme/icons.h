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
  browse,
  info,
  panels,
  error,
  warning
};

enum class Ink { normal, on_accent, bad, warn };

// Painted in the colours of the theme in force at that moment: nothing to renew after a theme change.
QIcon icon(Glyph glyph, Ink ink = Ink::normal);

}  // namespace mw::ui
