// SPDX-License-Identifier: GPL-3.0-or-later
// Batch sizes on the Serve page, measured for real on the shipped base model.
#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QGuiApplication>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <cmath>

#include "tests/ui/window_fixture.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

using options::Workload;

class ServeTest : public test::WindowFixture {
  Q_OBJECT

  void open_window(const Json& changes = Json::object()) {
    const auto file = folder() / "sizes.json";
    test::sizing(changes).save(file);
    WindowFixture::open_window(setup(file), Page::serve);
    window_->pages().serve.show_kind(RunKind::size);
  }
  SizePage& page() { return window_->pages().serve.sizes(); }
  void measure_to_the_end() {
    window_->actions()[u"run.size"_s]->trigger();
    QTRY_VERIFY(!window_->runs().is_busy());
    page().show_frame();
  }
  double cell(int row, int column) { return page().model().index(row, column).data(sort_role).toDouble(); }
  // Every number of the charts, from the table's row of that workload and batch.
  void check_charts_say_what_the_table_says() {
    SizesModel& table = page().model();
    size_t drawn = 0;
    for (const auto& [chart, column] : {std::pair{&page().total(), int{SizesModel::time}},
                                        std::pair{&page().per_token(), int{SizesModel::per_token}}})
      for (int row = 0; row < table.rowCount(); ++row) {
        if (!table.row(row).measured) continue;
        for (const ChartLine& line : chart->lines()) {
          if (line.name != short_text(table.row(row).workload)) continue;
          const auto at = line.raw->nearest(std::log2(table.row(row).batch));
          QVERIFY(at.has_value());
          QCOMPARE((*line.raw)[*at].x, std::log2(table.row(row).batch));
          QCOMPARE((*line.raw)[*at].y, cell(row, column));
          ++drawn;
        }
      }
    size_t samples = 0;
    for (const ChartLine& line : page().total().lines()) samples += line.raw->size();
    QCOMPARE(drawn, 2 * samples);
    for (int row = 0; row < table.rowCount(); ++row) {
      const auto split = page().memory(table.row(row).workload).content().stack.at(std::log2(table.row(row).batch));
      QCOMPARE(split.size(), kMemoryCategories);
      double sum = 0;
      for (size_t c = 0; c < split.size(); ++c) {
        QCOMPARE(cell(row, SizesModel::categories + static_cast<int>(c)), split[c]);
        sum += split[c];
      }
      QCOMPARE(cell(row, table.row(row).measured ? SizesModel::peak : SizesModel::predicted), sum);
    }
  }

 private slots:
  void points_appear_as_they_are_measured_and_the_run_reopens_with_the_same_numbers() {
    open_window();
    std::vector<int> rows_while_running;
    connect(&window_->runs(), &RunController::shown_updated, this, [&] {
      page().show_frame();
      if (window_->runs().is_busy()) rows_while_running.push_back(page().model().rowCount());
    });
    press(u"Measure"_s);
    QVERIFY(window_->runs().is_busy());
    QTRY_VERIFY(!page().link().stops().empty());
    QCOMPARE(page().link().stops().size(), size_t{3});  // the axis stands before the first point
    QTRY_VERIFY(!window_->runs().is_busy());
    page().show_frame();
    const RunPtr live = window_->runs().shown(RunKind::size);
    QCOMPARE(live->view.state(), RunState::done);
    QCOMPARE(page().model().rowCount(), 9);
    QVERIFY(std::any_of(rows_while_running.begin(), rows_while_running.end(), [](int n) { return n > 0 && n < 9; }));
    QVERIFY(std::is_sorted(rows_while_running.begin(), rows_while_running.end()));
    check_charts_say_what_the_table_says();
    QVERIFY2(page().settings_text().contains(u"Prompt 12 tokens"_s), qPrintable(page().settings_text()));
    // All logits at once grow with the batch, in chunks they do not.
    const auto logits = [&](int row) { return cell(row, SizesModel::categories + int{5}); };
    QCOMPARE(page().model().headerData(SizesModel::categories + 5, Qt::Horizontal, Qt::DisplayRole).toString(),
             u"Logits"_s);
    QVERIFY(logits(5) > 3.5 * logits(3));
    QCOMPARE(logits(8), logits(6));

    const QString csv = page().model().csv(), seen = page().total().summary();
    window_->show_page(Page::runs);
    window_->pages().runs.refresh();
    window_->open_run(live->id);
    QCOMPARE(window_->page(), Page::serve);
    QTRY_VERIFY(window_->runs().shown(RunKind::size) != live);
    page().show_frame();
    QCOMPARE(page().model().csv(), csv);
    QCOMPARE(page().total().summary(), seen);
    check_charts_say_what_the_table_says();
  }

