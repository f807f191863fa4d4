// SPDX-License-Identifier: GPL-3.0-or-later
// Calibrating as a person does: rows in, held-out errors seen, cancelled without a trace, accepted and the open plan
// priced again at once, undone, removed. Pictures in $MW_PICTURES, else the build folder.
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSet>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <fstream>

#include "tests/ui/support.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/shell/main_window.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

class CalibrateTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  std::unique_ptr<test::Scratch> scratch_;
  std::unique_ptr<MainWindow> window_;

  CalibrateDialog& dialog() { return window_->pages().design.calibrate_dialog(); }
  fs::path kept() { return scratch_->path() / "config" / "hardware" / "calibration.json"; }
  QString notes() { return dialog().findChild<QPlainTextEdit*>()->toPlainText(); }
  QAction* action(const QString& id) { return window_->actions()[id]; }
  void priced() {
    QTRY_VERIFY(window_->predictor().is_settled());
    window_->pages().design.show_frame();
  }
  QString figure(const QString& name) {
    PlanModel& plan = window_->pages().design.plan();
    for (int r = 0; r < plan.rowCount(); ++r)
      if (plan.index(r, PlanModel::figure).data().toString() == name)
        return plan.index(r, PlanModel::value).data().toString();
    return {};
  }
  // The paper's mesh measured by the user, so many times as long as it is planned now.
  fs::path steps(double times, int rows = 4, const Json& bad = {}) {
    Json all = Json::array();
    const double now = window_->predictor().design()->plan().step.seconds.value;
    for (int i = 0; i < rows; ++i)
      all.push_back({{"id", "my-step-" + std::to_string(i + 1)},
                     {"use", "calibration"},
                     {"value", now * times * (1 + 0.01 * i)},
                     {"unit", "s/step"},
                     {"model", "gemma4-31b"},
                     {"target", "v5p-8"},
                     {"stack", "tunix"},
                     {"mesh", {{"fsdp", 1}, {"tp", 4}}},
                     {"method", "lora"},
                     {"rank", 64},
                     {"alpha", 64},
                     {"batch", 1},
                     {"accumulation", 8},
                     {"max_len", 3072},
                     {"mean", 922},
                     {"count", 9952},
                     {"remat", "layer"},
                     {"source", "my own run"}});
    if (!bad.is_null()) all.push_back(bad);
    const fs::path file = scratch_->path() / "my-steps.json";
    std::ofstream(file) << Json{{"rows", all}}.dump(1);
    return file;
  }
  void open_with(const fs::path& file) {
    action(u"plan.calibrate"_s)->trigger();
    QTRY_VERIFY(dialog().isVisible());
    dialog().add_files({file});
    QTRY_VERIFY(dialog().rows().rowCount() > 0 || !notes().isEmpty());
  }
  void picture(const QString& name) {
    QTest::qWait(120);
    test::save_picture(dialog(), u"calibrate-"_s % name);
  }

 private slots:
  void init() {
    warnings_.start();
    scratch_ = std::make_unique<test::Scratch>();
    window_ = std::make_unique<MainWindow>(
        WindowSetup{{}, scratch_->path() / "runs", MW_RESOURCES, scratch_->path() / "config"});
    window_->resize(1280, 800);
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    window_->show_page(Page::design);
    window_->document().open_example(fs::path(MW_RESOURCES) / "examples" / "paper-train-v5p-8.json");
    priced();
  }
  void cleanup() {
    window_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void residuals_of_a_run_list_every_term() {
    experiment::Experiment e;
    for (const auto& [key, value] :
         {std::pair{"kind", "train"}, {"model.id", "gemma3-1b"}, {"data.max_len", "256"}, {"name", "mine"}})
      e.set(key, value);
    store::RunId run;
    {
      store::Store store(scratch_->path() / "runs");
      run = store.create(e, "mine");
      const auto lock = store.lock(run);
      store.append(run, {0, event::Started{{{"steps", 4}}}});
      Ledger held;
      held[MemoryCategory::weights] = Bytes(1 << 30);
      for (long step = 1; step <= 4; ++step) {
        store.append(run, {1.0 * step, event::Metric{"train/tokens_per_second", step, 50.0}});
        store.append(run, {1.0 * step, event::Memory{0, step, "step", held, held.total()}});
      }
      event::Finished finished;
      finished.state = RunState::done;
      finished.steps = 4;
      finished.tokens = 400;
      store.finish(run, 5, finished);
    }
    window_->show_page(Page::runs);
    window_->open_run(run);
    QTRY_VERIFY(window_->current_page().shown_run() != nullptr);
    action(u"run.residuals"_s)->trigger();
    ResidualsDialog& shown = window_->pages().design.residuals_dialog();
    QVERIFY(shown.isVisible());
    QTRY_VERIFY(!shown.task().is_busy());
    QVERIFY2(shown.rows().rowCount() >= 5, qPrintable(test::result_text(shown)));
    QCOMPARE(shown.rows().index(0, 2).data().toString(), u"2.00 s"_s);  // 100 tokens at 50 tokens/s
    QVERIFY(test::unnamed(shown).isEmpty());
    test::save_picture(shown, u"residuals"_s);
    shown.reject();
    QVERIFY(!shown.isVisible());
  }

  void accuracy_of_predictions_lists_and_charts_every_published_row() {
    action(u"plan.accuracy"_s)->trigger();
    QCOMPARE(window_->page(), Page::runs);
    AccuracyDialog* shown = window_->pages().runs.accuracy_dialog();
    QVERIFY(shown && shown->isVisible());
    QTRY_VERIFY(!shown->task().is_busy());
    QVERIFY2(shown->totals().rowCount() >= 8, qPrintable(test::result_text(*shown)));
    QVERIFY(test::unnamed(*shown).isEmpty());
    for (int kind = 0; kind < shown->kind().count(); ++kind) {
      shown->kind().setCurrentIndex(kind);
      QVERIFY(shown->rows().rowCount() >= 20);
      QVERIFY(!shown->chart().empty());
      QVERIFY(shown->chart().lines().size() >= 2);  // what was measured, and predictions
      for (int row = 0; row < shown->rows().rowCount(); ++row)
        QVERIFY(!shown->rows().index(row, 7).data().toString().isEmpty());
    }
    shown->kind().setCurrentIndex(0);
    QTest::qWait(120);
    test::save_picture(*shown, u"accuracy"_s);
    shown->reject();
    QVERIFY(!shown->isVisible());
  }

  void a_benchmark_of_this_machine_is_saved_as_a_run() {
    action(u"runs.benchmark"_s)->trigger();
    BenchmarkDialog* shown = window_->pages().runs.benchmark_dialog();
    QVERIFY(shown && shown->isVisible());
    QVERIFY(test::unnamed(*shown).isEmpty());
    QVERIFY(shown->model().findData(u"gemma3-270m"_s) >= 0);
    shown->model().addItem(u"base-model"_s, QStringLiteral(MW_RESOURCES "/base-model"));
    shown->model().setCurrentIndex(shown->model().count() - 1);
    shown->length().setCurrentIndex(1);
    QTest::mouseClick(&test::button_of(*shown, u"Measure"_s), Qt::LeftButton);
    QTRY_VERIFY(test::result_text(*shown).contains(u"Saved as run-"_s) || shown->task().problem());
    QVERIFY2(!shown->task().problem(), qPrintable(test::result_text(*shown)));
    QVERIFY(shown->figures().rowCount() > 8);  // of the chosen model and of the small one
    QCOMPARE(window_->pages().runs.selected().size(), size_t(1));
    QCOMPARE(test::clipped(*shown).join(u"; "_s), QString());
    test::save_picture(*shown, u"benchmark"_s);
    shown->reject();
    QVERIFY(!shown->isVisible());
  }

  void accepted_the_open_plan_follows_and_undo_takes_it_back() {
    const QString before = figure(u"Optimizer step"_s);
    QVERIFY(figure(u"Calibrated"_s).isEmpty());
    open_with(steps(1.3));
    QCOMPARE(dialog().rows().rowCount(), 4);
    QCOMPARE(dialog().efficiencies().rowCount(), 1);
    QVERIFY(test::shows_text(dialog(), u"predicted without it"_s));
    QVERIFY(!dialog().chart().empty());
    QCOMPARE(dialog().chart().lines().size(), size_t(3));
    for (int r = 0; r < 4; ++r)
      QVERIFY(dialog().rows().index(r, CalibrationRowsModel::error_held_out).data().toString().endsWith(u'%'));
    QVERIFY(!fs::exists(kept()));  // looking writes nothing
    picture(u"light"_s);
    window_->set_shade(Shade::dark);
    picture(u"dark"_s);
    window_->set_shade(Shade::light);
    // By keyboard: the focus gets there, and Space accepts.
    test::button_of(dialog(), u"Accept"_s).setFocus();
    QTest::keyClick(&test::button_of(dialog(), u"Accept"_s), Qt::Key_Space);
    QTRY_VERIFY(!dialog().isVisible());
    QVERIFY(fs::exists(kept()));
    priced();
    QVERIFY(figure(u"Optimizer step"_s) != before);
    QVERIFY2(figure(u"Calibrated"_s).startsWith(u"by you, 20"_s), qPrintable(figure(u"Calibrated"_s)));
    QVERIFY(figure(u"Calibrated"_s).endsWith(u"my-steps.json"_s));
    QVERIFY(action(u"plan.undo_calibration"_s)->isEnabled());
    test::save_picture(*window_, u"calibrate-accepted"_s);
    action(u"plan.undo_calibration"_s)->trigger();
    QVERIFY(!fs::exists(kept()));
    priced();
    QCOMPARE(figure(u"Optimizer step"_s), before);
    QVERIFY(!action(u"plan.undo_calibration"_s)->isEnabled());
  }

  void cancelled_nothing_was() {
    const QString before = figure(u"Optimizer step"_s);
    open_with(steps(1.3));
    QTest::keyClick(&dialog(), Qt::Key_Escape);
    QTRY_VERIFY(!dialog().isVisible());
    QVERIFY(!fs::exists(kept()));
    priced();
    QCOMPARE(figure(u"Optimizer step"_s), before);
    // Opened again it is empty, and there is nothing to accept.
    action(u"plan.calibrate"_s)->trigger();
    QTRY_VERIFY(dialog().isVisible());
    QCOMPARE(dialog().rows().rowCount(), 0);
    QVERIFY(!test::button_of(dialog(), u"Accept"_s).isEnabled());
    picture(u"empty"_s);
  }

  void removed_the_shipped_one_is_back_and_undo_brings_mine_again() {
    const QString shipped = figure(u"Optimizer step"_s);
    open_with(steps(1.3));
    QTest::mouseClick(&test::button_of(dialog(), u"Accept"_s), Qt::LeftButton);
    priced();
    const QString mine = figure(u"Optimizer step"_s);
    action(u"plan.calibrate"_s)->trigger();
    QTRY_VERIFY(dialog().isVisible());
    QVERIFY(test::button_of(dialog(), u"Remove Calibration"_s).isEnabled());
    QTest::mouseClick(&test::button_of(dialog(), u"Remove Calibration"_s), Qt::LeftButton);
    priced();
    QCOMPARE(figure(u"Optimizer step"_s), shipped);
    QVERIFY(!test::button_of(dialog(), u"Remove Calibration"_s).isEnabled());
    QTest::mouseClick(&test::button_of(dialog(), u"Undo"_s), Qt::LeftButton);
    priced();
    QCOMPARE(figure(u"Optimizer step"_s), mine);
  }

  void bad_rows_are_said_and_the_others_shown() {
    Json bad{{"id", "broken"}, {"use", "calibration"}, {"value", 1}, {"unit", "s/step"}};
    open_with(steps(1.2, 2, bad));
    QCOMPARE(dialog().rows().rowCount(), 2);
    QVERIFY2(notes().contains(u"rows.broken"_s), qPrintable(notes()));
    QVERIFY(test::button_of(dialog(), u"Accept"_s).isEnabled());
    picture(u"bad-row"_s);
  }

  void another_efficiency_is_another_fit() {
    open_with(steps(1.3));
    for (QToolButton* name : dialog().names())
      if (name->text() == u"memory"_s) QTest::mouseClick(name, Qt::LeftButton);
    QTRY_COMPARE(dialog().efficiencies().rowCount(), 2);
    for (QToolButton* name : dialog().names())
      if (name->isChecked()) QTest::mouseClick(name, Qt::LeftButton);
    int checked = 0;
    for (QToolButton* name : dialog().names()) checked += name->isChecked();
    QCOMPARE(checked, 1);  // never none
  }

  void everything_has_a_name_and_takes_the_focus() {
    open_with(steps(1.3));
    QCOMPARE(test::unnamed(dialog()).join(u", "_s), QString());
    QSet<QWidget*> reached;
    for (int i = 0; i < 60; ++i) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &dialog(), Qt::Key_Tab);
      if (QWidget* w = QApplication::focusWidget()) reached.insert(w);
    }
    for (QPushButton* b : {&test::button_of(dialog(), u"Accept"_s), &test::button_of(dialog(), u"Cancel"_s)})
      QVERIFY2(reached.contains(b), qPrintable(b->text()));
    QVERIFY(dialog().width() <= 1280 && dialog().height() <= 800);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::CalibrateTest)
#include "calibrate_test.moc"
