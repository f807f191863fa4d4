// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/dialog_parts.h"

#include <QEvent>
#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <cmath>

#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kMostResultLines = 8;

// Gets higher if wrapped lines need more space, which a layout does not request by itself.
class GrowsWithContent : public QObject {
 public:
  explicit GrowsWithContent(QWidget& dialog) : QObject(&dialog) { dialog.installEventFilter(this); }
  bool eventFilter(QObject* watched, QEvent* event) override {
    auto* dialog = static_cast<QWidget*>(watched);
    if (event->type() == QEvent::LayoutRequest && dialog->isVisible()) {
      const int least = dialog->layout()->minimumHeightForWidth(dialog->width());
      if (dialog->height() < least) dialog->resize(dialog->width(), least);
    }
    return false;
  }
};
}  // namespace

QVBoxLayout* dialog_column(QWidget& dialog, int least_width) {
  auto* column = new QVBoxLayout(&dialog);
  new GrowsWithContent(dialog);
  column->setSpacing(8);
  // A minimum size of the dialog itself would replace that of the layout, and rows would be squeezed.
  column->addStrut(least_width - column->contentsMargins().left() - column->contentsMargins().right());
  return column;
}

QLabel* add_description(QVBoxLayout& column) {
  auto* description = new QLabel;
  description->setWordWrap(true);
  column.addWidget(description);
  return description;
}

ResultText::ResultText(const QString& name, QWidget* parent) : QTextEdit(parent) {
  setReadOnly(true);
  setAcceptRichText(false);
  setTabChangesFocus(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  document()->setDocumentMargin(0);
  setProperty("result", true);
  setAccessibleName(name);
  hide();
}

void ResultText::show_text(const QString& text, Tone tone) {
  set_style_property(*this, "bad", tone == Tone::bad);
  setPlainText(text);
  setVisible(!text.isEmpty());
  fit();
}

void ResultText::resizeEvent(QResizeEvent* event) {
  QTextEdit::resizeEvent(event);
  fit();
}

void ResultText::fit() {
  const int line = fontMetrics().lineSpacing();
  document()->setTextWidth(contentsRect().width());
  const bool all = document()->size().height() <= kMostResultLines * line;
  setVerticalScrollBarPolicy(all ? Qt::ScrollBarAlwaysOff : Qt::ScrollBarAlwaysOn);
  const int wanted = all ? static_cast<int>(std::ceil(document()->size().height())) + 1 : kMostResultLines * line;
  if (wanted != maximumHeight()) setFixedHeight(wanted);
}

ResultText* add_result(QVBoxLayout& column, const QString& name) {
  auto* result = new ResultText(name, column.parentWidget());
  column.addWidget(result);
  return result;
}

QProgressBar* add_progress(QVBoxLayout& column, const QString& name) {
  auto* bar = new QProgressBar;
  bar->setRange(0, 0);
  bar->setTextVisible(false);
  bar->setAccessibleName(name);
  QSizePolicy keeps = bar->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  bar->setSizePolicy(keeps);
  column.addWidget(bar);
  return bar;
}

DialogButtons add_buttons(QVBoxLayout& column, const QString& cancel, const QString& confirm) {
  auto* row = new QHBoxLayout;
  const DialogButtons out{new QPushButton(cancel), new QPushButton(confirm)};
  row->addStretch(1);
  row->addWidget(out.cancel);
  row->addWidget(out.confirm);
  column.addLayout(row);
  out.confirm->setDefault(true);  // needs the dialog as parent
  return out;
}

FolderRow add_folder(QFormLayout& form, const QString& name, const QString& placeholder, QWidget& dialog) {
  auto* both = new QWidget(&dialog);
  auto* row = flush_layout<QHBoxLayout>(both);
  const FolderRow out{new QLineEdit(both), new QPushButton(QObject::tr("Choose…"), both)};
  out.line->setAccessibleName(name);
  out.line->setPlaceholderText(placeholder);
  out.choose->setAccessibleName(QObject::tr("Choose: %1").arg(name));
  row->addWidget(out.line, 1);
  row->addWidget(out.choose);
  both->setFocusProxy(out.line);
  out.choose->setAutoDefault(false);  // Enter activates the default button of the dialog
  form.addRow(name, both);
  QObject::connect(out.choose, &QPushButton::clicked, &dialog, [&dialog, name, line = out.line] {
    open_file_dialog(&dialog, {.title = name, .start = line->text(), .mode = QFileDialog::Directory},
                     [line](const auto& files) { line->setText(qpath(files.front())); });
  });
  return out;
}

}  // namespace mw::ui
