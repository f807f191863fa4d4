// SPDX-License-Identifier: GPL-3.0-or-later
// The window does not lose or mix up unsaved edits, runs, plans of another document, the experiment that is
// shown, what undo is about, figures of a document that has errors.
#include <sys/resource.h>

#include <QAction>
#include <QDropEvent>
#include <QFileDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QProcess>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <QUrl>

#include "core/base/crash_report.h"
#include "core/base/files.h"
#include "tests/cli/project.h"
#include "tests/ui/window_fixture.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/session/session.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/document_actions.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/recovery.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace fs = std::filesystem;

// The argument that makes this program a window whose document is edited: `71` waits to be killed, `72` crashes.
constexpr const char* kEditedWindow = "--edited-window";

void edit_window(const std::string& rank) {
  for (QWidget* widget : QApplication::topLevelWidgets())
    if (auto* window = qobject_cast<MainWindow*>(widget)) {
      window->actions()[u"page.data"_s]->trigger();
      window->document().set("lora.rank", std::stoi(rank));
      if (rank != "72") return;  // the timer writes the journal
      window->documents().write_journal();
      volatile int* volatile nowhere = nullptr;
      *nowhere = 1;
    }
}

int run_edited_window(int argc, char** argv) {
  static const std::string rank = argv[2];
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  qAddPreRoutine([] { QTimer::singleShot(300, qApp, [] { edit_window(rank); }); });
  return run_window(argc, argv, {.experiment = {}, .runs_folder = argv[3], .resources = MW_RESOURCES});
}

using Route = std::function<void(MainWindow&, const fs::path&)>;

class LostWorkTest : public test::WindowFixture {
  Q_OBJECT

