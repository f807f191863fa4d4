// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/form_field.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <algorithm>
#include <cmath>

#include "ui/form/number_field.h"
#include "ui/form/picker.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

FormField::FormField(const experiment::Parameter& parameter, QWidget* parent)
    : QWidget(parent),
      parameter_(parameter),
      key_(parameter.key.ends_with(".*") ? parameter.key.substr(0, parameter.key.size() - 2) : parameter.key) {}

QString FormField::label() const {
  return parameter_.key == "mesh.*" ? tr("Axes") : qs(parameter_.label);
}

void FormField::watch(QWidget* editor) {
  if (!editor_) editor_ = editor;
  QString name = label();
  if (!parameter_.unit.empty()) name += u", "_s + qs(parameter_.unit);
  editor->setAccessibleName(name);
  editor->setAccessibleDescription(qs(parameter_.help));
  editor->setToolTip(describe(parameter_));
  editor->setFocusPolicy(Qt::StrongFocus);
  editor->installEventFilter(this);
}

void FormField::edit(Document& document) {
  connect(this, &FormField::edited, &document,
          [this, &document](const Json& value, Gesture gesture) { document.set(key_, value, gesture); });
  connect(this, &FormField::cleared, &document, [this, &document] { document.reset(key_); });
  connect(this, &FormField::editing_finished, &document, &Document::end_gesture);
}

bool FormField::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusOut) emit editing_finished();
  // The wheel over an unfocused field must scroll the form instead of changing the value.
  if (event->type() == QEvent::Wheel && !static_cast<QWidget*>(watched)->hasFocus()) {
    event->ignore();
    return true;
  }
  // Undo belongs to the document, not to the line edit.
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

FormField* make_field(const experiment::Parameter& p, QWidget* parent) {
  switch (p.type) {
    case experiment::ParamType::integer:
      if (p.key.ends_with(".*")) return new MeshField(p, parent);
      return new NumberField(p, parent);
    case experiment::ParamType::number:
      return new NumberField(p, parent);
    case experiment::ParamType::choice:
      return new ChoiceField(p, parent);
    case experiment::ParamType::flag:
      return new FlagField(p, parent);
    case experiment::ParamType::list:
      if (!p.choices.empty()) return new ChipsField(p, parent);
      return new TextField(p, parent);
    case experiment::ParamType::path:
      return new PathField(p, parent);
    case experiment::ParamType::map:
    case experiment::ParamType::text:
      return new TextField(p, parent);
  }
  return new TextField(p, parent);
}

QString field_text(const Json& value) {
  if (value.is_string()) return qs(value.get<std::string>());
  if (value.is_array()) {
    QStringList parts;
    for (const Json& e : value) parts << field_text(e);
    return parts.join(u", "_s);
  }
  return qs(dump_utf8(value));
}

QString describe(const experiment::Parameter& p) {
  const auto row = [](const QString& a, const QString& b) -> QString {
    return u"<tr><td style='color:%1; padding-right:8px'>%2</td><td>%3</td></tr>"_s.arg(theme().muted.name(), a,
                                                                                        b.toHtmlEscaped());
  };
  const QString fallback = field_text(p.fallback);
  return u"<p><b>%1</b><br>%2</p><table>%3%4%5</table>"_s.arg(
      qs(p.label).toHtmlEscaped(), qs(p.help).toHtmlEscaped(), row(FormField::tr("Key"), qs(p.key)),
      row(FormField::tr("Range"), qs(experiment::range_text(p))),
      fallback.isEmpty() ? QString() : row(FormField::tr("Default"), fallback));
}

ChoiceField::ChoiceField(const experiment::Parameter& parameter, QWidget* parent)
    : FormField(parameter, parent), box_(new QComboBox(this)) {
  auto* row = flush_layout<QHBoxLayout>(this);
  row->addWidget(box_, 1);
  for (const auto& choice : parameter.choices) box_->addItem(qs(choice));
  box_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  watch(box_);
  connect(box_, &QComboBox::activated, this,
          [this](int index) { emit edited(ss(box_->itemText(index)), Gesture::single); });
}

void ChoiceField::show_value(const Json* set) {
  const QString text = field_text(set ? *set : parameter().fallback);
  const auto known = static_cast<int>(parameter().choices.size());
  int index = box_->findText(text);
  while (box_->count() > known && index < known) box_->removeItem(box_->count() - 1);
  if (index < 0) {  // not one of the choices: shown unchanged and reported by validation
    box_->addItem(text);
    index = box_->count() - 1;
  }
  const QSignalBlocker quiet(box_);
  box_->setCurrentIndex(index);
}

FlagField::FlagField(const experiment::Parameter& parameter, QWidget* parent)
    : FormField(parameter, parent), box_(new QCheckBox(this)) {
  auto* row = flush_layout<QHBoxLayout>(this);
  row->addWidget(box_);
  row->addStretch(1);
  watch(box_);
  connect(box_, &QCheckBox::clicked, this, [this](bool on) { emit edited(on, Gesture::single); });
}

void FlagField::show_value(const Json* set) {
  const Json& v = set ? *set : parameter().fallback;
  const bool on = v.is_boolean() && v.get<bool>();
  box_->setChecked(on);
  box_->setText(!v.is_boolean() ? field_text(v) : on ? tr("on") : tr("off"));
}

ChipsField::ChipsField(const experiment::Parameter& parameter, QWidget* parent) : FormField(parameter, parent) {
  auto* grid = make_layout<QGridLayout>(this, {0, 1, 0, 1}, 3);
  // Two columns if the form is wide enough.
  constexpr size_t kShort = 12;
  const bool narrow = std::all_of(parameter.choices.begin(), parameter.choices.end(),
                                  [](const std::string& c) { return c.size() <= kShort; });
  const int columns = narrow ? 2 : 1;
  int at = 0;
  for (const auto& choice : parameter.choices) {
    QToolButton* chip = chip_button(qs(choice), {}, this);
    chip->setSizePolicy(QSizePolicy::MinimumExpanding, QSizePolicy::Fixed);
    watch(chip);
    chip->setAccessibleName(qs(parameter.label + ": " + choice));
    grid->addWidget(chip, at / columns, at % columns);
    chips_.push_back(chip);
    ++at;
    connect(chip, &QToolButton::clicked, this, &ChipsField::chosen);
  }
}

void ChipsField::show_value(const Json* set) {
  const Json& v = set ? *set : parameter().fallback;
  for (QToolButton* chip : chips_) {
    const std::string name = ss(chip->text());
    chip->setChecked(v.is_array() && std::any_of(v.begin(), v.end(), [&](const Json& e) { return e == Json(name); }));
  }
}

void ChipsField::chosen() {
  Json all = Json::array();
  for (const QToolButton* chip : chips_)
    if (chip->isChecked()) all.push_back(ss(chip->text()));
  emit edited(all, Gesture::single);
}

TextField::TextField(const experiment::Parameter& parameter, QWidget* parent)
    : FormField(parameter, parent), edit_(new QLineEdit(this)) {
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

#include "moc_form_field.cpp"
