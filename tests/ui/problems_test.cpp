// SPDX-License-Identifier: GPL-3.0-or-later
// The checker in the window: what it finds, why, and its fixes as one undoable step.
#include <QPushButton>
#include <QTest>

#include "core/base/files.h"
#include "tests/ui/window_fixture.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

class ProblemsTest : public test::WindowFixture {
  Q_OBJECT

  int row_of(const std::string& id) const {
    for (int r = 0; r < window_->problems().rowCount(); ++r)
      if (window_->problems().problem(r).id == id) return r;
    return -1;
  }
  const experiment::Experiment& experiment() const { return window_->document().experiment(); }

 private slots:
  void init() {
    WindowFixture::init();
    const auto file = folder() / "paper.json";
    write_file_atomically(file, R"({"schema": 1, "model": {"id": "gemma4-31b"}, "target": {"id": "v5p-16"},
      "mesh": {"fsdp": 1, "tp": 8}, "data": {"max_len": 3072},
      "lora": {"rank": 64, "alpha": 64, "module_path":
        ".*q_einsum|.*kv_einsum|.*gate_proj|.*down_proj|.*up_proj|.*attn_vec_einsum"},
      "train": {"batch": 2, "dtype": "bf16", "remat": "layer", "loss_chunk": 256}})");
    open_window(setup(file), Page::design);
  }

  void the_papers_mistakes_are_found_with_why() {
    QTRY_VERIFY(row_of("TP-2") >= 0);
    QVERIFY(row_of("COV-1") >= 0);
    ProblemsPanel& panel = window_->docks().problems;
    window_->docks().raise(u"problems"_s);
    QCOMPARE(panel.why(), QString());
    panel.choose(row_of("TP-2"));
    QVERIFY(panel.why().contains(u"k_einsum"_s));
    QCOMPARE(panel.fix_buttons().size(), size_t{1});
    QVERIFY(panel.fix_buttons().front()->toolTip().contains(u"--set mesh.fsdp=2 --set mesh.tp=4"_s));
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
  }

  void a_fix_is_one_step_that_can_be_taken_back() {
    QTRY_VERIFY(row_of("TP-2") >= 0);
    const experiment::Experiment before = experiment();
    ProblemsPanel& panel = window_->docks().problems;
    window_->docks().raise(u"problems"_s);
    panel.choose(row_of("TP-2"));
    QTest::mouseClick(panel.fix_buttons().front(), Qt::LeftButton);
    QCOMPARE(experiment().value("mesh.tp").get<long long>(), 4);
    QCOMPARE(experiment().value("mesh.fsdp").get<long long>(), 2);
    QTRY_VERIFY(row_of("TP-2") < 0);
    QVERIFY(row_of("COV-1") >= 0);
    window_->actions()[u"edit.undo"_s]->trigger();
    QVERIFY(experiment() == before);
    QTRY_VERIFY(row_of("TP-2") >= 0);
    QVERIFY(!window_->document().undo_stack().canUndo());
  }

  void the_row_wraps_its_message_and_has_its_fix() {
    QTRY_VERIFY(row_of("TP-2") >= 0);
    window_->docks().raise(u"problems"_s);
    QTableView& table = window_->docks().problems.table();
    const auto button_in = [&] {
      const QWidget* cell = table.indexWidget(window_->problems().index(row_of("TP-2"), ProblemsModel::apply));
      return cell ? cell->findChild<QPushButton*>() : nullptr;
    };
    QTRY_VERIFY(button_in());
    window_->resize(1000, 650);  // the message needs more than one line
    QVERIFY(button_in()->accessibleName().startsWith(u"Fix: "_s));
    QTRY_VERIFY(table.rowHeight(row_of("TP-2")) > 30);
    QTest::mouseClick(button_in(), Qt::LeftButton);
    QCOMPARE(experiment().value("mesh.tp").get<long long>(), 4);
  }

  void the_keyboard_fixes_the_chosen_problem() {
    QTRY_VERIFY(row_of("COV-1") >= 0);
    window_->docks().raise(u"problems"_s);
    window_->docks().problems.choose(row_of("COV-1"));
    QTest::keyClick(window_.get(), Qt::Key_Period, Qt::ControlModifier);
    QVERIFY(experiment().value("lora.module_path").get<std::string>().ends_with("|.*k_einsum"));
    QTRY_VERIFY(row_of("COV-1") < 0);
    window_->actions()[u"edit.undo"_s]->trigger();
    QTRY_VERIFY(row_of("COV-1") >= 0);
    QCOMPARE(window_->docks().problems.table().currentIndex().row(), row_of("COV-1"));  // still the chosen one
  }

  void what_does_not_fit_offers_the_smallest_changes() {
    window_->document().set("mesh.fsdp", 2);
    window_->document().set("mesh.tp", 4);
    window_->document().set("train.batch", 64);
    window_->document().set("train.remat", "none");
    window_->document().set("train.loss_chunk", 0);
    QTRY_VERIFY(row_of("MEMORY") >= 0);
    window_->docks().raise(u"problems"_s);
    window_->docks().problems.choose(row_of("MEMORY"));
    QVERIFY(!window_->docks().problems.fix_buttons().empty());
    QTest::mouseClick(window_->docks().problems.fix_buttons().front(), Qt::LeftButton);
    QTRY_VERIFY(row_of("MEMORY") < 0);
  }

  void a_run_that_does_not_fit_here_has_fixes_that_one_click_applies() {
    open_window(setup(std::filesystem::path(MW_RESOURCES) / "examples" / "tiny-lora.json"), Page::design);
    window_->document().set("target.memory_gib", 0.02);
    QTRY_VERIFY(row_of("MEMORY") >= 0);
    window_->docks().raise(u"problems"_s);
    window_->docks().problems.choose(row_of("MEMORY"));
    QVERIFY(!window_->docks().problems.fix_buttons().empty());
    const QString fix = window_->docks().problems.fix_buttons().front()->text();
    QVERIFY2(fix.contains(u"slower"_s) || fix.contains(u"as fast"_s) || fix.contains(u"less time"_s), qPrintable(fix));
    QTest::mouseClick(window_->docks().problems.fix_buttons().front(), Qt::LeftButton);
    QTRY_VERIFY(row_of("MEMORY") < 0);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ProblemsTest)
#include "problems_test.moc"
