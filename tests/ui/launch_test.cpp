// SPDX-License-Identifier: GPL-3.0-or-later
// Recipes and launches in the window, by clicks: exported, launched in another folder of this machine, followed live,
// detached and reattached, ended there, and what came back merged.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollBar>
#include <QTableView>
#include <QTest>
#include <QTreeWidget>
#include <fstream>

#include "core/base/files.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/train/train_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/dialog_parts.h"
#include "ui/session/document.h"
#include "ui/session/run_controller.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace fs = std::filesystem;

class LaunchTest : public test::WindowFixture {
  Q_OBJECT

  static fs::path fixtures() { return fs::path(MW_RESOURCES).parent_path() / "tests" / "fixtures"; }
  void open() {
    experiment::Experiment e;
    e.set_value("name", "Tiny, elsewhere");
    e.set_value("model.path", (fixtures() / "gemma3_tiny").string());
    e.set_value("train.steps", 12);
    e.save(folder() / "e.json");
    open_window(setup(folder() / "e.json"), Page::train);
  }
  static void click(QPushButton& b) {
    QVERIFY2(b.isVisible() && b.isEnabled(), qPrintable(b.text()));
    QTest::mouseClick(&b, Qt::LeftButton);
  }
  void grab(QWidget& of, const QString& name) {
    for (const Shade shade : {Shade::light, Shade::dark}) {
      window_->set_shade(shade);
      QTest::qWait(60);
      QCOMPARE(test::clipped(of).join(u"; "_s), QString());
      test::save_picture(of, name % (shade == Shade::dark ? u"-dark"_s : u"-light"_s));
    }
    window_->set_shade(Shade::light);
  }
  LaunchDialog& dialog() { return window_->pages().train.dialogs().launch; }
  void fill(const QString& command) {
    press(u"Launch\u2026"_s);
    QVERIFY(dialog().isVisible());
    dialog().where().setCurrentIndex(0);
    dialog().folder().setText(qpath(folder() / "there"));
    dialog().start().setText(command);
  }
  long steps() {
    const RunPtr run = window_->pages().train.run();
    const auto* loss = run ? run->view.metric("train/loss") : nullptr;
    return loss ? static_cast<long>(loss->raw.size()) : 0;
  }
  // Twelve steps, the seventh not before the file "go" is there; then Tunix's checkpoint of a real run.
  QString training() const {
    return u"for i in $(seq 1 12); do while [ $i = 7 ] && [ ! -e ../go ] && [ -e launch.sh ]; do sleep 0.05; done; "
           u"echo "
           u"\"{\\\"event\\\":\\\"metric\\\",\\\"name\\\":\\\"train/loss\\\",\\\"step\\\":$i,\\\"value\\\":2.5}\"; "
           "echo working on $i >&2; done; mkdir -p out; cp -r '%1' out/checkpoints"_s.arg(
               qpath(fixtures() / "orbax" / "tunix_gemma3_tiny"));
  }