  void another_target_is_predicted_with_and_without_lora_beside_the_measured_run() {
    const auto measured = test::add_sizing(store());
    open_window(
        Json{{"target", {{"id", "v5e-1"}}}, {"train", {{"dtype", "bf16"}}}, {"size", {{"batches", {1, 4, 16}}}}});
    page().show_frame();  // names the button
    press(u"Predict"_s);
    QTRY_VERIFY(!window_->runs().is_busy() && window_->runs().shown(RunKind::size));
    page().show_frame();
    const RunPtr run = window_->runs().shown(RunKind::size);
    QCOMPARE(run->view.state(), RunState::done);
    QCOMPARE(page().model().rowCount(), 18);
    QCOMPARE(page().total().lines().size(), size_t{6});
    QVERIFY2(page().settings_text().contains(u"predicted for v5e-1"_s), qPrintable(page().settings_text()));
    for (const ChartLine& line : page().total().lines()) {
      QVERIFY(line.origin == LineOrigin::predicted && line.raw->size() == 3 && line.low && line.high);
      for (size_t i = 0; i < 3; ++i)
        QVERIFY((*line.low)[i].y <= (*line.raw)[i].y && (*line.raw)[i].y <= (*line.high)[i].y);
    }
    for (int row = 0; row < 18; ++row) {
      const serve::MeasuredSize& p = page().model().row(row);
      QCOMPARE(cell(row, SizesModel::time), p.predicted_time->seconds);
      QCOMPARE(cell(row, SizesModel::per_token), p.predicted_time->seconds_per_token());
      QVERIFY(page().model().index(row, SizesModel::result).data().toString().startsWith(u"predicted, "_s));
    }
    // The charts of memory show the capacity of the target, and the adapters if they are asked for.
    Chart& memory = page().memory(Workload::rollout);
    const auto adapters = [&memory] {
      return memory.content().stack.at(0)[static_cast<size_t>(MemoryCategory::adapters)];
    };
    QVERIFY(page().memory_with_adapters().isVisible());
    QCOMPARE(adapters(), 0.0);
    QTest::mouseClick(&page().memory_with_adapters(), Qt::LeftButton, {}, QPoint(8, 8));
    QVERIFY(page().memory_with_adapters().isChecked() && adapters() > 0);
    picture(u"predicted"_s);
    // The measured run beside it: its own solid lines, on the batches of both.
    QTRY_COMPARE(page().beside().count(), 2);
    page().beside().setFocus();
    QTest::keyClick(&page().beside(), Qt::Key_Down);
    QTRY_COMPARE(page().total().lines().size(), size_t{9});
    QCOMPARE(page().per_token().lines().size(), size_t{9});
    QCOMPARE(page().link().stops().size(), size_t{4});  // 1, 2, 4, 16
    for (size_t i = 6; i < 9; ++i) {
      const ChartLine& line = page().total().lines()[i];
      QVERIFY(line.origin == LineOrigin::measured && line.raw->size() == 3 && line.name.startsWith(qs(measured)));
    }
    page().show_frame();
    QCOMPARE(page().total().lines().size(), size_t{9});  // another frame leaves them
    picture(u"predicted-beside"_s);
    page().beside().choose({});
    QCOMPARE(page().total().lines().size(), size_t{6});
    // The form decides what the button does.
    window_->document().set("target.id", "cpu");
    page().show_frame();
    QVERIFY(test::button_of(page(), u"Measure"_s).isEnabled());
  }

