// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/dialog_parts.h"

#include <cmath>

#include "ui/session/background_task.h"
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

ResultText::ResultText(const QString& name, QWidget* parent) : QTextEdit(parent) {
  setReadOnly(true);
  setAcceptRichText(false);
  setTabChangesFocus(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  document()->setDocumentMargin(0);
  setProperty("result", true);
  setAccessibleName(name);
  setFixedHeight(fontMetrics().lineSpacing());
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

void ResultText::showEvent(QShowEvent* event) {
  QTextEdit::showEvent(event);
  fit();
}

// While a tab or dialog is not shown, its widgets have no width yet: the text would need the height of a narrow column.
void ResultText::fit() {
  if (!isVisible()) return;
  const int line = fontMetrics().lineSpacing();
  document()->setTextWidth(contentsRect().width());
  const int frame = height() - contentsRect().height();
  const bool all = document()->size().height() <= kMostResultLines * line;
  setVerticalScrollBarPolicy(all ? Qt::ScrollBarAlwaysOff : Qt::ScrollBarAlwaysOn);
  const int wanted =
      frame + (all ? static_cast<int>(std::ceil(document()->size().height())) + 1 : kMostResultLines * line);
  if (wanted != maximumHeight()) setFixedHeight(wanted);
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

TaskDialog::TaskDialog(const QString& title, const QString& object_name, int least_width, QWidget* parent)
    : QDialog(parent), column_(new QVBoxLayout(this)), description_(new QLabel(this)) {
  setWindowTitle(title);
  setObjectName(object_name);
  new GrowsWithContent(*this);
  column_->setSpacing(8);
  // A minimum size of the dialog itself would replace that of the layout, and rows would be squeezed.
  column_->addStrut(least_width - column_->contentsMargins().left() - column_->contentsMargins().right());
  description_->setWordWrap(true);
  column_->addWidget(description_);
}

void TaskDialog::add_task_rows(const TaskRows& rows) {
  column_->addWidget(result_ = new ResultText(rows.result, this));
  progress_ = add_progress(*column_, rows.progress);
  column_->addStretch(rows.stretch);
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  column_->addLayout(row);
  cancel_ = add_button(*row, rows.cancel, {});
  connect(cancel_, &QPushButton::clicked, this, &QDialog::reject);
  if (rows.confirm.isEmpty()) return;
  confirm_ = add_button(*row, rows.confirm, {});
  confirm_->setDefault(true);  // needs the dialog as parent
}

void TaskDialog::follow(BackgroundWork& work) {
  work_ = &work;
  progress_->setRange(0, 100);
  progress_->hide();
  connect(work_, &BackgroundWork::changed, this, [this] {
    progress_->setVisible(work_->is_busy());
    progress_->setValue(work_->percent());
  });
}

void TaskDialog::reject() {
  if (work_ && work_->is_busy()) return work_->cancel();
  QDialog::reject();
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

bool PendingQuestion::raise() {
  if (!box_ || !box_->isVisible()) return false;
  box_->raise();
  return true;
}

void PendingQuestion::ask(const QString& name, const QString& text, const QString& details,
                          const std::vector<QuestionAnswer>& answers) {
  box_ = new QMessageBox(QMessageBox::Question, QMessageBox::tr("Meshwright"), text, QMessageBox::NoButton, &window_);
  box_->setObjectName(name);
  box_->setTextFormat(Qt::PlainText);
  box_->setInformativeText(details);
  box_->setAttribute(Qt::WA_DeleteOnClose);
  std::vector<std::pair<QAbstractButton*, std::function<void()>>> actions;
  for (const QuestionAnswer& answer : answers) {
    QPushButton* button = box_->addButton(answer.text, answer.role);
    button->setObjectName(answer.name);
    if (actions.empty()) box_->setDefaultButton(button);
    if (answer.role == QMessageBox::RejectRole) box_->setEscapeButton(button);
    actions.emplace_back(button, answer.chosen);
  }
  QObject::connect(box_.data(), &QDialog::finished, &window_, [box = box_.data(), actions] {
    for (const auto& [button, chosen] : actions)
      if (button == box->clickedButton() && chosen) chosen();
  });
  box_->open();
}

void PendingQuestion::reject() {
  if (box_ && box_->isVisible()) box_->reject();
}

}  // namespace mw::ui

#include "moc_dialog_parts.cpp"
