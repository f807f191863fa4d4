// SPDX-License-Identifier: GPL-3.0-or-later
// Style that a palette cannot express: flat docks and tabs, plain headers, thin splitters. Inputs keep the Fusion
// style.
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr const char* kSheet = R"(
QMainWindow::separator { background: @line; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: @accent; }
QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: @accent; }
QToolBar { background: @panel; border: 0; border-bottom: 1px solid @line; spacing: 2px; padding: 3px 6px; }
QToolBar::separator { background: @line; width: 1px; margin: 5px 5px; }
QToolBar QToolButton { border: 1px solid transparent; border-radius: 4px; padding: 3px 7px; }
QToolBar QToolButton:hover { background: @hover; }
QToolBar QToolButton:pressed, QToolBar QToolButton:checked { background: @pressed; }
QToolBar QToolButton:focus { border-color: @accent; }
QToolBar QToolButton#page { padding: 4px 9px; color: @muted; font-weight: 500; }
QToolBar QToolButton#page:checked { background: @pressed; color: @text; font-weight: 600; }
QToolBar QToolButton#run { background: @accent; color: @accent_text; padding: 3px 12px; font-weight: 600; }
QToolBar QToolButton#run:hover { background: @accent_hover; }
QToolBar QToolButton#run:focus { border-color: @text; }
QToolBar QToolButton#run:disabled { background: transparent; color: @off; }
QToolButton[flat="true"] { border: 1px solid transparent; border-radius: 3px; padding: 1px 3px; background: transparent; }
QToolButton[flat="true"]:hover { background: @hover; }
QToolButton[flat="true"]:checked { background: @pressed; }
QToolButton[flat="true"]:focus { border-color: @accent; }
QToolButton[chip="true"] { border: 1px solid @line; border-radius: 9px; padding: 1px 7px; background: transparent; color: @muted; }
QToolButton[chip="true"]:checked { background: @chip; border-color: @accent; color: @text; }
QToolButton[chip="true"]:hover { border-color: @accent; }
QToolButton[chip="true"]:focus { border: 2px solid @accent; padding: 0 6px; color: @text; }
QToolButton[group="true"] { border: 0; border-bottom: 1px solid @line; padding: 5px 2px 3px 2px; text-align: left; font-weight: 600; background: transparent; }
QToolButton[group="true"]:hover, QToolButton[group="true"]:focus { color: @accent; }
QToolButton[more="true"] { border: 0; padding: 2px 2px; color: @muted; background: transparent; }
QToolButton[more="true"]:hover, QToolButton[more="true"]:focus { color: @accent; }
QToolBar QToolButton::menu-indicator { subcontrol-origin: padding; subcontrol-position: right center; left: -3px; image: url(@chevron); width: 10px; height: 10px; }
QToolBar QToolButton#file { padding-right: 16px; }
QLineEdit { background: @field; border: 1px solid @edge; border-radius: 3px; padding: 2px 4px; selection-background-color: @accent; selection-color: @accent_text; }
QLineEdit:hover { border-color: @mid; }
QLineEdit:focus { border-color: @accent; }
QLineEdit:disabled { color: @off; background: @window; }
QComboBox { background: @field; border: 1px solid @edge; border-radius: 3px; padding: 2px 4px; min-height: 17px; }
QComboBox:hover { border-color: @mid; }
QComboBox:focus { border-color: @accent; }
QComboBox::drop-down { border: 0; width: 20px; }
QComboBox::down-arrow { image: url(@chevron); width: 11px; height: 11px; }
QComboBox QAbstractItemView { background: @panel; border: 1px solid @line; selection-background-color: @select; selection-color: @text; }
QCheckBox { spacing: 6px; }
QCheckBox::indicator { width: 13px; height: 13px; border: 1px solid @edge; border-radius: 3px; background: @field; }
QCheckBox::indicator:hover { border-color: @accent; }
QCheckBox::indicator:checked { background: @accent; border-color: @accent; image: url(@check); }
QCheckBox:focus { color: @accent; }
QPushButton { background: @button; border: 1px solid @edge; border-radius: 4px; padding: 3px 12px; min-height: 16px; }
QPushButton:checked { background: @pressed; }
QPushButton:hover { background: @hover; }
QPushButton:pressed { background: @pressed; }
QPushButton:checked { background: @chip; border-color: @accent; }
QPushButton:focus { border-color: @accent; }
QDialog QPushButton:default { background: @accent; border-color: @accent; color: @accent_text; }
QDialog QPushButton:default:hover { background: @accent_hover; }
QPushButton:disabled, QDialog QPushButton:default:disabled { color: @off; border-color: @line; background: transparent; }
QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; font-weight: 600; }
QTabBar::tab { background: transparent; color: @muted; border: 0; border-bottom: 2px solid transparent; padding: 5px 11px 4px 11px; }
QTabBar::tab:hover { color: @text; background: @hover; }
QTabBar::tab:selected { color: @text; border-bottom-color: @accent; }
QTabBar::tab:focus { color: @accent; }
QTabBar { background: transparent; border: 0; }
QTabBar#chips::tab { background: @panel; color: @text; border: 1px solid @line; border-radius: 9px; padding: 2px 4px 2px 7px; margin-right: 4px; min-width: 84px; }
QTabBar#chips::tab:hover, QTabBar#chips::tab:selected { border-color: @accent; }
QTabBar#chips::tab:selected:focus { border: 2px solid @accent; padding: 1px 3px 1px 6px; }
QFrame[drop="true"] { background: @chip; border: 1px dashed @accent; border-radius: 6px; }
QTabWidget::pane { border: 0; border-top: 1px solid @line; }
QTabWidget::tab-bar { left: 4px; }
QHeaderView { background: @panel; border: 0; }
QHeaderView::section { background: @panel; color: @muted; border: 0; border-bottom: 1px solid @line; border-right: 1px solid @soft; padding: 3px 7px; }
QTableView, QTreeView, QListView, QPlainTextEdit { border: 1px solid transparent; background: @panel; alternate-background-color: @stripe; gridline-color: @soft; selection-background-color: @select; selection-color: @text; }
QTextEdit { border: 1px solid @line; }
QTextEdit[result="true"] { border: 1px solid transparent; background: transparent; selection-background-color: @select; selection-color: @text; }
QTextEdit[result="true"][bad="true"] { color: @bad; }
QPlainTextEdit { background: @field; selection-background-color: @select; }
QTableView:focus, QTreeView:focus, QListView:focus, QPlainTextEdit:focus, QTextEdit:focus, QTextEdit[result="true"]:focus { border-color: @accent; }
QTableView#frozen { border: 0; }
QTableView, QTreeView { outline: 0; }
QTableView::item { padding: 0 5px; }
QTreeView::item { min-height: 20px; }
QProgressBar { border: 0; border-radius: 3px; background: @track; max-height: 6px; min-height: 6px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
QProgressBar[state="done"]::chunk { background: @good; }
QProgressBar[state="failed"]::chunk { background: @bad; }
QProgressBar[state="paused"]::chunk, QProgressBar[state="cancelled"]::chunk { background: @warn; }
QScrollArea { border: 0; background: transparent; }
QScrollBar:vertical { background: transparent; width: 11px; margin: 0; }
QScrollBar::handle:vertical { background: @scroll; border-radius: 3px; min-height: 28px; margin: 2px 3px; }
QScrollBar:horizontal { background: transparent; height: 11px; margin: 0; }
QScrollBar::handle:horizontal { background: @scroll; border-radius: 3px; min-width: 28px; margin: 3px 2px; }
QScrollBar::handle:hover { background: @faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QToolTip { background: @panel; color: @text; border: 1px solid @line; padding: 5px; }
QMenu { background: @panel; border: 1px solid @line; padding: 4px 0; }
QMenu::item { padding: 4px 24px 4px 14px; }
QMenu::item:selected { background: @select; color: @text; }
QMenu::item:disabled { color: @off; }
QMenu::separator { height: 1px; background: @line; margin: 4px 8px; }
QStatusBar { background: @panel; border-top: 1px solid @line; }
QStatusBar::item { border: 0; }
QFrame#card { background: @panel; border: 1px solid @line; border-radius: 5px; }
QFrame#palette { background: @panel; border: 1px solid @mid; border-radius: 8px; }
QFrame#palette QLineEdit { border: 0; border-bottom: 1px solid @line; background: transparent; padding: 9px 10px; font-size: 12pt; }
QFrame#palette QListView { background: transparent; padding: 4px; }
QFrame#notice { background: @notice; border: 0; border-left: 3px solid @warn; }
QFrame#toast { background: @panel; border: 1px solid @mid; border-radius: 6px; }
QLabel[muted="true"] { color: @muted; }
QLabel[bad="true"] { color: @bad; }
QLabel[set="true"] { font-weight: 600; }
QWidget#formBody, QWidget#pageBody { background: @window; }
QWidget#panelBody { background: @panel; }
QPushButton#pill { background: @accent; color: @accent_text; border: 0; border-radius: 10px; padding: 3px 11px; font-weight: 600; }
QPushButton#pill:hover, QPushButton#pill:focus { background: @accent_hover; }
)";

}  // namespace

