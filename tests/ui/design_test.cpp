// SPDX-License-Identifier: GPL-3.0-or-later
// Designing a mesh as a person does, in the real window: the paper's example, tp dragged to eight and refused, a
// preview priced before its drop, the search's best plan applied, everything undone. Pictures in $MW_PICTURES, else the
// build folder.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTableView>
#include <QTest>
#include <QWindow>

#include "tests/ui/support.h"
#include "ui/design/axis_chip.h"
#include "ui/shell/main_window.h"
#include "ui/shell/problems_panel.h"
#include "ui/theme/text.h"

namespace mw::ui {

class DesignTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  std::unique_ptr<test::Scratch> scratch_;
  std::unique_ptr<MainWindow> window_;
  int station_ = 0;

  DesignPage& page() { return window_->design_page(); }
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
    QTRY_VERIFY_WITH_TIMEOUT(window_->pricer().settled(), 20000);
    page().show_frame();
  }
  void open(const char* example) {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / example);
    priced();
  }
  void picture(const QString& name) {
    const QString given = qEnvironmentVariable("MW_PICTURES");
    const auto folder = given.isEmpty() ? std::filesystem::path(MW_PICTURES) : fspath(given);
    std::filesystem::create_directories(folder);
    QTest::qWait(80);
    QVERIFY(
        window_->grab().save(qpath(folder / ss(u"design-%1-%2.png"_s.arg(++station_, 2, 10, QChar(u'0')).arg(name)))));
  }

 private slots:
  void init() {
    warnings_.start();
    scratch_ = std::make_unique<test::Scratch>();
    window_ = std::make_unique<MainWindow>(WindowSetup{{}, scratch_->folder() / "runs", MW_RESOURCES, {}});
    window_->resize(1280, 800);
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    window_->show_page(Page::design);
  }
  void cleanup() {
    window_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void the_journey() {
    open("paper-train-v5p-8.json");
    const runs::Experiment paper = window_->document().experiment();
    QVERIFY2(window_->strip().price_text().startsWith(u"Fits"_s), qPrintable(window_->strip().price_text()));
    QVERIFY(has_problem(u"COV-1"_s));                                   // its expression leaves k_einsum out
    QCOMPARE(figure(u"Trained, served 1 h, measured"_s), u"$77.63"_s);  // the paper's own rows
    QCOMPARE(figure(u"Trained, served 24 h, measured"_s), u"$572.59"_s);
    picture(u"paper"_s);
    // tp to eight: the four global KV heads refuse.
    AxisChip* tp = canvas().chip(u"tp"_s);
    QVERIFY(tp);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Up);
    QVERIFY2(canvas().message().contains(u"does not divide the 4 KV heads"_s), qPrintable(canvas().message()));
    picture(u"refused"_s);
    QCOMPARE(window_->document().experiment(), paper);
    // The fix: the nearest that is possible.
    QTest::keyClick(tp, Qt::Key_Return);
    auto* fix = canvas().findChild<QPushButton*>();
    QTRY_VERIFY(fix->isVisible());
    QTest::mouseClick(fix, Qt::LeftButton);
    QCOMPARE(window_->document().experiment(), paper);  // four it is already
    // Two: memory and price change before the drop, the document with it.
    const QString memory = figure(u"Memory per device"_s), cost = figure(u"Cost"_s);
    tp = canvas().chip(u"tp"_s);
    tp->setFocus();
    QTest::keyClick(tp, Qt::Key_Down);
    QVERIFY(canvas().previewing());
    priced();
    QCOMPARE(window_->document().experiment(), paper);
    QVERIFY(figure(u"Memory per device"_s) != memory);
    QVERIFY(figure(u"Cost"_s) != cost);
    const QString previewed = figure(u"Cost"_s);
    picture(u"preview"_s);
    QTest::keyClick(tp, Qt::Key_Return);
    QCOMPARE(window_->document().experiment().integer("mesh.tp"), 2);
    QCOMPARE(window_->document().experiment().integer("mesh.fsdp"), 2);
    priced();
    QCOMPARE(figure(u"Cost"_s), previewed);
    picture(u"dropped"_s);
    // The search's best plan.
    QTest::mouseClick(&page().alternatives().search_button(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!page().alternatives().searching(), 20000);
    QVERIFY(page().alternatives().model().rowCount() > 10);
    const plan::Candidate best = page().alternatives().model().candidate(0);
    picture(u"searched"_s);
    page().alternatives().table().selectRow(0);
    page().alternatives().table().setFocus();
    QTest::keyClick(&page().alternatives().table(), Qt::Key_Return);
    for (const char* axis : {"fsdp", "tp"})
      QCOMPARE(window_->document().experiment().integer(std::string("mesh.") + axis), best.choice.mesh.size(axis));
    QCOMPARE(window_->document().experiment().integer("train.batch"), best.choice.batch);
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
    QCOMPARE(page().memory().bar().bars().size(), size_t{2});
    picture(u"pinned"_s);
    page().unpin();
    QCOMPARE(page().memory().bar().bars().size(), size_t{1});
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

  void what_cannot_be_designed_is_one_problem_and_the_page_keeps_the_last() {
    open("paper-train-v5p-8.json");
    const QString cost = figure(u"Cost"_s);
    for (const auto& [key, value, id] : {std::tuple{"target.id", Json("v5p-9"), "TARGET-SLICE"},
                                         std::tuple{"mesh", Json{{"fsdp", 3}, {"tp", 2}}, "MESH-SIZE"}}) {
      window_->document().set(key, value);
      priced();
      QVERIFY2(has_problem(QString::fromLatin1(id)), id);
      QCOMPARE(figure(u"Cost"_s), cost);
      window_->document().undo_stack().undo();
      priced();
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
    // The same memory as in the strip, and no speed that nobody measured.
    const Bytes exact = window_->pricer().prediction()->at_peak.total();
    QVERIFY2(figure(u"Memory per device"_s).startsWith(qs(to_text(exact))), qPrintable(figure(u"Memory per device"_s)));
    QCOMPARE(page().plan().rowCount(), 2);
    QVERIFY(!page().time_bar().isVisible());
    QVERIFY(!page().alternatives().search_button().isEnabled());
    picture(u"cpu"_s);
  }

  void screen_readers_can_name_everything() {
    open("paper-train-v5p-8.json");
    QCOMPARE(test::unnamed(page()).join(u"; "_s), QString());
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::DesignTest)
#include "design_test.moc"
