// SPDX-License-Identifier: GPL-3.0-or-later
// The Compare page: what is in the tray is what table, verdict and charts speak of.
#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDropEvent>
#include <QFile>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QMouseEvent>
#include <QPushButton>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <cmath>
#include <set>

#include "core/base/files.h"
#include "core/compare/replay.h"
#include "core/import/import_files.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"
#include "tests/ui/sweep_fixture.h"
#include "tests/ui/window_fixture.h"
#include "ui/charts/parallel_chart.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/heat_table.h"
#include "ui/pages/compare/runs_at_playhead.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/run_views/run_drag.h"
#include "ui/session/action_registry.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

class CompareTest : public test::WindowFixture {
  Q_OBJECT

  ComparePage& page() { return window_->pages().compare; }
  void settle() { QTRY_VERIFY(!page().is_busy()); }
  // As a drag from the Runs table ends.
  void drop(QMimeData* carried) {
    const std::unique_ptr<QMimeData> owned(carried);
    QDragEnterEvent enter({20, 20}, Qt::CopyAction, carried, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page().tray(), &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent event(QPointF(20, 20), Qt::CopyAction, carried, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page().tray(), &event);
    settle();
  }
  // Two sweeps, measured and predicted, the second with half the time to the first token.
  void open_two(const std::string& second = "v6e-8 simulated") {
    const auto a =
        test::add_sweep(store(), "Here", {.provenance = formats::ResultProvenance::measured, .target = "cpu"});
    const auto b = test::add_sweep(store(), second, {.rates = {1, 2, 4}, .slow = 0.5});
    open_window(setup(), Page::compare);
    drop(run_mime({a, b}));
    QCOMPARE(page().runs().size(), size_t{2});
  }

 private slots:
  void plans_of_experiments_show_measured_figures_beside_predicted_ones() {
    open_window(setup(), Page::compare);
    for (const char* name : {"paper-train-v5p-8.json", "paper-train-2xh100.json"})
      page().add_file(std::filesystem::path(MW_RESOURCES) / "examples" / name);
    settle();
    QCOMPARE(page().runs().size(), size_t{2});
    QStringList rows;
    for (int r = 0; r < page().model().rowCount(); ++r)
      rows << page().model().index(r, 0).data().toString() % u' ' % page().model().index(r, 2).data().toString();
    const QString all = rows.join(u'\n');
    for (const QString& part : {u"Step, measured"_s, u"Run, measured"_s, u"▲ 61 %"_s, u"▲ 112 %"_s})
      QVERIFY2(all.contains(part), qPrintable(all));
  }

  void training_runs_share_one_playhead_over_steps_and_time() {
    const auto a = test::add_run(store(), "one", 120, RunState::done);
    const auto b = test::add_run(store(), "two", 60, RunState::done);
    open_window(setup(), Page::compare);
    drop(run_mime({a, b}));
    CompareCharts& charts = page().charts();
    QCOMPARE(charts.view(), u"loss"_s);
    RunsAtPlayhead& shared = charts.playhead();
    auto& states = shared.snapshots();
    QCOMPARE(states.rowCount(), 2);
    QCOMPARE(states.row(0).step, 120L);
    // A click on one chart moves the playhead of all charts, and the table has both runs at that step.
    shared.link().set_playhead(40);
    QCOMPARE(states.row(0).step, 40L);
    QCOMPARE(states.row(1).step, 40L);
    QCOMPARE(states.row(0).loss, states.row(1).loss);  // the fixture's loss depends on the step only
    for (const QString& view : {u"loss"_s, u"answers"_s})
      for (const Chart* chart : charts.view_of(view).charts()) QCOMPARE(chart->link().reading(), std::optional(40.0));
    shared.link().set_playhead(100);
    QVERIFY(states.row(1).ended && states.row(1).step == 60 && !states.row(0).ended);
    QVERIFY(states.text(states.row(1), 1).contains(u"last"_s));
    // Over time: the fixture makes a step in 0.05 s.
    shared.axis().setCurrentIndex(1);
    QCOMPARE(shared.link().x_name(), u"time"_s);
    shared.link().set_playhead(2.3);
    QCOMPARE(states.row(0).step, 40L);
    QCOMPARE(states.row(1).step, 40L);
    picture(u"compare-playhead"_s);
    shared.axis().setCurrentIndex(0);
    QCOMPARE(shared.link().x_name(), u"step"_s);
  }

  void training_runs_have_parallel_coordinates() {
    const auto a = test::add_run(store(), "one", 120, RunState::done);
    const auto b = test::add_run(store(), "two", 60, RunState::done);
    open_window(setup(), Page::compare);
    drop(run_mime({a, b}));
    CompareCharts& charts = page().charts();
    charts.show_view(u"settings"_s);
    ParallelChart& chart = *charts.findChild<ParallelChart*>();
    QTRY_VERIFY(chart.isVisible());
    QVERIFY(chart.axes().size() >= 2);
    QVERIFY(std::any_of(chart.axes().begin(), chart.axes().end(), [](const auto& axis) { return axis.is_result; }));
    const QPointF middle = (chart.point_of(1, 0) + chart.point_of(1, 1)) / 2;
    const int pointed = chart.run_at(middle);
    QVERIFY(pointed >= 0);
    QMouseEvent move(QEvent::MouseMove, middle, chart.mapToGlobal(middle), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&chart, &move);
    QCOMPARE(chart.emphasis(), pointed);
    QVERIFY(chart.accessibleDescription().contains(qs(chart.axes().front().label)));
    QTest::keyClick(&chart, Qt::Key_Escape);
    QCOMPARE(chart.emphasis(), -1);
    QTest::keyClick(&chart, Qt::Key_Down);
    QCOMPARE(chart.emphasis(), 0);
    QTest::keyClick(&chart, Qt::Key_Up);
    QCOMPARE(chart.emphasis(), 1);
    picture(u"compare-parallel"_s);
  }

  void a_replay_is_explained_by_cause() {
    const auto a = test::add_sweep(store(), "v6e-8 simulated", {.rates = {2}});
    open_window(setup(), Page::compare);
    drop(run_mime({a}));
    page().replay(page().runs().front(), std::nullopt);
    ReplayDialog& dialog = page().replay_dialog();
    QVERIFY(dialog.isVisible() && dialog.explain().isChecked());
    emit dialog.field("serve.kv_dtype")->edited("bf16", Gesture::single);
    QTest::mouseClick(&test::button_of(dialog, u"Replay"_s), Qt::LeftButton);
    QTRY_VERIFY(!dialog.task().is_busy() && page().runs().size() == 2);
    page().charts().show_view(u"replay"_s);
    const auto* table = page().charts().view_of(u"replay"_s).findChild<QTableView*>({}, Qt::FindDirectChildrenOnly);
    const auto& rows = static_cast<TableModel<compare::ReplayRow>&>(*table->model());
    QVERIFY(rows.rowCount() >= 3);
    QStringList causes;
    for (int r = 0; r < rows.rowCount(); ++r) causes << qs(rows.row(r).name);
    QVERIFY2(causes.contains(u"KV type"_s) && causes.back() == u"as replayed"_s, qPrintable(causes.join(u", "_s)));
    QVERIFY(std::isfinite(rows.row(rows.rowCount() - 1).figures.usd));
    picture(u"compare-replay-explained"_s);
  }

  void runs_that_are_dropped_are_compared_and_the_first_is_the_baseline() {
    open_two();
    QCOMPARE(page().model().columnCount(), 3);
    QCOMPARE(page().model().headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), u"Here"_s);
    QTabBar& chips = page().tray().chips();
    QVERIFY(chips.accessibleTabName(0).contains(u"baseline"_s));
    QVERIFY2(chips.tabToolTip(1).contains(u"v6e-8 simulated"_s), qPrintable(chips.tabToolTip(1)));
    QVERIFY2(!page().verdict().isEmpty(), "no verdict");
    // The other one as baseline: by keys, and by the chip's place.
    chips.setFocus();
    chips.setCurrentIndex(1);
    QTest::keyClick(&chips, Qt::Key_Left, Qt::ControlModifier);
    QCOMPARE(page().runs().front().name, std::string("v6e-8 simulated"));
    QCOMPARE(page().model().headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), u"v6e-8 simulated"_s);
    page().move(0, 1);
    // The same run again is read anew, not listed twice.
    page().add_run(page().runs().front().id);
    settle();
    QCOMPARE(page().runs().size(), size_t{2});
    page().remove(0);
    QCOMPARE(page().runs().size(), size_t{1});
    window_->actions()[u"compare.clear"_s]->trigger();
    QVERIFY(button(u"Choose Runs"_s));
  }

  void the_verdict_is_one_line_and_its_button_lists_the_confounders() {
    open_two("Gemma 4 31B served on eight chips of v6e");
    auto* why = page().findChild<QToolButton*>(u"confounders"_s);
    QVERIFY(why && why->isVisible());
    const QStringList confounders = page().verdict().split(u'\n').mid(1);
    QCOMPARE(why->text(), u"%1 confounders \u203A"_s.arg(confounders.size()));
    QVERIFY2(why->height() < 30, "more than one line");
    auto* list = why->menu()->findChild<QLabel*>();
    QVERIFY(list);
    for (const QString& text : confounders) QVERIFY2(list->text().contains(text.toHtmlEscaped()), qPrintable(text));
  }

  void each_difference_says_how_much_of_the_gap_it_explains() {
    const auto served = [this](const char* name, const char* seqs) {
      experiment::Experiment e;
      for (const auto& [key, value] : {std::pair{"kind", "serve"},
                                       {"model.id", "gemma3-1b"},
                                       {"target.id", "v6e-1"},
                                       {"mesh.tp", "1"},
                                       {"sweep.backend", "model"},
                                       {"sweep.request_rates", "[16]"},
                                       {"sweep.input_lens", "[512]"},
                                       {"sweep.num_prompts", "30"},
                                       {"sweep.output_len", "32"},
                                       {"serve.max_num_seqs", seqs},
                                       {"name", name}})
        e.set(key, value);
      formats::BenchSet set = serve::sweep_facts(e.config(), test::context().catalogue);
      set.name = name;
      set.points.push_back(compare::simulated_point(e, {16, 512}, test::context()));
      store::Store out(store());
      return importing::record_set(out, e, std::move(set), "predicted");
    };
    const auto a = served("many", "64"), b = served("few", "2");
    open_window(setup(), Page::compare);
    drop(run_mime({a, b}));
    const auto& model = page().model();
    QString cell, tip;
    for (int r = 0; r < model.rowCount(); ++r) {
      const QModelIndex at = model.index(r, 2);
      if (!at.data().toString().contains(u"% of gap"_s)) continue;
      cell = at.data().toString();
      tip = at.data(Qt::ToolTipRole).toString();
    }
    QVERIFY2(cell.startsWith(u"2"_s) && cell.contains(u"100 % of gap"_s), qPrintable(cell));
    QVERIFY2(tip.contains(u"explains 100 % of gap"_s), qPrintable(tip));
    QVERIFY2(page().verdict().contains(u"explains 100 % of gap"_s), qPrintable(page().verdict()));
  }

  void equal_names_are_told_apart_in_tray_table_and_legends() {
    for (const char* rank : {"8", "16"}) {
      experiment::Experiment e;
      e.set("lora.rank", rank);
      e.set("name", "tiny");
      store::Store out(store());
      const auto run = out.create(e, "tiny");
      for (long step = 1; step < 5; ++step)
        out.append(run, {1.0 * step, event::Metric{"train/loss", step, 2.0 / static_cast<double>(step)}});
    }
    open_window(setup(), Page::compare);
    for (const char* run : {"run-1", "run-2"}) page().add_run(run);
    settle();
    const QStringList names{u"tiny r8"_s, u"tiny r16"_s};
    for (int i = 0; i < 2; ++i) {
      QCOMPARE(page().tray().chips().tabText(i), names[i]);
      QCOMPARE(page().model().headerData(i + 1, Qt::Horizontal, Qt::DisplayRole).toString(), names[i]);
      QVERIFY(
          page().charts().view_of(u"loss"_s).charts()[0]->lines()[static_cast<size_t>(i)].name.startsWith(names[i]));
    }
  }

  void the_first_column_stays_when_the_others_scroll() {
    open_two();
    for (int i = 0; i < 14; ++i) page().add_run(test::add_sweep(store(), "More " + std::to_string(i)));
    settle();
    auto* frozen = page().table().findChild<QTableView*>();
    QTRY_VERIFY(frozen->isVisible());
    QScrollBar& bar = *page().table().horizontalScrollBar();
    bar.setValue(bar.maximum());
    QCOMPARE(page().table().indexAt({2, 2}).column() > 1, true);
    QCOMPARE(frozen->indexAt({2, 2}).column(), 0);
    QCOMPARE(frozen->columnWidth(0), page().table().columnWidth(0));
    page().table().verticalScrollBar()->setValue(3);
    QCOMPARE(frozen->indexAt({2, 2}).row(), page().table().indexAt({2, 2}).row());
    while (page().runs().size() > 3) page().remove(3);
    QTRY_COMPARE(bar.maximum(), 0);  // three runs fit
    QVERIFY(!frozen->isVisible());
    QVERIFY(page().table().columnWidth(1) > 130);
  }

  void table_charts_or_both_are_shown() {
    open_two();
    QCOMPARE(page().shown(), ComparePage::Shown::both);
    QVERIFY(page().table().isVisible() && page().charts().isVisible());
    const auto choose = [&](const QString& text) {
      for (QToolButton* b : page().findChildren<QToolButton*>())
        if (b->text() == text) QTest::mouseClick(b, Qt::LeftButton);
    };
    choose(u"Table"_s);
    QVERIFY(page().table().isVisible() && !page().charts().isVisible());
    choose(u"Charts"_s);
    QVERIFY(!page().table().isVisible() && page().charts().isVisible());
    page().move(0, 1);  // the choice stays
    QCOMPARE(page().shown(), ComparePage::Shown::charts);
  }

  void it_opens_where_the_data_is() {
    // One rate and two lengths: a line by length, single points by rate.
    open_window(setup(), Page::compare);
    for (int i = 0; i < 2; ++i) page().add_run(test::add_sweep(store(), "s" + std::to_string(i), {.rates = {2}}));
    settle();
    QCOMPARE(page().charts().view(), u"length"_s);
    QCOMPARE(page().shown(), ComparePage::Shown::both);
    // Single points only: no chart is worth a look.
    page().clear();
    for (int i = 0; i < 2; ++i)
      page().add_run(
          test::add_sweep(store(), "p" + std::to_string(i), {.rates = {2}, .input_lens = {512}, .requests = 1}));
    settle();
    QCOMPARE(page().shown(), ComparePage::Shown::table);
  }

  void comparing_from_runs_replaces_the_tray_or_adds_to_it() {
    open_two();
    const auto c = test::add_sweep(store(), "third"), d = test::add_sweep(store(), "fourth");
    const auto select = [&](const store::RunId& run) {
      window_->show_page(Page::runs);
      window_->pages().runs.refresh();
      window_->pages().runs.select(run);
    };
    select(c);
    window_->actions()[u"runs.compare_add"_s]->trigger();
    settle();
    QCOMPARE(page().runs().size(), size_t{3});
    select(d);
    window_->actions()[u"runs.compare"_s]->trigger();
    settle();
    QCOMPARE(page().runs().size(), size_t{1});
    QCOMPARE(page().runs()[0].id, d);
  }

  void every_kind_of_run_has_a_comparison() {
    open_two();
    QVERIFY(!page().kinds().isVisible());
    for (int i = 0; i < 2; ++i)
      page().add_run(test::add_run(store(), "train " + std::to_string(i), 20, RunState::done));
    settle();
    QVERIFY(page().kinds().isVisible());
    QCOMPARE(page().kinds().tabText(page().kinds().currentIndex()), u"Training (2)"_s);
    QCOMPARE(page().charts().view(), u"loss"_s);
    page().kinds().setCurrentIndex(static_cast<int>(compare::ComparedKind::serving));
    QCOMPARE(page().runs().front().name, std::string("Here"));
    QCOMPARE(page().charts().view(), u"load"_s);
    QVERIFY(!page().verdict().startsWith(u"Not comparable"_s));
  }

  void every_view_has_an_id_a_name_and_a_place_of_its_own() {
    std::set<QString> ids;
    std::set<int> places;
    for (const CompareViewSpec& view : compare_views()) {
      QVERIFY(!view.name.isEmpty() && view.make);
      QVERIFY2(ids.insert(view.id).second && places.insert(view.place).second, qPrintable(view.id));
    }
    QVERIFY(ids.contains(u"load"_s) && ids.contains(u"loss"_s) && ids.contains(u"sizes"_s));  // one of each kind
  }

  void the_pareto_front_is_drawn_over_the_runs() {
    open_two();
    page().charts().show_view(u"pareto"_s);
    const auto& lines = page().charts().view_of(u"pareto"_s).charts()[0]->lines();
    QCOMPARE(lines.size(), size_t{3});
    QCOMPARE(lines[2].name, u"Pareto front"_s);
    for (size_t i = 1; i < lines[2].raw->size(); ++i) {  // more throughput costs more time
      QVERIFY((*lines[2].raw)[i].x > (*lines[2].raw)[i - 1].x);
      QVERIFY((*lines[2].raw)[i].y > (*lines[2].raw)[i - 1].y);
    }
  }

  void table_rows_speak_of_changes_and_an_slo_marks_cells() {
    open_two();
    ComparisonModel& model = page().model();
    int deltas = 0;
    for (int r = 0; r < model.rowCount(); ++r) {
      const auto& row = model.row(r);
      if (row.kind != compare::ComparisonRow::Kind::result || row.deltas.size() < 2 || !row.deltas[1]) continue;
      QVERIFY(model.index(r, 2).data().toString().endsWith(delta_text(*row.deltas[1])));
      ++deltas;
    }
    QVERIFY(deltas > 5);
    const auto over_slo = [&] {
      QStringList texts;
      for (int r = 0; r < model.rowCount(); ++r)
        for (int c = 1; c < model.columnCount(); ++c)
          if (const QModelIndex at = model.index(r, c); at.data(ComparisonModel::over_slo_role).toBool())
            texts << at.data().toString();
      return texts;
    };
    QCOMPARE(over_slo(), QStringList());
    page().slo_field(0).setText(u"100"_s);
    QVERIFY2(!over_slo().isEmpty(), "409.6 ms is above 100 ms");
    for (const QString& text : over_slo()) QVERIFY2(text.endsWith(u"> SLO"_s), qPrintable(text));
    page().slo_field(0).setText(u"100000"_s);
    QCOMPARE(over_slo(), QStringList());
  }

  void delta_texts_say_direction_without_colour() {
    QCOMPARE(delta_text(-0.96), u"\u25BC 96 %"_s);
    QCOMPARE(delta_text(0.05), u"\u25B2 5.0 %"_s);
    QCOMPARE(delta_text(2.2), u"\u25B2 3.2 x"_s);
    QCOMPARE(delta_text(0), u"="_s);
    QCOMPARE(delta_text(2.6e-7), u"\u2248"_s);
  }

  void every_view_draws_each_run_in_its_own_style_and_lights_together() {
    open_two();
    CompareCharts& charts = page().charts();
    for (const QString& view : {u"load"_s, u"pareto"_s, u"length"_s, u"distribution"_s}) {
      charts.show_view(view);
      for (Chart* chart : charts.view_of(view).charts()) {
        QVERIFY2(chart->lines().size() >= 2, qPrintable(chart->options().title));
        QCOMPARE(chart->lines()[0].origin, LineOrigin::measured);
        QCOMPARE(chart->lines()[1].origin, LineOrigin::predicted);
        QVERIFY(chart->lines()[0].name.contains(u"measured"_s) && chart->lines()[1].name.contains(u"predicted"_s));
        QVERIFY(chart->lines()[0].color != chart->lines()[1].color);
      }
    }
    emit page().tray().hovered(1);
    for (const QString& view : {u"load"_s, u"pareto"_s})
      for (Chart* chart : charts.view_of(view).charts()) QCOMPARE(chart->content().emphasis, 1);
    charts.show_view(u"heat"_s);
    auto* heat = charts.view_of(u"heat"_s).findChild<QTableView*>({}, Qt::FindDirectChildrenOnly);
    QCOMPARE(heat->model()->rowCount(), 4);  // two lengths of two runs
    QCOMPARE(heat->model()->columnCount(), HeatTable::kNames + 6);
    QTest::mouseClick(heat->viewport(), Qt::LeftButton, {}, heat->visualRect(heat->model()->index(0, 3)).center());
    QCOMPARE(charts.view(), u"distribution"_s);
    QCOMPARE(charts.loads().currentText(), u"2 requests/s"_s);
    charts.show_view(u"cost"_s);
    charts.findChild<QLineEdit*>(u"paidOnce"_s)->setText(u"100, 10"_s);
    QCOMPARE(charts.view_of(u"cost"_s).charts()[1]->lines().size(), size_t{2});
    QCOMPARE((*charts.view_of(u"cost"_s).charts()[1]->lines()[0].raw)[0].y, 100.0);
  }

  void training_runs_lay_their_losses_over_each_other() {
    const auto a = test::add_run(store(), "lora a", 60, RunState::done);
    const auto b = test::add_run(store(), "lora b", 40, RunState::done);
    open_window(setup(), Page::runs);
    window_->pages().runs.refresh();
    window_->pages().runs.table().selectAll();
    window_->actions()[u"runs.compare"_s]->trigger();
    QCOMPARE(window_->page(), Page::compare);
    settle();
    QCOMPARE(page().runs().size(), size_t{2});
    QCOMPARE(page().charts().view(), u"loss"_s);
    const auto& lines = page().charts().view_of(u"loss"_s).charts()[0]->lines();
    QCOMPARE(lines.size(), size_t{2});
    QVERIFY(lines[0].raw->size() != lines[1].raw->size());
  }

  void selected_runs_are_exported_as_a_report_and_a_bundle_which_a_drop_imports() {
    for (const char* name : {"lora a", "lora <b>"}) test::add_run(store(), name, 20, RunState::done);
    open_window(setup(), Page::runs);
    RunsPage& runs = window_->pages().runs;
    runs.refresh();
    runs.table().selectAll();
    const auto report = folder() / "report.html", bundle = folder() / "two.meshwright.tar.zst";
    runs.export_report(report);
    QTRY_VERIFY(std::filesystem::exists(report));
    QVERIFY(read_file(report).find("lora &lt;b&gt;") != std::string::npos);
    QTRY_VERIFY((runs.export_bundle(bundle), std::filesystem::exists(bundle)));
    const int before = runs.model().rowCount();
    QMimeData dropped;
    dropped.setUrls({QUrl::fromLocalFile(qpath(bundle))});
    QDragEnterEvent enter({5, 5}, Qt::CopyAction, &dropped, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &enter);  // a drop goes to the widget that has accepted this
    QDropEvent event(QPointF(5, 5), Qt::CopyAction, &dropped, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &event);
    QTRY_COMPARE(runs.model().rowCount(), before + 2);
    QVERIFY(page().runs().empty());
    QTest::qWait(300);
    picture(u"bundle-dropped"_s);
    window_->show_page(Page::compare);
    auto* on_tray = new QMimeData;
    on_tray->setUrls(dropped.urls());
    drop(on_tray);
    QTRY_COMPARE(page().runs().size(), size_t{2});
    QCOMPARE(runs.model().rowCount(), before + 4);
  }

  // scripts/check-recipes.sh's runs of the same data, seed and settings: our engine, Tunix on 2x4 devices, TRL and
  // PEFT.
  void one_experiment_on_three_engines() {
    std::vector<std::filesystem::path> files;
    for (const char* name : {"meshwright", "tunix", "trl-fsdp"})
      files.push_back(std::filesystem::path(MW_FIXTURES) / "three_engines" / (std::string(name) + ".jsonl"));
    const auto imported = importing::import_files(store(), files);
    open_window(setup(), Page::compare);
    for (const auto& run : imported) page().add_run(run.run);
    settle();
    QCOMPARE(page().runs().size(), size_t{3});
    CompareCharts& charts = page().charts();
    QCOMPARE(charts.view(), u"loss"_s);
    for (Chart* chart : {charts.view_of(u"loss"_s).charts()[0], charts.view_of(u"loss"_s).charts()[1]}) {
      QCOMPARE(chart->lines().size(), size_t{3});
      for (const ChartLine& line : chart->lines()) QVERIFY(line.origin == LineOrigin::imported);
    }
    for (const ChartLine& line : charts.view_of(u"loss"_s).charts()[0]->lines()) QCOMPARE(line.raw->size(), size_t{20});
    // Within 2 % of ours at each of the 20 steps, and drawn against the baseline.
    const auto& apart = charts.view_of(u"loss"_s).charts()[2]->lines();
    QCOMPARE(apart.size(), size_t{2});
    for (const ChartLine& line : apart)
      for (size_t i = 0; i < line.raw->size(); ++i) QVERIFY((*line.raw)[i].y > 0 && (*line.raw)[i].y < 2);
    QVERIFY(apart[1].raw->y_range(0, 99)->max < 1e-3);  // TRL: the same mathematics
    const QString verdict = page().verdict();
    QVERIFY2(verdict.startsWith(u"Confounded"_s) && verdict.contains(u"tunix"_s) && verdict.contains(u"trl-fsdp"_s) &&
                 verdict.contains(u"Qwix has one A"_s),
             qPrintable(verdict));
    bool versions = false, steps = false;
    for (int r = 0; r < page().model().rowCount(); ++r) {
      versions |= page().model().row(r).key == "versions";
      steps |= page().model().row(r).key == "train.loss@20";
    }
    QVERIFY(versions && steps);
    for (const Shade shade : {Shade::light, Shade::dark}) {
      window_->set_shade(shade);
      window_->resize(1280, 800);
      QTest::qWait(60);
      QTRY_COMPARE(test::clipped(page()).join(u"; "_s), QString());
      for (Chart* chart : charts.view_of(u"loss"_s).charts())
        QVERIFY(chart->area().width() > 150 && chart->area().height() > 40);
      picture(u"compare-three-engines-%1"_s.arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
    }
  }

  void it_is_exported_in_every_format() {
    open_two();
    page().slo_field(0).setText(u"100"_s);
    for (const char* extension : {"csv", "md", "tex", "html", "png", "svg", "pdf"}) {
      const auto file = folder() / (std::string("comparison.") + extension);
      page().export_to(file);
      QVERIFY2(std::filesystem::exists(file), extension);
      const std::string content = read_file(file);
      if (extension == std::string("pdf")) QVERIFY(content.starts_with("%PDF"));
      if (extension == std::string("svg")) QVERIFY(content.find("<svg") != std::string::npos);
      if (extension == std::string("png")) {
        const QImage image(qpath(file));
        QVERIFY(image.width() == 2400 && image.height() > 1000);
        QCOMPARE(image.pixelColor(3, 3), make_theme(Shade::light).panel);
      }
    }
    // Whatever theme is on screen; and what cannot be written is one problem.
    window_->set_shade(Shade::dark);
    page().export_to(folder() / "dark.png");
    QCOMPARE(QImage(qpath(folder() / "dark.png")).pixelColor(3, 3), make_theme(Shade::light).panel);
    page().export_to(folder() / "comparison.docx");
    QVERIFY(!std::filesystem::exists(folder() / "comparison.docx"));
    QVERIFY(window_->problems().count(Severity::error) > 0);
  }

  void a_run_or_file_that_cannot_be_read_is_one_problem_and_the_tray_stays() {
    open_two();
    page().add_run("run-999");
    settle();
    QCOMPARE(page().runs().size(), size_t{2});
    QVERIFY(window_->problems().count(Severity::error) > 0);
  }

  void long_names_and_many_runs_fit_every_size() {
    open_two("A run with a name that is much longer than any chip or table header could ever show at once");
    for (int i = 0; i < 3; ++i)
      page().add_run(
          test::add_sweep(store(), "Another sweep of the same server " + std::to_string(i), {.rates = {1, 2, 8}}));
    settle();
    QCOMPARE(page().runs().size(), size_t{5});
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    for (const Shade shade : {Shade::light, Shade::dark})
      for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)}) {
        window_->set_shade(shade);
        window_->resize(size);
        QTest::qWait(60);
        QCOMPARE(window_->size(), size);
        for (const QString& view : page().charts().views()) {
          page().charts().show_view(view);
          QTRY_COMPARE(test::clipped(page()).join(u"; "_s), QString());
          if (view == u"load"_s || shade == Shade::light)
            picture(
                u"compare-%1-%2-%3"_s.arg(view).arg(size.width()).arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
          for (Chart* chart : page().charts().view_of(view).charts())
            QVERIFY2(chart->area().width() > 150 && chart->area().height() > 40,
                     qPrintable(u"%1: %2 x %3"_s.arg(chart->options().title)
                                    .arg(chart->area().width())
                                    .arg(chart->area().height())));
        }
      }
  }

  void charts_begin_where_most_runs_have_points_until_the_user_chooses() {
    open_two();
    for (int i = 0; i < 2; ++i)
      page().add_run(test::add_sweep(store(), "More " + std::to_string(i), {.rates = {2}, .input_lens = {4096}}));
    settle();
    QCOMPARE(page().charts().lengths().currentText(), u"4096"_s);
    QCOMPARE(page().charts().loads().currentText(), u"2 requests/s"_s);
    page().charts().lengths().setCurrentText(u"512"_s);
    emit page().charts().lengths().activated(page().charts().lengths().currentIndex());
    page().add_run(test::add_sweep(store(), "One more", {.rates = {2}, .input_lens = {4096}}));
    settle();
    QCOMPARE(page().charts().lengths().currentText(), u"512"_s);
  }

  void break_even_is_said_beside_the_costs() {
    open_two();
    page().charts().show_view(u"cost"_s);
    page().charts().findChild<QLineEdit*>(u"paidOnce"_s)->setText(u"1, 100"_s);
    QLabel* said = nullptr;
    for (QLabel* l : page().charts().findChildren<QLabel*>())
      if (l->accessibleName() == u"Break-even"_s) said = l;
    QVERIFY(said && said->isVisible() && !said->text().isEmpty());
  }

  void ten_runs_one_run_and_points_that_failed_are_shown() {
    std::vector<store::RunId> ids;
    for (int i = 0; i < 10; ++i)
      ids.push_back(test::add_sweep(store(), "v6e-8, a run of many, number " + std::to_string(i + 1),
                                    {.rates = {1, 4, 16}, .input_lens = {512}, .slow = 1 + 0.2 * i}));
    open_window(setup(), Page::compare);
    page().add_run(ids[0]);
    settle();
    QTest::qWait(60);
    QVERIFY(!page().table().isVisible());  // it would be empty: a line says what is missing
    picture(u"compare-one-run"_s);
    QTRY_COMPARE(test::clipped(page()).join(u"; "_s), QString());
    for (const auto& id : ids) page().add_run(id);
    settle();
    QCOMPARE(page().runs().size(), size_t{10});
    QTest::qWait(60);
    QCOMPARE(window_->width(), 1280);
    picture(u"compare-ten-runs"_s);
    // Every number of ten runs has room to be read.
    page().charts().show_view(u"heat"_s);
    QTest::qWait(60);
    const auto* heat = page().charts().view_of(u"heat"_s).findChild<QTableView*>({}, Qt::FindDirectChildrenOnly);
    QVERIFY(heat->columnWidth(3) >= static_cast<const QAbstractItemView*>(heat)->sizeHintForColumn(3));
    picture(u"compare-ten-runs-heat"_s);
  }

  void an_empty_page_says_what_to_do() {
    open_window(setup(), Page::compare);
    QVERIFY(button(u"Choose Runs"_s));
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    press(u"Choose Runs"_s);
    QCOMPARE(window_->page(), Page::runs);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::CompareTest)
#include "compare_test.moc"
