// SPDX-License-Identifier: GPL-3.0-or-later
// A recipe in the window: ported from File > Port Recipe and by a drop, looked at, saved and opened as an experiment.
#include <QAbstractItemModel>
#include <QDropEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTabWidget>
#include <QTableView>
#include <QTest>

#include "core/base/files.h"
#include "tests/ui/window_fixture.h"
#include "ui/port/port_dialog.h"
#include "ui/session/document.h"
#include "ui/shell/document_actions.h"
#include "ui/shell/drop_target.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

class PortTest : public test::WindowFixture {
  Q_OBJECT

  fs::path script() const {
    const fs::path file = folder() / "train.py";
    write_file_atomically(file,
                          "model = AutoModelForCausalLM.from_pretrained(\"google/gemma-3-1b-it\")\n"
                          "args = SFTConfig(per_device_train_batch_size=1, max_length=1024, output_dir=make())\n"
                          "SFTTrainer(model=model, args=args, peft_config=LoraConfig(r=8, "
                          "target_modules=[\"q_proj\", \"v_proj\"]))\n");
    return file;
  }
  fs::path accelerate() const {
    const fs::path file = folder() / "fsdp.yaml";
    write_file_atomically(file, "distributed_type: FSDP\nnum_processes: 4\n");
    return file;
  }
  PortDialog& dialog() { return *window_->documents().port_dialog(); }
  void wait() {
    QTRY_VERIFY(!dialog().task().is_busy() && !dialog().trl_task().is_busy());
    QTest::qWait(60);
  }
  QStringList column(const QTableView& table, int c) const {
    QStringList out;
    for (int r = 0; r < table.model()->rowCount(); ++r) out << table.model()->index(r, c).data().toString();
    return out;
  }
  void grab(const QString& name) {
    for (const Shade shade : {Shade::light, Shade::dark}) {
      window_->set_shade(shade);
      QTest::qWait(60);
      QCOMPARE(test::clipped(dialog()).join(u"; "_s), QString());
      QCOMPARE(test::unnamed(dialog()).join(u"; "_s), QString());
      test::save_picture(dialog(), name % (shade == Shade::dark ? u"-dark"_s : u"-light"_s));
    }
    window_->set_shade(Shade::light);
  }

 private slots:
  void a_recipe_becomes_the_document() {
    open_window(setup(), Page::design);
    window_->trigger(u"file.port"_s);
    QVERIFY(dialog().isVisible());
    QVERIFY(!test::button_of(dialog(), u"Open Ported"_s).isEnabled());
    dialog().close();
    window_->documents().port_recipe({script(), accelerate()});
    wait();
    const QStringList outcomes = column(dialog().settings(), 0);
    QCOMPARE(outcomes.count(u"Not read"_s), 1);
    QVERIFY(outcomes.count(u"Mapped"_s) >= 6 && outcomes.count(u"Assumed"_s) > 3);
    QVERIFY(column(dialog().settings(), 3).contains(u"data.max_len"_s));
    grab(u"port-settings"_s);
    dialog().tabs().setCurrentIndex(1);
    QCOMPARE(dialog().steps().count(), 6);
    for (int i = 0; i < 6; ++i) {
      dialog().steps().setCurrentRow(i);
      QCOMPARE(dialog().effects().model()->rowCount(), 4);
      for (const QString& peak : column(dialog().effects(), 2)) QVERIFY2(peak.contains(u"GiB"_s), qPrintable(peak));
    }
    dialog().steps().setCurrentRow(1);
    grab(u"port-adaptations"_s);
    dialog().resize(900, 560);
    QTest::qWait(60);
    QCOMPARE(test::clipped(dialog()).join(u"; "_s), QString());
    QTest::mouseClick(&test::button_of(dialog(), u"Open Ported"_s), Qt::LeftButton);
    QVERIFY(!dialog().isVisible());
    const experiment::Experiment& e = window_->document().experiment();
    QCOMPARE(qs(e.value("model.id").get<std::string>()), u"gemma3-1b"_s);
    QCOMPARE(qs(e.value("train.stack").get<std::string>()), u"tunix"_s);
    QVERIFY(!window_->document().has_errors());
  }

  void a_dropped_script_is_ported_and_other_targets_give_other_plans() {
    open_window(setup(), Page::design);
    QMimeData mime;
    mime.setUrls({QUrl::fromLocalFile(qpath(script())), QUrl::fromLocalFile(qpath(accelerate()))});
    QDragEnterEvent enter({200, 200}, Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent drop(QPointF(200, 200), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_.get(), &drop);
    QVERIFY(window_->documents().port_dialog() && dialog().isVisible());
    QCOMPARE(dialog().files().size(), size_t{2});
    wait();
    QVERIFY(column(dialog().effects(), 0).contains(u"4xh100"_s));
    dialog().tpu().setFocus();
    QTest::keyClicks(&dialog().tpu(), u"v6e-4"_s);
    QTest::keyClick(&dialog().tpu(), Qt::Key_Tab);
    wait();
    QVERIFY(column(dialog().effects(), 0).contains(u"v6e-4"_s));
    dialog().tpu().setFocus();
    QTest::keyClicks(&dialog().tpu(), u"x"_s);
    QTest::keyClick(&dialog().tpu(), Qt::Key_Tab);
    wait();
    QVERIFY2(test::result_text(dialog()).contains(u"v6e-4x"_s), qPrintable(test::result_text(dialog())));
    QVERIFY(!test::button_of(dialog(), u"Open as Read"_s).isEnabled());
  }

  void the_document_is_shown_as_settings_of_trl() {
    experiment::Experiment e;
    e.set_value("model.id", "gemma3-1b");
    e.set_value("target.id", "2xh100");
    e.set_value("train.learning_rate", 3e-4);
    e.save(folder() / "e.json");
    open_window(setup(folder() / "e.json"), Page::design);
    window_->trigger(u"file.port"_s);
    wait();
    dialog().tabs().setCurrentIndex(2);
    const QString text = dialog().trl_text().toPlainText();
    QVERIFY2(text.contains(u"learning_rate=0.0003"_s) && text.contains(u"num_processes: 2"_s), qPrintable(text));
    grab(u"port-trl"_s);
  }

  void a_file_without_a_recipe_is_one_error() {
    open_window(setup(), Page::design);
    const fs::path file = folder() / "other.py";
    write_file_atomically(file, "print('hello')\n");
    window_->drops().open(file);
    wait();
    QVERIFY2(test::result_text(dialog()).contains(u"no setting of a TRL or PEFT recipe"_s),
             qPrintable(test::result_text(dialog())));
    QCOMPARE(dialog().settings().model()->rowCount(), 0);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::PortTest)
#include "port_test.moc"
