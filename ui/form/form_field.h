// SPDX-License-Identifier: GPL-3.0-or-later
// Editor of one parameter, created from its row of the parameter table. Shows a value and reports edits, but does not
// validate. GUI thread.
#pragma once
#include <QWidget>

#include "core/experiment/parameters.h"
#include "core/mesh/layout/mesh.h"
#include "ui/session/document.h"

class QAbstractItemModel;
class QCheckBox;
class QComboBox;
class QLineEdit;
class QToolButton;

namespace mw::ui {

class FormField : public QWidget {
  Q_OBJECT
 public:
  explicit FormField(const experiment::Parameter& parameter, QWidget* parent);
  const experiment::Parameter& parameter() const { return parameter_; }
  // Key in the document: that of the parameter, or "mesh" for "mesh.*".
  const std::string& key() const { return key_; }
  QString label() const;
  // `set`: value in the document; nullptr: the default applies. Does not emit edited().
  virtual void show_value(const Json* set) = 0;
  void edit(Document& document);               // writes every edit into the document
  QWidget* editor() const { return editor_; }  // receives the focus and has the accessible name
  virtual void set_compact() {}                // hides the unit, which the caller shows
  // The value that applies if the document has none and the rest of it determines one; empty: unknown.
  virtual void set_default_text(const QString&) {}

 signals:
  void edited(const mw::Json& value, mw::ui::Gesture gesture);
  void cleared();           // the user reset the value to its default
  void editing_finished();  // the editing gesture has ended

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void watch(QWidget* editor);  // sets name and tooltip, ends gestures on focus-out, ignores the wheel without focus

 private:
  const experiment::Parameter& parameter_;
  std::string key_;
  QWidget* editor_ = nullptr;  // the first one watched
};

FormField* make_field(const experiment::Parameter& parameter, QWidget* parent);

// A value as a field shows it: "0.0002", "q_proj, v_proj".
QString field_text(const Json& value);
// Label, help, key, range and default, for tooltips.
QString describe(const experiment::Parameter& parameter);

// The next three edit closed sets of values: one of several, a boolean, any of several.
class ChoiceField : public FormField {
  Q_OBJECT
 public:
  ChoiceField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  QComboBox* box_;
};

class FlagField : public FormField {
  Q_OBJECT
 public:
  FlagField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  QCheckBox* box_;
};

class ChipsField : public FormField {
  Q_OBJECT
 public:
  ChipsField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;

 private:
  void chosen();
  std::vector<QToolButton*> chips_;
};

// A line of text: strings, lists without fixed choices, maps as JSON.
class TextField : public FormField {
  Q_OBJECT
 public:
  TextField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;
  void set_default_text(const QString& text) override;
  // Adds a button that opens a PickerPopup with the model; the chosen name is entered as if typed.
  void add_picker(std::function<QAbstractItemModel*()> make_model);

 protected:
  virtual Json parse(const QString& text) const;  // returns text that cannot be parsed as a string
  virtual QString print(const Json& value) const { return field_text(value); }
  QLineEdit* edit_;
};

class PathField : public TextField {
  Q_OBJECT
 public:
  PathField(const experiment::Parameter& parameter, QWidget* parent);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void browse(bool folder);
};

QString mesh_text(const mesh::Mesh& mesh);  // "fsdp=2, tp=4"

// Editor of the whole "mesh" object in document order: "fsdp=2, tp=4".
class MeshField : public TextField {
  Q_OBJECT
 public:
  MeshField(const experiment::Parameter& parameter, QWidget* parent);

 protected:
  Json parse(const QString& text) const override;
  QString print(const Json& value) const override;
};

}  // namespace mw::ui
