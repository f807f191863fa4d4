// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/widgets.h"

#include <QPainter>
#include <QStyle>
#include <utility>

#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

void paint_edge(QPainter& painter, const QWidget& card) {
  painter.setPen(card.hasFocus() ? theme().accent : theme().line);
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.drawRoundedRect(QRectF(card.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

QLabel* muted_label(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setProperty("muted", true);
  return label;
}

QSplitter* make_splitter(Qt::Orientation orientation, QWidget* parent) {
  auto* splitter = new QSplitter(orientation, parent);
  splitter->setHandleWidth(5);
  return splitter;
}

void set_style_property(QWidget& widget, const char* name, const QVariant& value) {
  if (widget.property(name) == value) return;
  widget.setProperty(name, value);
  widget.style()->unpolish(&widget);
  widget.style()->polish(&widget);
}

QFileDialog* open_file_dialog(QWidget* parent, const FileDialogOptions& options, FilesChosen chosen) {
  auto* dialog = new QFileDialog(parent, options.title, options.start, options.filters);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(options.accept);
  dialog->setFileMode(options.mode);
  dialog->setOption(QFileDialog::ShowDirsOnly, options.mode == QFileDialog::Directory);
  dialog->setDefaultSuffix(options.suffix);
  QObject::connect(dialog, &QFileDialog::filesSelected, parent, [chosen = std::move(chosen)](const QStringList& names) {
    std::vector<std::filesystem::path> files;
    for (const QString& name : names) files.push_back(fspath(name));
    chosen(files);
  });
  dialog->open();
  return dialog;
}

QFileDialog* open_save_dialog(QWidget* parent, FileDialogOptions options, FilesChosen chosen) {
  options.mode = QFileDialog::AnyFile;
  options.accept = QFileDialog::AcceptSave;
  return open_file_dialog(parent, options, std::move(chosen));
}

}  // namespace mw::ui
