// SPDX-License-Identifier: GPL-3.0-or-later
// Settings of the document in one row, or two where it is narrow, with the fields of the form and captions above them.
// GUI thread.
#pragma once
#include "ui/form/form_field.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

class SettingsRow : public QWidget {
  Q_OBJECT
 public:
  struct Setting {
    const char* key;
    QString caption;
    int stretch = 3;
  };
  SettingsRow(Document& document, const std::vector<Setting>& settings, QWidget* parent = nullptr);
  FormField* field(const std::string& key);  // null: not shown

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Cell {
    FormField* field;
    QLabel* caption;
    int stretch;
  };
  void arrange();
  void add(const Setting& setting);
  void refresh();
  Document& document_;
  QHBoxLayout *upper_, *lower_;
  std::vector<Cell> cells_;
};

}  // namespace mw::ui