  void stopping_half_way_keeps_what_was_measured() {
    open_window(Json{{"size", {{"batches", {1, 2, 3, 4, 5, 6, 7, 8}}, {"new_tokens", 40}}}});
    window_->actions()[u"run.start"_s]->trigger();  // the toolbar's Run measures on this page
    QTRY_VERIFY(page().model().rowCount() >= 2);
    QVERIFY(window_->runs().live()->view.eta_seconds().has_value());
    press(u"Stop"_s);
    QTRY_VERIFY(!window_->runs().is_busy());
    page().show_frame();
    const RunPtr run = window_->runs().shown(RunKind::size);
    QCOMPARE(run->view.state(), RunState::cancelled);
    const int kept = page().model().rowCount();
    QVERIFY(kept >= 2 && kept < 24);
    check_charts_say_what_the_table_says();
    const auto row = store::Store(store()).find(run->id);
    QCOMPARE(row->steps_done, long{kept});
    window_->show_page(Page::runs);
    window_->pages().runs.select(run->id);
    for (QPushButton* b : window_->pages().runs.findChildren<QPushButton*>())
      if (b->text() == u"Resume"_s) QVERIFY(!b->isEnabled());
  }

  void a_batch_that_does_not_fit_is_predicted_marked_and_never_started() {
    open_window(Json{{"size", {{"batches", {1, 2000}}}}, {"target", {{"memory_gib", 0.0625}}}});
    measure_to_the_end();
    SizesModel& table = page().model();
    QCOMPARE(table.rowCount(), 6);
    for (const int row : {1, 3}) {
      const auto& p = table.row(row);
      QCOMPARE(p.batch, 2000);
      QVERIFY(!p.measured && !p.fits() && p.largest_batch > 1 && p.largest_batch < 2000);
      const QString said = table.index(row, SizesModel::result).data().toString();
      const QString wanted = u"largest that fits %1 (predicted)"_s.arg(p.largest_batch);
      QVERIFY2(said.startsWith(u"does not fit: needs "_s) && said.endsWith(wanted), qPrintable(said));
      QVERIFY(table.index(row, SizesModel::time).data().toString().isEmpty());
      QVERIFY(table.index(row, SizesModel::predicted).data(Qt::ToolTipRole).toString().contains(u"predicted"_s));
      Chart& memory = page().memory(p.workload);
      const QString brief = u"Predicted: 2000 needs %1, largest fit %2"_s.arg(
          table.index(row, SizesModel::predicted).data().toString(), QString::number(p.largest_batch));
      QVERIFY2(memory.content().caption.contains(brief), qPrintable(memory.content().caption));
      QCOMPARE(memory.content().notes.size(), size_t{1});
      QCOMPARE(memory.content().stack.origin_at(std::log2(2000)), LineOrigin::predicted);
      QCOMPARE(memory.content().stack.origin_at(0), LineOrigin::measured);
    }
    QVERIFY(page().total().content().caption.contains(u"Predicted not to fit"_s));
    if (table.row(5).measured)
      QCOMPARE(page().memory(Workload::chunked_forward).content().caption, u"Every batch fits"_s);
    // The same height in pixels for the same bytes.
    window_->resize(1280, 800);
    QTest::qWait(60);
    const Chart &rollout = page().memory(Workload::rollout), &forward = page().memory(Workload::forward);
    QCOMPARE(rollout.axes().y(), forward.axes().y());
    QVERIFY(page().total().content().notes.size() >= 2);
    for (const ChartLine& line : page().total().lines()) QVERIFY(line.raw->empty() || line.raw->size() <= 2);
    check_charts_say_what_the_table_says();
  }

  void one_page_shows_its_run_while_the_other_shows_another() {
    test::add_run(store(), "training", 30, RunState::done);
    const store::RunId sized = test::add_sizing(store());
    open_window();
    window_->pages().runs.refresh();
    window_->open_run("run-1");
    QTRY_VERIFY(window_->runs().shown(RunKind::train));
    QCOMPARE(window_->page(), Page::train);
    window_->pages().train.link().set_playhead(12);
    window_->open_run(sized);
    QTRY_VERIFY(window_->runs().shown(RunKind::size));
    QCOMPARE(window_->page(), Page::serve);
    page().show_frame();
    QCOMPARE(page().model().rowCount(), 9);
    window_->show_page(Page::train);
    QCOMPARE(window_->runs().shown()->id, std::string("run-1"));  // log and record follow the page
    QCOMPARE(*window_->pages().train.link().playhead(), 12.0);
    window_->show_page(Page::serve);
    QCOMPARE(window_->runs().shown()->id, sized);
    emit window_->pages().runs.run_deleted(qs(sized));
    QVERIFY(!window_->runs().shown(RunKind::size) && window_->runs().shown(RunKind::train));
    QVERIFY(button(u"Measure"_s));
  }

