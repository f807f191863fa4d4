// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/text_fields.h"

#include <QDragEnterEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QToolButton>
#include <cmath>

#include "ui/form/picker.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

TextField::TextField(const experiment::Parameter& parameter, QWidget* parent)
    : Field(parameter, parent), edit_(new QLineEdit(this)) {
  auto* row = flush_layout<QHBoxLayout>(this, 3);
  row->addWidget(edit_, 1);
  watch(edit_);
  if (parameter.type == experiment::ParamType::map) edit_->setFont(mono_font(0.92));
  edit_->setPlaceholderText(field_text(parameter.fallback));
  connect(edit_, &QLineEdit::textEdited, this, [this](const QString& text) {
    if (text.isEmpty())
      emit cleared();
    else
      emit edited(parse(text), Gesture::continuing);
  });
}

void TextField::set_default_text(const QString& text) {
  edit_->setPlaceholderText(text);
}

void TextField::add_picker(std::function<QAbstractItemModel*()> make_model) {
  QToolButton* button = flat_button(Glyph::search, tr("Choose: %1").arg(label()), this);
  button->setToolTip(tr("Choose from a table with search"));
  layout()->addWidget(button);
  connect(button, &QToolButton::clicked, this, [this, make_model] {
    auto* popup = new PickerPopup(make_model(), label(), this);
    connect(popup, &PickerPopup::chosen, this, [this](const QString& id) { emit edited(ss(id), Gesture::single); });
    popup->open_below(*edit_, edit_->text().isEmpty() ? edit_->placeholderText() : edit_->text());
  });
}

Json TextField::parse(const QString& text) const {
  switch (parameter().type) {
    case experiment::ParamType::map:
      try {
        return parse_json(ss(text), parameter().key);
      } catch (const Error&) {
        return ss(text);
      }
    case experiment::ParamType::list: {
      Json all = Json::array();
      for (const QString& part : text.split(u',')) {
        bool number = false;
        const double v = part.trimmed().toDouble(&number);
        all.push_back(number && std::isfinite(v) ? Json(v) : Json(ss(part.trimmed())));
      }
      return all;
    }
    default:
      return ss(text);
  }
}

QString TextField::print(const Json& value) const {
  return field_text(value);
}

void TextField::show_value(const Json* set) {
  const QString text = set ? print(*set) : QString();
  if (edit_->hasFocus() && edit_->isModified()) {
    if (set ? parse(edit_->text()) == *set : edit_->text().isEmpty()) return;
  }
  if (edit_->text() == text) return;
  edit_->setText(text);
  if (!edit_->hasFocus()) edit_->setCursorPosition(0);  // shows the beginning of long texts
}

PathField::PathField(const experiment::Parameter& parameter, QWidget* parent) : TextField(parameter, parent) {
  QToolButton* button = flat_button(Glyph::browse, tr("Browse for %1").arg(qs(parameter.label)), this);
  button->setToolTip(tr("Browse for a file or a folder"));
  button->setPopupMode(QToolButton::InstantPopup);
  button->setStyleSheet(u"QToolButton::menu-indicator { image: none; }"_s);
  auto* menu = new QMenu(button);
  menu->addAction(tr("Choose Folder…"), this, [this] { browse(true); });
  menu->addAction(tr("Choose File…"), this, [this] { browse(false); });
  button->setMenu(menu);
  layout()->addWidget(button);
  setAcceptDrops(true);
  edit_->setAcceptDrops(false);  // the field handles drops; the line edit would insert "file://"
}

void PathField::browse(bool folder) {
  open_file_dialog(
      this, {.title = qs(parameter().label), .mode = folder ? QFileDialog::Directory : QFileDialog::ExistingFile},
      [this](const auto& files) { emit edited(files.front().string(), Gesture::single); });
}

void PathField::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void PathField::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  emit edited(ss(event->mimeData()->urls().front().toLocalFile()), Gesture::single);
}

QString mesh_text(const mesh::Mesh& mesh) {
  QStringList axes;
  for (const mesh::MeshAxis& axis : mesh.axes) axes << u"%1=%2"_s.arg(qs(axis.name)).arg(axis.size);
  return axes.join(u", "_s);
}

MeshField::MeshField(const experiment::Parameter& parameter, QWidget* parent) : TextField(parameter, parent) {
  edit_->setPlaceholderText(tr("For example fsdp=1, tp=1"));
}

Json MeshField::parse(const QString& text) const {
  Json axes = Json::object();
  for (const QString& part : text.split(u',', Qt::SkipEmptyParts)) {
    const QStringList pair = part.split(u'=');
    bool number = false;
    const long long size = pair.size() == 2 ? pair[1].trimmed().toLongLong(&number) : 0;
    const std::string axis = ss(pair[0].trimmed());
    if (axis.empty()) return ss(text);
    axes[axis] = number ? Json(size) : Json(pair.size() == 2 ? ss(pair[1].trimmed()) : std::string());
  }
  return axes;
}

QString MeshField::print(const Json& value) const {
  if (!value.is_object()) return field_text(value);
  QStringList parts;
  for (const auto& [axis, size] : value.items()) parts << QString(qs(axis) + u'=' + field_text(size));
  return parts.join(u", "_s);
}

}  // namespace mw::ui

#include "moc_text_fields.cpp"
