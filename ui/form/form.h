// SPDX-License-Identifier: GPL-3.0-or-later
// The experiment form: a search box and one row per parameter in the groups of the parameter table. Advanced parameters
// are folded, settings without effect on the experiment hidden. GUI thread.
#pragma once
#include "core/experiment/parameters.h"
#include "ui/form/form_field.h"
#include "ui/theme/widgets.h"

class QLineEdit;
class QScrollArea;

namespace mw::ui {

// One row of the form: label, editor, reset button and, below them, a problem with the value.
class FormRow : public QWidget {
  Q_OBJECT
 public:
  FormRow(const experiment::Parameter& parameter, Document& document, QWidget* parent);
  void refresh();
  bool matches(const QString& words) const;
  bool covers(const std::string& place) const;  // whether the place is the key of this row or below it
  FormField* field() { return field_; }
  bool is_set() const { return set_; }
  bool has_problem() const { return problem_shown_; }
  // Whether the setting has an effect in the experiment.
  bool is_concerned() const { return concerned_; }
  void set_concerned(bool concerned) { concerned_ = concerned; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_label();
  Document& document_;
  FormField* field_;
  QLabel *label_, *problem_;
  QToolButton* reset_;
  bool set_ = false, problem_shown_ = false, concerned_ = true;
};

class Form : public QWidget {
  Q_OBJECT
 public:
  Form(Document& document, QWidget* parent = nullptr);
  // Unfolds, scrolls to and focuses the field at the place of a problem. Returns false if there is none.
  bool focus_key(const std::string& key);
  FormRow* row(const std::string& key);
  QLineEdit* search() { return search_; }
  // A line below the header of a group, such as what its settings come to; empty: none.
  void set_note(const std::string& group, const QString& text);
  // Hides the settings that have no effect in an experiment of this kind; the first kind is training.
  void set_kind(experiment::Kind kind);
  // Software of the plan, whose missing options are hidden; empty: unknown.
  void set_stack(std::optional<model::Stack> stack);

 private:
  struct Section {
    std::string group;
    QToolButton *header = nullptr, *more = nullptr;
    QLabel* note = nullptr;
    QWidget* gap = nullptr;  // below its rows
    std::vector<FormRow*> basic, advanced;
  };
  void build(QWidget* body);
  QToolButton* add_fold(QBoxLayout& column, const char* style, const QString& text);
  Section make_section(QBoxLayout& column, const std::string& group);
  void arrange(Section& section, const QString& words);
  void refresh();
  void arrange();  // updates the visibility of rows
  Document& document_;
  QLineEdit* search_;
  QScrollArea* scroll_;
  QToolButton* others_ = nullptr;  // last; shows the settings without effect, too
  experiment::Kind kind_ = experiment::Kind::train;
  std::optional<model::Stack> stack_;
  std::optional<experiment::Relevance> relevance_;
  std::vector<Section> sections_;
};

}  // namespace mw::ui
