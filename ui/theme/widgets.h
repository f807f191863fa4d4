// SPDX-License-Identifier: GPL-3.0-or-later
// Common widgets and their construction. GUI thread.
#pragma once
#include <QAccessible>
#include <QBoxLayout>
#include <QFileDialog>
#include <QHelpEvent>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QToolButton>
#include <QToolTip>
#include <functional>
#include <vector>

#include "ui/theme/icons.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

class QPainter;

namespace mw::ui {

// spacing: pixels; default: that of the style.
template <class Layout>
Layout* make_layout(QWidget* parent, const QMargins& margins, int spacing = -1) {
  auto* layout = new Layout(parent);
  layout->setContentsMargins(margins);
  if (spacing >= 0) layout->setSpacing(spacing);
  return layout;
}
// Without margins.
template <class Layout>
Layout* flush_layout(QWidget* parent, int spacing = -1) {
  return make_layout<Layout>(parent, {}, spacing);
}

// The rounded edge of a card that paints itself; shows the focus.
void paint_edge(QPainter& painter, const QWidget& card);
// The frame of a surface without an edge of its own that has the focus.
void paint_focus(QPainter& painter, const QRect& surface);
// One line of text, elided at its end to the width of the box.
void draw_elided(QPainter& painter, const QRectF& box, int flags, const QString& text, const QColor& color);
// A curve from a to b that passes beside what lies between them.
void draw_bow(QPainter& painter, QPointF a, QPointF b, double aside);
// Shows text_at(position) as the tooltip of the widget, or hides the tooltip if the text is empty. False: the event
// does not ask for a tooltip.
template <class TextAt>
bool show_tooltip(QEvent* event, QWidget& widget, TextAt text_at) {
  if (event->type() != QEvent::ToolTip) return false;
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), text_at(help->pos()), &widget);
  return true;
}

QLabel* muted_label(const QString& text, QWidget* parent);
// A muted label in front of a field, whose accessible name it becomes.
QLabel* add_labelled(QBoxLayout& row, const QString& text, QWidget* field);
QPushButton* add_button(QBoxLayout& row, const QString& text, const QString& tooltip, Glyph glyph = Glyph::none);
// An icon without a frame.
QToolButton* flat_button(Glyph glyph, const QString& name, QWidget* parent);
// A checkable button with rounded ends.
QToolButton* chip_button(const QString& text, const QString& tooltip, QWidget* parent);
QSplitter* make_splitter(Qt::Orientation orientation, QWidget* parent = nullptr);
// First sizes, in pixels or relative, and how the widgets share additional space.
void set_shares(QSplitter& splitter, const QList<int>& sizes, const QList<int>& stretch);
// Sets a property that the style sheet refers to, and applies its rules.
void set_style_property(QWidget& widget, const char* name, const QVariant& value);

// One line of plain text that is elided to its width. The tooltip shows the whole text, and text() always returns it.
class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  // most: largest width in pixels of the size hint.
  ElidedLabel(Qt::TextElideMode mode, QWidget* parent, int most = QWIDGETSIZE_MAX);
  QString shown() const;  // the elided text
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  Qt::TextElideMode mode_;
  int most_;
};

// Replaces predicted figures while errors prevent a prediction: a button with the number of errors that leads to them.
class ErrorLink : public QToolButton {
  Q_OBJECT
 public:
  explicit ErrorLink(QWidget* parent) : QToolButton(parent) {
    setObjectName(u"errors"_s);
    setProperty("flat", true);
    setIcon(ui::icon(Glyph::error, IconColor::bad));
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setToolTip(tr("Show these errors in the Problems panel"));
    set_errors(0);
  }
  void set_errors(int errors) {
    setText(errors == 0 ? tr("No prediction") : tr("No prediction: %n error(s)", nullptr, errors));
  }
};

// The content of a page without data: a title, a few lines and buttons.
struct EmptyPage {
  QWidget* page = nullptr;
  QLabel *title = nullptr, *text = nullptr;
};
struct EmptyPageButton {
  QString text;
  std::function<void()> run;
  QString tooltip{};
};
EmptyPage empty_page(const QString& title, const QString& text, const std::vector<EmptyPageButton>& buttons,
                     QWidget* parent);

struct FileDialogOptions {
  QString title, start{};  // start: folder or suggested file
  QString filters{};       // separated by ";;"
  QString suffix{};        // appended to a name without one
  QFileDialog::FileMode mode = QFileDialog::ExistingFile;
  QFileDialog::AcceptMode accept = QFileDialog::AcceptOpen;
};
using FilesChosen = std::function<void(const std::vector<std::filesystem::path>& files)>;
// Shows a dialog without blocking the caller; it deletes itself. `chosen` gets at least one file, and is not called if
// the user cancels.
QFileDialog* open_file_dialog(QWidget* parent, const FileDialogOptions& options, FilesChosen chosen);
// Shows a dialog for one file to write, like open_file_dialog(). A toast says that it was written.
QFileDialog* open_save_dialog(QWidget* parent, FileDialogOptions options, FilesChosen chosen);
// Writes a PNG file atomically; the folder must exist. Throws mw::Error with the file.
void write_png(const QPixmap& picture, const std::filesystem::path& file);

// Sets the role that assistive technology announces for a widget that paints itself. Call it in the constructor: Qt
// asks for the role once.
void set_accessible_role(QWidget& widget, QAccessible::Role role);

// Shows a message at the lower edge of the window of `widget` for some seconds, in place of an earlier one. With a file
// it has a button Open Folder.
// open_save_dialog() calls it for every file that was written.
void show_toast(const QWidget& widget, const QString& text, const std::filesystem::path& file = {});

}  // namespace mw::ui
