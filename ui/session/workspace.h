// SPDX-License-Identifier: GPL-3.0-or-later
// Interfaces between the window and its pages, which include what they use of the services. GUI thread.
#pragma once
#include <QStringList>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/store/store.h"
#include "ui/session/run_kind.h"

class QUndoStack;

namespace mw::ui {

class ActionRegistry;
class Document;
class ErrorLink;
class FrameClock;
class Predictor;
class RunController;
class Session;
class Workspace;
struct NamedExperiment;
struct ReplayOffer;

enum class Page { design, data, train, serve, compare, runs };
inline constexpr size_t kPages = 6;
Page page_of(RunKind kind);
enum class ProblemSource { document, prediction, checker, file, run, store };

struct PaletteEntry {
  QString text{}, detail{};  // "Run", "F5"; "Go to Rank", "lora.rank"
  std::function<void()> run{};
  bool enabled = true;
};

// Interface of a page towards the window.
class WindowPage {
 public:
  virtual ~WindowPage() = default;
  // Called once after the page was added to the window: creates dialogs, registers actions, connects signals.
  virtual void attach(Workspace& workspace) = 0;
  virtual void update_actions() {}  // enables the page's actions
  virtual void show_frame() {}      // redraws what changed; called by the frame clock while the window is visible
  virtual void restyle() {}         // after a change of the theme
  virtual void save_state(Session&) const {}
  virtual void restore_state(const Session&) {}
  virtual bool follow_newest() { return false; }  // scrolls charts to the newest data; false: the page has none
  virtual QString subcommand() const { return QStringLiteral("run"); }  // shown by the command line view
  virtual std::optional<RunKind> run_kind() const { return {}; }        // kind of the runs that the page shows
  virtual void show_kind(RunKind) {}                                    // one of those that page_of() assigns to it
  virtual RunPtr shown_run() const { return nullptr; }
  virtual std::optional<NamedExperiment> provable_run() const;
  virtual std::vector<store::RunId> runs_to_compare() const { return {}; }
  virtual std::optional<ReplayOffer> replay_offer() const;
  virtual std::vector<PaletteEntry> palette_entries() { return {}; }
  virtual QUndoStack* active_undo_stack(Document& document);  // of the document, unless the page has its own
  virtual ErrorLink* prediction_errors() { return nullptr; }  // shown if predicted figures are missing
  virtual QStringList unfinished_work() const { return {}; }  // that would end with the window, as text
  virtual void stop_work() {}

 protected:
  // Triggers an action of the window; for buttons, which may exist before attach().
  std::function<void()> trigger(const QString& action) const;
  Workspace* workspace_ = nullptr;  // set by attach() of the page
};

// Interface of the window towards its pages.
class Workspace {
 public:
  virtual ~Workspace() = default;
  virtual ActionRegistry& actions() = 0;
  void trigger(const QString& action);
  virtual FrameClock& clock() = 0;
  virtual Document& document() = 0;
  virtual RunController& runs() = 0;
  virtual Predictor& predictor() = 0;
  virtual const std::filesystem::path& resources() const = 0;

  virtual Page page() const = 0;
  virtual WindowPage& page_at(Page page) = 0;
  WindowPage& current_page() { return page_at(page()); }
  virtual void show_page(Page page) = 0;
  void show_kind(RunKind kind);                           // the page that shows such runs
  virtual void show_setting(const std::string& key) = 0;  // shows the form and, unless empty, this setting
  virtual void start_run(RunKind kind) = 0;
  virtual void open_run(const store::RunId& run) = 0;  // on the page of its kind
  virtual void resume_run(const store::RunId& run) = 0;
  virtual void clone_run(const store::RunId& run) = 0;  // opens its experiment as a document without a file
  virtual void report(ProblemSource source, const Problem& problem) = 0;
  virtual void clear_problems(ProblemSource source) = 0;
  virtual void update_actions() = 0;
  virtual void work_ended() = 0;  // to be called when unfinished_work() of a page has ended
};

}  // namespace mw::ui
