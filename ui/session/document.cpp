// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/document.h"

#include <algorithm>

#include "core/experiment/parameters.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

// Stores the complete states before and after the edit, because documents are small.
class EditCommand : public QUndoCommand {
 public:
  EditCommand(Document& document, Document::Snapshot next, const QString& what, std::string merge_key)
      : QUndoCommand(what),
        document_(document),
        before_(document.now_),
        after_(std::move(next)),
        key_(std::move(merge_key)) {}
  const experiment::Experiment& before() const { return before_.experiment; }
  const std::string& key() const { return key_; }
  int id() const override { return key_.empty() ? -1 : 1; }
  void undo() override { document_.apply(before_); }
  void redo() override { document_.apply(after_); }
  bool mergeWith(const QUndoCommand* other) override {
    const auto& next = static_cast<const EditCommand&>(*other);
    if (next.key_ != key_) return false;
    after_ = next.after_;
    setObsolete(after_ == before_);
    return true;
  }

 private:
  Document& document_;
  Document::Snapshot before_, after_;
  std::string key_;
};

Document::Document(QObject* parent) : QObject(parent) {
  undo_.setUndoLimit(1000);
  connect(&undo_, &QUndoStack::cleanChanged, this, &Document::file_changed);
  apply({});
}

QString Document::title() const {
  return file_.empty() ? tr("Untitled experiment") : qpath(file_.filename());
}

void Document::push(Snapshot next, const QString& what, const std::string& merge_key) {
  if (next == now_) return;
  // Edits of one gesture share a key; end_gesture() makes the next edit a step of its own.
  const std::string key = merge_key.empty() ? merge_key : merge_key + "#" + std::to_string(gesture_);
  undo_.push(new EditCommand(*this, std::move(next), what, key));
}

void Document::complete_after(const std::string& key, Completion complete) {
  completed_key_ = key;
  complete_ = std::move(complete);
}

void Document::set(const std::string& key, Json value, Gesture gesture) {
  Snapshot next{now_.experiment, std::nullopt};
  next.experiment.set_value(key, value);
  if (next.experiment == now_.experiment) return;
  const experiment::Parameter* p = experiment::find_parameter(key);
  if (gesture == Gesture::single) end_gesture();
  if (complete_ && key == completed_key_) {
    // While typing, each value completes the state before the gesture, not that of a value typed on the way.
    const auto* last = gesture == Gesture::continuing && undo_.canUndo()
                           ? static_cast<const EditCommand*>(undo_.command(undo_.index() - 1))
                           : nullptr;
    const bool merges = last && last->key() == key + "#" + std::to_string(gesture_);
    const experiment::Experiment before = merges ? last->before() : now_.experiment;
    next.experiment = before;
    next.experiment.set_value(key, std::move(value));
    complete_(before, next.experiment);
  }
  push(std::move(next), tr("change of %1").arg(qs(p ? p->label : key)), gesture == Gesture::continuing ? key : "");
}

void Document::reset(const std::string& key) {
  Snapshot next{now_.experiment, std::nullopt};
  next.experiment.erase(key);
  if (next.experiment == now_.experiment) return;
  end_gesture();
  const experiment::Parameter* p = experiment::find_parameter(key);
  push(std::move(next), tr("reset of %1").arg(qs(p ? p->label : key)), "");
}

void Document::set_text(const std::string& text) {
  Snapshot next{now_.experiment, text};
  try {
    next.experiment = experiment::Experiment::from_json(parse_json(text, "experiment"), now_.experiment.folder());
    if (next.experiment.text() == text) next.text.reset();
  } catch (const Error&) {
    // The last valid value is kept; apply() reports the error.
  }
  push(std::move(next), tr("edit of the JSON text"), "json");
}

void Document::discard_text() {
  end_gesture();
  push({now_.experiment, std::nullopt}, tr("discarding of the JSON text"), "");
}

void Document::replace(experiment::Experiment experiment, const QString& what) {
  end_gesture();
  push({std::move(experiment), std::nullopt}, what, "");
}

