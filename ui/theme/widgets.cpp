// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/widgets.h"

#include <QAccessibleWidget>
#include <QBuffer>
#include <QDesktopServices>
#include <QPainter>
#include <QPainterPath>
#include <QStyle>
#include <QTimer>
#include <algorithm>
#include <cmath>

#include "core/base/atomic_file.h"

namespace mw::ui {
namespace {
constexpr int kLeastElided = 24;  // an ellipsis and one or two letters
}

void paint_edge(QPainter& painter, const QWidget& card) {
  painter.setPen(card.hasFocus() ? theme().accent : theme().line);
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.drawRoundedRect(QRectF(card.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

void paint_focus(QPainter& painter, const QRect& surface) {
  painter.setPen(theme().accent);
  painter.setBrush(Qt::NoBrush);
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.drawRect(surface.adjusted(0, 0, -1, -1));
}

void draw_elided(QPainter& painter, const QRectF& box, int flags, const QString& text, const QColor& color) {
  painter.setPen(color);
  painter.drawText(box, flags, painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(box.width())));
}

void draw_bow(QPainter& painter, QPointF a, QPointF b, double aside) {
  const QPointF way = b - a, normal = QPointF(-way.y(), way.x()) / std::hypot(way.x(), way.y());
  QPainterPath path(a);
  path.quadTo((a + b) / 2 + normal * aside, b);
  painter.drawPath(path);
}

QLabel* muted_label(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setProperty("muted", true);
  return label;
}

QLabel* add_labelled(QBoxLayout& row, const QString& text, QWidget* field) {
  QLabel* label = muted_label(text, nullptr);
  label->setBuddy(field);
  field->setAccessibleName(text);
  row.addWidget(label);
  row.addWidget(field);
  return label;
}

QPushButton* add_button(QBoxLayout& row, const QString& text, const QString& tooltip, Glyph glyph) {
  auto* button = new QPushButton(icon(glyph), text);
  button->setToolTip(tooltip);
  row.addWidget(button);
  return button;
}

QToolButton* flat_button(Glyph glyph, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setProperty("flat", true);
  button->setIcon(icon(glyph));
  button->setAccessibleName(name);
  return button;
}

QToolButton* chip_button(const QString& text, const QString& tooltip, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setToolTip(tooltip);
  button->setCheckable(true);
  button->setProperty("chip", true);
  return button;
}

QSplitter* make_splitter(Qt::Orientation orientation, QWidget* parent) {
  auto* splitter = new QSplitter(orientation, parent);
  splitter->setHandleWidth(5);
  return splitter;
}

void set_shares(QSplitter& splitter, const QList<int>& sizes, const QList<int>& stretch) {
  splitter.setSizes(sizes);
  for (int i = 0; i < static_cast<int>(stretch.size()); ++i) splitter.setStretchFactor(i, stretch[i]);
}

void set_style_property(QWidget& widget, const char* name, const QVariant& value) {
  if (widget.property(name) == value) return;
  widget.setProperty(name, value);
  widget.style()->unpolish(&widget);
  widget.style()->polish(&widget);
}

ElidedLabel::ElidedLabel(Qt::TextElideMode mode, QWidget* parent, int most) : QLabel(parent), mode_(mode), most_(most) {
  setTextFormat(Qt::PlainText);  // names come from outside: no markup
}

QString ElidedLabel::shown() const {
  return fontMetrics().elidedText(text(), mode_, contentsRect().width());
}

// One pixel more than the advance of the text, which is rounded.
QSize ElidedLabel::sizeHint() const {
  const QMargins around = contentsMargins();
  const int wide = text().isEmpty() ? 0 : fontMetrics().horizontalAdvance(text()) + 1 + around.left() + around.right();
  return {std::min(most_, wide), QLabel::sizeHint().height()};
}

QSize ElidedLabel::minimumSizeHint() const {
  return {std::min(kLeastElided, sizeHint().width()), QLabel::minimumSizeHint().height()};
}

// A tooltip that was set explicitly has priority over the text.
bool ElidedLabel::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || !toolTip().isEmpty()) return QLabel::event(event);
  if (shown() == text())
    event->ignore();
  else
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text().toHtmlEscaped(), this);
  return true;
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  style()->drawItemText(&painter, contentsRect(),
                        static_cast<int>(QStyle::visualAlignment(layoutDirection(), alignment())), palette(),
                        isEnabled(), shown(), foregroundRole());
}

EmptyPage empty_page(const QString& title, const QString& text, const std::vector<EmptyPageButton>& buttons,
                     QWidget* parent) {
  EmptyPage out{.page = new QWidget(parent)};
  auto* column = new QVBoxLayout(out.page);
  column->setAlignment(Qt::AlignCenter);
  column->setSpacing(10);
  out.title = new QLabel(title, out.page);
  QFont big = out.title->font();
  big.setPointSizeF(big.pointSizeF() * 1.4);
  big.setWeight(QFont::DemiBold);
  out.title->setFont(big);
  out.text = muted_label(text, out.page);
  out.text->setAlignment(Qt::AlignCenter);
  auto* row = new QHBoxLayout;
  row->setAlignment(Qt::AlignCenter);
  for (const EmptyPageButton& b : buttons) {
    auto* button = new QPushButton(b.text, out.page);
    button->setToolTip(b.tooltip);
    QObject::connect(button, &QPushButton::clicked, out.page, b.run);
    row->addWidget(button);
  }
  column->addWidget(out.title, 0, Qt::AlignCenter);
  column->addWidget(out.text, 0, Qt::AlignCenter);
  column->addLayout(row);
  return out;
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
  return open_file_dialog(parent, options, [parent, chosen = std::move(chosen)](const auto& files) {
    const std::filesystem::path& file = files.front();
    std::error_code missing;
    const auto before = std::filesystem::last_write_time(file, missing);
    chosen(files);
    const auto after = std::filesystem::last_write_time(file, missing);
    if (!missing && after != before) show_toast(*parent, QFileDialog::tr("Saved %1").arg(qpath(file.filename())), file);
  });
}

void write_png(const QPixmap& picture, const std::filesystem::path& file) {
  QBuffer bytes;
  bytes.open(QIODevice::WriteOnly);
  picture.save(&bytes, "PNG");
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(bytes.data().constData(), static_cast<size_t>(bytes.size()))));
  out.commit();
}

namespace {

constexpr const char* kRoleProperty = "accessible_role";

QAccessibleInterface* make_accessible(const QString&, QObject* object) {
  const QVariant role = object->property(kRoleProperty);
  auto* widget = role.isValid() ? qobject_cast<QWidget*>(object) : nullptr;
  return widget ? new QAccessibleWidget(widget, static_cast<QAccessible::Role>(role.toInt())) : nullptr;
}

}  // namespace

void set_accessible_role(QWidget& widget, QAccessible::Role role) {
  static const bool installed = [] {
    QAccessible::installFactory(make_accessible);
    return true;
  }();
  widget.setProperty(kRoleProperty, installed ? static_cast<int>(role) : 0);
}

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

#include "moc_widgets.cpp"
