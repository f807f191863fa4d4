// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAction>
#include <QCheckBox>
#include <QFileDialog>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTest>
#include <QToolBar>

#include "core/base/files.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/jobs/job.h"
#include "core/train/checkpoint.h"
#include "tests/cli/project.h"
#include "tests/ui/sweep_fixture.h"
#include "tests/ui/window_fixture.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/shell/app.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/drop_target.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/welcome.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

class WindowTest : public test::WindowFixture {
  Q_OBJECT

  static std::pair<QTabBar*, int> tab_of(MainWindow& window, const QString& title) {
    for (QTabBar* bar : window.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
      for (int tab = 0; tab < bar->count(); ++tab)
        if (bar->isVisible() && bar->tabText(tab) == title) return {bar, tab};
    return {nullptr, -1};
  }
  static void click_tab(MainWindow& window, const QString& title) {
    const auto [bar, tab] = tab_of(window, title);
    QVERIFY2(bar, qPrintable(title));
    QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(tab).center());
  }

 private slots:
  void everything_focusable_has_a_name_on_every_page() {
    test::add_run(store(), "one", 60, RunState::done);
    MainWindow window(setup());
    show(window);
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    window.show_page(Page::serve);
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    window.show_page(Page::runs);
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    for (const auto& id : {u"log"_s, u"jobs"_s, u"problems"_s}) {
      window.docks().raise(id);
      QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    }
    window.docks().panel.show_json();
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
  }

