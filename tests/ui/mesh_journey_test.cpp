// SPDX-License-Identifier: GPL-3.0-or-later
// A wrong sharding annotation from the first glance to its cure, in the real window on a mesh that really runs: one
// spec is typed wrongly, the plan says at once what that costs, the run measures it, the proof counts it, the checker's
// fix takes it back with one click.
#include <QAction>
#include <QClipboard>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <cmath>

#include "core/base/files.h"
#include "tests/ui/journey.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

class MeshJourneyTest : public test::Journey {
  Q_OBJECT

  struct Measured {
    double bytes = 0, clumsy = 0, loss = 0;
  };
  Measured right_, wrong_;
  QString right_memory_;
  Bytes right_stored_;

  DesignPage& design() { return window_->pages().design; }
  QString memory_figure() {
    for (int r = 0; r < design().plan().rowCount(); ++r)
      if (design().plan().index(r, PlanModel::figure).data().toString() == u"Memory per device"_s)
        return design().plan().index(r, PlanModel::value).data().toString();
    return {};
  }
  int problem_row(const QString& id) {
    for (int r = 0; r < window_->problems().rowCount(); ++r)
      if (qs(window_->problems().problem(r).id) == id) return r;
    return -1;
  }
  void priced() {
    QTRY_VERIFY(window_->predictor().is_settled());
    design().show_frame();
  }
  int down_proj() {
    for (int r = 0; r < design().shards().rowCount(); ++r)
      if (design().shards().index(r, ShardsModel::tensor).data().toString() == u"layers.*.down_proj"_s) return r;
    return -1;
  }
  void run_it() {
    window_->actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(window_->runs().is_busy());
    QTRY_VERIFY(!window_->runs().is_busy());
    const views::RunView& view = window_->runs().shown()->view;
    QVERIFY2(view.error().empty(), view.error().c_str());
    QCOMPARE(view.state(), RunState::done);
    QTRY_COMPARE(window_->pages().train.snapshot().step, view.step());
    // What moved is what was planned for just these rows, and no device held more than was predicted.
    const views::StepSnapshot& m = window_->pages().train.snapshot();
    QVERIFY(m.traffic.planned && m.traffic.as_planned());
    for (const views::DeviceSnapshot& d : m.devices) QVERIFY(d.predicted && !d.beyond_prediction());
  }
  // Of the last step, as the Train page reads it.
  Measured measured() {
    const views::RunView& view = window_->runs().shown()->view;
    Measured m{.bytes = window_->pages().train.snapshot().traffic.bytes,
               .loss = view.metric("train/loss")->raw.back().y};
    for (const views::TrafficTotals& f : view.traffic().points.back().flows)
      if (view.traffic().kinds[f.kind].cause == "extra resharding") m.clumsy += f.bytes;
    return m;
  }
  // What the plan says a device stores.
  Bytes stored() { return window_->predictor().design()->plan().memory.at_peak[MemoryCategory::weights]; }

 public:
  MeshJourneyTest() : Journey(u"mesh-journey-"_s) {}

