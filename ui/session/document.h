// SPDX-License-Identifier: GPL-3.0-or-later
// The open document: an Experiment, its JSON text while it is being typed, its file and its undo stack. Form, JSON view
// and command line show it. GUI thread.
#pragma once
#include <QObject>
#include <QUndoStack>
#include <functional>
#include <optional>

#include "core/experiment/experiment.h"

namespace mw::ui {

enum class Gesture { single, continuing };  // continuing: typing and slider drags merge into one undo step
enum class Edited { no, yes };

class Document : public QObject {
  Q_OBJECT
 public:
  // A state of the document. `text` is set if the JSON text is not canonical (other spacing) or not valid; in the
  // latter case `experiment` is the last valid value.
  struct Snapshot {
    experiment::Experiment experiment;
    std::optional<std::string> text;
    bool operator==(const Snapshot&) const = default;
  };

  explicit Document(QObject* parent = nullptr);

  const experiment::Experiment& experiment() const { return now_.experiment; }
  std::string json_text() const { return now_.text ? *now_.text : now_.experiment.text(); }
  const Snapshot& snapshot() const { return now_; }
  // Errors and warnings of the experiment and, if it cannot be parsed, of the JSON text.
  const std::vector<Problem>& problems() const { return problems_; }
  bool has_invalid_text() const { return invalid_text_; }
  bool has_errors() const;  // prevents predictions
  QUndoStack& undo_stack() { return undo_; }
  bool is_dirty() const { return !undo_.isClean(); }

  const std::filesystem::path& file() const { return file_; }     // empty: never saved
  const experiment::Experiment& saved() const { return saved_; }  // as stored in the file; empty if there is no file
  QString title() const;

  // Each edit is one undo step. Invalid values are kept and reported by problems().
  void set(const std::string& key, Json value, Gesture gesture = Gesture::single);
  // set() of `key` also applies `complete` to the new state, in the same undo step. `before`: the state that undo
  // restores.
  using Completion = std::function<void(const experiment::Experiment& before, experiment::Experiment& next)>;
  void complete_after(const std::string& key, Completion complete);
  void reset(const std::string& key);  // restores the default of the parameter table
  void set_text(const std::string& json_text);
  void discard_text();                                                   // restores the canonical text
  void replace(experiment::Experiment experiment, const QString& what);  // e.g. "fix of MESH-1"
  void end_gesture() { ++gesture_; }

  // Replaces the document and clears the undo stack. Throws Error and leaves the document unchanged if the file cannot
  // be read.
  void open(const std::filesystem::path& file);
  void open_example(const std::filesystem::path& file);  // opens the content without the file
  void open_copy(experiment::Experiment experiment);     // without a file, e.g. that of a run
  void clear();                                          // an empty document without a file
  void save();
  void save_as(const std::filesystem::path& file);
  // Restores the state of an earlier session and clears the undo stack. The document has unsaved edits if it differs
  // from its file or, without a file, if `untitled` is Edited::yes.
  void restore(Snapshot snapshot, const std::filesystem::path& file, Edited untitled);

 signals:
  void changed();       // value, text or problems
  void file_changed();  // file, title or dirty
  void replaced();      // by another document; after changed()

 private:
  friend class EditCommand;
  void push(Snapshot next, const QString& what, const std::string& merge_key);
  void apply(Snapshot snapshot);
  void start(experiment::Experiment experiment, std::filesystem::path file);

  Snapshot now_;
  experiment::Experiment saved_;
  std::filesystem::path file_;
  std::vector<Problem> problems_;
  bool invalid_text_ = false;
  std::string completed_key_;
  Completion complete_;
  int gesture_ = 0;
  QUndoStack undo_;
};

// The value stored at a dotted key, valid or not; nullptr if it is not set.
const Json* raw_value(const experiment::Experiment& experiment, std::string_view key);

// A copy of the experiment whose relative paths are rewritten for a document in `folder`.
experiment::Experiment rebased(const experiment::Experiment& experiment, const std::filesystem::path& folder);

}  // namespace mw::ui
