// SPDX-License-Identifier: GPL-3.0-or-later
// The first hour of a new user, in the real window with a real (tiny) training run.
#include <QAction>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <cmath>

#include "core/base/files.h"
#include "core/jobs/job.h"
#include "core/train/checkpoint.h"
#include "tests/ui/journey.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/pages/train/train_page.h"
#include "ui/run_views/run_lines.h"
#include "ui/session/action_registry.h"
#include "ui/session/predictor.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/status_strip.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

class JourneyTest : public test::Journey {
  Q_OBJECT
  store::RunId finished_;

  // A base model that knows the answers; then the answers change, which is what LoRA has to learn.
  void pretrain() {
    project_->write_experiment(
        parse_json(R"({"train": {"method": "full", "steps": 80, "accumulation": 1, "eval_every": 0}})", "journey"));
    const auto store = project_->folder / "pretraining";
    const auto end = jobs::run_blocking({experiment::Experiment::load(project_->experiment), store, std::nullopt},
                                        [](const Event&) {}, {});
    QCOMPARE(end.finished.state, RunState::done);
    const auto base = train::latest_checkpoint(store::Store(store).run_folder("run-1"));
    QVERIFY(base);
    std::filesystem::copy(*base, project_->folder / "base", std::filesystem::copy_options::recursive);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy(project_->model / name, project_->folder / "base" / name,
                            std::filesystem::copy_options::skip_existing);
    std::string rows = read_file(project_->data);
    for (size_t at = 0; (at = rows.find("\"red\"", at)) != std::string::npos;) rows.replace(at, 5, "\"white\"");
    for (size_t at = 0; (at = rows.find("\"green\"", at)) != std::string::npos;) rows.replace(at, 7, "\"blue\"");
    write_file_atomically(project_->data, rows);
  }

  QToolButton* button(const QString& name) {
    for (QToolButton* b : window_->findChildren<QToolButton*>())
      if (b->accessibleName() == name && b->isVisible()) return b;
    return nullptr;
  }
  void click(const QString& name) {
    QToolButton* b = button(name);
    QVERIFY2(b && b->isEnabled(), qPrintable(name));
    QTest::mouseClick(b, Qt::LeftButton);
  }
  const views::RunView& view() { return window_->runs().shown()->view; }
  size_t steps_seen() {
    const auto* loss = window_->runs().shown() ? view().metric("train/loss") : nullptr;
    return loss ? loss->raw.size() : 0;
  }

 public:
  JourneyTest() : Journey(QString()) {}

