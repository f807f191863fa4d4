// SPDX-License-Identifier: GPL-3.0-or-later
// One parameter's editor, made from its row of the parameter table. It shows a value and reports edits; it never
// decides what is valid. GUI thread.
#pragma once
#include <QWidget>

#include "core/experiment/experiment.h"
#include "core/experiment/parameters.h"
#include "ui/session/document.h"

namespace mw::ui {

class Field : public QWidget {
  Q_OBJECT
 public:
  explicit Field(const experiment::Parameter& parameter, QWidget* parent);
  const experiment::Parameter& parameter() const { return parameter_; }
  // The document's key: the parameter's, or "mesh" for "mesh.*".
  const std::string& key() const { return key_; }
  QString label() const;
  // `set` is what the document holds (nullptr: the default is in force). Does not emit edited().
  virtual void show_value(const Json* set) = 0;
  virtual QWidget* editor() = 0;  // takes the focus, carries the accessible name
  virtual void set_compact() {}   // the editor alone: its unit stands elsewhere
  // What is in force while the document says nothing, where that follows from the rest of it; empty: not known.
  virtual void set_default_text(const QString&) {}

 signals:
  void edited(const mw::Json& value, mw::ui::Gesture gesture);
  void cleared();  // back to the default
  void left();     // the gesture is over

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void watch(QWidget* editor);  // name, tooltip, focus-out as the end of a gesture, no wheel without focus

 private:
  const experiment::Parameter& parameter_;
  std::string key_;
};

Field* make_field(const experiment::Parameter& parameter, QWidget* parent);

// "0.0002", "q_proj, v_proj": a value as a field shows it.
QString field_text(const Json& value);
// Label, help, key, range and default, for tooltips.
QString describe(const experiment::Parameter& parameter);

}  // namespace mw::ui
