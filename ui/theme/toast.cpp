// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/toast.h"

#include <QDesktopServices>
#include <QDialog>
#include <QEvent>
#include <QFrame>
#include <QHBoxLayout>
#include <QTimer>
#include <QUrl>
#include <algorithm>

#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr int kShownMs = 7000, kMostText = 420, kAboveEdge = 40;

// Keeps its place above the lower edge of the window.
class Toast : public QFrame {
 public:
  explicit Toast(QWidget* window) : QFrame(window) {
    setObjectName(u"toast"_s);
    window->installEventFilter(this);
    QTimer::singleShot(kShownMs, this, &QObject::deleteLater);
  }
  void place() {
    adjustSize();
    const QWidget& window = *parentWidget();
    move(std::max(0, (window.width() - width()) / 2), window.height() - height() - kAboveEdge);
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Resize) place();
    return QFrame::eventFilter(watched, event);
  }
};

}  // namespace

void show_toast(const QWidget& widget, const QString& text, const std::filesystem::path& file) {
  QWidget* window = widget.window();
  if (const QDialog* dialog = qobject_cast<QDialog*>(window); dialog && dialog->parentWidget())
    window = dialog->parentWidget()->window();  // a dialog that exports may close at once
  delete window->findChild<QFrame*>(u"toast"_s, Qt::FindDirectChildrenOnly);
  auto* toast = new Toast(window);
  auto* row = make_layout<QHBoxLayout>(toast, {12, 7, 7, 7}, 10);
  auto* label = new ElidedLabel(Qt::ElideMiddle, toast, kMostText);
  label->setText(text);
  row->addWidget(label);
  if (!file.empty()) {
    QPushButton* open = add_button(*row, QObject::tr("Open Folder"), qpath(file.parent_path()));
    QObject::connect(open, &QPushButton::clicked, toast,
                     [file] { QDesktopServices::openUrl(QUrl::fromLocalFile(qpath(file.parent_path()))); });
  }
  QToolButton* close = flat_button(Glyph::close, QObject::tr("Close"), toast);
  row->addWidget(close);
  QObject::connect(close, &QToolButton::clicked, toast, &QObject::deleteLater);
  toast->place();
  toast->show();
  toast->raise();
}

}  // namespace mw::ui
