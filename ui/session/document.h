// SPDX-License-Identifier: GPL-3.0-or-later
// The one open document: an Experiment, its JSON text while that is being typed, its file and one undo stack. Form,
// JSON view and command line are views of it. GUI thread.
#pragma once
#include <QObject>
#include <QUndoStack>
#include <optional>

#include "core/experiment/experiment.h"

namespace mw::ui {

enum class Gesture { single, continuing };  // continuing: typing and slider drags merge into one undo step
enum class Edited { no, yes };

class Document : public QObject {
  Q_OBJECT
 public:
  // One state of the document. `text` is set while the JSON text is not the canonical one: being typed, with other
  // spacing, or not valid at all; then `experiment` is the last valid value.
  struct Snapshot {
    experiment::Experiment experiment;
    std::optional<std::string> text;
    bool operator==(const Snapshot&) const = default;
  };

  explicit Document(QObject* parent = nullptr);

  const experiment::Experiment& experiment() const { return now_.experiment; }
  std::string json_text() const { return now_.text ? *now_.text : now_.experiment.text(); }
  const Snapshot& snapshot() const { return now_; }
  // Errors and warnings of the value, and of the JSON text where it cannot be read.
  const std::vector<Problem>& problems() const { return problems_; }
  bool text_broken() const { return broken_; }
  bool has_errors() const;  // nothing can be predicted for it
  QUndoStack& undo_stack() { return undo_; }
  bool dirty() const { return !undo_.isClean(); }

  const std::filesystem::path& file() const { return file_; }     // empty: never saved
  const experiment::Experiment& saved() const { return saved_; }  // as in the file; empty document where there is none
  QString title() const;

  // Every edit is one undo step; what cannot be valid is kept and reported by problems().
  void set(const std::string& key, Json value, Gesture gesture = Gesture::single);
  void reset(const std::string& key);  // back to the table's default
  void set_text(const std::string& json_text);
  void discard_text();                                                   // back to the canonical text
  void replace(experiment::Experiment experiment, const QString& what);  // e.g. "fix of MESH-1"
  void end_gesture() { ++gesture_; }

  // Another document takes the place of this one, with nothing to undo and no unsaved edits. Errors: Error, and the
  // document stays as it was.
  void open(const std::filesystem::path& file);
  void open_example(const std::filesystem::path& file);  // its content, as a document without a file
  void open_copy(experiment::Experiment experiment);     // e.g. of a run, as a document without a file
  void clear();                                          // an empty document without a file
  void save();
  void save_as(const std::filesystem::path& file);
  // The state of an earlier session, with nothing to undo. Has unsaved edits if it differs from its file; a document
  // without a file, if `untitled` says so.
  void restore(Snapshot snapshot, const std::filesystem::path& file, Edited untitled);

 signals:
  void changed();       // value, text or problems
  void file_changed();  // file, title or dirty
  void replaced();      // by another document; after changed()

 private:
  friend class EditCommand;
  void push(Snapshot next, const QString& what, const std::string& merge_key);
  void become(Snapshot snapshot);
  void start(experiment::Experiment experiment, std::filesystem::path file);

  Snapshot now_;
  experiment::Experiment saved_;
  std::filesystem::path file_;
  std::vector<Problem> problems_;
  bool broken_ = false;
  int gesture_ = 0;
  QUndoStack undo_;
};

// What the document itself holds at a dotted key, valid or not; nullptr where it is not set.
const Json* raw_value(const experiment::Experiment& experiment, std::string_view key);

// The same experiment with its relative paths rewritten for a document that lives in `folder`.
experiment::Experiment rebased(const experiment::Experiment& experiment, const std::filesystem::path& folder);

}  // namespace mw::ui
