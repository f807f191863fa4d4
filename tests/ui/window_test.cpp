// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAction>
#include <QLineEdit>
#include <QTest>

#include "core/base/files.h"
#include "tests/ui/support.h"
#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

class WindowTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  std::unique_ptr<test::Scratch> scratch_;

  WindowSetup setup() const { return {{}, scratch_->folder() / "runs", MW_RESOURCES, scratch_->folder() / "state"}; }
  static void shown(MainWindow& window) {
    window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&window));
    QApplication::setActiveWindow(&window);
  }

 private slots:
  void init() {
    warnings_.start();
    scratch_ = std::make_unique<test::Scratch>();
  }
  void cleanup() {
    scratch_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void everything_focusable_has_a_name_on_both_pages() {
    test::add_run(scratch_->folder() / "runs", "one", 60, RunState::done);
    MainWindow window(setup());
    shown(window);
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    window.show_page(Page::runs);
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    for (const auto& id : {u"log"_s, u"jobs"_s, u"problems"_s}) {
      window.raise_panel(id);
      QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    }
    window.panel().show_json();
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
  }

  void tab_reaches_form_charts_and_toolbar() {
    test::add_run(scratch_->folder() / "runs", "one", 60, RunState::done);
    MainWindow window(setup());
    shown(window);
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
    test::add_run(scratch_->folder() / "runs", "one", 60, RunState::done);
    MainWindow window(setup());
    shown(window);
    window.document().set("lora.rank", 99);
    window.runs().open("run-1");
    QTRY_VERIFY(window.runs().shown());
    TrainPage& page = window.train_page();
    QTRY_VERIFY(!page.loss().empty());
    QCOMPARE(page.loss().lines().size(), size_t{2});
    QVERIFY(page.memory().summary().contains(u"weights 40.0 MiB"_s));
    QCOMPARE(page.samples().rowCount(), 3);
    // The record says rank 8, whatever the form says now.
    bool rank = false;
    for (QTreeWidgetItem* i : page.record().findItems(u"Rank"_s, Qt::MatchExactly | Qt::MatchRecursive))
      rank |= i->text(1) == u"8"_s;
    QVERIFY(rank);
    QVERIFY(window.log().toPlainText().contains(u"60 rows"_s));
  }

  void clone_puts_the_runs_experiment_into_the_form_and_can_be_undone() {
    test::add_run(scratch_->folder() / "runs", "one", 60, RunState::done);
    MainWindow window(setup());
    shown(window);
    const auto before = window.document().experiment();
    emit window.runs_page().clone_wanted(u"run-1"_s);
    QCOMPARE(window.document().experiment().integer("lora.rank"), 8);
    window.actions()[u"edit.undo"_s]->trigger();
    QVERIFY(window.document().experiment() == before);
  }

  void the_palette_finds_and_does() {
    MainWindow window(setup());
    shown(window);
    window.open_palette();
    QVERIFY(window.palette_box().isVisible());
    QTest::keyClicks(&window.palette_box().line(), u"showruns"_s);
    QVERIFY(window.palette_box().shown() >= 1);
    QTest::keyClick(&window.palette_box().line(), Qt::Key_Return);
    QVERIFY(!window.palette_box().isVisible());
    QVERIFY(window.runs_page().isVisible());
  }

  void a_file_that_cannot_be_read_is_a_problem_and_no_box() {
    write_file_atomically(scratch_->folder() / "bad.json", "{\"schema\": 1,");
    WindowSetup s = setup();
    s.experiment = scratch_->folder() / "bad.json";
    MainWindow window(s);
    shown(window);
    QVERIFY(window.problems().count(Severity::error) >= 1);
    QVERIFY(!QApplication::activeModalWidget());
  }

  void unsaved_edits_theme_and_layout_come_back() {
    {
      MainWindow window(setup());
      shown(window);
      window.set_shade(Shade::dark);
      window.document().set("lora.rank", 77);
      window.close();
    }
    MainWindow window(setup());
    QCOMPARE(window.document().experiment().integer("lora.rank"), 77);
    QVERIFY(theme().shade == Shade::dark);
  }

  void a_run_that_cannot_start_is_reported_and_leaves_the_window_ready() {
    WindowSetup s = setup();
    MainWindow window(s);
    shown(window);
    window.document().replace(runs::Experiment(), u"empty"_s);
    window.actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!window.runs().busy(), 10000);
    QVERIFY(window.problems().count(Severity::error) >= 1);
    QVERIFY(window.actions()[u"run.start"_s]->isEnabled());
    QVERIFY(!QApplication::activeModalWidget());
  }

  void both_themes_and_sizes_paint() {
    test::add_run(scratch_->folder() / "runs", "one", 60, RunState::done);
    MainWindow window(setup());
    shown(window);
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
