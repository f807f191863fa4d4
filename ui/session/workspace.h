// SPDX-License-Identifier: GPL-3.0-or-later
// The window and its pages as they see each other. GUI thread.
#pragma once
#include <QByteArray>
#include <QStringList>
#include <optional>
#include <vector>

#include "core/compare/comparison.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/frame_clock.h"
#include "ui/session/named_experiment.h"
#include "ui/session/pricer.h"
#include "ui/session/run_controller.h"
#include "ui/session/session.h"

class QUndoStack;

namespace mw::ui {

class ErrorLink;
class Workspace;

enum class Page { design, data, train, serve, compare, runs };
enum class ProblemSource { document, prediction, checker, file, run, store };

struct PaletteEntry {
  QString text{}, detail{};  // "Run", "F5"; "Go to Rank", "lora.rank"
  std::function<void()> run{};
  bool enabled = true;
};

struct ReplayOffer {
  compare::ComparedRun run;
  std::optional<size_t> point{};  // of its sweep; empty: all
};

// What the window asks of each page.
class WindowPage {
 public:
  virtual ~WindowPage() = default;
  // Called once, when the page is in the window: creates its dialogs, registers its actions, connects what it needs.
  virtual void attach(Workspace& workspace) = 0;
  virtual void update_actions() {}  // enables the page's actions
  virtual void show_frame() {}      // redraws what changed; called by the frame clock while the window is visible
  virtual void restyle() {}         // after a change of the theme
  virtual void save_state(Session&) const {}
  virtual void restore_state(const Session&) {}
  virtual bool follow_newest() { return false; }  // keeps the newest data in view; false: the page has no such charts
  virtual QString subcommand() const { return QStringLiteral("run"); }  // that the command line view shows
  virtual std::optional<RunKind> run_kind() const { return {}; }        // of the runs that the page shows
  virtual RunPtr shown_run() const { return nullptr; }
  virtual std::optional<NamedExperiment> provable_run() const { return {}; }
  virtual std::vector<store::RunId> runs_to_compare() const { return {}; }
  virtual std::optional<ReplayOffer> replay_offer() const { return {}; }
  virtual std::vector<PaletteEntry> palette_entries() { return {}; }
  virtual QUndoStack* active_undo_stack(Document& document) { return &document.undo_stack(); }  // null: none
  virtual ErrorLink* prediction_errors() { return nullptr; }  // stands where predicted figures are missing
  virtual QStringList unfinished_work() const { return {}; }  // that ends with the window, in words
  virtual void stop_work() {}
};

// What a page may ask of the window.
class Workspace {
 public:
  virtual ~Workspace() = default;
  virtual ActionRegistry& actions() = 0;
  virtual FrameClock& clock() = 0;
  virtual Document& document() = 0;
  virtual RunController& runs() = 0;
  virtual Pricer& pricer() = 0;
  virtual const std::filesystem::path& resources() const = 0;

  virtual Page page() const = 0;
  virtual WindowPage& current_page() = 0;
  virtual void show_page(Page page) = 0;
  virtual void show_kind(RunKind kind) = 0;               // the page of such runs
  virtual void show_setting(const std::string& key) = 0;  // in the form; empty: the form only
  virtual void start_run(RunKind kind) = 0;
  virtual void open_run(const store::RunId& run) = 0;  // in the page of its kind
  virtual void resume_run(const store::RunId& run) = 0;
  virtual void clone_run(const store::RunId& run) = 0;          // as a document without a file
  virtual std::optional<ReplayOffer> replay_offer() const = 0;  // of any page
  virtual void report(ProblemSource source, const Problem& problem) = 0;
  virtual void clear_problems(ProblemSource source) = 0;
  virtual void update_actions() = 0;
  virtual void work_ended() = 0;  // of a page's unfinished_work()
};

}  // namespace mw::ui
