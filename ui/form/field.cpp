// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/field.h"

#include <QEvent>
#include <QKeyEvent>

#include "ui/form/choice_fields.h"
#include "ui/form/number_field.h"
#include "ui/form/text_fields.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

Field::Field(const experiment::Parameter& parameter, QWidget* parent)
    : QWidget(parent),
      parameter_(parameter),
      key_(parameter.key.ends_with(".*") ? parameter.key.substr(0, parameter.key.size() - 2) : parameter.key) {}

QString Field::label() const {
  return parameter_.key == "mesh.*" ? tr("Axes") : qs(parameter_.label);
}

void Field::watch(QWidget* editor) {
  if (!editor_) editor_ = editor;
  QString name = label();
  if (!parameter_.unit.empty()) name += u", "_s + qs(parameter_.unit);
  editor->setAccessibleName(name);
  editor->setAccessibleDescription(qs(parameter_.help));
  editor->setToolTip(describe(parameter_));
  editor->setFocusPolicy(Qt::StrongFocus);
  editor->installEventFilter(this);
}

void Field::edit(Document& document) {
  connect(this, &Field::edited, &document,
          [this, &document](const Json& value, Gesture gesture) { document.set(key_, value, gesture); });
  connect(this, &Field::cleared, &document, [this, &document] { document.reset(key_); });
  connect(this, &Field::editing_finished, &document, &Document::end_gesture);
}

bool Field::eventFilter(QObject* watched, QEvent* event) {
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

Field* make_field(const experiment::Parameter& p, QWidget* parent) {
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
  return qs(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

QString describe(const experiment::Parameter& p) {
  const auto row = [](const QString& a, const QString& b) -> QString {
    return u"<tr><td style='color:%1; padding-right:8px'>%2</td><td>%3</td></tr>"_s.arg(theme().muted.name(), a,
                                                                                        b.toHtmlEscaped());
  };
  const QString fallback = field_text(p.fallback);
  return u"<p><b>%1</b><br>%2</p><table>%3%4%5</table>"_s.arg(
      qs(p.label).toHtmlEscaped(), qs(p.help).toHtmlEscaped(), row(Field::tr("Key"), qs(p.key)),
      row(Field::tr("Range"), qs(experiment::range_text(p))),
      fallback.isEmpty() ? QString() : row(Field::tr("Default"), fallback));
}

}  // namespace mw::ui

#include "moc_field.cpp"
