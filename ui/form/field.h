// SPDX-License-Identifier: GPL-3.0-or-later
// Editor of one parameter, created from its row of the parameter table. Shows a value and reports edits, but does not
// validate. GUI thread.
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

Field* make_field(const experiment::Parameter& parameter, QWidget* parent);

// A value as a field shows it: "0.0002", "q_proj, v_proj".
QString field_text(const Json& value);
// Label, help, key, range and default, for tooltips.
QString describe(const experiment::Parameter& parameter);

}  // namespace mw::ui