 private slots:
  void a_growing_file_is_attached_and_shown_live() {
    open();
    const auto line = [](int step) {
      return R"({"event":"metric","name":"train/loss","step":)" + std::to_string(step) + R"(,"value":2.5,"time_s":)" +
             std::to_string(step) + "}\n";
    };
    const fs::path file = folder() / "events.jsonl";
    write_file_atomically(file, R"({"event":"started","steps":3,"name":"Elsewhere"})"
                                "\n" +
                                    line(1));
    press(u"Attach\u2026"_s);
    AttachDialog& attach = window_->pages().train.dialogs().attach;
    QVERIFY(attach.isVisible());
    QVERIFY(!test::button_of(attach, u"Attach"_s).isEnabled());
    attach.source().setText(qpath(folder() / "nothing"));
    click(test::button_of(attach, u"Attach"_s));
    QTRY_VERIFY(test::result_text(attach).contains(u"does not exist"_s));
    grab(attach, u"attach-dialog"_s);
    attach.source().setText(qpath(file));
    QVERIFY(test::shows_text(attach, u"meshwright watch --follow"_s));
    QTRY_VERIFY(test::button_of(attach, u"Attach"_s).isEnabled());
    click(test::button_of(attach, u"Attach"_s));
    QTRY_VERIFY(window_->runs().is_attached() && steps() == 1);
    QVERIFY(!attach.isVisible());
    QVERIFY(!window_->actions()[u"run.pause"_s]->isEnabled());
    QVERIFY(window_->runs().continues_without_window());
    std::ofstream more(file, std::ios::app);
    more << line(2) << std::flush;
    QTRY_COMPARE(steps(), 2L);
    picture(u"attach-live"_s);
    more << line(3) << R"({"event":"finished","state":"done","steps":3,"seconds":3})" << std::endl;
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(window_->pages().train.run()->view.state(), RunState::done);
    QCOMPARE(steps(), 3L);
    bool audited = false;
    for (QTreeWidget* tree : window_->pages().train.findChildren<QTreeWidget*>())
      for (int i = 0; i < tree->topLevelItemCount(); ++i) audited |= tree->topLevelItem(i)->text(0) == u"Audit"_s;
    QVERIFY(audited);
  }
  void a_launch_is_shown_live_and_its_adapter_merges() {
    open();
    fill(training());
    QVERIFY(test::shows_text(dialog(), u"--recipe tunix --on 'local'"_s));
    grab(dialog(), u"launch-dialog"_s);
    click(test::button_of(dialog(), u"Launch"_s));
    QTRY_VERIFY(window_->runs().is_remote() && steps() > 0);
    QVERIFY(!dialog().isVisible());
    QVERIFY(button(u"Detach"_s));
    QVERIFY(!window_->actions()[u"run.pause"_s]->isEnabled());
    picture(u"launch-live"_s);
    write_file_atomically(folder() / "go", "");
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(steps(), 12L);
    QCOMPARE(window_->pages().train.run()->view.state(), RunState::done);
    QTRY_VERIFY(button(u"Merge\u2026"_s));
    picture(u"launch-done"_s);
    // With all its buttons the line still ends the name with the run's id, and says what is not known instead of
    // waiting for it.
    const TrainPage& page = window_->pages().train;
    QCOMPARE(test::clipped(window_->pages().train).join(u"; "_s), QString());
    bool id_shown = false;
    for (const ElidedLabel* l : window_->pages().train.header().findChildren<ElidedLabel*>())
      id_shown |= l->isVisible() && l->shown().endsWith(qs(page.run()->id));
    QVERIFY(id_shown);
    QCOMPARE(window_->pages().train.memory().options().empty, u"Not reported by tunix"_s);
    QCOMPARE(window_->pages().train.gradient().options().empty, u"Not reported by tunix"_s);
    press(u"Merge\u2026"_s);
    MergeDialog& merge = window_->pages().train.dialogs().merge;
    QTRY_VERIFY(merge.isVisible());
    QCOMPARE(merge.base().text(), qpath(fs::canonical(fixtures() / "gemma3_tiny")));
    QTRY_VERIFY(merge.base().hasFocus());
    grab(merge, u"merge-offered"_s);
    merge.alpha().setText(u"x"_s);
    click(test::button_of(merge, u"Merge"_s));
    QVERIFY(test::result_text(merge).contains(u"number"_s));
    merge.alpha().setText(u"6"_s);
    click(test::button_of(merge, u"Merge"_s));
    QTRY_VERIFY(test::result_text(merge).contains(u"Parity passed"_s));
    QVERIFY(merge.charts().isVisible());
    QCOMPARE(merge.charts().logits().lines().size(), size_t{3});  // merged weights, read again, served
    QCOMPARE(merge.charts().layers().lines().size(), size_t{2});
    QCOMPARE(merge.charts().table().model()->rowCount(), 3);
    QVERIFY(merge.height() <= 780);
    grab(merge, u"merge-dialog"_s);
    QVERIFY(fs::exists(fspath(merge.out().text()) / "merge.json"));
    click(test::button_of(merge, u"Merge"_s));  // again: nothing is overwritten
    QTRY_VERIFY(test::button_of(merge, u"Merge"_s).isEnabled());
    QVERIFY2(test::result_text(merge).contains(u"Fix: "_s) && !test::result_text(merge).contains(u"Parity"_s),
             qPrintable(test::result_text(merge)));
    grab(merge, u"merge-refused"_s);
    QTest::keyClick(&merge, Qt::Key_Escape);
    QVERIFY(!merge.isVisible());
  }