 private slots:
  void initTestCase() {
    make_project();
    open_window(R"({"mesh": {"fsdp": 2, "tp": 2}, "lora": {"dropout": 0},
      "train": {"steps": 6, "batch": 4, "accumulation": 1, "eval_every": 0, "checkpoint_every": 0}})");
  }

  void the_designed_mesh_runs_as_it_is() {
    window_->show_page(Page::design);
    priced();
    QVERIFY(down_proj() >= 0);
    design().shards_table().selectRow(down_proj());
    right_memory_ = memory_figure();
    right_stored_ = stored();
    QVERIFY2(!design().canvas().summary().contains(u"does not suit"_s), qPrintable(design().canvas().summary()));
    QCOMPARE(problem_row(u"SHARD-4"_s), -1);
    picture(u"designed"_s);
    run_it();
    right_ = measured();
    QVERIFY(right_.bytes > 0);
    picture(u"ran"_s);
  }

  void a_spec_is_typed_wrongly_and_the_plan_says_so_at_once() {
    window_->show_page(Page::design);
    priced();
    QTableView& table = design().shards_table();
    const QModelIndex spec = design().shards().index(down_proj(), ShardsModel::spec);
    table.setCurrentIndex(spec);
    table.edit(spec);
    auto* editor = table.findChild<QLineEdit*>();
    QVERIFY(editor);
    editor->selectAll();
    QTest::keyClicks(editor, u"(-, tp)"_s);
    QTest::keyClick(editor, Qt::Key_Return);
    QTRY_VERIFY(window_->document().experiment().has("sharding.overrides"));
    priced();
    QCOMPARE(design().shards().index(down_proj(), ShardsModel::spec).data().toString(), u"(-, tp)"_s);
    QVERIFY2(design().canvas().summary().contains(u"does not suit"_s), qPrintable(design().canvas().summary()));
    QVERIFY2(stored() > right_stored_, qPrintable(qs(to_text(stored()))));
    QVERIFY(problem_row(u"SHARD-4"_s) >= 0);
    picture(u"wrong"_s);
  }

  void the_run_measures_what_the_plan_said() {
    run_it();
    wrong_ = measured();
    QVERIFY(wrong_.clumsy > right_.clumsy);  // norms in parts are clumsy, too, by the preset
    QVERIFY(wrong_.bytes != right_.bytes);
    QVERIFY2(std::abs(wrong_.loss - right_.loss) < 1e-5 * right_.loss,
             qPrintable(u"%1 and %2"_s.arg(wrong_.loss).arg(right_.loss)));
    window_->pages().train.collectives().choose(views::TrafficBy::cause, views::TrafficAmount::bytes);
    QVERIFY2(window_->pages().train.collectives().shown().summary().contains(u"extra resharding"_s),
             qPrintable(window_->pages().train.collectives().shown().summary()));
    picture(u"measured"_s);
  }

  void the_proof_holds_and_counts_it() {
    window_->show_page(Page::design);
    window_->actions()[u"run.prove"_s]->trigger();
    QVERIFY(window_->pages().design.proof_window().task().is_busy());
    QVERIFY(window_->pages().design.proof_window().isVisible());
    QTRY_VERIFY(!window_->pages().design.proof_window().task().is_busy());
    QVERIFY2(window_->pages().design.proof_window().proof(),
             window_->pages().design.proof_window().task().problem()
                 ? window_->pages().design.proof_window().task().problem()->message.c_str()
                 : "");
    QVERIFY2(window_->pages().design.proof_window().proof()->holds,
             window_->pages().design.proof_window().proof()->verdict.c_str());
    QCOMPARE(window_->pages().design.proof_window().verdict(), u"Holds"_s);
    QTest::mouseClick(&test::button_of(window_->pages().design.proof_window(), u"Copy as Markdown"_s), Qt::LeftButton);
    QVERIFY(QApplication::clipboard()->text().startsWith(u"**Holds.**"_s));
    const auto file = project_->folder / "proof.csv";
    window_->pages().design.proof_window().export_to(file);
    QVERIFY(read_file(file).starts_with("table,"));
    picture(u"proof"_s, &window_->pages().design.proof_window());
    window_->pages().design.proof_window().close();
  }

  void the_checkers_fix_takes_it_back_with_one_click() {
    const int row = problem_row(u"SHARD-4"_s);
    window_->docks().raise(u"problems"_s);
    window_->docks().problems.choose(row);
    QTest::mouseClick(window_->docks().problems.fix_buttons().front(), Qt::LeftButton);
    priced();
    QCOMPARE(problem_row(u"SHARD-4"_s), -1);
    QCOMPARE(memory_figure(), right_memory_);
    run_it();
    const Measured again = measured();
    QCOMPARE(again.bytes, right_.bytes);
    QCOMPARE(again.loss, right_.loss);  // the same bits
    picture(u"fixed"_s);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::MeshJourneyTest)
#include "mesh_journey_test.moc"
