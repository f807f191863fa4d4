// SPDX-License-Identifier: GPL-3.0-or-later
// Construction of common widgets. GUI thread.
#pragma once
#include <QBoxLayout>
#include <QFileDialog>
#include <QLabel>
#include <QSplitter>
#include <filesystem>
#include <functional>
#include <vector>

class QPainter;

namespace mw::ui {

// A layout without margins. spacing: pixels; default: that of the style.
template <class Layout>
Layout* flush_layout(QWidget* parent, int spacing = -1) {
  auto* layout = new Layout(parent);
  layout->setContentsMargins(0, 0, 0, 0);
  if (spacing >= 0) layout->setSpacing(spacing);
  return layout;
}

// The rounded edge of a card that paints itself; shows the focus.
void paint_edge(QPainter& painter, const QWidget& card);
QLabel* muted_label(const QString& text, QWidget* parent);
QSplitter* make_splitter(Qt::Orientation orientation, QWidget* parent = nullptr);
// Sets a property that the style sheet refers to, and applies its rules.
void set_style_property(QWidget& widget, const char* name, const QVariant& value);

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
// The same for one file to write.
QFileDialog* open_save_dialog(QWidget* parent, FileDialogOptions options, FilesChosen chosen);

}  // namespace mw::ui