  static fs::path example(const char* name) { return fs::path(MW_RESOURCES) / "examples" / name; }
  fs::path file(const std::string& name, int rank) const {
    const fs::path path = folder() / name;
    write_file_atomically(path, "{\"schema\": 1, \"lora\": {\"rank\": " + std::to_string(rank) + "}}");
    return path;
  }
  static long long rank_in(const fs::path& path) {
    return experiment::Experiment::load(path).value("lora.rank").get<long long>();
  }
  long long rank() const { return window_->document().experiment().value("lora.rank").get<long long>(); }
  // A window on a file of rank 4 whose rank was edited to 77.
  fs::path open_edited() {
    const fs::path edited = file("edited.json", 4);
    open_window(setup(edited), Page::train);
    window_->document().set("lora.rank", 77);
    return edited;
  }
  static QMessageBox* question(MainWindow& window, const QString& name) {
    for (auto* box : window.findChildren<QMessageBox*>(name))
      if (box->isVisible()) return box;
    return nullptr;
  }
  QMessageBox* unsaved() { return question(*window_, u"unsaved_edits"_s); }
  QMessageBox* unfinished() { return question(*window_, u"unfinished_work"_s); }
  static void answer(QMessageBox* box, const QString& name) {
    QVERIFY(box);
    auto* button = box->findChild<QPushButton*>(name);
    QVERIFY2(button, qPrintable(name));
    QTest::mouseClick(button, Qt::LeftButton);
  }
  static void pick(MainWindow& window, const QString& path) {
    for (auto* dialog : window.findChildren<QFileDialog*>()) {
      if (!dialog->isVisible()) continue;
      dialog->selectFile(path);
      QMetaObject::invokeMethod(dialog, "accept");
      return;
    }
    QFAIL("no file dialog is open");
  }
  static void pick_in_menu(MainWindow& window, const QString& tip) {
    QMenu* menu = window.findChild<QToolButton*>(u"file"_s)->menu();
    emit menu->aboutToShow();
    for (QAction* a : menu->actions())
      if (a->toolTip() == tip) return a->trigger();
    QFAIL(qPrintable(tip));
  }
  static void drop(MainWindow& window, const fs::path& path) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(qpath(path))});
    QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window, &enter);  // a drop goes to whom this has accepted
    QDropEvent event(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window, &event);
  }
  QFileDialog* save_as() {
    for (auto* dialog : window_->findChildren<QFileDialog*>(u"save_as"_s))
      if (dialog->isVisible()) return dialog;
    return nullptr;
  }
  void priced() {
    QTRY_VERIFY(window_->predictor().is_settled());
    window_->pages().design.show_frame();
  }
  void search() {
    window_->pages().design.tabs().setCurrentWidget(&plans());
    QTest::mouseClick(&test::button_of(plans(), u"Search"_s), Qt::LeftButton);
    QTRY_VERIFY(!plans().is_searching());
    QVERIFY(plans().model().rowCount() > 10);
  }
  Alternatives& plans() { return window_->pages().design.alternatives(); }
  store::RunId add_real_run() const {
    experiment::Experiment e;
    e.set_value("name", "Trained before");
    e.set_value("model.path", (fs::path(MW_RESOURCES).parent_path() / "tests" / "fixtures" / "gemma3_tiny").string());
    e.set_value("lora.rank", 8);
    store::Store runs(store());
    const store::RunId run = runs.create(e, "Trained before");
    const auto lock = runs.lock(run);
    event::Finished end;
    end.state = RunState::done;
    runs.append(run, Event{0.1, event::Started{Json{{"name", "Trained before"}}}});
    runs.append(run, Event{0.2, end});
    runs.flush();
    return run;
  }
  void show_run(const store::RunId& run) {
    window_->runs().open(run);
    QTRY_VERIFY(window_->pages().train.run() && window_->pages().train.run()->id == run);
    window_->show_page(Page::train);
  }

 private slots:
  // --- New, open, clone ---

  void a_new_document_has_no_file_and_save_asks_for_one() {
    const fs::path kept = file("kept.json", 4);
    open_window(setup(kept), Page::train);
    window_->actions()[u"file.new"_s]->trigger();
    QVERIFY(window_->document().file().empty());
    QVERIFY(!window_->document().is_dirty());
    window_->document().set("lora.rank", 9);
    window_->actions()[u"file.save"_s]->trigger();
    QVERIFY(save_as());
    QCOMPARE(rank_in(kept), 4LL);
    pick(*window_, qpath(folder() / "new.json"));
    QTRY_COMPARE(window_->document().file(), folder() / "new.json");
    QCOMPARE(rank_in(folder() / "new.json"), 9LL);
    QCOMPARE(rank_in(kept), 4LL);
    QVERIFY(!window_->document().is_dirty());
  }

  void a_clone_of_a_run_has_no_file_either() {
    test::add_run(store(), "one", 6, RunState::done);
    const fs::path kept = file("kept.json", 4);
    open_window(setup(kept), Page::runs);
    window_->clone_run("run-1");
    QTRY_COMPARE(rank(), 8LL);
    QVERIFY(window_->document().file().empty());
  }

  void whatever_replaces_the_document_asks_about_its_unsaved_edits_data() {
    QTest::addColumn<Route>("route");
    QTest::newRow("new") << Route([](MainWindow& w, const fs::path&) { w.actions()[u"file.new"_s]->trigger(); });
    QTest::newRow("open dialog") << Route([](MainWindow& w, const fs::path& other) {
      w.actions()[u"file.open"_s]->trigger();
      pick(w, qpath(other));
    });
    QTest::newRow("recent file") << Route([](MainWindow& w, const fs::path& other) { pick_in_menu(w, qpath(other)); });
    QTest::newRow("example") << Route(
        [](MainWindow& w, const fs::path&) { pick_in_menu(w, qpath(example("tiny-serve.json"))); });
    QTest::newRow("drop") << Route([](MainWindow& w, const fs::path& other) { drop(w, other); });
    QTest::newRow("clone") << Route([](MainWindow& w, const fs::path&) {
      w.clone_run("run-1");
      QVERIFY(QTest::qWaitFor([&w] { return !w.runs().store().is_busy(); }));
    });
  }
  void whatever_replaces_the_document_asks_about_its_unsaved_edits() {
    QFETCH(const Route, route);
    test::add_run(store(), "one", 6, RunState::done);
    const fs::path other = file("other.json", 12);
    Session(folder() / "state").add_recent(qpath(other));
    const fs::path edited = open_edited();
    route(*window_, other);
    QTRY_VERIFY(unsaved());
    answer(unsaved(), u"cancel"_s);
    QTRY_VERIFY(!unsaved());
    QCOMPARE(rank(), 77LL);
    QCOMPARE(window_->document().file(), edited);
    QVERIFY(window_->document().is_dirty());
    route(*window_, other);
    QTRY_VERIFY(unsaved());
    QTest::keyClick(unsaved(), Qt::Key_Escape);  // as Cancel
    QTRY_VERIFY(!unsaved());
    QCOMPARE(rank(), 77LL);
    route(*window_, other);
    QTRY_VERIFY(unsaved());
    answer(unsaved(), u"discard"_s);
    QTRY_VERIFY(rank() != 77);
    QCOMPARE(rank_in(edited), 4LL);
    window_->document().open(edited);
    window_->document().set("lora.rank", 78);
    route(*window_, other);
    QTRY_VERIFY(unsaved());
    QVERIFY(unsaved()->defaultButton() && unsaved()->defaultButton()->objectName() == u"save"_s);
    answer(unsaved(), u"save"_s);
    QTRY_VERIFY(rank() != 78);
    QCOMPARE(rank_in(edited), 78LL);
    route(*window_, other);  // nothing unsaved: no question
    QVERIFY(!unsaved());
  }

  void a_question_is_looked_at() {
    open_edited();
    window_->actions()[u"file.new"_s]->trigger();
    QTRY_VERIFY(unsaved());
    QTest::qWait(60);
    test::save_picture(*unsaved(), u"unsaved-edits"_s);
    QCOMPARE(test::clipped(*unsaved()).join(u"; "_s), QString());
    answer(unsaved(), u"cancel"_s);
  }

  void save_as_that_is_cancelled_cancels_what_asked_for_it() {
    open_window(setup(), Page::train);
    window_->document().clear();
    window_->document().set("lora.rank", 77);
    drop(*window_, file("other.json", 12));
    answer(unsaved(), u"save"_s);
    QVERIFY(save_as());
    save_as()->reject();
    QTRY_VERIFY(!save_as());
    QCOMPARE(rank(), 77LL);
    QVERIFY(window_->document().is_dirty());
    drop(*window_, folder() / "other.json");
    answer(unsaved(), u"save"_s);
    pick(*window_, qpath(folder() / "saved.json"));
    QTRY_COMPARE(rank(), 12LL);
    QCOMPARE(rank_in(folder() / "saved.json"), 77LL);
  }

  void a_save_that_fails_cancels_and_is_reported() {
    const fs::path edited = folder() / "sub" / "edited.json";
    write_file_atomically(edited, "{\"schema\": 1}");
    open_window(setup(edited), Page::train);
    window_->document().set("lora.rank", 77);
    fs::remove_all(folder() / "sub");
    write_file_atomically(folder() / "sub", "no folder any more");
    drop(*window_, file("other.json", 12));
    answer(unsaved(), u"save"_s);
    QTRY_VERIFY(!unsaved());
    QCOMPARE(rank(), 77LL);
    QVERIFY(window_->document().is_dirty());
    QVERIFY(window_->problems().count(Severity::error) >= 1);
    QCOMPARE(window_->docks().bottom->state(), DockState::expanded);
  }

  void json_text_that_is_not_valid_is_not_given_up_by_saving() {
    const fs::path edited = open_edited();
    window_->document().set_text(window_->document().json_text() + "oops");
    drop(*window_, file("other.json", 12));
    answer(unsaved(), u"save"_s);
    QTRY_VERIFY(!unsaved());
    QVERIFY(window_->document().has_invalid_text());
    QCOMPARE(rank_in(edited), 77LL);
    drop(*window_, folder() / "other.json");
    answer(unsaved(), u"discard"_s);
    QTRY_COMPARE(rank(), 12LL);
  }

  // --- Drops ---

  void what_is_dropped_is_opened_by_what_it_contains() {
    open_window(setup(file("kept.json", 4)), Page::design);
    const fs::path model = fs::path(MW_FIXTURES) / "gemma3_tiny", rows = folder() / "rows.jsonl";
    const auto value = [&](const char* key) { return window_->document().experiment().value(key).get<std::string>(); };
    drop(*window_, model);
    QCOMPARE(value("model.path"), model.string());
    drop(*window_, model / "lora");
    QCOMPARE(value("lora.adapter"), (model / "lora").string());
    write_file_atomically(rows, "{\"text\": \"a\"}\n");
    drop(*window_, rows);
    QCOMPARE(value("data.path"), rows.string());
    QCOMPARE(window_->page(), Page::data);
    make_folders(folder() / "parts");
    write_file_atomically(folder() / "parts" / "a.jsonl", "{\"text\": \"a\"}\n");
    write_file_atomically(folder() / "parts" / "b.jsonl", "{\"text\": \"b\"}\n");
    drop(*window_, folder() / "parts");
    QCOMPARE(value("data.path"), (folder() / "parts" / "*.jsonl").string());
    const fs::path cached = folder() / "models--google--gemma-3-1b-it", snapshot = cached / "snapshots" / "0a1b2c";
    make_folders(cached / "refs");
    make_folders(snapshot);
    write_file_atomically(cached / "refs" / "main", "0a1b2c");
    write_file_atomically(snapshot / "config.json", "{\"model_type\": \"gemma3_text\"}");
    drop(*window_, cached);
    QCOMPARE(value("model.path"), snapshot.string());
    for (int i = 0; i < 5; ++i) window_->document().undo_stack().undo();
    QVERIFY(!window_->document().is_dirty());
    drop(*window_, fs::path(MW_FIXTURES) / "orbax" / "ocdbt");
    QVERIFY(window_->problems().count(Severity::error, {ProblemSource::file}) > 0);
    drop(*window_, fs::path(MW_FIXTURES) / "logs" / "transformers" / "checkpoint-9" / "trainer_state.json");
    QCOMPARE(window_->page(), Page::runs);
    make_folders(folder() / "recipe");
    write_file_atomically(folder() / "recipe" / "settings.json", "{}");
    file("recipe/experiment.json", 21);
    drop(*window_, folder() / "recipe");
    QCOMPARE(rank(), 21LL);
    QVERIFY(window_->document().file().empty());  // saving leaves the export alone
  }

  // --- Sessions ---

  void unsaved_edits_of_the_last_session_are_asked_about_before_another_file() {
    const fs::path edited = open_edited(), other = file("other.json", 12);
    window_->close();
    window_.reset();
    open_window(setup(other), Page::train);
    QCOMPARE(rank(), 77LL);
    window_->begin(Start::open);
    QTRY_VERIFY(unsaved());
    answer(unsaved(), u"cancel"_s);
    QCOMPARE(rank(), 77LL);
    window_->close();
    window_.reset();
    open_window(setup(other), Page::train);
    window_->begin(Start::open);
    answer(unsaved(), u"save"_s);
    QTRY_COMPARE(rank(), 12LL);
    QCOMPARE(rank_in(edited), 77LL);
  }

  void a_second_window_leaves_the_edits_of_the_first_alone() {
    open_edited();
    MainWindow second(setup());
    show(second);
    second.begin(Start::open);
    QVERIFY(!second.findChild<RecoveryDialog*>());  // the first window is open
    QVERIFY(second.document().experiment().value("lora.rank").get<long long>() != 77);
    second.document().set("lora.rank", 78);
    QVERIFY(!second.close());  // its edits would not come back
    answer(question(second, u"unsaved_edits"_s), u"cancel"_s);
    QVERIFY(second.isVisible());
    QVERIFY(!second.close());
    answer(question(second, u"unsaved_edits"_s), u"discard"_s);
    QTRY_VERIFY(!second.isVisible());
    QVERIFY(window_->close());
    window_.reset();
    MainWindow again(setup());
    QCOMPARE(again.document().experiment().value("lora.rank").get<long long>(), 77LL);
  }

  void edits_and_reports_of_crashed_windows_are_offered() {
    const fs::path config = folder() / "config", state = config / "meshwright";
    QProcess killed, crashed;
    const auto start = [&](QProcess& process, const char* how) {
      QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
      environment.insert(u"XDG_CONFIG_HOME"_s, qpath(config));
      process.setProcessEnvironment(environment);
      process.start(QCoreApplication::applicationFilePath(), {qs(kEditedWindow), qs(how), qpath(store())});
      QVERIFY(process.waitForStarted());
    };
    start(killed, "71");
    QTRY_VERIFY(fs::exists(state / "crash.txt"));
    start(crashed, "72");
    QTRY_VERIFY(crashed.state() == QProcess::NotRunning);
    QCOMPARE(crashed.exitStatus(), QProcess::CrashExit);
    QTRY_VERIFY(fs::exists(state / "unsaved.json"));
    QTRY_VERIFY(read_file(state / "unsaved.json").find("71") != std::string::npos);
    killed.kill();
    QVERIFY(killed.waitForFinished());

    WindowSetup next = setup();
    next.session_folder = state;
    open_window(next, Page::train);
    window_->begin(Start::open);
    QCOMPARE(rank(), 71LL);
    const auto* offer = window_->findChild<RecoveryDialog*>();
    QVERIFY(offer && offer->isVisible());
    QCOMPARE(offer->findChildren<QPushButton*>().size(), qsizetype{6});  // with Decide Later
    const std::string report = read_crash_report(state / "crash-2.txt").value_or("");
    for (const char* part : {"Meshwright " MW_VERSION, "SIGSEGV", "lost_work_test+0x", "action page.data"})
      QVERIFY2(report.find(part) != std::string::npos, report.c_str());
    QVERIFY2(report.find('/') == std::string::npos, report.c_str());  // no path
    QVERIFY(read_crash_report(state / "crash-previous.txt").value_or("").find("none was caught") != std::string::npos);

    QTest::mouseClick(&test::button_of(*window_->findChild<RecoveryDialog*>(), u"Restore"_s), Qt::LeftButton);
    answer(unsaved(), u"discard"_s);
    QTRY_COMPARE(rank(), 72LL);
    QVERIFY(window_->document().is_dirty());
    QVERIFY(!fs::exists(state / "unsaved-2.json"));
    QVERIFY(!fs::exists(state / "crash-2.txt"));
    QTest::mouseClick(&test::button_of(*window_->findChild<RecoveryDialog*>(), u"Dismiss"_s), Qt::LeftButton);
    QTRY_VERIFY(!window_->findChild<RecoveryDialog*>());
    window_->close();
    window_.reset();
    open_window(next, Page::train);
    window_->begin(Start::open);
    QVERIFY(!window_->findChild<RecoveryDialog*>());
    QCOMPARE(rank(), 72LL);
  }

  void edits_that_cannot_be_kept_are_asked_about_at_the_end() {
    WindowSetup forgetful = setup(file("edited.json", 4));
    forgetful.session_folder.clear();
    open_window(forgetful, Page::train);
    window_->document().set("lora.rank", 77);
    QVERIFY(!window_->close());
    answer(unsaved(), u"save"_s);
    QTRY_VERIFY(!window_->isVisible());
    QCOMPARE(rank_in(folder() / "edited.json"), 77LL);
  }

  void a_restored_document_is_where_undo_ends_data() {
    QTest::addColumn<bool>("edited");
    QTest::newRow("example") << false;
    QTest::newRow("edited example") << true;
  }
  void a_restored_document_is_where_undo_ends() {
    QFETCH(const bool, edited);
    open_window(setup(), Page::train);
    if (edited) window_->document().set("lora.rank", 77);
    const experiment::Experiment left = window_->document().experiment();
    window_->close();
    window_.reset();
    open_window(setup(), Page::train);
    QVERIFY(window_->document().experiment() == left);
    QCOMPARE(window_->document().is_dirty(), edited);
    QVERIFY(!window_->document().undo_stack().canUndo());
  }

  void a_restored_document_is_edited_only_if_it_differs_from_its_file() {
    const fs::path edited = open_edited();
    window_->close();
    window_.reset();
    {
      MainWindow again(setup());
      QVERIFY(again.document().is_dirty());
      QVERIFY(!again.document().undo_stack().canUndo());
      again.close();
    }
    file("edited.json", 77);  // saved by another program
    MainWindow again(setup());
    QCOMPARE(again.document().file(), edited);
    QVERIFY(!again.document().is_dirty());
  }

  // --- Undo ---

  void undo_on_the_runs_page_brings_a_run_back_and_leaves_the_form() {
    test::add_run(store(), "one", 6, RunState::done);
    open_edited();
    window_->show_page(Page::runs);
    QAction* undo = window_->actions()[u"edit.undo"_s];
    QVERIFY(!undo->isEnabled());
    window_->pages().runs.select("run-1");
    window_->pages().runs.table().setFocus();
    QTest::keyClick(&window_->pages().runs.table(), Qt::Key_Delete);
    QTRY_COMPARE(window_->pages().runs.model().rowCount(), 0);
    QCOMPARE(undo->text(), u"Undo deletion of run-1"_s);
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_COMPARE(window_->pages().runs.model().rowCount(), 1);
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(rank(), 77LL);
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_COMPARE(window_->pages().runs.model().rowCount(), 0);
    window_->show_page(Page::train);
    QCOMPARE(undo->text(), u"Undo change of Rank"_s);
    undo->trigger();
    QCOMPARE(rank(), 4LL);
    QCOMPARE(window_->pages().runs.model().rowCount(), 0);
    // The form stands beside the table: an edit there is undone from there.
    window_->show_page(Page::runs);
    QVERIFY(undo->text().contains(u"deletion"_s));
    window_->docks().panel.form().search()->setFocus();
    QTRY_VERIFY(!undo->text().contains(u"deletion"_s));
  }

  // --- Closing during a run ---

  void closing_asks_what_to_do_with_a_run_and_keep_running_keeps_it() {
    test::Project project;
    project.write_experiment(parse_json(R"({"train": {"steps": 60, "checkpoint_every": 0}})", "closing"));
    open_window({project.experiment, project.runs, MW_RESOURCES, folder() / "state"}, Page::train);
    window_->actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->view.step() >= 1);
    window_->actions()[u"run.pause"_s]->trigger();
    QTRY_COMPARE(window_->runs().shown()->view.state(), RunState::paused);
    const store::RunId run = window_->runs().shown()->id;
    QVERIFY(!window_->close());
    QTRY_VERIFY(unfinished());
    QVERIFY2(unfinished()->text().contains(qs(run)), qPrintable(unfinished()->text()));
    QCOMPARE(unfinished()->defaultButton()->objectName(), u"cancel"_s);
    QTest::qWait(60);
    test::save_picture(*unfinished(), u"unfinished-work"_s);
    QTest::keyClick(unfinished(), Qt::Key_Escape);
    QTRY_VERIFY(!unfinished());
    QVERIFY(window_->isVisible() && window_->runs().is_busy() && !window_->runs().is_stopping());
    QVERIFY(!window_->close());
    answer(unfinished(), u"keep_running"_s);
    QVERIFY(window_->isMinimized() && !window_->runs().is_stopping());
    QVERIFY2(window_->windowTitle().contains(u"Closes after "_s + qs(run)), qPrintable(window_->windowTitle()));
    QTRY_VERIFY(!window_->isVisible());
    const store::RunRow row = *store::Store(project.runs).find(run);
    QCOMPARE(row.state, RunState::done);
    QCOMPARE(row.steps_done, 60L);
  }

  void a_window_that_is_used_again_does_not_close_with_its_run() {
    test::Project project;
    project.write_experiment(parse_json(R"({"train": {"steps": 100000, "checkpoint_every": 0}})", "closing"));
    open_window({project.experiment, project.runs, MW_RESOURCES, folder() / "state"}, Page::train);
    window_->actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->view.step() >= 1);
    window_->close();
    answer(unfinished(), u"keep_running"_s);
    QVERIFY(window_->isMinimized());
    window_->showNormal();
    QApplication::setActiveWindow(window_.get());
    QTRY_VERIFY(!window_->windowTitle().contains(u"Closes"_s));
    window_->actions()[u"run.stop"_s]->trigger();
    QTRY_VERIFY(!window_->runs().is_busy());
    QVERIFY(window_->isVisible());
  }

  void the_end_of_the_session_asks_nothing_and_stops_with_a_checkpoint() {
    test::Project project;
    project.write_experiment(parse_json(R"({"train": {"steps": 100000, "checkpoint_every": 0}})", "closing"));
    open_window({project.experiment, project.runs, MW_RESOURCES, folder() / "state"}, Page::train);
    window_->document().set("lora.alpha", 12);
    window_->actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->view.step() >= 1);
    const store::RunId run = window_->runs().shown()->id;
    window_->close();
    QTRY_VERIFY(unfinished());
    window_->close_unattended();
    QTRY_VERIFY(!window_->isVisible());
    QVERIFY(!unfinished());
    QCOMPARE(store::Store(project.runs).find(run)->state, RunState::cancelled);
    QVERIFY(store::Store(project.runs).find(run)->steps_done >= 1);
  }

  // --- Plans of another document ---

  void plans_are_of_the_document_that_was_searched() {
    open_window(setup(example("paper-train-v5p-8.json")), Page::design);
    priced();
    search();
    plans().table().selectRow(0);
    QVERIFY(test::button_of(plans(), u"Apply"_s).isEnabled());
    const experiment::Experiment searched = window_->document().experiment();
    window_->document().set("train.epochs", 7);
    QVERIFY(plans().is_outdated());
    QVERIFY(!test::button_of(plans(), u"Apply"_s).isEnabled() && !plans().table().isEnabled());
    QVERIFY(test::shows_text(plans(), u"search again"_s));
    picture(u"plans-outdated"_s);
    const experiment::Experiment edited = window_->document().experiment();
    plans().apply(0);
    QVERIFY(window_->document().experiment() == edited);
    window_->document().undo_stack().undo();  // the same content: they hold again
    QVERIFY(window_->document().experiment() == searched);
    QVERIFY(!plans().is_outdated() && test::button_of(plans(), u"Apply"_s).isEnabled());
    plans().apply(1);  // one after another can be tried
    QVERIFY(!(window_->document().experiment() == searched));
    QVERIFY(!plans().is_outdated());
    plans().apply(0);
    QVERIFY(!plans().is_outdated());
    drop(*window_, example("tiny-serve.json"));
    answer(unsaved(), u"discard"_s);
    QTRY_COMPARE(plans().model().rowCount(), 0);
    QVERIFY(!test::button_of(plans(), u"Apply"_s).isEnabled());
    QVERIFY(plans().findChild<QLabel*>(u"status"_s)->text().isEmpty());
  }

  void plans_that_are_found_too_late_are_dropped() {
    open_window(setup(example("paper-train-v5p-8.json")), Page::design);
    priced();
    plans().search();
    QVERIFY(plans().is_searching());
    window_->document().set("train.epochs", 7);
    QVERIFY(!plans().is_searching());
    QTest::qWait(1500);
    QCOMPARE(plans().model().rowCount(), 0);
    search();
    QVERIFY(!plans().is_outdated());
  }

  void a_pinned_design_is_not_swapped_into_another_document() {
    open_window(setup(example("paper-train-v5p-8.json")), Page::design);
    priced();
    window_->pages().design.pin();
    window_->document().open_example(example("tiny-serve.json"));
    priced();
    const experiment::Experiment other = window_->document().experiment();
    window_->pages().design.swap_pinned();
    QVERIFY(window_->document().experiment() == other);
  }

  // --- The experiment that is shown ---

  void export_and_launch_are_about_the_run_that_is_shown_and_offer_the_form() {
    const store::RunId run = add_real_run();
    open_window(setup(example("tiny-serve.json")), Page::train);
    show_run(run);
    press(u"Export\u2026"_s);
    ExportDialog& d = window_->pages().train.dialogs().exporter;
    QCOMPARE(d.experiment().count(), 2);
    QCOMPARE(d.experiment().chosen().run, run);
    QVERIFY(d.experiment().currentText().contains(u"Trained before"_s));
    QVERIFY(d.experiment().itemText(0).contains(u"tiny-serve.json"_s));
    QTRY_VERIFY(d.files().count() > 5);
    QTest::qWait(60);
    test::save_picture(d, u"export-of-a-run"_s);
    d.folder().setText(qpath(folder() / "recipe"));
    QTest::mouseClick(&test::button_of(d, u"Export"_s), Qt::LeftButton);
    QTRY_VERIFY(test::result_text(d).contains(u"Exported"_s));
    QVERIFY(read_file(folder() / "recipe" / "experiment.json").find("Trained before") != std::string::npos);
    d.experiment().setCurrentIndex(0);  // the form's serves: a recipe that serves is chosen
    QVERIFY(model::serves(d.recipe().kind()));
    QTRY_VERIFY(test::button_of(d, u"Export"_s).isEnabled());
    d.reject();
    press(u"Launch\u2026"_s);
    QCOMPARE(window_->pages().train.dialogs().launch.experiment().chosen().run, run);
    QVERIFY(!model::serves(window_->pages().train.dialogs().launch.recipe().kind()));
    window_->pages().train.dialogs().launch.reject();
    window_->show_page(Page::design);  // which is about the form
    window_->actions()[u"file.export"_s]->trigger();
    QVERIFY(d.experiment().chosen().run.empty());
    QCOMPARE(d.experiment().count(), 2);
    d.reject();
  }

  void a_proof_is_of_the_run_that_is_shown_and_so_is_its_repetition() {
    const store::RunId run = test::add_mesh_run(store(), "on a mesh", 6, 2, 2);
    open_window(setup(), Page::train);
    show_run(run);
    QTRY_VERIFY(window_->pages().train.offers_proof());
    window_->actions()[u"run.prove"_s]->trigger();
    QVERIFY2(window_->pages().design.proof_window().windowTitle().contains(qs(run)),
             qPrintable(window_->pages().design.proof_window().windowTitle()));
    window_->pages().design.proof_window().task().cancel();
    QTRY_VERIFY(!window_->pages().design.proof_window().task().is_busy());
    window_->show_page(Page::design);
    emit window_->pages().design.proof_window().again_wanted();
    QVERIFY(window_->pages().design.proof_window().windowTitle().contains(qs(run)));
    window_->pages().design.proof_window().task().cancel();
    QTRY_VERIFY(!window_->pages().design.proof_window().task().is_busy());
    window_->actions()[u"run.prove"_s]->trigger();
    QVERIFY(window_->pages().design.proof_window().windowTitle().contains(u"Form: "_s));
    window_->pages().design.proof_window().task().cancel();
    QTRY_VERIFY(!window_->pages().design.proof_window().task().is_busy());
    window_->pages().design.proof_window().close();
  }

  // --- No prediction ---

  void a_document_with_errors_has_no_figures_and_a_link_to_its_errors() {
    open_window(setup(example("paper-train-v5p-8.json")), Page::design);
    priced();
    DesignPage& page = window_->pages().design;
    QVERIFY(window_->strip().figures_text().startsWith(u"Fits"_s));
    QVERIFY(page.plan().rowCount() > 0 && !page.error_link().isVisible());
    window_->document().set("lora.rank", 0);
    window_->document().set("train.learning_rate", "fast");
    QCOMPARE(window_->strip().figures_text(), u"No prediction: 2 errors"_s);  // at once
    priced();
    QCOMPARE(window_->strip().figures_text(), u"No prediction: 2 errors"_s);
    QCOMPARE(page.plan().rowCount(), 0);
    QCOMPARE(page.shards().rowCount(), 0);
    QVERIFY(page.memory().chart().empty());
    QVERIFY(page.time_chart().isHidden());
    QCOMPARE(page.canvas().devices(), 0);
    QVERIFY(page.error_link().isVisible());
    QCOMPARE(page.error_link().text(), u"No prediction: 2 errors"_s);
    picture(u"no-prediction"_s);
    window_->docks().bottom->set(DockState::collapsed);
    ErrorLink& link = window_->strip().error_link();
    QVERIFY(link.isVisible());
    link.setFocus();
    QTest::keyClick(&link, Qt::Key_Space);
    QTRY_VERIFY(window_->docks().problems.height() > 60);
    QTRY_VERIFY(window_->docks().problems.table().hasFocus());
    QCOMPARE(window_->problems().problem(window_->docks().problems.table().currentIndex().row()).severity,
             Severity::error);
    window_->show_page(Page::train);
    QCOMPARE(window_->strip().figures_text(), u"No prediction: 2 errors"_s);
    window_->document().undo_stack().undo();
    window_->document().undo_stack().undo();
    window_->show_page(Page::design);
    priced();
    QVERIFY(window_->strip().figures_text().startsWith(u"Fits"_s));
    QVERIFY(page.plan().rowCount() > 0 && !page.error_link().isVisible());
    QVERIFY(page.canvas().devices() > 0);
  }

  void what_cannot_be_read_or_planned_has_no_figures_either() {
    open_window(setup(example("paper-train-v5p-8.json")), Page::design);
    priced();
    window_->document().set_text(window_->document().json_text() + "oops");
    QCOMPARE(window_->strip().figures_text(), u"No prediction: 1 error"_s);
    window_->document().undo_stack().undo();
    priced();
    window_->document().set("target.id", "v5p-9");  // only the planner knows that there is none
    priced();
    QVERIFY2(window_->strip().figures_text().startsWith(u"No prediction: 1"_s),
             qPrintable(window_->strip().figures_text()));
    QCOMPARE(window_->pages().design.plan().rowCount(), 0);
    window_->document().open_example(example("tiny-lora.json"));
    priced();
    QVERIFY(window_->strip().figures_text().contains(u"of "_s));
    window_->document().set("lora.rank", 0);
    priced();
    QCOMPARE(window_->strip().figures_text(), u"No prediction: 1 error"_s);
    QCOMPARE(window_->pages().design.plan().rowCount(), 0);
  }
};

}  // namespace mw::ui

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == mw::ui::kEditedWindow) return mw::ui::run_edited_window(argc, argv);
  QApplication application(argc, argv);
  mw::ui::LostWorkTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "lost_work_test.moc"
