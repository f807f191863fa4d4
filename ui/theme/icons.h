// SPDX-License-Identifier: GPL-3.0-or-later
// Icons drawn from SVG paths in the colours of the theme, independent of the system's icon theme.
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
  warning,
  fold,
  unfold,
  form,
  json,
  help
};

enum class IconColor { normal, on_accent, bad, warn };

// Painted in the colours of the current theme, so nothing needs an update after a theme change.
QIcon icon(Glyph glyph, IconColor color = IconColor::normal);

}  // namespace mw::ui