  void a_job_that_was_left_alone_is_followed_again_and_ended_there() {
    open();
    fill(u"echo '{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":2}'; exec sleep 60"_s);
    click(test::button_of(dialog(), u"Launch"_s));
    QTRY_VERIFY(steps() == 1);
    QTRY_VERIFY(button(u"Detach"_s));
    press(u"Detach"_s);
    QTRY_VERIFY(!window_->runs().is_busy());
    QTRY_VERIFY(button(u"Reattach"_s));
    picture(u"launch-detached"_s);
    QCOMPARE(test::clipped(window_->pages().train).join(u"; "_s), QString());
    press(u"Reattach"_s);
    QTRY_VERIFY(window_->runs().is_remote());
    window_->actions()[u"run.stop"_s]->trigger();
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(window_->pages().train.run()->view.state(), RunState::cancelled);
    QCOMPARE(steps(), 1L);
    QVERIFY(!button(u"Reattach"_s));
  }

  void a_launch_beside_a_local_run_is_detached_and_followed_later() {
    open_window(setup(fs::path(MW_RESOURCES) / "examples/tiny-lora.json"), Page::train);
    window_->document().set("train.steps", 2000);
    window_->actions()[u"run.start"_s]->trigger();
    QTRY_VERIFY(steps() > 0);
    const RunPtr local = window_->runs().live();
    experiment::Experiment other;
    other.set_value("name", "Tiny, elsewhere");
    other.set_value("model.path", (fixtures() / "gemma3_tiny").string());
    window_->document().replace(other, u"test"_s);
    fill(u"echo '{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":2}'; exec sleep 60"_s);
    dialog().experiment().setCurrentIndex(0);  // the form, not the run
    click(test::button_of(dialog(), u"Launch"_s));
    QTRY_VERIFY(!dialog().isVisible());
    auto* toast = window_->findChild<QFrame*>(u"toast"_s);
    QVERIFY(toast && test::shows_text(*toast, u"Reattach"_s));
    QCOMPARE(window_->runs().live(), local);  // goes on, and is shown
    QVERIFY(!window_->runs().is_remote() && !window_->runs().is_launching_beside());
    const auto rows = store::Store(store()).list();
    QCOMPARE(rows.size(), size_t{2});
    const store::RunId launched = rows.front().id == local->id ? rows.back().id : rows.front().id;
    QCOMPARE(store::Store(store()).find(launched)->state, RunState::running);
    window_->runs().stop();
    QTRY_VERIFY(!window_->runs().is_busy());
    window_->open_run(launched);
    QTRY_VERIFY(button(u"Reattach"_s));
    press(u"Reattach"_s);
    QTRY_VERIFY(window_->runs().is_remote() && steps() == 1);
    window_->actions()[u"run.stop"_s]->trigger();
    QTRY_VERIFY(!window_->runs().is_busy());
    QCOMPARE(window_->pages().train.run()->view.state(), RunState::cancelled);
  }

  void what_cannot_be_launched_is_said_in_the_dialog() {
    open();
    write_file_atomically(folder() / "there" / "mine", "x");
    fill(u"true"_s);
    click(test::button_of(dialog(), u"Launch"_s));
    QTRY_VERIFY(test::result_text(dialog()).contains(u"not empty"_s));
    QVERIFY(dialog().isVisible() && !window_->runs().is_busy());
    QVERIFY(!window_->pages().train.run());
    dialog().where().setCurrentIndex(1);
    dialog().host().setText(u"-oProxyCommand=x"_s);
    QVERIFY(test::shows_text(dialog(), u"'ssh:-oProxyCommand=x'"_s));
    click(test::button_of(dialog(), u"Launch"_s));
    QVERIFY(test::result_text(dialog()).contains(u"invalid host name"_s));
    grab(dialog(), u"launch-refused"_s);
    // By keys: the fields of the place come right after it, and Enter in one of them launches.
    dialog().where().setFocus();
    QTest::keyClick(&dialog().where(), Qt::Key_Tab);
    QVERIFY(dialog().host().hasFocus());
    dialog().host().setText(u"-x"_s);
    QTest::keyClick(&dialog().host(), Qt::Key_Return);
    QVERIFY2(test::result_text(dialog()).contains(u"-x"_s), qPrintable(test::result_text(dialog())));
    QTest::keyClick(&dialog().host(), Qt::Key_Tab);
    QVERIFY(dialog().folder().hasFocus());
    dialog().where().setCurrentIndex(2);
    dialog().field(u"name"_s).setText(u"my tpu"_s);
    QVERIFY(test::shows_text(dialog(), u"gcloud-tpu:name=my tpu"_s));
    dialog().host().setText(u"me@box"_s);
    const QVariantMap kept = dialog().remembered();
    dialog().host().clear();
    dialog().remember(kept);
    QCOMPARE(dialog().host().text(), u"me@box"_s);
    QCOMPARE(dialog().where().currentIndex(), 2);
    QCOMPARE(test::unnamed(dialog()).join(u"; "_s), QString());
    dialog().reject();
    QVERIFY(store::Store(store()).list().empty());
  }

