// SPDX-License-Identifier: GPL-3.0-or-later
// A run on a mesh of virtual devices, looked at: memory of every device, collectives, and one playhead that moves
// charts and mesh together. The record is test data (tests/ui/support.h) whose values are known for every step.
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QTabWidget>
#include <QTableView>
#include <QTest>
#include <QThread>
#include <atomic>
#include <cmath>

#include "core/base/files.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {
constexpr double kMiB = 1 << 20;
constexpr int kSteps = 60;
}  // namespace

class MeshRunTest : public test::WindowFixture {
  Q_OBJECT

  TrainPage& page() { return window_->pages().train; }
  double sent_over(const std::string& axis) {
    for (const views::AxisTraffic& a : page().measured_mesh().snapshot().axes)
      if (a.axis == axis) return a.sum.bytes;
    return -1;
  }
  Bytes held_by(int device) {
    for (const views::DeviceSnapshot& d : page().measured_mesh().snapshot().devices)
      if (d.device == device) return d.bytes.total();
    return {};
  }
  void open_run(int fsdp, int tp) {
    const auto run = test::add_mesh_run(store(), "mesh", kSteps, fsdp, tp);
    window_->show_page(Page::train);
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->id == run);
    QTRY_COMPARE(page().link().data().high, double{kSteps});
  }
  static QPoint at(Chart& chart, double x) {
    const QRectF a = chart.area();
    const AxisRange r = chart.link().range();
    return QPointF(a.left() + (x - r.low) / r.size() * a.width(), a.center().y()).toPoint();
  }
 private slots:
  void init() {
    test::WindowFixture::init();
    open_window({{}, store(), MW_RESOURCES, {}}, Page::train);
  }

  void a_run_with_a_budget_charts_what_is_left() {
    store::RunId run;
    {
      store::Store runs(store());
      run = runs.create(experiment::Experiment(), "limited");
      runs.append(run, {0, event::Started{{{"steps", 10}}}});
      for (long step = 1; step <= 3; ++step) {
        runs.append(run, {static_cast<double>(step), event::Metric{"train/loss", step, 2.0}});
        runs.append(run, {static_cast<double>(step), event::Metric{"budget/left", step, 100.0 - 30.0 * step}});
      }
      event::Finished end;
      end.steps = 3;
      end.summary = {{"budget", {{"spent", true}}}};
      runs.finish(run, 3, end);
    }
    window_->show_page(Page::train);
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->id == run);
    QTRY_VERIFY(page().budget().isVisible());
    QVERIFY2(page().budget().summary().contains(u"10"_s), qPrintable(page().budget().summary()));
    QVERIFY(window_->runs().shown()->view.is_resumable());
  }

  void a_run_on_one_device_shows_no_mesh() {
    const auto run = test::add_run(store(), "one", 20, RunState::done);
    window_->show_page(Page::train);
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown());
    QVERIFY(!page().views().tabBar()->isVisible());
    QVERIFY(!page().collectives().isVisible());
    QVERIFY(!page().measured_mesh().isVisible());
    // Three answers at every twentieth step.
    QVERIFY(page().answers().isVisible());
    QVERIFY2(page().answers().lines()[0].name.contains(u" of "_s), qPrintable(page().answers().lines()[0].name));
    QVERIFY(!page().devices().selector().isVisible());
    QVERIFY(!page().budget().isVisible());
    window_->show_page(Page::design);
    QTest::qWait(60);
    QVERIFY(!window_->pages().design.measured().button().isVisible());
  }

  void every_chart_is_high_enough_for_axis_titles() {
    const auto lowest = [&](const QString& name) {
      QTest::qWait(80);
      QCOMPARE(test::clipped(page()).join(u"; "_s), QString());
      for (Chart* chart : page().findChildren<Chart*>())
        if (chart->isVisible()) QVERIFY2(chart->height() >= 120, qPrintable(chart->options().title));
      picture(name);
    };
    const auto run = test::add_run(store(), "one", 40, RunState::done);
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown());
    lowest(u"train-one-device"_s);
    open_run(2, 4);
    for (int tab = 0; tab < page().views().count(); ++tab) {
      page().views().setCurrentIndex(tab);
      lowest(u"train-mesh-tab-%1"_s.arg(tab));
    }
  }

  void a_sample_opens_with_its_difference_and_escape_closes_it() {
    const auto run = test::add_run(store(), "one", 40, RunState::done);
    window_->runs().open(run);
    QTRY_VERIFY(page().samples().rows().rowCount() > 0);
    QVERIFY(!page().samples().detail().isVisible());
    auto* table = page().tabs().findChild<QTableView*>();
    const QModelIndex at = page().samples().rows().index(0, SamplesModel::answer);
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(at).center());
    QVERIFY(page().samples().detail().isVisible());
    const views::SampleShown& sample = page().samples().rows().row(0);
    for (const std::string& text : {sample.text, sample.expected})
      QVERIFY2(page().samples().detail().toPlainText().contains(qs(text)),
               qPrintable(page().samples().detail().toPlainText()));
    QVERIFY(page().samples().detail().toPlainText().contains(u"Difference"_s) == (sample.text != sample.expected));
    QCOMPARE(std::lround(*page().link().playhead()), sample.step);
    picture(u"train-sample-detail"_s);
    page().samples().detail().setFocus();
    QTest::keyClick(&page().samples().detail(), Qt::Key_Escape);
    QVERIFY(!page().samples().detail().isVisible());
  }

  void a_banner_says_that_the_form_shows_another_experiment() {
    store::Store records(store());
    experiment::Experiment ten;
    ten.set("train.steps", "10");
    const auto run = records.create(ten, "stopped");
    records.append(run, {0, event::Started{.info = Json{{"steps", 10}}}});
    records.append(run, {1, event::Metric{"train/loss", 4, 2.5}});
    records.append(run, {2, event::Finished{RunState::cancelled, 4, 40, 2, Bytes(), "", Json()}});
    window_->runs().open(run);
    QTRY_VERIFY(window_->runs().shown());
    QTRY_VERIFY(page().banner().isVisible());  // the form shows the example
    QVERIFY(button(u"Resume"_s));
    press(u"Show in Form"_s);
    QTRY_VERIFY(!page().banner().isVisible());
    window_->document().set("lora.rank", 3);
    QTRY_VERIFY(page().banner().isVisible());
    QVERIFY(test::shows_text(page().banner(), u"Rank 3 instead of"_s));
  }

  void memory_of_every_device_is_there_the_largest_first() {
    open_run(2, 4);
    QCOMPARE(page().views().tabBar()->isVisible(), true);
    QCOMPARE(page().devices().device(), 7);
    QVERIFY2(page().memory().summary().contains(u"activations 17.0 MiB"_s), qPrintable(page().memory().summary()));
    QCOMPARE(page().devices().selector().count(), 2 + 8);
    page().devices().choose(0);
    QVERIFY2(page().memory().summary().contains(u"activations 10.0 MiB"_s), qPrintable(page().memory().summary()));
    page().devices().choose(DeviceMemoryView::kAll);
    QVERIFY(page().devices().grid().isVisible() && !page().memory().isVisible());
    for (int d = 0; d < 8; ++d)
      QCOMPARE(page().devices().grid().device_at(page().devices().grid().cell(d).center()), d);
    picture(u"mesh-run-all-devices"_s);
    // A double click looks closer.
    QTest::mouseDClick(&page().devices().grid(), Qt::LeftButton, {},
                       page().devices().grid().cell(3).center().toPoint());
    QCOMPARE(page().devices().device(), 3);
    QVERIFY(page().memory().isVisible());
  }

  void collectives_are_shown_in_bytes_and_seconds_with_waiting_apart() {
    open_run(2, 2);
    page().views().setCurrentIndex(1);
    CollectivesPanel& panel = page().collectives();
    QVERIFY2(panel.shown().summary().contains(u"partial sums 2.00 MiB"_s), qPrintable(panel.shown().summary()));
    QVERIFY(panel.shown().options().unit.contains(u"measured"_s));
    panel.choose(views::TrafficBy::axis, views::TrafficAmount::bytes);
    QVERIFY2(panel.shown().summary().contains(u"fsdp 60.0 MiB"_s), qPrintable(panel.shown().summary()));
    panel.choose(views::TrafficBy::kind, views::TrafficAmount::seconds);
    QVERIFY(panel.seconds().isVisible() && !panel.bytes().isVisible());
    QVERIFY2(panel.shown().summary().contains(u"waiting"_s), qPrintable(panel.shown().summary()));
    const auto values = panel.seconds().content().stack.at(10);
    QCOMPARE(values.size(), size_t{4});
    QVERIFY(std::abs(values.back() - 0.001) < 1e-9);
    double all = 0;
    for (const double v : values) all += v;
    QVERIFY(std::abs(all - 0.010) < 1e-9);
    picture(u"mesh-run-seconds"_s);
  }

  void planned_stands_beside_measured_and_what_differs_is_marked() {
    open_run(2, 4);
    MeasuredMesh& mesh = page().measured_mesh();
    const auto over_tp = [&] {
      for (const views::AxisTraffic& a : mesh.snapshot().axes)
        if (a.axis == "tp") return mesh.axis_text(a);
      return QString();
    };
    page().link().set_playhead(30);
    QVERIFY2(over_tp().contains(u"2.00 MiB, planned 2.00 MiB"_s), qPrintable(over_tp()));
    QVERIFY2(mesh.device_text(0).contains(u"; predicted peak 50.0 MiB"_s), qPrintable(mesh.device_text(0)));
    QVERIFY2(mesh.device_text(1).contains(u"more than the predicted peak of 45.0 MiB"_s),
             qPrintable(mesh.device_text(1)));
    const QImage as_planned = mesh.grab().toImage();
    page().link().set_playhead(50);
    QVERIFY2(over_tp().contains(u"2.00 MiB, instead of the planned 1.50 MiB"_s), qPrintable(over_tp()));
    QVERIFY(mesh.summary().contains(u"instead of the planned"_s));
    const auto reds = [](const QImage& image) {  // nearly, as letters have them
      const QColor bad = theme().bad;
      int count = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
          const QColor c = image.pixelColor(x, y);
          count +=
              std::abs(c.red() - bad.red()) + std::abs(c.green() - bad.green()) + std::abs(c.blue() - bad.blue()) < 90;
        }
      return count;
    };
    QVERIFY2(reds(mesh.grab().toImage()) > reds(as_planned) + 20, "the row is marked");
    picture(u"mesh-run-not-as-planned"_s);
  }

  void a_click_in_any_chart_moves_all_of_them_and_the_mesh() {
    open_run(2, 2);
    QCOMPARE(sent_over("fsdp"), kSteps * kMiB);
    // In the loss chart.
    QTest::mouseClick(&page().loss(), Qt::LeftButton, {}, at(page().loss(), 20));
    const long step = page().snapshot().step;
    QVERIFY(std::abs(step - 20) <= 1);
    QCOMPARE(sent_over("fsdp"), static_cast<double>(step) * kMiB);
    QVERIFY(page().loss().summary().contains(
        value_text(page().run()->view.metric("train/loss")->smooth.series()[static_cast<size_t>(step - 1)].y,
                   AxisQuantity::plain)));
    QVERIFY2(page().collectives().shown().summary().contains(
                 value_text(static_cast<double>(step) / 2 * kMiB, AxisQuantity::bytes)),
             qPrintable(page().collectives().shown().summary()));
    QVERIFY(page().measured_mesh().caption().contains(u"step %1, held"_s.arg(step)));
    picture(u"mesh-run-held"_s);
    // In the collectives chart.
    QTest::mouseClick(&page().collectives().shown(), Qt::LeftButton, {}, at(page().collectives().shown(), 40));
    QVERIFY(std::abs(page().snapshot().step - 40) <= 1);
    QCOMPARE(sent_over("fsdp"), static_cast<double>(page().snapshot().step) * kMiB);
    // In the memory chart, which runs over time: at the instant of a forward.
    const double forward = 0.3 + 0.05 * 30 - 0.03;
    page().times().set_cursor(std::nullopt);
    page().times().set_playhead(forward);
    QCOMPARE(page().snapshot().step, 30);
    QCOMPARE(std::lround(*page().link().playhead()), 30);
    QCOMPARE(page().snapshot().devices[0].phase, std::string("forward"));
    QCOMPARE(held_by(0), Bytes(45 << 20));
    // The same step by its number is read at its largest.
    page().link().set_playhead(31);
    QCOMPARE(held_by(0), Bytes(50 << 20));
    QCOMPARE(held_by(3), Bytes(53 << 20));
  }

  void slider_keys_and_commands_move_it_and_live_lets_it_go() {
    open_run(2, 2);
    QVERIFY(page().bar().live().isChecked());
    page().bar().slider().setValue(10);
    QCOMPARE(page().snapshot().step, 10);
    QVERIFY(!page().bar().live().isChecked());
    page().loss().setFocus();
    QTest::keyClick(&page().loss(), Qt::Key_Right);
    QCOMPARE(page().snapshot().step, 11);
    QTest::keyClick(&page().loss(), Qt::Key_Left, Qt::ShiftModifier);
    QCOMPARE(page().snapshot().step, 1);
    window_->actions()[u"view.step_on"_s]->trigger();
    QCOMPARE(page().snapshot().step, 2);
    QCOMPARE(sent_over("fsdp"), 2 * kMiB);
    QTest::mouseClick(&page().bar().live(), Qt::LeftButton);
    QCOMPARE(page().snapshot().step, kSteps);
    QVERIFY(!page().link().playhead());
    QCOMPARE(sent_over("fsdp"), kSteps * kMiB);
    // Pressed again, it holds.
    QTest::mouseClick(&page().bar().live(), Qt::LeftButton);
    QCOMPARE(page().link().playhead(), std::optional(double{kSteps}));
  }

  void a_running_run_is_followed_unless_held() {
    open_run(2, 2);
    RunData& run = *page().run();
    const auto feed = [&](int step) {
      for (const Event& e : test::mesh_events("mesh", step, 2, 2)) {
        const auto* t = std::get_if<event::StepTraffic>(&e.body);
        const auto* m = std::get_if<event::Metric>(&e.body);
        if ((t && t->step == step) || (m && m->step == step)) run.view.feed(e);
      }
      emit window_->runs().shown_updated();
      page().follow();
    };
    feed(kSteps + 1);
    QCOMPARE(page().snapshot().step, kSteps + 1);
    QCOMPARE(sent_over("fsdp"), (kSteps + 1) * kMiB);
    page().link().set_playhead(7);
    feed(kSteps + 2);
    QCOMPARE(page().snapshot().step, 7);
    QTest::mouseClick(&page().bar().live(), Qt::LeftButton);
    QCOMPARE(page().snapshot().step, kSteps + 2);
  }

  void a_device_of_the_mesh_is_chosen_in_the_memory_chart() {
    open_run(2, 2);
    MeasuredMesh& mesh = page().measured_mesh();
    QTest::mouseClick(&mesh, Qt::LeftButton, {}, mesh.device_at(1).center().toPoint());
    QCOMPARE(page().devices().device(), 1);
    mesh.setFocus();
    QTest::keyClick(&mesh, Qt::Key_Down);
    QCOMPARE(page().devices().device(), 3);
    QVERIFY2(mesh.device_text(3).contains(u"53.0 MiB in memory of 80.0 MiB, 66 %"_s), qPrintable(mesh.device_text(3)));
  }

  void the_design_page_shows_the_measured_mesh_and_goes_back_with_one_click() {
    open_run(2, 2);
    page().link().set_playhead(12);
    window_->show_page(Page::design);
    QTest::qWait(60);
    MeasuredSwitch& both = window_->pages().design.measured();
    QVERIFY(both.button().isVisible() && !both.is_measured_shown());
    QVERIFY2(both.button().text().contains(u"run-1"_s), qPrintable(both.button().text()));
    QTest::mouseClick(&both.button(), Qt::LeftButton);
    QVERIFY(both.is_measured_shown() && both.measured().isVisible());
    QVERIFY2(both.measured().caption().contains(u"run-1, step 12, held"_s), qPrintable(both.measured().caption()));
    picture(u"mesh-run-design-measured"_s);
    window_->actions()[u"view.step_on"_s]->trigger();  // the same playhead
    QCOMPARE(both.measured().snapshot().step, 13);
    QTest::mouseClick(&both.button(), Qt::LeftButton);
    QVERIFY(!both.is_measured_shown() && window_->pages().design.canvas().isVisible());
  }

  // What a proof does to the window; what it proves is tests/train's.
  void a_proof_shows_progress_and_the_first_tensor_that_breaks() {
    views::ProofView broken{.holds = false,
                            .verdict = "gradient of layers.1.q_proj differs",
                            .tables = {{"Tensors",
                                        {"Tensor", "Difference"},
                                        {{{"layers.0.q_proj", "0"}, true}, {{"layers.1.q_proj", "1"}, false}}},
                                       {"Traffic", {"Axis", "Counted"}, {{{"tp", "64"}, true}}}}};
    std::atomic<bool> go{false};
    const auto prove = [&](const experiment::Experiment&, const ReportProgress& report, const std::stop_token&) {
      report({"steps on the mesh", 1, 4});
      while (!go) QThread::msleep(1);
      return broken;
    };
    ProofWindow window(prove, nullptr);
    window.show();
    QSignalSpy chosen(&window, &ProofWindow::tensor_chosen);
    window.start(u"a mesh"_s, experiment::Experiment());
    QTRY_COMPARE(window.task().progress().total, 4L);
    QCOMPARE(window.verdict(), u"Proving"_s);
    QVERIFY(window.task().eta_seconds().has_value());
    QCOMPARE(window.bar().value(), 250);
    QVERIFY(test::button_of(window, u"Cancel"_s).isVisible() &&
            !test::button_of(window, u"Copy as Markdown"_s).isEnabled());
    go = true;
    QTRY_VERIFY(!window.task().is_busy());
    QCOMPARE(window.verdict(), u"Does not hold"_s);
    QCOMPARE(window.tabs().count(), 2);
    QCOMPARE(window.tabs().tabText(0), u"Tensors (1 differ)"_s);
    QCOMPARE(qobject_cast<QTableView*>(window.findChild<QTabWidget*>()->widget(0))->currentIndex().row(), 1);
    QCOMPARE(chosen.last().first().toString(), u"layers.1.q_proj"_s);
    QTest::mouseClick(&test::button_of(window, u"Copy as Markdown"_s), Qt::LeftButton);
    QCOMPARE(QGuiApplication::clipboard()->text(), qs(to_markdown(broken)));
    window.export_to(folder() / "proof.csv");
    QCOMPARE(read_file(folder() / "proof.csv"), to_csv(broken));
    QCOMPARE(test::unnamed(window).join(u"; "_s), QString());
    QTest::qWait(60);
    test::save_picture(window, u"mesh-run-proof"_s);
  }

  void a_proof_is_cancelled_at_a_word() {
    const auto prove = [](const experiment::Experiment&, const ReportProgress&,
                          const std::stop_token& stop) -> views::ProofView {
      while (!stop.stop_requested()) QThread::msleep(1);
      throw cancelled("the proof");
    };
    ProofWindow window(prove, nullptr);
    window.show();
    window.start(u"a mesh"_s, experiment::Experiment());
    QTest::mouseClick(&test::button_of(window, u"Cancel"_s), Qt::LeftButton);
    QTRY_VERIFY(!window.task().is_busy());
    QCOMPARE(window.verdict(), u"Cancelled"_s);
    QVERIFY(!window.proof() && !window.task().problem());
  }

  void one_device_has_nothing_to_prove_and_says_so() {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / "tiny-lora.json");
    window_->actions()[u"run.prove"_s]->trigger();
    QVERIFY(window_->pages().design.proof_window().isVisible());
    QTRY_VERIFY(!window_->pages().design.proof_window().task().is_busy());
    QVERIFY(window_->pages().design.proof_window().task().problem());
    QCOMPARE(window_->pages().design.proof_window().verdict(), u"The proof failed to run"_s);
    QVERIFY(window_->actions()[u"run.prove"_s]->isEnabled());
  }

  void the_design_page_shows_the_tensor_a_proof_names() {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / "tiny-lora.json");
    window_->show_page(Page::design);
    QTRY_VERIFY(window_->pages().design.shards().rowCount() > 0);
    window_->pages().design.select_tensor(u"layers.2.down_proj"_s);
    QCOMPARE(window_->pages().design.canvas().tensor(), std::string("layers.2.down_proj"));
    const int row = window_->pages().design.shards_table().currentIndex().row();
    QCOMPARE(window_->pages().design.shards().row(row).name, std::string("layers.*.down_proj"));
  }

  void screen_readers_can_name_everything() {
    open_run(2, 2);
    page().devices().choose(DeviceMemoryView::kAll);
    QCOMPARE(test::unnamed(page()).join(u"; "_s), QString());
    QVERIFY(page().measured_mesh().summary().startsWith(u"measured, run-1"_s));
  }

  void both_themes_and_sizes() {
    for (const auto& [fsdp, tp] : {std::pair{2, 4}, std::pair{2, 2}, std::pair{1, 2}}) {
      open_run(fsdp, tp);
      page().link().set_playhead(30);
      for (const Shade shade : {Shade::light, Shade::dark})
        for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)}) {
          window_->set_shade(shade);
          window_->resize(size);
          QTest::qWait(80);
          const QString name = u"mesh-run-%1x%2-%3-%4"_s.arg(fsdp)
                                   .arg(tp)
                                   .arg(shade == Shade::dark ? u"dark"_s : u"light"_s)
                                   .arg(size.width());
          picture(name);
          QCOMPARE(window_->grab().toImage().size(), size);
        }
    }
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::MeshRunTest)
#include "mesh_run_test.moc"
