// SPDX-License-Identifier: GPL-3.0-or-later
// The latency sweep on the Serve page: charts, table, timeline and form say the same of one sweep.
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QThread>
#include <QTimer>
#include <QToolButton>
#include <cmath>
#include <future>

#include "tests/ui/sweep_fixture.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/run_views/run_drag.h"
#include "ui/session/document.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {

class SweepTest : public test::WindowFixture {
  Q_OBJECT

  SweepPage& page() { return window_->pages().serve.sweep(); }
  void open_sweep(const test::SweepShape& shape = {}, const std::string& name = "Simulated sweep") {
    const store::RunId run = test::add_sweep(store(), name, shape);
    open_window(setup(), Page::serve);
    window_->pages().serve.show_kind(RunKind::sweep);
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown(RunKind::sweep));
    QTRY_VERIFY(!page().is_busy());
  }
  static void keep(QWidget& of, const QString& name) {
    QTest::qWait(60);
    test::save_picture(of, name);
  }

 private slots:
  void the_envelope_says_what_a_percentile_needs_and_which_mesh_is_best() {
    const auto file = folder() / "envelope.json";
    auto document = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
    document.set_value("sweep.request_rates", Json::array({1, 16}));
    document.set_value("sweep.input_lens", Json::array({512, 1024}));
    document.set_value("sweep.output_len", 32);
    document.set_value("sweep.num_prompts", 30);
    document.save(file);
    open_window(setup(file), Page::serve);
    window_->pages().serve.show_envelope();
    EnvelopeTab& tab = window_->pages().serve.envelope();
    QTRY_VERIFY2(tab.note().contains(u"p99 of 30 requests has no upper bound"_s), qPrintable(tab.note()));
    QVERIFY(tab.chart().empty());
    window_->document().set("sweep.num_prompts", 400);
    QTRY_VERIFY(tab.note().contains(u"p99 of 400 requests lies between"_s));
    window_->document().set("sweep.num_prompts", 30);
    QTest::mouseClick(&test::button_of(tab, u"Simulate"_s), Qt::LeftButton);
    QVERIFY(tab.is_busy());
    QTRY_VERIFY(!tab.is_busy());
    QVERIFY2(tab.runs().has_value(), qPrintable(tab.verdict()));
    tab.show_frame();
    // Every number of chart and table is that of core, for each length and metric.
    for (int len = 0; len < 2; ++len)
      for (const auto metric : {jobs::EnvelopeMetric::p99_ttft, jobs::EnvelopeMetric::median_e2el}) {
        tab.length().setCurrentIndex(len);
        tab.metric().setCurrentIndex(static_cast<int>(metric));
        const jobs::EnvelopeLine line = envelope(*tab.runs(), metric)[static_cast<size_t>(len)];
        const auto& lines = tab.chart().lines();
        size_t simulated = 0;
        for (size_t m = 0; m < tab.runs()->meshes.size(); ++m) {
          if (!tab.runs()->meshes[m].refusal.empty()) continue;
          const ChartLine& drawn = lines[simulated++];
          QCOMPARE(drawn.name, qs(tab.runs()->meshes[m].name));
          QVERIFY(drawn.origin == LineOrigin::predicted && drawn.low && drawn.high);
          for (size_t i = 0; i < 2; ++i) {
            QCOMPARE((*drawn.raw)[i].y, line.points[i].meshes[m].mean / 1e3);
            QCOMPARE((*drawn.high)[i].y, line.points[i].meshes[m].high / 1e3);
          }
        }
        QVERIFY(simulated > 1);
        QCOMPARE(lines.size(), simulated + 1);
        for (size_t i = 0; i < 2; ++i) {
          QCOMPARE((*lines.back().raw)[i].y, line.points[i].meshes[line.points[i].best].mean / 1e3);
          const QString best = tab.table().model()->index(static_cast<int>(i), 1).data().toString();
          QVERIFY2(best.startsWith(qs(tab.runs()->meshes[line.points[i].best].name)), qPrintable(best));
        }
        QCOMPARE(tab.chart().content().limits.size(), line.crossovers.size());
        QVERIFY(!tab.verdict().isEmpty());
      }
    picture(u"envelope"_s);
    QVERIFY(!tab.is_outdated());
    window_->document().set("sweep.output_len", 64);
    QTRY_VERIFY2(tab.verdict().startsWith(u"Settings have changed"_s), qPrintable(tab.verdict()));
    window_->document().set("target.id", "cpu");
    QTest::mouseClick(&test::button_of(tab, u"Simulate"_s), Qt::LeftButton);
    QTRY_VERIFY(!tab.is_busy());
    QVERIFY2(tab.verdict().contains(u"target.id"_s) && tab.chart().empty(), qPrintable(tab.verdict()));
    QCOMPARE(test::unnamed(tab).join(u"; "_s), QString());
  }

  void hits_and_the_cold_rate_are_shown_if_the_server_keeps_its_cache() {
    for (const bool keeps_cache : {true, false}) {
      views::SweepView view;
      view.set.conditions["prompts"] = keeps_cache ? "replayed" : "salted";
      for (const double hits : {0.0, 0.975}) {
        formats::BenchPoint& point = view.set.points.emplace_back();
        point.request_rate = 1 + hits, point.prefix_hits = hits, point.is_cold = keeps_cache && hits == 0;
      }
      SweepModel model;
      model.show(std::make_shared<const views::SweepView>(view));
      QCOMPARE(model.is_column_used(SweepModel::cache), keeps_cache);
      QCOMPARE(model.index(0, SweepModel::cache).data().toString(), keeps_cache ? u"0 % cold"_s : u"0 %"_s);
      QCOMPARE(model.index(1, SweepModel::cache).data().toString(), u"97.5 %"_s);
    }
  }

  void charts_say_what_the_table_says() {
    open_sweep();
    QCOMPARE(page().model().rowCount(), 12);
    const auto column = [&](const QString& name) {
      for (int c = 0; c < page().model().columnCount(); ++c)
        if (page().model().headerData(c, Qt::Horizontal, Qt::DisplayRole).toString() == name) return c;
      return -1;
    };
    int compared = 0;
    for (const auto& [chart, field, unit] :
         {std::tuple{&page().ttft(), u"TTFT p50 (ms)"_s, 1e-3}, std::tuple{&page().tpot(), u"TPOT p50 (ms)"_s, 1e-3},
          std::tuple{&page().throughput(), u"Output (tokens/s)"_s, 1.0}})
      for (int row = 0; row < page().model().rowCount(); ++row) {
        const QString len = page().model().index(row, SweepModel::input_len).data().toString();
        const double rate = page().model().index(row, SweepModel::request_rate).data(sort_role).toDouble();
        for (const ChartLine& line : chart->lines()) {
          if (line.name != len) continue;
          const auto at = line.raw->nearest(std::log2(rate));
          QCOMPARE((*line.raw)[*at].x, std::log2(rate));
          QCOMPARE((*line.raw)[*at].y, page().model().index(row, column(field)).data(sort_role).toDouble() * unit);
          QCOMPARE(line.origin, LineOrigin::predicted);
          ++compared;
        }
      }
    QCOMPARE(compared, 36);
    // What was offered: rate x 32 tokens, its own style.
    const ChartLine& offered = page().throughput().lines().front();
    QCOMPARE(offered.origin, LineOrigin::requested);
    QCOMPARE((*offered.raw)[3].y, 8.0 * 32);
    QVERIFY(page().ttft().options().unit.contains(u"predicted"_s));
    QVERIFY(page().verdict().contains(u"512 tokens: stable to 16 requests/s, overloaded from 32 requests/s"_s));
  }

  void a_point_is_selected_in_chart_or_table_and_its_requests_are_drawn() {
    open_sweep({.requests = 4000});
    page().table().setCurrentIndex(page().model().index(9, 0));  // 4096 tokens at 8 requests/s
    QCOMPARE(*page().selected(), size_t{9});
    QCOMPARE(*page().link().playhead(), 3.0);
    QCOMPARE(page().timeline().requests(), 4000);
    QTest::qWait(50);
    QVERIFY2(page().timeline().painted_rows() > 10 && page().timeline().painted_rows() < 400,
             qPrintable(QString::number(page().timeline().painted_rows())));
    QVERIFY(page().timeline().row_text(0).contains(u"4096 prompt tokens"_s));
    QVERIFY(page().timeline().row_text(0).contains(u"queued"_s));
    // A click on a chart keeps the length.
    page().ttft().setFocus();
    QTest::keyClick(&page().ttft(), Qt::Key_Right);
    QCOMPARE(*page().selected(), size_t{10});
    QCOMPARE(page().table().currentIndex().row(), 10);
    QCOMPARE(page().in_flight().lines().size(), size_t{2});
    QCOMPARE(page().kv().lines().size(), size_t{1});
    picture(u"sweep-4000-requests"_s);
  }

  void hovering_a_row_lights_its_length_in_all_charts() {
    open_sweep();
    emit page().table().entered(page().model().index(7, 0));
    for (Chart* p : {&page().ttft(), &page().tpot(), &page().throughput()}) QCOMPARE(p->content().emphasis, 1);
    QCOMPARE(*page().link().cursor(), 1.0);
  }

  void the_row_of_settings_edits_the_document_and_says_what_is_wrong() {
    open_window(setup(), Page::serve);
    window_->pages().serve.show_kind(RunKind::sweep);
    auto* rates = qobject_cast<QLineEdit*>(page().form().field("sweep.request_rates")->editor());
    rates->setFocus();
    rates->clear();
    QTest::keyClicks(rates, u"1, 2, inf"_s);
    const Json set = window_->document().experiment().value("sweep.request_rates");
    QVERIFY2(set == (Json{1.0, 2.0, "inf"}), set.dump().c_str());
    QVERIFY(!page().form().field("sweep.url")->isVisible());
    window_->document().set("sweep.backend", "http");
    QVERIFY(page().form().field("sweep.url")->isVisible());
    window_->document().set("sweep.output_len", -4);
    QVERIFY(page().form().field("sweep.output_len")->parentWidget()->findChild<QLabel*>()->property("bad").toBool());
    window_->document().undo_stack().undo();
    QVERIFY(!page().form().field("sweep.output_len")->parentWidget()->findChild<QLabel*>()->property("bad").toBool());
  }

  void points_that_come_are_added_where_they_belong_and_the_reader_stays() {
    const test::SweepShape shape{.rates = {1, 2, 4}, .input_lens = {512}};
    const std::vector<Event> events = test::sweep_events("Live", shape);
    auto run = std::make_shared<RunData>();
    for (size_t i = 0; i < 4; ++i) run->view.feed(events[i]);  // running, started, two points
    SweepReader reader({});
    reader.show(run);
    SweepViewPtr view;
    const auto settled = [&] {
      if (SweepViewPtr newest = reader.drain()) view = std::move(newest);
      return !reader.is_busy();
    };
    QTRY_VERIFY(settled());
    QCOMPARE(view->set.points.size(), size_t{2});
    const SweepViewPtr before = view;
    run->view.feed(events[4]);
    reader.grow();
    QTRY_VERIFY(settled());
    QCOMPARE(view->set.points.size(), size_t{3});
    QCOMPARE(view->lines[0].points.size(), size_t{3});
    QCOMPARE(before->set.points.size(), size_t{2});  // what is on screen is never changed behind it
    reader.grow();
    QVERIFY2(!reader.is_busy(), "nothing came: nothing is made");
    reader.show(nullptr);
    QVERIFY(!reader.is_busy());
  }

  void requests_are_replayed_on_another_target_and_stand_beside_those_recorded() {
    open_sweep({.rates = {1, 2}, .input_lens = {512}, .requests = 12});
    page().table().setCurrentIndex(page().model().index(0, 0));
    press(u"Replay\u2026"_s);
    ReplayDialog& dialog = window_->pages().compare.replay_dialog();
    QVERIFY(dialog.isVisible());
    QCOMPARE(dialog.points().currentIndex(), 1);  // the point that was chosen
    QCOMPARE(dialog.points().count(), 3);
    QCOMPARE(dialog.server().value("target.id").get<std::string>(), std::string("v6e-8"));  // the recording's
    QCOMPARE(dialog.server().value("serve.kv_dtype").get<std::string>(), std::string("fp8"));
    dialog.points().setCurrentIndex(0);
    const auto* mesh = qobject_cast<QLineEdit*>(dialog.field("mesh")->editor());
    const auto shown_mesh = [mesh] { return mesh->text().isEmpty() ? mesh->placeholderText() : mesh->text(); };
    QCOMPARE(shown_mesh(), u"fsdp=1, tp=8"_s);
    emit dialog.field("target.id")->edited("2xh100", Gesture::continuing);
    QCOMPARE(shown_mesh(), u"fsdp=1, tp=2"_s);  // vLLM's own, of two chips
    for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)})
      for (const Shade shade : {Shade::light, Shade::dark}) {
        window_->resize(size);
        window_->set_shade(shade);
        QTest::qWait(30);
        QTRY_COMPARE(test::clipped(dialog).join(u"; "_s), QString());
        test::save_picture(dialog, shade == Shade::dark ? u"replay-dark"_s : u"replay-light"_s);
      }
    QCOMPARE(test::unnamed(dialog).join(u"; "_s), QString());
    QTest::mouseClick(&test::button_of(dialog, u"Replay"_s), Qt::LeftButton);
    QTRY_VERIFY(!dialog.isVisible());
    QCOMPARE(window_->page(), Page::compare);
    QTRY_VERIFY(!window_->pages().compare.is_busy());
    const auto& runs = window_->pages().compare.runs();
    QCOMPARE(runs.size(), size_t{2});
    QCOMPARE(runs[0].name, std::string("Simulated sweep"));
    QVERIFY2(runs[1].name.find("2xh100") != std::string::npos, runs[1].name.c_str());
    QCOMPARE(runs[1].provenance, formats::ResultProvenance::predicted);
    QCOMPARE(runs[1].sweep->set.points.size(), size_t{2});
    // The same loads: their cells have a change.
    int beside = 0;
    for (int r = 0; r < window_->pages().compare.model().rowCount(); ++r) {
      const auto& row = window_->pages().compare.model().row(r);
      beside += row.key.find("@2.median_ttft_ms") != std::string::npos && row.deltas[1].has_value();
    }
    QCOMPARE(beside, 1);
    picture(u"replay-compared"_s);
  }

  void a_replay_that_cannot_be_says_why_and_one_that_goes_is_cancelled() {
    test::add_sweep(store(), "recorded", {.rates = {1}, .input_lens = {512}, .requests = 12});
    const compare::ComparedRun run = compare::compared(store::Store(store()), "run-1");
    std::promise<void> go;
    auto may_go = go.get_future().share();
    bool wait = false;
    const auto context = [&] {
      if (wait && QThread::currentThread() != qApp->thread()) may_go.wait();
      return std::make_shared<const plan::PlanContext>(plan::PlanContext::load(MW_RESOURCES "/hardware"));
    };
    ReplayDialog dialog(store(), context);
    dialog.open_with(compare::recording_of(run), std::nullopt);
    emit dialog.field("target.id")->edited("v99-1", Gesture::single);
    QTest::mouseClick(&test::button_of(dialog, u"Replay"_s), Qt::LeftButton);
    QTRY_VERIFY(test::result_text(dialog).contains(u"v99-1"_s));
    QVERIFY(qobject_cast<QLineEdit*>(dialog.field("mesh")->editor())->placeholderText().isEmpty());
    keep(dialog, u"replay-refused"_s);
    QVERIFY(dialog.isVisible() && test::button_of(dialog, u"Replay"_s).isEnabled());
    emit dialog.field("target.id")->cleared();
    wait = true;
    QTest::mouseClick(&test::button_of(dialog, u"Replay"_s), Qt::LeftButton);
    QVERIFY(dialog.task().is_busy() && !test::button_of(dialog, u"Replay"_s).isEnabled());
    QVERIFY(test::result_text(dialog).contains(u"0 % of the requests"_s));
    keep(dialog, u"replay-going"_s);
    QTest::mouseClick(&test::button_of(dialog, u"Cancel"_s), Qt::LeftButton);
    go.set_value();
    QTRY_VERIFY(!dialog.task().is_busy());
    QVERIFY(dialog.isVisible());  // to be tried with something else
    QVERIFY(test::result_text(dialog).contains(u"Cancelled"_s));
    QCOMPARE(store::Store(store()).list().size(), size_t{1});
    QTest::keyClick(&dialog, Qt::Key_Escape);
    QVERIFY(!dialog.isVisible());
  }

  void an_empty_page_says_what_to_press() {
    open_window(setup(), Page::serve);
    window_->pages().serve.show_kind(RunKind::sweep);
    QVERIFY(button(u"Run Sweep"_s) && button(u"Show Sweep Settings"_s) && button(u"Show Earlier Runs"_s));
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
  }

  void everything_has_a_name_and_is_readable_at_every_size() {
    open_sweep({},
               "A sweep with a name that is much longer than any window could show in its header line, and then some");
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    for (const Shade shade : {Shade::light, Shade::dark})
      for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)}) {
        window_->set_shade(shade);
        window_->resize(size);
        QTest::qWait(60);
        QCOMPARE(window_->size(), size);  // nothing forces it wider
        QTRY_COMPARE(test::clipped(page()).join(u"; "_s), QString());
        for (Chart* p : {&page().ttft(), &page().tpot(), &page().throughput()})
          QVERIFY2(p->area().width() > 150 && p->area().height() > 60,
                   qPrintable(u"%1 x %2"_s.arg(p->area().width()).arg(p->area().height())));
        QVERIFY2(page().table().horizontalScrollBar()->maximum() == 0, "a column does not fit");
        for (Chart* p : page().findChildren<Chart*>()) QVERIFY(p->height() >= 120);
        picture(u"sweep-%1-%2"_s.arg(size.width()).arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
      }
    // With all columns the first two stay where they are.
    window_->resize(1280, 800);
    page().all_columns().click();
    QTest::qWait(60);
    QScrollBar& scroll = *page().table().horizontalScrollBar();
    QVERIFY(scroll.maximum() > 0);
    scroll.setValue(scroll.maximum());
    auto* frozen = page().table().findChild<QTableView*>();
    QVERIFY(frozen && frozen->isVisible() && frozen->columnWidth(0) > 0 && frozen->isColumnHidden(2));
    QVERIFY(frozen->x() <= 2);
    picture(u"sweep-all-columns"_s);
    QTest::mouseClick(button(u"Copy Table"_s), Qt::LeftButton);
    QCOMPARE(QGuiApplication::clipboard()->text(), page().model().csv());
    QVERIFY(page().model().csv().startsWith(
        u"input_len,request_rate,verdict,cache,audit,median_ttft_ms,median_tpot_ms,output_throughput"_s));
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::SweepTest)
#include "sweep_test.moc"