QString Theme::style_sheet() const {
  const bool dark = shade == Shade::dark;
  const auto with = [](QString sheet, const char* name, const QColor& color) {
    return sheet.replace(QString(u'@' + QString::fromLatin1(name) + u';'), QString(color.name() + u';'));
  };
  QString s = QString::fromLatin1(kSheet);
  s = with(s, "line", line);
  s = with(s, "soft", mix(panel, line, 0.55));
  s = with(s, "mid", mix(line, text, 0.25));
  s = with(s, "accent", accent);
  s = with(s, "accent_text", accent_text);
  s = with(s, "accent_hover", mix(accent, dark ? QColor(Qt::white) : QColor(Qt::black), 0.15));
  s = with(s, "panel", panel);
  s = with(s, "field", field);
  s = with(s, "window", window);
  s = with(s, "text", text);
  s = with(s, "muted", muted);
  s = with(s, "faint", faint);
  s = with(s, "off", mix(panel, muted, 0.55));
  s = with(s, "hover", hover);
  s = with(s, "pressed", mix(panel, accent, dark ? 0.28 : 0.15));
  s = with(s, "chip", mix(panel, accent, dark ? 0.24 : 0.12));
  s = with(s, "select", mix(panel, accent, dark ? 0.38 : 0.22));
  s = with(s, "stripe", mix(panel, text, 0.025));
  s = with(s, "track", mix(panel, text, 0.12));
  s = with(s, "scroll", mix(window, text, 0.25));
  s = with(s, "notice", mix(panel, warn, 0.12));
  s = with(s, "edge", mix(panel, text, dark ? 0.24 : 0.26));
  s = with(s, "button", dark ? mix(panel, text, 0.06) : panel);
  s.replace(u"@chevron"_s, dark ? u":/theme/chevron-dark.svg"_s : u":/theme/chevron-light.svg"_s);
  s.replace(u"@check"_s, dark ? u":/theme/check-dark.svg"_s : u":/theme/check-light.svg"_s);
  s = with(s, "good", good);
  s = with(s, "warn", warn);
  return with(s, "bad", bad);
}

}  // namespace mw::ui
