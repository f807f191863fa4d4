// SPDX-License-Identifier: GPL-3.0-or-later
// Walks all pages with content at 1280x800 in both themes, and lists everything that tests/ui/page_checks.h finds.
#include <QPushButton>
#include <QTabBar>
#include <QTest>
#include <cstdio>

#include "tests/ui/page_checks.h"
#include "tests/ui/sweep_fixture.h"
#include "tests/ui/window_fixture.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/compare/compare_page.h"
#include "ui/pages/data/data_page.h"
#include "ui/pages/design/design_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/session/document.h"
#include "ui/session/predictor.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/welcome.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

class WalkTest : public test::WindowFixture {
  Q_OBJECT

  void fill_store() {
    test::add_run(store(), "Learning rate too high", 90, RunState::failed);
    run_ = test::add_run(store(), "tiny-lora", 400, RunState::done);
    mesh_run_ = test::add_mesh_run(store(), "mesh", 60, 2, 4);
    sizing_ = test::add_sizing(store());
    sweeps_ = {
        test::add_sweep(store(), "This machine", {.provenance = formats::ResultProvenance::measured, .target = "cpu"}),
        test::add_sweep(store(), "v6e-8, simulated", {}),
    };
  }
  void open(const store::RunId& run) {
    window_->open_run(run);
    QTRY_VERIFY(window_->runs().shown() && window_->runs().shown()->id == run);
  }
  void walk(const QString& state) { checks_.walk(*window_->centralWidget(), state); }

  void walk_design() {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / "paper-train-v5p-8.json");
    window_->show_page(Page::design);
    QTRY_VERIFY(window_->predictor().is_settled());
    window_->pages().design.alternatives().search();
    QTRY_VERIFY(!window_->pages().design.alternatives().is_searching());
    walk(u"design"_s);
    window_->pages().design.pin();
    window_->document().set("mesh", Json{{"fsdp", 2}, {"tp", 2}});
    QTRY_VERIFY(window_->predictor().is_settled());
    walk(u"design, pinned"_s);
    press(u"Show Both Meshes"_s);
    walk(u"design, both meshes"_s);
    press(u"Show Both Meshes"_s);
    window_->pages().design.unpin();
  }
  // Every example, alone and beside a pinned design, and every page with its form.
  void walk_examples() {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(MW_RESOURCES) / "examples")) {
      if (entry.path().extension() != ".json") continue;
      const QString name = qs(entry.path().stem().string());
      window_->document().open_example(entry.path());
      for (const Page page : {Page::design, Page::data, Page::train, Page::serve, Page::compare, Page::runs}) {
        window_->show_page(page);
        QTRY_VERIFY(window_->predictor().is_settled());
        checks_.check_fit(*window_->centralWidget(), u"%1, page %2"_s.arg(name).arg(static_cast<int>(page)));
      }
      window_->show_page(Page::design);
      if (window_->pages().design.plan().rowCount() == 0) continue;
      window_->pages().design.pin();
      if (QPushButton* both = button(u"Show Both Meshes"_s)) both->click();
      QTabBar* tabs = window_->pages().design.findChild<QTabBar*>();
      for (int tab = 0; tab < tabs->count(); ++tab) {
        tabs->setCurrentIndex(tab);
        checks_.check_fit(*window_->centralWidget(), u"%1, both meshes, %2"_s.arg(name, tabs->tabText(tab)));
      }
      window_->pages().design.unpin();
    }
  }
  void walk_data() {
    window_->document().open_example(std::filesystem::path(MW_RESOURCES) / "examples" / "tiny-lora.json");
    window_->show_page(Page::data);
    QTRY_VERIFY(window_->pages().data.reader().state() == DataReader::State::done);
    walk(u"data"_s);
  }
  void walk_runs() {
    open(run_);
    walk(u"train"_s);
    open(mesh_run_);
    walk(u"train on a mesh"_s);
    open(sizing_);
    open(sweeps_.back());
    walk(u"serve"_s);
    window_->show_page(Page::runs);
    window_->pages().runs.select(run_);
    walk(u"runs"_s);
  }
  void walk_comparison() {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(MW_RESOURCES) / "results"))
      window_->pages().compare.add_file(entry.path());
    for (const store::RunId& run : {sweeps_[0], sweeps_[1], sizing_, run_, mesh_run_})
      window_->pages().compare.add_run(run);
    window_->show_page(Page::compare);
    QTRY_VERIFY(!window_->pages().compare.is_busy());
    walk(u"compare"_s);
    window_->pages().compare.clear();
    walk(u"compare, empty"_s);
  }
  void walk_shell() {
    window_->show_page(Page::train);
    window_->document().set("lora.rank", 0);
    window_->document().set("train.learning_rate", "fast");
    window_->docks().raise(u"problems"_s);
    QTest::qWait(200);
    checks_.walk(*window_, u"shell with errors"_s);
    window_->document().undo_stack().undo();
    window_->document().undo_stack().undo();
    window_->welcome().open();
    checks_.walk(window_->welcome(), u"welcome"_s);
    window_->welcome().hide();
    window_->docks().set_panel_state(PanelState::folded);
    checks_.walk(window_->docks().panel, u"folded form"_s);
    window_->docks().set_panel_state(PanelState::open);
  }

  test::PageChecks checks_;
  store::RunId run_, mesh_run_, sizing_;
  std::vector<store::RunId> sweeps_;

  void expect_no_findings() {
    const auto& findings = checks_.findings();
    for (auto it = findings.cbegin(); it != findings.cend(); ++it)
      std::printf("%s\n    in: %s\n", qPrintable(it.key()), qPrintable(it.value().join(u"; "_s)));
    QVERIFY2(findings.isEmpty(), qPrintable(u"%1 findings, listed above"_s.arg(findings.size())));
  }

 private slots:
  void no_page_scrolls_sideways_clips_text_or_hides_names() {
    fill_store();
    for (const Shade shade : {Shade::light, Shade::dark}) {
      open_window(setup(), Page::train);
      window_->set_shade(shade);
      walk_design();
      walk_data();
      walk_runs();
      walk_comparison();
      walk_shell();
      if (shade == Shade::light) walk_examples();
      window_.reset();
    }
    expect_no_findings();
  }

  void tab_reaches_every_control_of_every_page_and_shows_the_focus() {
    fill_store();
    open_window(setup(std::filesystem::path(MW_RESOURCES) / "examples" / "tiny-lora.json"), Page::data);
    QTRY_VERIFY(window_->pages().data.reader().state() == DataReader::State::done);
    window_->pages().compare.add_run(run_);
    for (const store::RunId& run : {run_, mesh_run_, sweeps_.back()}) {
      open(run);
      checks_.walk_by_tab(*window_, u"run %1"_s.arg(qs(run)));
    }
    for (const QString& panel : {u"log"_s, u"problems"_s}) {
      window_->docks().raise(panel);
      for (size_t page = 0; page < kPages; ++page) {
        window_->show_page(static_cast<Page>(page));
        QTest::qWait(50);
        checks_.walk_by_tab(*window_, u"page %1, %2"_s.arg(page).arg(panel));
      }
    }
    expect_no_findings();
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::WalkTest)
#include "walk_test.moc"
