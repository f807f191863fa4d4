// SPDX-License-Identifier: GPL-3.0-or-later
// Designing a mesh as a person does, in the real window: the paper's example, tp dragged to eight and refused, a
// preview priced before its drop, the search's best plan applied, everything undone. Pictures in $MW_PICTURES, else the
// build folder.
#include <QAbstractScrollArea>
#include <QAction>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTableView>
#include <QTest>
#include <QWindow>
#include <cmath>
#include <set>

#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/design/axis_edit.h"
#include "ui/pages/design/design_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/session/session.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/status_strip.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {

class DesignTest : public test::WindowFixture {
  Q_OBJECT
  int station_ = 0;

  DesignPage& page() { return window_->pages().design; }
  MeshCanvas& canvas() { return page().canvas(); }
  QString figure(const QString& name, int column = PlanModel::value) {
    for (int r = 0; r < page().plan().rowCount(); ++r)
      if (page().plan().index(r, PlanModel::figure).data().toString() == name)
        return page().plan().index(r, column).data().toString();
    return {};
  }
  bool has_problem(const QString& id) {
    for (int r = 0; r < window_->problems().rowCount(); ++r)
      if (qs(window_->problems().problem(r).id) == id) return true;
    return false;
  }
  void priced() {
    QTRY_VERIFY(window_->predictor().is_settled());
    page().show_frame();
  }
  void open(const char* example) {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / example);
    priced();
  }
  bool scrolls_sideways() {
    for (auto* area : page().findChildren<QAbstractScrollArea*>())
      if (area->horizontalScrollBar()->isVisible()) return true;
    return false;
  }
  QRect in_window(QWidget& w) { return {w.mapTo(window_.get(), QPoint()), w.size()}; }
  bool left_of(QWidget& a, QWidget& b) {
    return in_window(a).right() < in_window(b).left() && in_window(a).top() == in_window(b).top();
  }
  static QString heading(MeshCanvas& canvas) { return canvas.parentWidget()->findChild<QLabel*>()->text(); }
  // The frame of the selection is drawn around that device.
  static bool framed(MeshCanvas& canvas, int device) {
    const QImage image = canvas.grab().toImage();
    const QPoint at = canvas.places().device_at(device).topLeft().toPoint();
    const double ratio = image.devicePixelRatio();
    for (int x = 4; x < 12; ++x)
      for (int y = -2; y <= 2; ++y)
        if (image.pixelColor((QPointF(at.x() + x, at.y() + y) * ratio).toPoint()) == theme().accent) return true;
    return false;
  }
  void picture(const QString& name) {
    WindowFixture::picture(u"design-%1-%2"_s.arg(++station_, 2, 10, QChar(u'0')).arg(name));
  }

 private slots:
  // Prices and calibration are read once; a file that a person writes meanwhile counts from then on.
  void prices_written_to_the_users_folder_change_the_plan() {
    open_window(setup(), Page::design);
    open("paper-train-v5p-8.json");
    const QString before = figure(u"Cost"_s);
    const std::filesystem::path file = folder() / "state" / "hardware" / "prices.json";
    std::filesystem::create_directories(file.parent_path());
    const auto write_price = [&](double usd) {
      const Json row = {{"chip", "v5p"},        {"usd_per_chip_hour", usd}, {"region", "here"},
                        {"class", "on demand"}, {"date", "2026-11-29"},     {"source", "a quote"}};
      write_file_atomically(file, Json({{"schema", 1}, {"prices", Json::array({row})}}).dump());
    };
    const auto cost = [this] {
      page().show_frame();
      return figure(u"Cost"_s);
    };
    write_price(1000);
    QTRY_VERIFY(cost() != before);
    const QString dear = figure(u"Cost"_s);
    write_price(2000);
    QTRY_VERIFY(cost() != dear);
    std::filesystem::remove(file);
    QTRY_COMPARE(cost(), before);
  }

  void total_cost_has_three_prices_and_what_moves_it() {
    open("paper-train-v5p-8.json");
    page().tabs().setCurrentWidget(&page().cost());
    QVERIFY(test::shows_text(page().cost(), u"No total cost yet"_s));
    window_->document().set("cost.requests_per_day", 200000);
    window_->document().set("cost.preemptions", 1);
    priced();
    QTRY_COMPARE(page().cost().model().rowCount(), 7);
    QVERIFY2(page().cost().load().contains(u"served on v6e-8"_s), qPrintable(page().cost().load()));
    QCOMPARE(page().cost().model().index(CostModel::training, 1).data().toString(), u"$56.11"_s);
    QVERIFY(!page().cost().chart().empty());
    QVERIFY(page().cost().break_even().isEmpty());
    page().pin();
    window_->document().set("serve.target", "2xh100");
    window_->document().set("serve.usd_per_chip_hour", 11.06);
    priced();
    QTRY_VERIFY2(page().cost().break_even().contains(u"on demand: "_s), qPrintable(page().cost().break_even()));
    QVERIFY(!scrolls_sideways());
    picture(u"total-cost"_s);
  }

  void init() {
    WindowFixture::init();
    WindowSetup forgetful = setup();
    forgetful.session_folder.clear();
    open_window(forgetful, Page::design);
  }

  void the_journey() {
    open("paper-train-v5p-8.json");
    const experiment::Experiment paper = window_->document().experiment();
    QVERIFY2(window_->strip().figures_text().startsWith(u"Fits"_s), qPrintable(window_->strip().figures_text()));
    QVERIFY(has_problem(u"COV-1"_s));                                   // its expression leaves k_einsum out
    QCOMPARE(figure(u"Trained, served 1 h, measured"_s), u"$77.63"_s);  // the paper's own rows
    QCOMPARE(figure(u"Trained, served 24 h, measured"_s), u"$572.59"_s);
    picture(u"paper"_s);
    // tp to eight: the four global KV heads refuse.
    AxisChip* tp = canvas().chip(u"tp"_s);
    QVERIFY(tp);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Up);
    QVERIFY2(canvas().message().contains(u"4 KV heads cannot be split over tp 8"_s), qPrintable(canvas().message()));
    picture(u"refused"_s);
    QCOMPARE(window_->document().experiment(), paper);
    QTest::keyClick(tp, Qt::Key_Escape);
    // Two: memory and price change before the drop, the document with it.
    const QString memory = figure(u"Memory per device"_s), cost = figure(u"Cost"_s);
    tp = canvas().chip(u"tp"_s);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Down);
    QVERIFY(canvas().is_previewing());
    priced();
    QCOMPARE(window_->document().experiment(), paper);
    QVERIFY(figure(u"Memory per device"_s) != memory);
    QVERIFY(figure(u"Cost"_s) != cost);
    const QString previewed = figure(u"Cost"_s);
    picture(u"preview"_s);
    QTest::keyClick(tp, Qt::Key_Return);
    QCOMPARE(window_->document().experiment().value("mesh.tp").get<long long>(), 2);
    QCOMPARE(window_->document().experiment().value("mesh.fsdp").get<long long>(), 2);
    priced();
    QCOMPARE(figure(u"Cost"_s), previewed);
    picture(u"dropped"_s);
    // The search's best plan.
    page().tabs().setCurrentWidget(&page().alternatives());
    QTest::mouseClick(&test::button_of(page().alternatives(), u"Search"_s), Qt::LeftButton);
    QTRY_VERIFY(!page().alternatives().is_searching());
    QVERIFY(page().alternatives().model().rowCount() > 10);
    const plan::Candidate best = page().alternatives().model().row(0);
    QStringList columns;
    for (int c = 0; c < page().alternatives().model().columnCount(); ++c)
      if (!page().alternatives().table().isColumnHidden(c))
        columns << page().alternatives().model().headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
    QCOMPARE(columns.mid(1), (QStringList{u"Mesh"_s, u"Step"_s, u"Cost"_s, u"Memory"_s, u"Settings"_s}));
    QVERIFY(!scrolls_sideways());
    picture(u"searched"_s);
    page().alternatives().table().selectRow(0);
    page().alternatives().table().setFocus();
    QTest::keyClick(&page().alternatives().table(), Qt::Key_Return);
    for (const char* axis : {"fsdp", "tp"})
      QCOMPARE(window_->document().experiment().value(std::string("mesh.") + axis).get<int>(),
               best.choice.mesh.size(axis));
    QCOMPARE(window_->document().experiment().value("train.batch").get<long long>(), best.choice.batch);
    priced();
    QCOMPARE(figure(u"Optimizer step"_s), qs(to_text(Seconds(best.seconds))));
    picture(u"best"_s);
    // Undo everything.
    while (window_->document().undo_stack().canUndo()) window_->document().undo_stack().undo();
    QCOMPARE(window_->document().experiment(), paper);
    priced();
    QCOMPARE(figure(u"Cost"_s), cost);
  }

  void escape_takes_a_preview_back_to_the_documents_price() {
    open("paper-train-v5p-8.json");
    const QString cost = figure(u"Cost"_s);
    AxisChip* tp = canvas().chip(u"tp"_s);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Down);
    priced();
    QVERIFY(figure(u"Cost"_s) != cost);
    QTest::keyClick(tp, Qt::Key_Escape);
    priced();
    QCOMPARE(figure(u"Cost"_s), cost);
    QVERIFY(!window_->document().undo_stack().canUndo());
  }

  void a_pinned_design_stands_beside_the_next_with_what_changed() {
    open("paper-train-v5p-8.json");
    const QString cost = figure(u"Cost"_s);
    page().pin();
    window_->document().set("mesh", Json{{"fsdp", 4}, {"tp", 1}});
    priced();
    QCOMPARE(figure(u"Cost"_s, PlanModel::pinned), cost);
    QVERIFY(!figure(u"Cost"_s, PlanModel::change).isEmpty());
    const ChartBars& memory = page().memory().chart().bars();
    QCOMPARE(memory.bars.size(), size_t{2});
    // The pinned design beside this one: the same scale, up to the capacity.
    const plan::Plan& plan = window_->predictor().design()->plan();
    double sum = 0;
    for (const double bytes : memory.bars[0].values) sum += bytes;
    QCOMPARE(sum, static_cast<double>(plan.memory.at_peak.total().value));
    QCOMPARE(memory.bars[0].text, qs(to_text(plan.memory.at_peak.total())));
    QVERIFY(memory.bars[1].values != memory.bars[0].values && memory.bars[1].name == u"pinned"_s);
    QVERIFY(page().memory().chart().axes().y().high >= static_cast<double>(plan.memory.capacity.value));
    const ChartBars& time = page().time_chart().bars();
    QCOMPARE(time.bars.size(), size_t{2});
    QCOMPARE(time.bars[0].values[0], plan.step.compute.value);
    QVERIFY2(page().time_chart().summary().startsWith(u"Time of a step: this: compute "_s),
             qPrintable(page().time_chart().summary()));
    picture(u"pinned"_s);
    page().unpin();
    QCOMPARE(page().memory().chart().bars().bars.size(), size_t{1});
  }

  void a_drag_shows_the_change_of_the_step_until_it_is_dropped() {
    open("paper-train-v5p-8.json");
    const QString step = figure(u"Optimizer step"_s);
    AxisChip* tp = canvas().chip(u"tp"_s);
    QTest::mousePress(tp, Qt::LeftButton, {}, tp->rect().center());
    QTest::mouseMove(tp, tp->rect().center() - QPoint(28, 0));
    QVERIFY(canvas().is_previewing());
    priced();
    const QString from = QString(step).remove(u" s"_s), to = figure(u"Optimizer step"_s);
    const QString change =
        qs(number_text(std::round(100 * (to.chopped(2).toDouble() / from.toDouble() - 1)))) % u" %"_s;
    QCOMPARE(canvas().callout(), u"fsdp 1 to 2, tp 4 to 2\n%1 to %2 (+%3)"_s.arg(from, to, change));
    QVERIFY2(page().figures().text().contains(u"Step %1 +%2"_s.arg(to, change)), qPrintable(page().figures().text()));
    picture(u"drag"_s);
    QTest::mouseRelease(tp, Qt::LeftButton, {}, tp->rect().center() - QPoint(28, 0));
    priced();
    QCOMPARE(canvas().callout(), QString());
    QVERIFY(!page().figures().text().contains(u'+'));
  }

  void a_pinned_design_adds_the_difference_of_every_tensor() {
    open("paper-train-v5p-8.json");
    const auto difference = [this](const QString& tensor) {
      return page().shards().index(page().shards().find(tensor), ShardsModel::change).data().toString();
    };
    QVERIFY(page().shards_table().isColumnHidden(ShardsModel::change));
    page().pin();
    QVERIFY(!page().shards_table().isColumnHidden(ShardsModel::change));
    QCOMPARE(difference(u"layers.0.q_proj"_s), u"same"_s);
    page().shards().setData(page().shards().index(page().shards().find(u"layers.0.q_proj"_s), ShardsModel::spec),
                            u"(-, fsdp, -)"_s, Qt::EditRole);
    priced();
    QCOMPARE(difference(u"layers.0.q_proj"_s), u"x 4, was (tp, fsdp, -)"_s);
    QCOMPARE(difference(u"layers.0.k_proj"_s), u"same"_s);
    QVERIFY(!scrolls_sideways());
    picture(u"difference"_s);
    page().unpin();
    QVERIFY(page().shards_table().isColumnHidden(ShardsModel::change));
  }

  void optional_columns_are_switched_in_the_header_and_kept() {
    open("paper-train-v5p-8.json");
    const auto shown = [this] {
      QStringList names;
      for (int c = 0; c < page().shards().columnCount(); ++c)
        if (!page().shards_table().isColumnHidden(c))
          names << page().shards().headerData(c, Qt::Horizontal, Qt::DisplayRole).toString();
      return names;
    };
    const QStringList usual{u"Tensor"_s, u"Spec"_s, u"On each device"_s, u"Bytes"_s};
    QCOMPARE(shown(), usual);
    QHeaderView* header = page().shards_table().horizontalHeader();
    QCOMPARE(header->contextMenuPolicy(), Qt::ActionsContextMenu);
    for (QAction* action : header->actions())
      if (action->text() == u"Copies"_s) action->trigger();
    QCOMPARE(shown(), usual + QStringList{u"Copies"_s});
    QVERIFY(!scrolls_sideways());
    const test::Scratch kept;
    Session session(kept.path());
    page().save_state(session);
    init();
    open("paper-train-v5p-8.json");
    QCOMPARE(shown(), usual);
    page().restore_state(session);
    QCOMPARE(shown(), usual + QStringList{u"Copies"_s});
  }

  void servers_are_ranked_by_their_simulated_sweeps() {
    const auto file = folder() / "server.json";
    auto document = experiment::Experiment::load(MW_RESOURCES "/examples/paper-serve-v6e-8.json");
    document.set_value("sweep.request_rates", Json::array({4, 16}));
    document.set_value("sweep.input_lens", Json::array({512}));
    document.set_value("sweep.output_len", 32);
    document.save(file);
    open_window(setup(file), Page::design);
    Alternatives& plans = page().alternatives();
    page().tabs().setCurrentWidget(&plans);
    QTest::mouseClick(&test::button_of(plans, u"Search"_s), Qt::LeftButton);
    QTRY_VERIFY(!plans.is_searching());
    QVERIFY(!plans.table().isColumnHidden(CandidatesModel::request));
    std::set<int> replicas;
    for (int row = 0; row < plans.model().rowCount(); ++row) {
      const plan::Candidate& c = plans.model().row(row);
      QVERIFY(c.sweep.has_value());
      QCOMPARE(plans.model().index(row, CandidatesModel::request).data().toString(),
               qs(to_text(Seconds(c.sweep->seconds))));
      replicas.insert(c.choice.replicas);
    }
    QCOMPARE(replicas, (std::set<int>{1, 2}));
    const plan::PlanChoice best = plans.model().row(0).choice;
    plans.apply(0);
    QCOMPARE(window_->document().experiment().config().sweep.replicas, best.replicas);
    QCOMPARE(qs(window_->document().experiment().config().target.id), qs(best.target));
  }

  void another_target_gets_a_mesh_that_fits_it_in_one_undo_step() {
    open("paper-train-v5p-8.json");
    Document& document = window_->document();
    const experiment::Experiment paper = document.experiment();
    document.set("target.id", "v5p-16");
    priced();
    QVERIFY(!has_problem(u"MESH-SIZE"_s));
    QCOMPARE(canvas().shown().mesh.devices(), 8);
    QCOMPARE(canvas().shown().mesh.size("tp"), 4);  // the KV heads allow no more
    document.undo_stack().undo();
    QCOMPARE(document.experiment(), paper);
    QVERIFY(!document.undo_stack().canUndo());
    // Typed, with another target on the way.
    document.end_gesture();
    for (const char* typed : {"v5p-1", "v5p-12", "v5p-128"}) document.set("target.id", typed, Gesture::continuing);
    priced();
    QCOMPARE(canvas().shown().mesh.devices(), 64);
    QCOMPARE(document.undo_stack().count(), 1);
    document.undo_stack().undo();
    QCOMPARE(document.experiment(), paper);
  }

  void nothing_scrolls_sideways_in_common_windows() {
    for (const QSize size : {QSize(1280, 800), QSize(1000, 650), QSize(2560, 1440)}) {
      window_->resize(size);
      open("paper-train-v5p-8.json");
      for (int tab = 0; tab < page().tabs().count(); ++tab) {
        page().tabs().setCurrentIndex(tab);
        QTest::qWait(30);
        page().show_frame();
        if (size.width() == 1000) picture(u"narrow-%1"_s.arg(tab));
        QVERIFY2(!scrolls_sideways(), qPrintable(u"%1 wide, tab %2"_s.arg(size.width()).arg(tab)));
        QCOMPARE(test::clipped(page()).join(u"; "_s), QString());
      }
      if (size.width() >= 1280) QVERIFY(page().canvases().width() > 0.55 * (page().width() - 16));
      QVERIFY(page().shards_table().width() > page().width() - 24);
    }
  }

  void two_meshes_stand_side_by_side_with_one_selection() {
    open("paper-train-v5p-8.json");
    const experiment::Experiment paper = window_->document().experiment();
    CanvasPair& pair = page().canvases();
    QVERIFY(!pair.pinned().isVisible());
    page().pin();
    AxisChip* tp = canvas().chip(u"tp"_s);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Down);
    QTest::keyClick(tp, Qt::Key_Return);
    priced();
    QVERIFY(pair.pinned().isVisible() && canvas().isVisible());
    QVERIFY(left_of(pair.pinned(), canvas()));
    QCOMPARE(qs(mesh::to_text(pair.pinned().shown().mesh)), u"fsdp 1, tp 4"_s);
    QCOMPARE(qs(mesh::to_text(canvas().shown().mesh)), u"fsdp 2, tp 2"_s);
    for (const char* part : {"v5p-8", "tp\u00A04", "per\u00A0step", "$"})
      QVERIFY2(heading(pair.pinned()).contains(QString::fromUtf8(part)), part);
    QVERIFY(heading(pair.live()).contains(u">tp\u00A02</b>"_s));  // what changed is marked
    QVERIFY(!heading(pair.live()).contains(u">v5p-8</b>"_s));
    // Clicked in one, marked in both.
    QTest::mouseClick(&pair.pinned(), Qt::LeftButton, {}, pair.pinned().places().device_at(2).center().toPoint());
    QCOMPARE(canvas().selected_device(), 2);
    for (MeshCanvas* c : {&pair.pinned(), &canvas()}) {
      QVERIFY(framed(*c, 2) && !framed(*c, 1));
      QVERIFY2(c->status().contains(u"device 2 at 1, 0"_s), qPrintable(c->status()));
    }
    QVERIFY(pair.pinned().status() != canvas().status());  // other pieces of it
    picture(u"two-meshes"_s);
    QTest::mouseClick(&canvas(), Qt::LeftButton, {}, canvas().places().device_at(1).center().toPoint());
    QCOMPARE(pair.pinned().selected_device(), 1);
    // The keys, too; the pinned one cannot be edited.
    pair.pinned().setFocus();
    QTest::keyClick(&pair.pinned(), Qt::Key_Down);
    QCOMPARE(canvas().selected_device(), 3);
    const experiment::Experiment edited = window_->document().experiment();
    AxisChip* pinned_tp = pair.pinned().chip(u"tp"_s);
    pinned_tp->setFocus();
    for (const auto key : {Qt::Key_Down, Qt::Key_Return, Qt::Key_Delete}) QTest::keyClick(pinned_tp, key);
    QCOMPARE(window_->document().experiment(), edited);
    // A tensor chosen in the table is shown in both, with what moves for it.
    page().shards_table().selectRow(page().shards().find(u"layers.0.down_proj"_s));
    for (MeshCanvas* c : {&pair.pinned(), &canvas()}) {
      QCOMPARE(c->tensor(), std::string("layers.0.down_proj"));
      QVERIFY(c->has_tensor());
    }
    QVERIFY(pair.pinned().summary().contains(u"over tp"_s) && !pair.pinned().summary().contains(u"over fsdp"_s));
    QVERIFY(canvas().summary().contains(u"over tp"_s) && canvas().summary().contains(u"over fsdp"_s));
    // One or both.
    QTest::keyClick(window_.get(), Qt::Key_B, Qt::ControlModifier);
    QVERIFY(!pair.pinned().isVisible());
    QTest::keyClick(window_.get(), Qt::Key_B, Qt::ControlModifier);
    QVERIFY(pair.pinned().isVisible());
    // Undo is about the document alone.
    window_->document().undo_stack().undo();
    priced();
    QCOMPARE(window_->document().experiment(), paper);
    QCOMPARE(qs(mesh::to_text(canvas().shown().mesh)), u"fsdp 1, tp 4"_s);
    window_->document().undo_stack().redo();
    priced();
    QCOMPARE(qs(mesh::to_text(canvas().shown().mesh)), u"fsdp 2, tp 2"_s);
    // Swapped, as one step.
    QTest::keyClick(window_.get(), Qt::Key_B, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(window_->document().experiment(), paper);
    priced();
    QCOMPARE(qs(mesh::to_text(canvas().shown().mesh)), u"fsdp 1, tp 4"_s);
    QCOMPARE(qs(mesh::to_text(pair.pinned().shown().mesh)), u"fsdp 2, tp 2"_s);
    window_->document().undo_stack().undo();
    QCOMPARE(window_->document().experiment(), edited);
    QCOMPARE(test::unnamed(page()).join(u"; "_s), QString());
  }

  void meshes_of_two_targets_say_what_only_one_has() {
    open("paper-train-v5p-8.json");
    page().pin();
    experiment::Experiment gpus = window_->document().experiment();
    gpus.set_value("target.id", "2xh100");
    gpus.set_value("mesh", Json{{"fsdp", 2}, {"tp", 1}});
    gpus.set_value("lora.targets", Json::array({"q_proj"}));
    window_->document().replace(gpus, u"other chips"_s);
    priced();
    CanvasPair& pair = page().canvases();
    QVERIFY2(heading(pair.live()).contains(u">2xh100</b>"_s), qPrintable(heading(pair.live())));
    QCOMPARE(pair.pinned().devices(), 4);
    QCOMPARE(canvas().devices(), 2);
    QTest::mouseClick(&pair.pinned(), Qt::LeftButton, {}, pair.pinned().places().device_at(3).center().toPoint());
    QCOMPARE(canvas().status(), u"This design has no device 3; it has 2"_s);
    picture(u"two-targets"_s);
    QTest::mouseClick(&canvas(), Qt::LeftButton, {}, canvas().places().device_at(1).center().toPoint());
    QVERIFY(pair.pinned().status().contains(u"device 1"_s));
    const int row = page().shards().find(u"layers.0.q_proj.lora_a"_s);
    QVERIFY(row >= 0);
    page().shards_table().selectRow(row);
    page().pin();
    window_->document().set("train.method", "full");
    priced();
    QVERIFY(pair.pinned().has_tensor() && !canvas().has_tensor());
    QVERIFY2(canvas().summary().contains(u"this design has no tensor layers.0.q_proj.lora_a"_s),
             qPrintable(canvas().summary()));
    picture(u"tensor-of-one"_s);
  }

  void the_divider_stays_where_it_was_put_and_narrow_meshes_are_stacked() {
    open("paper-train-v5p-8.json");
    page().pin();
    QTest::qWait(50);
    CanvasPair& pair = page().canvases();
    QWidget* handle = pair.handle(1);
    const int before = pair.sizes()[0];
    QTest::mousePress(handle, Qt::LeftButton, {}, handle->rect().center());
    QTest::mouseMove(handle, handle->rect().center() + QPoint(24, 0));
    QTest::mouseRelease(handle, Qt::LeftButton, {}, handle->rect().center());
    const int moved = pair.sizes()[0];
    QVERIFY2(moved >= before + 10, qPrintable(u"%1 to %2"_s.arg(before).arg(moved)));
    const test::Scratch kept;
    Session session(kept.path());
    page().save_state(session);
    init();
    open("paper-train-v5p-8.json");
    page().restore_state(session);
    page().pin();
    QTest::qWait(50);
    QVERIFY(std::abs(page().canvases().sizes()[0] - moved) <= 2);
    // Too narrow for two: one above the other.
    window_->resize(900, 900);
    QTest::qWait(50);
    QVERIFY(page().canvases().width() < 485);
    const QRect upper = in_window(page().canvases().pinned()), lower = in_window(canvas());
    QVERIFY(upper.bottom() < lower.top() && upper.left() == lower.left());
    picture(u"stacked"_s);
  }

  void a_typed_spec_becomes_a_rule_and_a_wrong_one_a_problem() {
    open("paper-train-v5p-8.json");
    const int row = page().shards().find(u"layers.0.q_proj"_s);
    QVERIFY(row >= 0);
    const QModelIndex spec = page().shards().index(row, ShardsModel::spec);
    const QString bytes = page().shards().index(row, ShardsModel::per_device).data().toString();
    page().shards().setData(spec, u"(-, -, -)"_s, Qt::EditRole);
    priced();
    QCOMPARE(page().shards().index(row, ShardsModel::spec).data().toString(), u"(-, -, -)"_s);
    QVERIFY(page().shards().index(row, ShardsModel::per_device).data().toString() != bytes);
    page().shards().setData(spec, u"(tp, tp, -)"_s, Qt::EditRole);
    priced();
    QVERIFY(has_problem(u"SPEC-TWICE"_s));
    window_->document().undo_stack().undo();
    window_->document().undo_stack().undo();
    priced();
    QCOMPARE(page().shards().index(row, ShardsModel::per_device).data().toString(), bytes);
  }

  void what_cannot_be_designed_is_one_problem_and_has_no_figures() {
    open("paper-train-v5p-8.json");
    const QString cost = figure(u"Cost"_s);
    for (const auto& [key, value, id] : {std::tuple{"target.id", Json("v5p-9"), "TARGET-SLICE"},
                                         std::tuple{"mesh", Json{{"fsdp", 3}, {"tp", 2}}, "MESH-SIZE"}}) {
      window_->document().set(key, value);
      priced();
      QVERIFY2(has_problem(QString::fromLatin1(id)), id);
      QCOMPARE(figure(u"Cost"_s), QString());
      window_->document().undo_stack().undo();
      priced();
      QCOMPARE(figure(u"Cost"_s), cost);
      QVERIFY(!has_problem(QString::fromLatin1(id)));
    }
  }

  void values_of_the_wrong_type_are_problems_and_no_end() {
    open("paper-train-v5p-8.json");
    const QString cost = figure(u"Cost"_s);
    for (const char* key : {"target.id", "kind", "mesh", "sharding.overrides", "data.lengths", "model.id"}) {
      window_->document().set(key, 5);
      priced();
      QVERIFY2(window_->problems().count(Severity::error) > 0, key);
      window_->document().undo_stack().undo();
      priced();
      QCOMPARE(figure(u"Cost"_s), cost);
    }
  }

  void this_machine_is_a_design_too() {
    open("tiny-lora.json");
    QTRY_VERIFY(page().plan().rowCount() > 0);
    QVERIFY(page().shards().rowCount() > 0);
    // The same memory as in the strip, and a time at rates whose source is named.
    const plan::Plan& exact_plan = window_->predictor().design()->plan();
    QVERIFY(!exact_plan.memory.is_bound);
    const Bytes exact = exact_plan.memory.at_peak.total();
    QVERIFY2(figure(u"Memory per device"_s).startsWith(qs(to_text(exact))), qPrintable(figure(u"Memory per device"_s)));
    QVERIFY(figure(u"Trained"_s).contains(u'%'));
    QVERIFY2(figure(u"Rates"_s).contains(u"meshwright bench --save"_s), qPrintable(figure(u"Rates"_s)));
    QCOMPARE(figure(u"Optimizer step"_s), qs(to_text(Seconds(exact_plan.step.seconds.value))));
    QVERIFY(!page().time_chart().isHidden());
    QVERIFY(!test::button_of(page().alternatives(), u"Search"_s).isEnabled());
    picture(u"cpu"_s);
  }

  void a_server_on_this_machine_is_a_design_too() {
    open("tiny-serve.json");
    QVERIFY(page().shards().rowCount() > 0);
    const Bytes exact = window_->predictor().design()->plan().memory.at_peak.total();
    QVERIFY(exact.value > 0);
    QVERIFY2(figure(u"Memory per device"_s).startsWith(qs(to_text(exact))), qPrintable(figure(u"Memory per device"_s)));
    QVERIFY(!page().time_chart().isHidden());
    picture(u"cpu-serve"_s);
  }

  void screen_readers_can_name_everything() {
    open("paper-train-v5p-8.json");
    QCOMPARE(test::unnamed(page()).join(u"; "_s), QString());
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::DesignTest)
#include "design_test.moc"
