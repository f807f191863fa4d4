// SPDX-License-Identifier: GPL-3.0-or-later
// Editors with a line of text: strings, lists without fixed choices, maps as JSON, paths, mesh axes.
#pragma once
#include <functional>

#include "core/mesh/layout/mesh.h"
#include "ui/form/field.h"

class QAbstractItemModel;
class QLineEdit;

namespace mw::ui {

class TextField : public Field {
  Q_OBJECT
 public:
  TextField(const experiment::Parameter& parameter, QWidget* parent);
  void show_value(const Json* set) override;
  void set_default_text(const QString& text) override;
  // Adds a button that opens a PickerPopup with the model; the chosen name is entered as if typed.
  void add_picker(std::function<QAbstractItemModel*()> make_model);

 protected:
  virtual Json parse(const QString& text) const;  // returns text that cannot be parsed as a string
  virtual QString print(const Json& value) const;
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