 private slots:
  void initTestCase() {
    make_project();
    pretrain();
    open_window(R"({"model": {"path": "base", "init": "load"},
      "train": {"steps": 240, "batch": 8, "accumulation": 2, "eval_every": 40, "sample_every": 60, "checkpoint_every": 40,
                "learning_rate": 0.005},
      "lora": {"dropout": 0, "rank": 8}, "data": {"eval_fraction": 0.15}, "sample": {"max_new_tokens": 6}})");
  }

  void first_start_prices_the_experiment() {
    QTRY_VERIFY(window_->predictor().design());
    QVERIFY2(window_->strip().figures_text().contains(u"Fits"_s), qPrintable(window_->strip().figures_text()));
    QCOMPARE(window_->problems().count(Severity::error), 0);
    picture(u"first-start"_s);
  }

  void run_is_clicked_and_loss_appears_and_falls() {
    click(u"Run"_s);
    QTRY_VERIFY(steps_seen() >= 2);
    QVERIFY(!window_->pages().train.loss().empty());
    picture(u"loss-appears"_s);
    QTRY_VERIFY(steps_seen() >= 12);
    QCOMPARE(view().state(), RunState::running);
    QVERIFY(view().eta_seconds().has_value());
  }

  void pause_holds_it_and_continue_lets_it_go() {
    click(u"Pause"_s);
    QTRY_COMPARE(view().state(), RunState::paused);
    const size_t held = steps_seen();
    picture(u"paused"_s);
    QTest::qWait(400);
    QCOMPARE(steps_seen(), held);
    QTRY_COMPARE(window_->actions()[u"run.pause"_s]->text(), u"Resume"_s);
    window_->actions()[u"run.pause"_s]->trigger();
    QTRY_VERIFY(steps_seen() > held);
    QCOMPARE(view().state(), RunState::running);
  }

  void stop_keeps_what_was_done() {
    click(u"Stop"_s);
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(view().state(), RunState::cancelled);
    QVERIFY(view().step() > 0 && view().step() < 240);
    QVERIFY(!view().checkpoints().empty());
    picture(u"stopped"_s);
  }

  void the_stopped_run_is_resumed_from_the_runs_page_and_ends() {
    const store::RunId run = window_->runs().shown()->id;
    const long before = view().step();
    window_->show_page(Page::runs);
    window_->pages().runs.select(run);
    picture(u"runs-page"_s);
    for (QPushButton* b : window_->pages().runs.findChildren<QPushButton*>())
      if (b->text() == u"Resume"_s) QTest::mouseClick(b, Qt::LeftButton);
    QTRY_VERIFY(window_->runs().is_busy());
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(view().state(), RunState::done);
    QCOMPARE(view().step(), 240);
    QCOMPARE(steps_seen(), size_t{240});
    QVERIFY(before < 240);
    const auto& loss = view().metric("train/loss")->raw;
    double first = 0, last = 0;
    for (size_t i = 0; i < 10; ++i) {
      first += loss[i].y;
      last += loss[loss.size() - 1 - i].y;
    }
    QVERIFY2(last < 0.8 * first, qPrintable(u"first ten %1, last ten %2"_s.arg(first / 10).arg(last / 10)));
    const auto& eval = view().metric("eval/loss")->raw;
    QVERIFY(eval.back().y < eval[0].y);
    // What the trainer writes about memory is what the window reads.
    QVERIFY(view().predicted() && view().capacity());
    const auto levels = memory_levels(window_->runs().shown());
    QCOMPARE(levels.size(), size_t{2});
    const double measured = static_cast<double>(view().finished()->peak.value);
    QVERIFY2(std::abs(levels[1].value - measured) < 0.1 * measured,
             qPrintable(u"predicted %1, measured %2"_s.arg(levels[1].value).arg(measured)));
    finished_ = run;
    picture(u"finished"_s);
  }

  void the_finished_run_reopens_as_it_was_live() {
    const RunPtr live = window_->runs().shown();
    TrainPage& page = window_->pages().train;
    QTest::qWait(100);
    QStringList before;
    for (Chart* p : {&page.loss(), &page.memory(), &page.speed(), &page.rate(), &page.gradient()})
      before << p->summary();
    const QImage drawn = page.loss().grab().toImage();
    window_->show_page(Page::runs);
    window_->pages().runs.select(finished_);
    window_->open_run(finished_);
    QTRY_VERIFY(window_->runs().shown() != live && window_->runs().shown());
    QTest::qWait(100);
    QVERIFY2(window_->runs().shown()->view == live->view, "the record gives another view than the live events did");
    QStringList after;
    for (Chart* p : {&page.loss(), &page.memory(), &page.speed(), &page.rate(), &page.gradient()})
      after << p->summary();
    QCOMPARE(after, before);
    QCOMPARE(page.loss().grab().toImage(), drawn);
    picture(u"reopened"_s);
  }

  void the_rank_is_changed_and_undone_and_the_json_follows() {
    window_->show_page(Page::train);
    window_->docks().panel.form().focus_key("lora.rank");
    auto* rank = qobject_cast<QLineEdit*>(window_->docks().panel.form().row("lora.rank")->field()->editor());
    QTRY_VERIFY(rank->hasFocus());
    rank->selectAll();
    QTest::keyClicks(rank, u"32"_s);
    const auto json = [this] { return window_->docks().panel.json().editor()->toPlainText(); };
    QVERIFY(json().contains(u"\"rank\": 32"_s));
    QVERIFY(window_->isWindowModified());
    picture(u"rank-changed"_s);
    click(u"Undo"_s);
    QVERIFY(json().contains(u"\"rank\": 8"_s));
    QCOMPARE(rank->text(), u"8"_s);
    QVERIFY(!window_->isWindowModified());
    window_->docks().panel.show_json();
    picture(u"json"_s);
    window_->docks().panel.show_form();
    // The finished run is still shown with the rank it was trained with.
    QCOMPARE(window_->runs().shown()->record.value("lora.rank").get<long long>(), 8);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::JourneyTest)
#include "journey_test.moc"