void Document::apply(Snapshot snapshot) {
  now_ = std::move(snapshot);
  problems_.clear();
  invalid_text_ = false;
  if (now_.text) {
    try {
      experiment::Experiment::from_json(parse_json(*now_.text, "experiment"));
    } catch (const Error& error) {
      invalid_text_ = true;
      Problem p = error.problem();
      if (p.file.empty()) p.file = "experiment";
      if (p.fix.empty()) p.fix = "correct the JSON text; until then the last valid values are in force";
      problems_.push_back(std::move(p));
    }
  }
  const auto more = now_.experiment.validate();
  problems_.insert(problems_.end(), more.begin(), more.end());
  emit changed();
}

bool Document::has_errors() const {
  return std::any_of(problems_.begin(), problems_.end(),
                     [](const Problem& p) { return p.severity == Severity::error; });
}

void Document::start(experiment::Experiment experiment, fs::path file) {
  file_ = std::move(file);
  saved_ = file_.empty() ? experiment::Experiment() : experiment;
  undo_.clear();
  undo_.setClean();  // clear() does not make an unclean empty stack clean
  apply({std::move(experiment), std::nullopt});
  emit replaced();
  emit file_changed();
}

void Document::open(const fs::path& file) {
  start(experiment::Experiment::load(file), fs::absolute(file).lexically_normal());
}

void Document::open_example(const fs::path& file) {
  start(experiment::Experiment::load(file), {});
}

void Document::open_copy(experiment::Experiment experiment) {
  start(std::move(experiment), {});
}

void Document::clear() {
  start(experiment::Experiment(), {});
}

void Document::save() {
  save_as(file_);
}

void Document::save_as(const fs::path& file) {
  const fs::path target = fs::absolute(file).lexically_normal();
  experiment::Experiment moved = rebased(now_.experiment, target.parent_path());
  moved.save(target);
  file_ = target;
  saved_ = moved;
  if (!(moved == now_.experiment)) replace(moved, tr("save in another folder"));
  // An invalid text was not saved, so the document still has unsaved edits.
  if (invalid_text_)
    undo_.resetClean();
  else
    undo_.setClean();
  emit file_changed();
}

void Document::restore(Snapshot snapshot, const fs::path& file, Edited untitled) {
  experiment::Experiment saved;
  bool edited = untitled == Edited::yes;
  if (!file.empty()) {
    edited = true;
    try {
      saved = experiment::Experiment::load(file);
      edited = !(snapshot.experiment == saved);
    } catch (const Error&) {
      // The file cannot be read any more, so the whole document is unsaved.
    }
  }
  start(std::move(snapshot.experiment), file);
  saved_ = std::move(saved);
  apply({now_.experiment, std::move(snapshot.text)});
  if (edited || invalid_text_) undo_.resetClean();
  emit file_changed();
}

const Json* raw_value(const experiment::Experiment& experiment, std::string_view key) {
  const Json* at = &experiment.json();
  while (true) {
    const size_t dot = key.find('.');
    const std::string part(key.substr(0, dot));
    if (!at->is_object() || !at->contains(part)) return nullptr;
    at = &at->at(part);
    if (dot == std::string_view::npos) return at;
    key.remove_prefix(dot + 1);
  }
}

experiment::Experiment rebased(const experiment::Experiment& experiment, const fs::path& folder) {
  experiment::Experiment out = experiment::Experiment::from_json(experiment.json(), folder);
  if (experiment.folder().lexically_normal() == folder.lexically_normal()) return out;
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (p.type != experiment::ParamType::path) continue;
    const Json* raw = raw_value(experiment, p.key);
    if (!raw || !raw->is_string() || raw->get<std::string>().empty()) continue;
    if (fs::path(raw->get<std::string>()).is_absolute()) continue;
    const fs::path target = experiment.path(p.key);
    if (!target.is_absolute()) continue;  // the old document had no folder, so the path cannot be resolved
    fs::path relative = target.lexically_relative(folder);
    out.set_value(p.key, (relative.empty() ? target : relative).generic_string());
  }
  return out;
}

}  // namespace mw::ui

#include "moc_document.cpp"