  void tab_reaches_form_charts_and_toolbar() {
    test::add_run(store(), "one", 60, RunState::done);
    MainWindow window(setup());
    show(window);
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    QStringList reached;
    for (int i = 0; i < 400; ++i) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, Qt::Key_Tab);
      if (QWidget* f = QApplication::focusWidget()) reached << f->accessibleName();
    }
    for (const auto& name : {u"Rank"_s, u"Loss chart"_s, u"Run"_s, u"Find a setting"_s, u"Samples by step"_s})
      QVERIFY2(reached.contains(name), qPrintable(name));
  }

  void a_finished_run_fills_the_train_page_from_its_record() {
    test::add_run(store(), "one", 60, RunState::done);
    MainWindow window(setup());
    show(window);
    window.document().set("lora.rank", 99);
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    TrainPage& page = window.pages().train;
    QTRY_VERIFY(!page.loss().empty());
    QCOMPARE(page.loss().lines().size(), size_t{2});
    QVERIFY(page.memory().summary().contains(u"weights 40.0 MiB"_s));
    QCOMPARE(page.samples().rows().rowCount(), 3);
    QCOMPARE(page.samples().rows().step_of(0), 60);  // the newest first
    QCOMPARE(page.findChild<QTabWidget*>()->tabText(0), u"Samples (3)"_s);
    // The record says rank 8, whatever the form says now.
    bool rank = false;
    for (QTreeWidgetItem* i : page.record().findItems(u"Rank"_s, Qt::MatchExactly | Qt::MatchRecursive))
      rank |= i->text(1) == u"8"_s;
    QVERIFY(rank);
    QVERIFY(window.docks().log.toPlainText().contains(u"60 rows"_s));
  }

  void clone_puts_the_runs_experiment_into_the_form_as_a_document_of_its_own() {
    test::add_run(store(), "one", 60, RunState::done);
    MainWindow window(setup());
    show(window);
    window.clone_run("run-1");
    QTRY_VERIFY(!window.runs().store().is_busy());
    QCOMPARE(window.document().experiment().value("lora.rank").get<long long>(), 8);
    QVERIFY(window.document().file().empty() && !window.document().is_dirty());
    QVERIFY(!window.document().undo_stack().canUndo());
  }

  void the_palette_finds_and_does() {
    MainWindow window(setup());
    show(window);
    window.open_palette();
    QVERIFY(window.palette_box().isVisible());
    QTest::keyClicks(&window.palette_box().line(), u"showruns"_s);
    QVERIFY(window.palette_box().shown() >= 1);
    QTest::keyClick(&window.palette_box().line(), Qt::Key_Return);
    QVERIFY(!window.palette_box().isVisible());
    QVERIFY(window.pages().runs.isVisible());
  }

  void the_palette_puts_exact_names_first_and_moves_by_pages() {
    MainWindow window(setup());
    show(window);
    window.open_palette();
    QLineEdit& line = window.palette_box().line();
    const auto* list = window.palette_box().findChild<QListView*>();
    QTest::keyClicks(&line, u"run"_s);
    QCOMPARE(list->currentIndex().data().toString(), u"Run"_s);
    QTest::keyClicks(&line, u"zzz"_s);
    QCOMPARE(window.palette_box().shown(), 0);
    QVERIFY(test::shows_text(window.palette_box(), u"No matches"_s));
    line.clear();
    QTest::keyClick(&line, Qt::Key_PageDown);
    const int page = list->currentIndex().row();
    QVERIFY2(page > 5, qPrintable(QString::number(page)));
    QTest::keyClick(&line, Qt::Key_PageUp);
    QCOMPARE(list->currentIndex().row(), 0);
    window.resize(window.minimumSizeHint());
    QTRY_VERIFY(window.rect().contains(window.palette_box().geometry()));
  }

  void run_launches_on_another_target_and_proof_says_why_not() {
    MainWindow window(setup());
    show(window);
    const QAction &run = *window.actions()[u"run.start"_s], &prove = *window.actions()[u"run.prove"_s];
    auto* button = window.findChild<QToolButton*>(u"run"_s);
    const int width = button->width();
    QCOMPARE(run.text(), u"Run"_s);
    QVERIFY(prove.isEnabled());
    window.document().set("target.id", "v5p-8");
    QCOMPARE(run.text(), u"Launch\u2026"_s);
    QVERIFY2(!prove.isEnabled() && prove.toolTip().contains(u"needs target cpu"_s), qPrintable(prove.toolTip()));
    QTest::qWait(20);
    QCOMPARE(button->width(), width);
    window.resize(1000, 650);  // every button stays within reach
    QTest::qWait(20);
    for (const QToolButton* tool : window.findChild<QToolBar*>(u"main"_s)->findChildren<QToolButton*>())
      if (tool->objectName() != u"qt_toolbar_ext_button"_s)
        QVERIFY2(tool->isVisible(), qPrintable(tool->objectName() + tool->accessibleName()));
    window.actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(window.findChild<QDialog*>(u"launch"_s)->isVisible());
    QVERIFY(!window.runs().is_busy());
  }

  void the_form_is_folded_where_it_is_of_no_use_and_each_page_remembers() {
    {
      MainWindow window(setup());
      show(window);
      window.show_page(Page::runs);
      QCOMPARE(window.docks().panel.state(), PanelState::folded);
      window.show_page(Page::train);
      QCOMPARE(window.docks().panel.state(), PanelState::open);
      QTest::keyClick(&window, Qt::Key_0, Qt::AltModifier);
      QCOMPARE(window.docks().panel.state(), PanelState::folded);
      window.show_page(Page::data);
      QCOMPARE(window.docks().panel.state(), PanelState::open);
      window.close();
    }
    MainWindow window(setup());
    show(window);
    QCOMPARE(window.docks().panel.state(), PanelState::open);
    window.show_page(Page::train);
    QCOMPARE(window.docks().panel.state(), PanelState::folded);
    window.show_setting("lora.rank");
    QCOMPARE(window.docks().panel.state(), PanelState::open);
  }

  void the_first_start_offers_three_jobs_until_it_is_told_not_to() {
    {
      MainWindow window(setup());
      show(window);
      window.document().open_example(MW_RESOURCES "/examples/tiny-serve.json");
      window.welcome().open();
      QCOMPARE(test::clipped(window.welcome()).join(u"; "_s), QString());
      QTest::mouseClick(&test::button_of(window.welcome(), u"Design a Mesh"_s), Qt::LeftButton);
      QVERIFY(!window.welcome().isVisible());
      QCOMPARE(window.page(), Page::design);
      window.close();
    }
    MainWindow window(setup());
    show(window);
    window.begin(Start::open);
    QVERIFY(window.welcome().isVisible());
    window.welcome().again().setChecked(false);
    QTest::mouseClick(&test::button_of(window.welcome(), u"Close"_s), Qt::LeftButton);
    window.close();
    MainWindow again(setup());
    show(again);
    again.begin(Start::open);
    QVERIFY(!again.welcome().isVisible());
  }

  void the_last_run_and_comparison_are_opened_again() {
    const auto run = test::add_run(store(), "one", 60, RunState::done);
    {
      MainWindow window(setup());
      show(window);
      window.open_run(run);
      QTRY_VERIFY(window.runs().shown());
      window.pages().compare.add_run(run);
      QTRY_COMPARE(window.pages().compare.runs().size(), size_t{1});
      window.docks().panel.show_json();
      window.close();
    }
    MainWindow window(setup());
    show(window);
    window.begin(Start::open);
    QTRY_VERIFY(window.runs().shown() && window.runs().shown()->id == run);
    QTRY_COMPARE(window.pages().compare.runs().size(), size_t{1});
    QCOMPARE(window.docks().panel.tab(), 1);
  }

  void the_tray_with_files_and_shipped_results_is_opened_again() {
    const auto run =
        test::add_sweep(store(), "Here", {.provenance = formats::ResultProvenance::measured, .target = "cpu"});
    const auto training = test::add_run(store(), "one", 30, RunState::done);
    const fs::path shipped = fs::path(MW_RESOURCES) / "results/paper-2605.25645.json", mine = folder() / "mine.json";
    copy_atomically(shipped, mine);
    std::vector<std::string> names;
    const auto names_of = [](ComparePage& page) {
      std::vector<std::string> out;
      for (const auto& compared : page.runs()) out.push_back(compared.name + compared.file.filename().string());
      return out;
    };
    {
      MainWindow window(setup());
      show(window);
      ComparePage& page = window.pages().compare;
      for (const fs::path& file : {mine, shipped}) {
        page.add_file(file);
        QTRY_VERIFY(!page.is_busy());
        page.remove(static_cast<int>(page.runs().size()) - 1);  // one of the sets of the file
        if (file == mine) page.clear();
      }
      page.add_run(training);
      page.add_run(run);
      QTRY_VERIFY(!page.is_busy());
      page.move(static_cast<int>(page.runs().size()) - 1, 0);  // the run is the baseline
      names = names_of(page);
      QVERIFY(names.size() > 2);
      window.close();
    }
    {
      MainWindow window(setup());
      show(window);
      window.begin(Start::open);
      ComparePage& page = window.pages().compare;
      QTRY_VERIFY(!page.is_busy() && page.runs().size() == names.size());
      QCOMPARE(names_of(page), names);
      QVERIFY(!window.findChild<QFrame*>(u"toast"_s));
      page.add_file(mine);
      QTRY_VERIFY(!page.is_busy());
      window.close();
    }
    fs::remove(mine);
    store::Store(store()).set_deleted(run, store::Trash::deleted);
    store::Store(store()).purge(run);
    MainWindow window(setup());
    show(window);
    window.begin(Start::open);
    QFrame* toast = nullptr;
    QTRY_VERIFY((toast = window.findChild<QFrame*>(u"toast"_s)));
    QVERIFY(test::shows_text(*toast, u"mine.json"_s) && test::shows_text(*toast, qs(run)));
    QTRY_VERIFY(!window.pages().compare.is_busy());
    QVERIFY(!window.pages().compare.runs().empty());
    // A toast stays above the lower edge when the window changes its size.
    const int below = window.height() - toast->geometry().bottom();
    window.resize(1400, 900);
    QTRY_COMPARE(window.height() - toast->geometry().bottom(), below);
    QVERIFY(std::abs(toast->geometry().center().x() - window.rect().center().x()) <= 1);
  }

  void dropped_files_go_where_they_belong() {
    const auto run = test::add_run(store(), "one", 60, RunState::done);
    write_file_atomically(folder() / "mine.json", R"({"schema": 1, "lora": {"rank": 5}})");
    MainWindow window(setup());
    show(window);
    window.begin(Start::open);
    window.drops().open(folder() / "mine.json");
    QCOMPARE(window.document().experiment().value("lora.rank").get<long long>(), 5);
    window.drops().open(MW_RESOURCES "/results/paper-2605.25645.json");
    QCOMPARE(window.page(), Page::compare);
    QTRY_VERIFY(!window.pages().compare.runs().empty());
    window.drops().open(store::Store(store()).run_folder(run));
    QCOMPARE(window.page(), Page::train);
    QTRY_VERIFY(window.runs().shown() && window.runs().shown()->id == run);
  }

  void help_lists_shortcuts_and_names_the_version() {
    MainWindow window(setup());
    show(window);
    window.actions()[u"help.shortcuts"_s]->trigger();
    auto* table = window.findChild<QDialog*>(u"shortcuts"_s)->findChild<QTableView*>();
    QStringList keys;
    for (int r = 0; r < table->model()->rowCount(); ++r)
      if (table->model()->index(r, 1).data().toString() == u"Command Palette"_s)
        keys << table->model()->index(r, 0).data().toString();
    QCOMPARE(keys, QStringList{u"Ctrl+K; Ctrl+Shift+P"_s});
    window.findChild<QDialog*>(u"shortcuts"_s)->close();
    window.actions()[u"help.about"_s]->trigger();
    QVERIFY(window.findChild<QMessageBox*>(u"about"_s)->text().contains(QStringLiteral(MW_VERSION)));
    for (const std::string& kernels : engine::describe_choice())
      QVERIFY(window.findChild<QMessageBox*>(u"about"_s)->informativeText().contains(qs(kernels)));
    window.findChild<QMessageBox*>(u"about"_s)->close();
  }

  void a_saved_file_is_announced_with_its_folder() {
    MainWindow window(setup());
    show(window);
    window.actions()[u"file.save_as"_s]->trigger();
    auto* dialog = window.findChild<QFileDialog*>(u"save_as"_s);
    emit dialog->filesSelected({qpath(folder() / "saved.json")});
    auto* toast = window.findChild<QFrame*>(u"toast"_s);
    QVERIFY(toast && test::shows_text(*toast, u"Saved saved.json"_s));
    QVERIFY(test::button_of(*toast, u"Open Folder"_s).isVisible());
    dialog->close();
  }

  void a_file_that_cannot_be_read_is_a_problem_and_no_box() {
    write_file_atomically(folder() / "bad.json", "{\"schema\": 1,");
    WindowSetup s = setup();
    s.experiment = folder() / "bad.json";
    MainWindow window(s);
    show(window);
    QVERIFY(window.problems().count(Severity::error) >= 1);
    QCOMPARE(window.docks().bottom->state(), DockState::expanded);
    QTRY_VERIFY(window.docks().problems.height() > 60);
    QVERIFY(!QApplication::activeModalWidget());
  }

  void panels_fold_to_their_tabs_and_come_back_as_they_were() {
    int open = 0, folded = 0;
    {
      MainWindow window(setup());
      show(window);
      QCOMPARE(window.docks().bottom->state(), DockState::collapsed);
      folded = window.pages().train.height();
      click_tab(window, u"Problems"_s);  // in front: opens, folds
      QTRY_VERIFY(window.docks().problems.height() > 60);
      open = window.pages().train.height();
      QVERIFY2(open < folded - 60, qPrintable(QString::number(folded - open)));
      QVERIFY(window.docks().problems.table().isEnabled());
      click_tab(window, u"Problems"_s);
      QTRY_COMPARE(window.pages().train.height(), folded);
      QVERIFY(!window.docks().problems.table().isEnabled());  // Tab does not go there
      click_tab(window, u"Log"_s);                            // another: opens with it
      QTRY_VERIFY(window.docks().log.height() > 60);
      QVERIFY(!window.docks().log.visibleRegion().isEmpty());
      QCOMPARE(window.pages().train.height(), open);
      click_tab(window, u"Jobs"_s);  // open already
      QCOMPARE(window.docks().bottom->state(), DockState::expanded);
      window.docks().bottom->set(DockState::collapsed);
      window.docks().bottom->restore(DockState::expanded, window.docks().bottom->height() + 100);
      QTRY_COMPARE(window.pages().train.height(), open - 100);
      QTest::keyClick(&window, Qt::Key_J, Qt::ControlModifier);
      QTRY_COMPARE(window.pages().train.height(), folded);
      window.close();
    }
    MainWindow window(setup());
    show(window);
    QTRY_COMPARE(window.pages().train.height(), folded);
    window.document().set("lora.rank", 0);
    QTRY_VERIFY(window.problems().count(Severity::error) > 0);
    QCOMPARE(window.docks().bottom->state(), DockState::collapsed);  // the user folded it: problems move nothing
    QTest::keyClick(&window, Qt::Key_J, Qt::ControlModifier);
    QTRY_COMPARE(window.pages().train.height(), open - 100);
    window.document().undo_stack().undo();
    window.close();
    MainWindow again(setup());
    show(again);
    QCOMPARE(again.docks().bottom->state(), DockState::expanded);
    QTRY_COMPARE(again.pages().train.height(), open - 100);
  }

  void the_tab_of_problems_counts_and_marks_them() {
    MainWindow window(setup());
    show(window);
    QTRY_VERIFY(tab_of(window, u"Problems"_s).second >= 0);
    window.document().set("lora.rank", 0);
    QTRY_VERIFY(tab_of(window, u"Problems (1)"_s).second >= 0);
    const auto [bar, tab] = tab_of(window, u"Problems (1)"_s);
    QVERIFY(!bar->tabIcon(tab).isNull());
    QCOMPARE(window.docks().bottom->state(), DockState::expanded);  // the first ones say where they are
    window.document().undo_stack().undo();
    QTRY_VERIFY(tab_of(window, u"Problems"_s).second >= 0);
    QVERIFY(bar->tabIcon(tab).isNull());
    QTRY_COMPARE(window.docks().bottom->state(), DockState::collapsed);  // nothing is left
  }

  void unsaved_edits_theme_and_layout_come_back() {
    {
      MainWindow window(setup());
      show(window);
      window.set_shade(Shade::dark);
      window.document().set("lora.rank", 77);
      window.close();
    }
    MainWindow window(setup());
    QCOMPARE(window.document().experiment().value("lora.rank").get<long long>(), 77);
    QVERIFY(theme().shade == Shade::dark);
  }

  void a_run_that_cannot_start_is_reported_and_leaves_the_window_ready() {
    WindowSetup s = setup();
    MainWindow window(s);
    show(window);
    window.document().replace(experiment::Experiment(), u"empty"_s);
    window.actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(!window.runs().is_busy());
    QVERIFY(window.problems().count(Severity::error) >= 1);
    QVERIFY(window.actions()[u"run.start"_s]->isEnabled());
    QVERIFY(!QApplication::activeModalWidget());
  }

  void a_run_whose_process_is_gone_is_shown_as_interrupted() {
    const auto gone = test::add_run(store(), "gone", 12, RunState::running);
    const auto elsewhere = test::add_run(store(), "elsewhere", 12, RunState::running);
    store::Store other(store());
    const auto held = other.lock(elsewhere);  // as its own process would
    MainWindow window(setup());
    show(window);
    window.show_page(Page::runs);
    RunsModel& model = window.pages().runs.model();
    const auto state_of = [&](const store::RunId& run) {
      return model.index(model.row_of(run), RunsModel::state).data().toString();
    };
    QCOMPARE(state_of(gone), u"Interrupted"_s);
    QCOMPARE(state_of(elsewhere), u"Running"_s);
    QVERIFY(other.find(gone)->interrupted());
    QCOMPARE(other.find(gone)->steps_done, 12);
    QCOMPARE(other.find(elsewhere)->state, RunState::running);
    window.show_page(Page::train);
    window.runs().open(gone);
    QTRY_VERIFY(window.runs().shown());
    QCOMPARE(window.runs().shown()->view.error(), std::string(store::kInterrupted));
    bool said = false;
    for (QLabel* l : window.pages().train.header().findChildren<QLabel*>())
      said |= l->text().endsWith(u"Interrupted"_s);
    QVERIFY(said);
  }

  void a_name_that_is_no_text_is_reported_and_not_thrown() {
    test::Project project;
    project.write_experiment(parse_json(R"({"name": 7})", "name"));
    WindowSetup s = setup();
    s.experiment = project.experiment;
    MainWindow window(s);
    show(window);
    const auto mentions_name = [&] {
      for (int row = 0; row < window.problems().rowCount(); ++row)
        if (window.problems().problem(row).place == "name") return true;
      return false;
    };
    QVERIFY(mentions_name());
    QSignalSpy problems(&window.runs(), &RunController::problem);
    window.runs().start(window.document().experiment());
    QTRY_VERIFY(!window.runs().is_busy());
    QCOMPARE(problems.count(), 1);
    QVERIFY2(problems.first().first().value<Problem>().message.find("name") != std::string::npos,
             problems.first().first().value<Problem>().message.c_str());
    QVERIFY(window.actions()[u"run.start"_s]->isEnabled());
  }

  void closing_during_a_run_writes_a_checkpoint_and_loses_nothing_data() {
    QTest::addColumn<bool>("paused");
    QTest::newRow("running") << false;
    QTest::newRow("paused") << true;
  }
  void closing_during_a_run_writes_a_checkpoint_and_loses_nothing() {
    QFETCH(const bool, paused);
    test::Project project;
    // Longer than the test would ever wait, and no checkpoint on the way.
    project.write_experiment(parse_json(R"({"train": {"steps": 100000, "checkpoint_every": 0}})", "closing"));
    store::RunId run;
    long seen = 0;
    {
      MainWindow window({project.experiment, project.runs, MW_RESOURCES, folder() / "state"});
      show(window);
      window.document().set("lora.alpha", 12);  // not saved in the file
      window.actions()[u"run.start"_s]->trigger();
      QTRY_VERIFY(window.runs().shown() && window.runs().shown()->view.step() >= 3);
      run = window.runs().shown()->id;
      if (paused) {
        window.actions()[u"run.pause"_s]->trigger();
        QTRY_COMPARE(window.runs().shown()->view.state(), RunState::paused);
      }
      seen = window.runs().shown()->view.step();
      QVERIFY(!window.close());  // asks first
      auto* box = window.findChild<QMessageBox*>(u"unfinished_work"_s);
      QVERIFY(box && !window.runs().is_stopping());
      QTest::mouseClick(box->findChild<QPushButton*>(u"stop_and_close"_s), Qt::LeftButton);
      // Not yet: it stops first, with the window still answering.
      QVERIFY(window.isVisible() && window.runs().is_stopping());
      window.close();  // an impatient second click
      QTRY_VERIFY(!window.isVisible());
      QVERIFY(!window.runs().is_busy());
    }
    store::Store store(project.runs);
    const store::RunRow row = *store.find(run);
    QCOMPARE(row.state, RunState::cancelled);
    QVERIFY(row.steps_done >= seen);
    const auto saved = train::latest_checkpoint(store.run_folder(run));
    QVERIFY(saved.has_value());
    // It goes on from there: the step after the last one kept, with what was in the form.
    QCOMPARE(store.experiment(run).value("lora.alpha").get<double>(), 12.0);
    long first = 0;
    std::stop_source stop;
    const auto end = jobs::run_blocking(
        {experiment::Experiment(), project.runs, run},
        [&](const Event& event) {
          const auto* m = std::get_if<event::Metric>(&event.body);
          if (!m || m->name != "train/loss") return;
          if (first == 0) first = m->step;
          stop.request_stop();
        },
        stop.get_token());
    QCOMPARE(first, row.steps_done + 1);
    QCOMPARE(end.finished.state, RunState::cancelled);
    MainWindow again({project.experiment, project.runs, MW_RESOURCES, folder() / "state"});
    QCOMPARE(again.document().experiment().value("lora.alpha").get<double>(), 12.0);
  }

  void tuning_from_the_window_makes_a_run_per_trial() {
    test::Project project;
    project.write_experiment(
        parse_json(R"({"train": {"steps": 2, "eval_rows": 4, "answers": 0, "sample_every": 0}})", "tuning"));
    MainWindow window({project.experiment, project.runs, MW_RESOURCES, folder() / "state"});
    show(window);
    window.actions()[u"run.tune"_s]->trigger();
    TuneDialog& tune = window.pages().train.dialogs().tune;
    QVERIFY(tune.isVisible());
    QCOMPARE(test::unnamed(tune).join(u"; "_s), QString());
    QPushButton& start = test::button_of(tune, u"Start"_s);
    QVERIFY(!start.isEnabled());
    tune.varied().setPlainText(u"train.learning_rates=0.001"_s);
    QTest::mouseClick(&start, Qt::LeftButton);
    QTRY_VERIFY(!tune.task().is_busy());
    QVERIFY(test::result_text(tune).contains(u"train.learning_rate"_s));
    tune.varied().setPlainText(u"train.learning_rate=0.001,0.002"_s);
    QTest::mouseClick(&start, Qt::LeftButton);
    QVERIFY(tune.task().is_busy());
    QTRY_VERIFY(!tune.task().is_busy());
    QVERIFY2(test::result_text(tune).contains(u"(best)"_s), qPrintable(test::result_text(tune)));
    const auto rows = store::Store(project.runs).list();
    QCOMPARE(rows.size(), size_t{2});
    for (const store::RunRow& row : rows) QCOMPARE(row.tags, std::string("tune-1"));
    QVERIFY(!tune.resume().isVisible());
    // A tuning that a killed process left behind, with one of its trials made.
    const auto file = project.runs / "tune-1" / "tune.json";
    Json left = read_json(file);
    QCOMPARE(left["ended"], Json(true));
    left["ended"] = false;
    left["runs"][1] = "";
    write_file_atomically(file, left.dump());
    QTest::keyClick(&tune, Qt::Key_Escape);
    window.actions()[u"run.tune"_s]->trigger();
    QVERIFY(tune.resume().isVisible());
    QCOMPARE(tune.resume().text(), u"Resume tune-1"_s);
    QCOMPARE(test::clipped(tune).join(u"; "_s), QString());
    test::save_picture(tune, u"tune-resume"_s);
    QTest::mouseClick(&tune.resume(), Qt::LeftButton);
    QTRY_VERIFY(!tune.task().is_busy());
    QVERIFY2(test::result_text(tune).contains(u"(best)"_s), qPrintable(test::result_text(tune)));
    test::save_picture(tune, u"tune-resumed"_s);
    QCOMPARE(store::Store(project.runs).list().size(), size_t{3});
    QVERIFY(!tune.resume().isVisible());
    QTest::keyClick(&tune, Qt::Key_Escape);
    QVERIFY(!tune.isVisible());
  }

  void a_theme_switch_leaves_every_font_as_it_was() {
    test::add_run(store(), "one", 20, RunState::done);
    MainWindow window(setup());
    show(window);
    window.document().set("lora.rank", 8);
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    const auto fonts = [&] {  // of visible text: labels come and go with prices and progress
      QHash<QWidget*, QString> all;
      for (QWidget* w : window.findChildren<QWidget*>())
        if (w->isVisible() && !qobject_cast<QScrollBar*>(w))
          all[w] = u"%1 %2: %3 %4"_s.arg(QLatin1String(w->metaObject()->className()), w->accessibleName())
                       .arg(w->font().weight())
                       .arg(w->font().pointSizeF());
      return all;
    };
    QLabel* rank = nullptr;
    for (QLabel* l : window.docks().panel.form().row("lora.rank")->findChildren<QLabel*>())
      if (l->text() == u"Rank"_s) rank = l;
    QVERIFY(rank);
    QCOMPARE(rank->font().weight(), QFont::DemiBold);
    const QHash<QWidget*, QString> before = fonts();
    for (const Shade shade : {Shade::dark, Shade::light, Shade::dark}) {
      window.set_shade(shade);
      QTest::qWait(30);
      QCOMPARE(rank->font().weight(), QFont::DemiBold);
      int compared = 0;
      const auto now = fonts();
      for (auto w = before.begin(); w != before.end(); ++w)
        if (now.contains(w.key())) {
          QCOMPARE(now[w.key()], w.value());
          ++compared;
        }
      QVERIFY2(compared > 50, qPrintable(QString::number(compared)));
    }
    window.document().reset("lora.rank");
    QCOMPARE(rank->font().weight(), QFont::Normal);
  }

  void the_price_keeps_the_exact_number_until_it_is_renewed() {
    test::Project project;
    WindowSetup s = setup();
    s.experiment = project.experiment;
    MainWindow window(s);
    QStringList said;
    connect(&window.predictor(), &Predictor::changed, this, [&] {
      if (window.predictor().design()) said << window.strip().figures_text();
    });
    show(window);
    QTRY_VERIFY(window.predictor().is_settled());
    const QString exact = window.strip().figures_text();
    QVERIFY2(exact.startsWith(u"Fits: "_s) && !exact.contains(u"at most"_s), qPrintable(exact));
    QVERIFY(window.strip().measure_button().isVisible());  // the test's configuration folder has no measurement
    QVERIFY2(!said.isEmpty() && said.first().contains(u"at most"_s), qPrintable(said.join(u", "_s)));
    said.clear();
    window.document().set("train.batch", 8);
    QVERIFY(window.predictor().is_outdated());
    QTRY_VERIFY(window.predictor().is_settled());
    QVERIFY(!window.predictor().is_outdated());
    const QString renewed = window.strip().figures_text();
    QVERIFY(renewed != exact);
    for (const QString& text : said) QVERIFY2(text == exact || text == renewed, qPrintable(text));
    QVERIFY(said.contains(exact));
    // Without the data there is only the bound, and it says so.
    window.document().set("data.path", "nowhere.jsonl");
    QTRY_VERIFY(window.predictor().is_settled());
    QVERIFY2(window.strip().figures_text().contains(u"at most"_s), qPrintable(window.strip().figures_text()));
    QVERIFY(window.problems().count(Severity::error) >= 1);
  }

  // A screen of 1920 x 1080 pixels at 200 % has 960 x 540, of which the desktop's panel and a title take some.
  void the_window_fits_a_screen_at_twice_the_scale() {
    constexpr QSize kScreen{960, 490};
    MainWindow window(setup());
    show(window);
    click_tab(window, u"Problems"_s);
    for (int page = 0; page < 6; ++page) {
      window.show_page(static_cast<Page>(page));
      const auto fits = [&] {
        window.resize(kScreen);
        return window.size() == kScreen;
      };
      QTRY_VERIFY2(fits(), qPrintable(u"page %1 needs %2 pixels"_s.arg(page).arg(window.minimumSizeHint().width())));
      const auto* area = qobject_cast<QScrollArea*>(window.centralWidget());
      QVERIFY(area);
      QTRY_VERIFY2(area->widget()->width() <= area->viewport()->width(), qPrintable(QString::number(page)));
      // The rest of the page can be scrolled to.
      QTRY_COMPARE(area->verticalScrollBar()->maximum() + area->viewport()->height(), area->widget()->height());
    }
    window.resize(1280, 800);
    const auto* area = qobject_cast<QScrollArea*>(window.centralWidget());
    QTRY_COMPARE(area->verticalScrollBar()->maximum(), 0);
  }

  void both_themes_and_sizes_paint() {
    test::add_run(store(), "one", 60, RunState::done);
    MainWindow window(setup());
    show(window);
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    for (const Shade shade : {Shade::light, Shade::dark})
      for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)}) {
        window.set_shade(shade);
        window.resize(size);
        QTest::qWait(60);
        const QImage image = window.grab().toImage();
        QCOMPARE(image.size(), size);
        const bool dark = image.pixelColor(size.width() - 3, size.height() - 3).lightness() < 128;
        QCOMPARE(dark, shade == Shade::dark);
      }
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::WindowTest)
#include "window_test.moc"
