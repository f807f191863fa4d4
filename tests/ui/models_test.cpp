// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QScrollBar>
#include <QSignalSpy>
#include <QStandardItemModel>
#include <QTableView>
#include <QTest>

#include "core/base/files.h"
#include "tests/ui/support.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/train/samples_view.h"
#include "ui/shell/bottom_docks.h"
#include "ui/shell/command_palette.h"
#include "ui/shell/problems_panel.h"
#include "ui/theme/table_model.h"
#include "ui/theme/text.h"

namespace mw::ui {

class ModelsTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  using Tester = QAbstractItemModelTester;

  static void add_queued_runs(const std::filesystem::path& folder, int count) {
    store::Store store(folder);
    for (int i = 0; i < count; ++i) {
      experiment::Experiment e;
      e.set_value("train.seed", i);
      store.create(e, "many");
    }
  }

 private slots:
  void init() { warnings_.start(); }
  void cleanup() { QCOMPARE(warnings_.take().join(u"; "_s), QString()); }

  void copied_rows_hold_no_formula() {
    QStandardItemModel model(1, 3);
    for (const auto& [column, text] : {std::pair(0, u"=cmd|' /C calc'!A0"_s), {1, u"-3.5"_s}, {2, u"@name"_s}})
      model.setItem(0, column, new QStandardItem(text));
    QTableView view;
    view.setModel(&model);
    view.setSelectionBehavior(QAbstractItemView::SelectRows);
    view.selectRow(0);
    QCOMPARE(selected_rows(view), u"1\t2\t3\n'=cmd|' /C calc'!A0\t-3.5\t'@name\n"_s);
  }