  void keys_reach_everything_and_every_thing_has_a_name() {
    const store::RunId sized = test::add_sizing(store());
    open_window();
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    window_->runs().open(sized);
    QTRY_VERIFY(window_->runs().shown(RunKind::size));
    page().show_frame();
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    QStringList reached;
    for (int i = 0; i < 400; ++i) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(), Qt::Key_Tab);
      QWidget* f = QApplication::focusWidget();
      const auto* b = qobject_cast<QPushButton*>(f);
      if (f) reached << (b ? b->text() : f->accessibleName());
    }
    for (const auto& name : {u"Serve page"_s, u"Total time chart"_s, u"Time per token chart"_s,
                             u"Rollout memory chart"_s, u"Forward memory chart"_s, u"Chunked memory chart"_s,
                             u"Measured batch sizes"_s, u"Measure"_s, u"Copy Table"_s})
      QVERIFY2(reached.contains(name), qPrintable(name));
    // A pinned batch selects its rows, and Ctrl+C copies them.
    page().total().setFocus();
    QTest::keyClick(&page().total(), Qt::Key_Home);
    QTest::keyClick(&page().total(), Qt::Key_Right);
    QCOMPARE(page().table().selectionModel()->selectedRows().size(), 3);
    page().table().setFocus();
    QTest::keyClick(&page().table(), Qt::Key_C, Qt::ControlModifier);
    const QStringList lines = QGuiApplication::clipboard()->text().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 4);
    for (int i = 1; i < 4; ++i) QCOMPARE(lines[i].split(u'\t')[1], u"2"_s);
    press(u"Copy Table"_s);
    QCOMPARE(QGuiApplication::clipboard()->text(), page().model().csv());
    press(u"Show Settings"_s);
    QTRY_COMPARE(QApplication::focusWidget(), window_->docks().panel.form().row("size.batches")->field()->editor());
    window_->docks().panel.show_command();
    bool said = false;
    for (const auto* t : window_->docks().panel.findChildren<QPlainTextEdit*>())
      said |= t->toPlainText().startsWith(u"meshwright size "_s);
    QVERIFY(said);
  }

  void one_and_twelve_batches_are_readable_at_every_size() {
    const auto one = test::add_sizing(store(), Json{{"size", {{"batches", {4}}, {"workloads", {"forward"}}}}});
    const auto twelve = test::add_sizing(
        store(), Json{{"size", {{"batches", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, {"new_tokens", 2}}}});
    open_window();
    for (const auto& run : {one, twelve}) {
      window_->runs().open(run);
      QTRY_VERIFY(window_->runs().shown(RunKind::size) && window_->runs().shown(RunKind::size)->id == run);
      QCOMPARE(page().memory(Workload::rollout).isVisible(), run == twelve);  // only what was measured takes room
      for (const Shade shade : {Shade::light, Shade::dark})
        for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)}) {
          window_->set_shade(shade);
          window_->resize(size);
          QTest::qWait(60);
          QVERIFY(page().table().horizontalScrollBar()->maximum() == 0);
          const QRectF area = page().memory(Workload::forward).area();
          QVERIFY2(area.width() > 150 && area.height() > 70,
                   qPrintable(u"%1 x %2"_s.arg(area.width()).arg(area.height())));
          for (size_t i = 1; i < page().link().stops().size(); ++i)
            QVERIFY(page().link().stops()[i].value > page().link().stops()[i - 1].value);
          picture(u"serve-%1-%2-%3"_s.arg(run == one ? u"one"_s : u"twelve"_s)
                      .arg(size.width())
                      .arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
        }
    }
  }

  void the_page_is_where_it_was_left() {
    open_window();
    window_->close();
    window_.reset();
    MainWindow again(setup());
    QCOMPARE(again.page(), Page::serve);
    QVERIFY(!again.runs().is_busy());
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ServeTest)
#include "serve_test.moc"