  void a_recipe_is_looked_at_and_written() {
    open();
    press(u"Export\u2026"_s);
    ExportDialog& d = window_->pages().train.dialogs().exporter;
    QTRY_VERIFY(d.files().count() > 5);
    QVERIFY(!test::button_of(d, u"Export"_s).isEnabled());
    d.recipe().setCurrentIndex(2);
    QTRY_VERIFY(!d.files().findItems(u"checkpoints.py"_s, Qt::MatchExactly).isEmpty());
    QVERIFY(d.remarks().item(0)->text().contains(u"names no data"_s));
    grab(d, u"export-looked"_s);
    d.folder().setText(qpath(folder() / "recipe"));
    d.folder().setFocus();
    QTest::keyClick(&d.folder(), Qt::Key_Return);
    QTRY_VERIFY(test::result_text(d).contains(u"Exported"_s));
    grab(d, u"export-dialog"_s);
    QVERIFY(fs::exists(folder() / "recipe" / "checkpoints.py"));
    write_file_atomically(folder() / "recipe" / "train.py", "mine");
    click(test::button_of(d, u"Export"_s));
    QTRY_VERIFY(test::result_text(d).contains(u"train.py"_s));
    grab(d, u"export-refused"_s);
    QCOMPARE(read_file(folder() / "recipe" / "train.py"), std::string("mine"));
    d.overwrite().setChecked(true);
    click(test::button_of(d, u"Export"_s));
    QTRY_VERIFY(test::result_text(d).contains(u"Exported"_s));
    QVERIFY(read_file(folder() / "recipe" / "train.py") != "mine");
    QCOMPARE(test::unnamed(d).join(u"; "_s), QString());
    QTest::keyClick(&d, Qt::Key_Escape);
    QVERIFY(!d.isVisible());
  }

  // The dialog is as high as its command's lines need: no other row pays for them.
  void a_long_command_squeezes_no_row() {
    open();
    fill(u"true"_s);
    QTest::qWait(60);
    const int high = dialog().height();
    for (int words = 40; words <= 160; words += 7) {
      dialog().start().setText(u"train "_s.repeated(words));
      QTest::qWait(20);
      QCOMPARE(test::clipped(dialog()).join(u"; "_s), QString());
    }
    QVERIFY(dialog().height() > high);
  }

  // However long a path is and wherever it may not break: the dialog stays as wide, and every word can be read.
  void a_long_path_makes_no_dialog_wider() {
    open();
    press(u"Export\u2026"_s);
    ExportDialog& d = window_->pages().train.dialogs().exporter;
    QTRY_VERIFY(d.files().count() > 5);
    const int wide = d.width();
    const fs::path deep = folder() / std::string(120, 'a') / std::string(120, 'b');
    write_file_atomically(deep / "mine", "x");
    d.folder().setText(qpath(deep));
    click(test::button_of(d, u"Export"_s));
    QTRY_VERIFY(test::result_text(d).contains(u"bbbb"_s));
    QTest::qWait(60);
    QCOMPARE(d.width(), wide);
    grab(d, u"export-long-path"_s);
    const QTextEdit* said = d.findChild<ResultText*>();
    QVERIFY(said && said->isVisible() && said->horizontalScrollBar()->maximum() == 0);
    d.reject();
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::LaunchTest)
#include "launch_test.moc"