  void problems_put_errors_first() {
    ProblemsModel model;
    Tester tester(&model, Tester::FailureReportingMode::QtTest);
    model.set(ProblemSource::document, {{.severity = Severity::warning, .message = "w", .place = "a.b"}});
    model.set(ProblemSource::run, {{.severity = Severity::error, .message = "e"}});
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.problem(0).message, std::string("e"));
    QCOMPARE(model.count(Severity::warning), 1);
    QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
    model.set(ProblemSource::run, {{.severity = Severity::error, .message = "e"}});
    QCOMPARE(resets.count(), 0);  // nothing new: a selection stays
    model.clear(ProblemSource::run);
    QCOMPARE(model.rowCount(), 1);
  }

  void runs_follow_the_store_row_by_row() {
    test::Scratch scratch;
    const auto a = test::add_run(scratch.path(), "first", 40, RunState::done);
    RunsModel model(scratch.path());
    Tester tester(&model, Tester::FailureReportingMode::QtTest);
    model.refresh();
    QCOMPARE(model.rowCount(), 1);
    QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
    const auto b = test::add_run(scratch.path(), "second", 30, RunState::cancelled);
    model.refresh();
    QCOMPARE(model.rowCount(), 2);
    QVERIFY(model.setData(model.index(model.row_of(a), RunsModel::name), u"renamed"_s, Qt::EditRole));
    QVERIFY(model.setData(model.index(model.row_of(b), RunsModel::tags), u"keep, slow"_s, Qt::EditRole));
    QCOMPARE(store::Store(scratch.path()).find(a)->name, std::string("renamed"));
    QCOMPARE(store::Store(scratch.path()).find(b)->tags, std::string("keep, slow"));
    QVERIFY(!model.setData(model.index(0, RunsModel::state), u"x"_s, Qt::EditRole));
    model.set_deleted({a}, store::Trash::deleted);
    QCOMPARE(model.rowCount(), 1);
    model.set_trash(store::Trash::deleted);
    QCOMPARE(model.rowCount(), 1);
    QCOMPARE(model.row(0).id, a);
    QCOMPARE(resets.count(), 0);
  }

  void runs_sort_by_value_and_filter_by_words() {
    test::Scratch scratch;
    for (int i = 0; i < 11; ++i) test::add_run(scratch.path(), i == 3 ? "needle hay" : "run", 5 + i, RunState::done);
    RunsModel model(scratch.path());
    model.refresh();
    RunsFilter filter(nullptr);
    filter.setSourceModel(&model);
    Tester tester(&filter, Tester::FailureReportingMode::QtTest);
    filter.sort(RunsModel::steps, Qt::DescendingOrder);  // 15 before 9: by number, not by text
    QVERIFY(filter.index(0, RunsModel::steps).data().toString().startsWith(u"15"_s));
    filter.sort(RunsModel::created, Qt::DescendingOrder);
    QCOMPARE(filter.index(0, 0).data(RunsModel::id_role).toString(), u"run-11"_s);
    filter.set_words(u"hay NEED"_s);
    QCOMPARE(filter.rowCount(), 1);
    filter.set_words(u"nothing"_s);
    QCOMPARE(filter.rowCount(), 0);
  }

  void many_runs_come_in_one_change_and_their_details_follow() {
    test::Scratch scratch;
    add_queued_runs(scratch.path(), 300);
    RunsModel model(scratch.path());
    Tester tester(&model, Tester::FailureReportingMode::QtTest);
    QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted), removed(&model, &QAbstractItemModel::rowsRemoved);
    model.refresh();
    QCOMPARE(inserted.count(), 1);
    QCOMPARE(model.rowCount(), 300);
    QCOMPARE(model.row(0).changed, std::string("seed 299"));
    QCOMPARE(model.row(299).target, std::string());
    QTRY_COMPARE(model.row(299).target, std::string("cpu"));
    QCOMPARE(model.row(298).changed, std::string("seed 1"));
    QCOMPARE(model.row(298).shown_name, std::string("many seed 1"));
    std::vector<store::RunId> some;
    for (int i = 1; i <= 150; ++i) some.push_back("run-" + std::to_string(i));
    some.push_back("run-200");
    model.set_deleted(some, store::Trash::deleted);
    QCOMPARE(removed.count(), 2);
    QCOMPARE(inserted.count(), 1);
    QCOMPARE(model.row_of("run-200"), -1);
    QCOMPARE(model.row_of("run-199"), 100);
    QCOMPARE(model.rowCount(), 149);
  }

  void a_refresh_keeps_the_selection_and_the_place() {
    test::Scratch scratch;
    add_queued_runs(scratch.path(), 120);
    RunsPage page(scratch.path());
    page.resize(1000, 500);
    page.show();
    page.select("run-40");
    page.table().verticalScrollBar()->setValue(50);
    const auto top = [&] { return page.table().indexAt({0, 0}).data(RunsModel::id_role).toString(); };
    QCOMPARE(top(), u"run-70"_s);
    add_queued_runs(scratch.path(), 3);
    store::Store(scratch.path()).set_deleted("run-100", store::Trash::deleted);
    page.refresh();
    QCOMPARE(page.model().rowCount(), 122);
    QCOMPARE(page.selected(), std::vector<store::RunId>{"run-40"});
    QCOMPARE(top(), u"run-70"_s);
    page.table().selectAll();
    QCOMPARE(page.selected().size(), size_t{122});
    page.delete_selected();
    QCOMPARE(page.model().rowCount(), 0);
    page.undo_delete();
    QCOMPARE(page.model().rowCount(), 122);
  }

  void run_columns_fit_their_numbers_and_the_name_takes_the_rest() {
    test::Scratch scratch;
    test::add_run(scratch.path(), "run", 5, RunState::done);
    RunsPage page(scratch.path());
    page.show();
    QTableView& table = page.table();
    const QAbstractItemView& view = table;
    for (const int width : {1000, 1600}) {
      page.resize(width, 400);
      QTRY_COMPARE(table.horizontalHeader()->length(), table.viewport()->width());
    }
    const int before = table.columnWidth(RunsModel::steps);
    experiment::Experiment longer;
    longer.set_value("train.steps", 1234567890);
    store::Store(scratch.path()).create(longer, "long");
    page.refresh();
    QVERIFY(table.columnWidth(RunsModel::steps) >= before);
    for (int c = RunsModel::train_loss; c <= RunsModel::peak; ++c)
      QVERIFY2(table.columnWidth(c) >= view.sizeHintForColumn(c), qPrintable(QString::number(c)));
    QCOMPARE(table.horizontalHeader()->length(), table.viewport()->width());
  }

  void deleting_runs_can_be_undone() {
    test::Scratch scratch;
    const auto run = test::add_run(scratch.path(), "only", 10, RunState::done);
    RunsPage page(scratch.path());
    page.show();
    page.select(run);
    QCOMPARE(page.selected(), std::vector<store::RunId>{run});
    QTest::keyClick(&page.table(), Qt::Key_Delete);
    if (page.model().rowCount() == 1) page.delete_selected();  // shortcuts need an active window
    QCOMPARE(page.model().rowCount(), 0);
    QVERIFY(page.can_undo_delete());
    page.undo_delete();
    QCOMPARE(page.model().rowCount(), 1);
    QCOMPARE(page.selected(), std::vector<store::RunId>{run});
  }

  void deleting_survives_the_window_and_purging_is_asked_for() {
    test::Scratch scratch;
    const auto run = test::add_run(scratch.path(), "only", 10, RunState::done);
    {
      RunsPage page(scratch.path());
      page.show();
      page.select(run);
      page.delete_selected();
    }  // closed without an undo
    RunsPage page(scratch.path());
    page.show();
    QCOMPARE(page.model().rowCount(), 0);
    page.model().set_trash(store::Trash::deleted);
    QCOMPARE(page.model().rowCount(), 1);
    page.select(run);
    page.purge_selected();
    auto* question = page.findChild<QMessageBox*>();
    QVERIFY(question);
    QCOMPARE(page.model().rowCount(), 1);
    for (QAbstractButton* b : question->buttons())
      if (b->text() == u"Delete Permanently"_s) b->click();
    QTRY_COMPARE(page.model().rowCount(), 0);
    QVERIFY(store::Store(scratch.path()).list(store::Trash::deleted).empty());
  }

  void runs_say_target_changes_and_right_answers_and_a_preview_shows_more() {
    test::Scratch scratch;
    for (const char* rank : {"8", "16"}) {
      experiment::Experiment e;
      e.set("lora.rank", rank);
      store::Store store(scratch.path());
      const auto run = store.create(e, "tiny");
      for (long step = 1; step < 9; ++step)
        store.append(run, {1.0 * step, event::Metric{"train/loss", step, 2.0 / static_cast<double>(step)}});
      for (int i = 0; i < 60; ++i)
        store.append(run, {9, event::Sample{8, std::to_string(i), "x", "y", i < 49 ? "right" : "wrong"}});
      write_file_atomically(store.run_folder(run) / "checkpoint-8" / "weights", std::string(2048, 'w'));
    }
    RunsPage page(scratch.path());
    page.resize(1230, 600);
    page.show();
    page.select("run-2");
    const int row = page.model().row_of("run-2");
    const auto cell = [&](int column) { return page.model().index(row, column).data().toString(); };
    QCOMPARE(cell(RunsModel::id), u"run-2"_s);
    QCOMPARE(cell(RunsModel::name), u"tiny r16"_s);
    QCOMPARE(cell(RunsModel::target), u"cpu"_s);
    QCOMPARE(cell(RunsModel::changed), u"r16"_s);
    QCOMPARE(cell(RunsModel::right), u"49 of 60"_s);
    QVERIFY(page.model().index(row, RunsModel::state).data(Qt::BackgroundRole).isValid());
    QCOMPARE(page.preview().loss().lines().size(), size_t{1});
    QCOMPARE(page.preview().loss().lines()[0].raw->size(), size_t{8});
    QCOMPARE(page.preview().changes().rowCount(), 1);
    QCOMPARE(page.preview().changes().index(0, 1).data().toString(), u"8"_s);
    QCOMPARE(page.preview().artefacts().index(0, 0).data().toString(), u"checkpoint-8"_s);
    QCOMPARE(page.preview().artefacts().index(0, 1).data().toString(), u"2.00 KiB"_s);
    QVERIFY(page.preview().loss().height() >= 120);
    QCOMPARE(page.table().horizontalScrollBar()->maximum(), 0);
    QStringList entries;
    QMenu* menu = page.make_menu();
    for (const QAction* a : menu->actions()) entries << a->text();
    delete menu;
    for (const QString& text : {u"Open"_s, u"Clone"_s, u"Export as a Recipe\u2026"_s, u"Merge the Adapter\u2026"_s,
                                u"Edit Tags"_s, u"Open Folder"_s, u"Delete"_s, u"Add to Current Comparison"_s})
      QVERIFY2(entries.contains(text), qPrintable(text));
  }

  void a_store_that_cannot_be_opened_is_a_problem_not_a_crash() {
    RunsModel model("/proc/nowhere");
    QSignalSpy problems(&model, &RunsModel::problem);
    model.refresh();
    QCOMPARE(problems.count(), 1);
    QCOMPARE(model.rowCount(), 0);
  }

  void samples_come_newest_first_with_steps_and_verdicts() {
    auto run = std::make_shared<RunData>();
    SamplesModel model;
    Tester tester(&model, Tester::FailureReportingMode::QtTest);
    model.show_run(run);
    run->view.feed({1, event::Sample{10, "a\nb", "x", "y", "wrong"}});
    model.grow();
    run->view.feed({2, event::Sample{20, "a\nb", "y", "y", "right"}});
    model.grow();
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.index(0, SamplesModel::step).data().toLongLong(), 20);
    QCOMPARE(model.index(1, SamplesModel::step).data().toLongLong(), 10);
    QVERIFY(!model.index(1, SamplesModel::prompt).data().toString().contains(u'\n'));
    QVERIFY(model.index(0, SamplesModel::verdict).data().toString().contains(u"right"_s));
  }

  void the_log_keeps_the_reader_place_and_takes_a_rewind() {
    auto run = std::make_shared<RunData>();
    LogPanel log;
    log.resize(300, 100);
    log.show_run(run);
    for (int i = 0; i < 50; ++i) run->view.feed({i * 1.0, event::Log{"info", "line " + std::to_string(i)}});
    log.grow();
    QCOMPARE(log.document()->blockCount(), 50);
    log.grow();
    QCOMPARE(log.document()->blockCount(), 50);
    QVERIFY(log.toPlainText().contains(u"line 49"_s));
  }

  void names_of_runs_are_short_and_told_apart() {
    const QStringList names{u"Gemma 4 31B served on 2x H100 (arXiv 2605.25645)"_s,
                            u"Gemma 4 31B served on v6e-8 (arXiv 2605.25645)"_s, u"Small world"_s,
                            u"Small world, of which there are three: the first of them"_s, u"Small world"_s};
    const QStringList brief = short_names(names);
    QCOMPARE(brief[0], u"Gemma 4 31B served on 2x \u2026"_s);
    QCOMPARE(brief[1], u"Gemma 4 31B served on v6e\u2026"_s);
    QCOMPARE(brief[2], names[2]);
    QCOMPARE(brief[3], u"Small world, \u2026irst of them"_s);
    QCOMPARE(brief[4], names[4]);  // the same name is the same name
    for (const QString& name : brief) QVERIFY(name.size() <= 26);
    QCOMPARE(short_names(QStringList{names[0], names[0]}).size(), 2);
  }

  void fuzzy_prefers_word_beginnings() {
    QVERIFY(fuzzy_score(u"rk"_s, u"Set LoRA: Rank"_s) > 0);
    QVERIFY(fuzzy_score(u"xyz"_s, u"Set LoRA: Rank"_s) < 0);
    QVERIFY(fuzzy_score(u"st"_s, u"Stop"_s) > fuzzy_score(u"st"_s, u"Last one"_s));
    QVERIFY(fuzzy_score(u"lr"_s, u"Learning rate"_s) > fuzzy_score(u"lr"_s, u"Color"_s));
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ModelsTest)
#include "models_test.moc"
