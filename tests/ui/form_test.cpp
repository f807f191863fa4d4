// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemView>
#include <QComboBox>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QTest>
#include <QToolButton>

#include "core/experiment/bound_experiment.h"
#include "tests/ui/support.h"
#include "ui/form/experiment_panel.h"
#include "ui/form/picker.h"
#include "ui/theme/text.h"

namespace mw::ui {

class FormTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  std::unique_ptr<Document> document_;
  std::unique_ptr<ExperimentPanel> panel_;

  template <class Editor>
  Editor* editor(const char* key) {
    return qobject_cast<Editor*>(panel_->form().row(key)->field()->editor());
  }
  QString shown_problem(const char* key) {
    for (QLabel* l : panel_->form().row(key)->findChildren<QLabel*>())
      if (l->property("bad").toBool() && !l->isHidden()) return l->text();
    return {};
  }

 private slots:
  void init() {
    warnings_.start();
    document_ = std::make_unique<Document>();
    panel_ = std::make_unique<ExperimentPanel>(*document_, "/nowhere");
    panel_->resize(330, 700);
    panel_->show();
    QVERIFY(QTest::qWaitForWindowExposed(panel_.get()));
    QApplication::setActiveWindow(panel_.get());
  }
  void cleanup() {
    panel_.reset();
    document_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void every_parameter_has_a_field() {
    for (const auto& p : experiment::parameters()) {
      FormRow* row = panel_->form().row(p.key.ends_with(".*") ? p.key.substr(0, p.key.size() - 2) : p.key);
      QVERIFY2(row, p.key.c_str());
      QVERIFY(row->field()->editor()->toolTip().contains(qs(p.help).toHtmlEscaped()));
      QVERIFY(!row->field()->editor()->accessibleName().isEmpty());
    }
  }

  void note_of_a_group_is_shown_while_it_is_open() {
    panel_->form().set_note("LoRA", u"Predicted: 3.19M parameters"_s);
    const auto notes = panel_->form().findChildren<QLabel*>();
    const auto note =
        std::find_if(notes.begin(), notes.end(), [](const QLabel* l) { return l->text().startsWith(u"Predicted"); });
    QVERIFY(note != notes.end() && (*note)->isVisible());
    document_->set("train.method", "full");
    QVERIFY(!(*note)->isVisible());  // without adapters
  }

  void typing_follows_into_document_and_json_and_undo_takes_it_back() {
    auto* rank = editor<QLineEdit>("lora.rank");
    panel_->form().focus_key("lora.rank");
    QTRY_VERIFY(rank->hasFocus());
    rank->selectAll();
    QTest::keyClicks(rank, u"64"_s);
    QCOMPARE(document_->experiment().value("lora.rank").get<long long>(), 64);
    QVERIFY(panel_->json().editor()->toPlainText().contains(u"\"rank\": 64"_s));
    QCOMPARE(document_->undo_stack().count(), 1);  // two keys, one gesture
    document_->undo_stack().undo();
    QCOMPARE(rank->text(), QString());
    QVERIFY(!panel_->json().editor()->toPlainText().contains(u"rank"_s));
  }

  void json_edits_follow_into_the_form() {
    panel_->json().editor()->setPlainText(
        u"{\"schema\": 1, \"lora\": {\"rank\": 12}, \"train\": {\"schedule\": \"linear\"}}"_s);
    QCOMPARE(editor<QLineEdit>("lora.rank")->text(), u"12"_s);
    QCOMPARE(editor<QComboBox>("train.schedule")->currentText(), u"linear"_s);
    panel_->json().editor()->setPlainText(u"{\"schema\": 1, \"lora\": {\"rank\": 12"_s);
    QVERIFY(document_->has_invalid_text());
    QCOMPARE(editor<QLineEdit>("lora.rank")->text(), u"12"_s);
    QVERIFY(panel_->json().editor()->toPlainText().endsWith(u"12"_s));  // what was typed stays
  }

  void json_view_completes_keys_and_values() {
    panel_->show_json();
    JsonEdit& edit = *panel_->json().editor();
    QAbstractItemView& list = *edit.completer()->popup();
    edit.setPlainText(u"{\"schema\": 1, \"lora\": {}}"_s);
    edit.setTextCursor(edit.document()->find(u"{}"_s));
    edit.moveCursor(QTextCursor::Left);
    edit.moveCursor(QTextCursor::Right);
    QTest::keyClicks(&edit, u"\"ra"_s);
    QVERIFY(list.isVisible());
    QCOMPARE(list.model()->index(0, 0).data().toString(), u"\"rank\""_s);
    QVERIFY(!list.model()->index(0, 1).data().toString().isEmpty());
    test::save_picture(list, u"json-completion"_s);
    QTest::keyClick(&edit, Qt::Key_Tab);
    QVERIFY(!list.isVisible());
    QTest::keyClicks(&edit, u"16, \"dora\": "_s);
    QCOMPARE(edit.toPlainText(), u"{\"schema\": 1, \"lora\": {\"rank\": 16, \"dora\": }}"_s);
    QTest::keyClick(&edit, Qt::Key_Space, Qt::ControlModifier);
    QVERIFY(list.isVisible());
    QTest::keyClick(&list, Qt::Key_Down);
    QTest::keyClick(&list, Qt::Key_Return);
    QVERIFY(!list.isVisible());
    QCOMPARE(document_->experiment().value("lora.rank").get<long long>(), 16);
    QVERIFY(document_->experiment().value("lora.dora").get<bool>());
    QTest::keyClick(&edit, Qt::Key_Z);
    QTest::keyClick(&edit, Qt::Key_Return);  // no suggestion is chosen, so that it is a new line
    QVERIFY(edit.toPlainText().contains(u'\n'));
  }

  void a_value_out_of_range_is_kept_and_explained_beside_the_field() {
    auto* rank = editor<QLineEdit>("lora.rank");
    rank->setFocus();
    QTest::keyClicks(rank, u"999999"_s);
    QCOMPARE(shown_problem("lora.rank"), u"Enter a whole number from 1 to 4096"_s);
    rank->selectAll();
    QTest::keyClicks(rank, u"many"_s);
    QVERIFY(document_->experiment().json()["lora"]["rank"] == Json("many"));
    QVERIFY(!shown_problem("lora.rank").isEmpty());
    rank->selectAll();
    QTest::keyClicks(rank, u"8"_s);
    QVERIFY(shown_problem("lora.rank").isEmpty());
    QCOMPARE(document_->experiment().value("lora.rank").get<long long>(), 8);
  }

  void scientific_notation_can_be_typed_in_full() {
    auto* rate = editor<QLineEdit>("train.learning_rate");
    rate->setFocus();
    QTest::keyClicks(rate, u"2.5e-3"_s);
    QCOMPARE(rate->text(), u"2.5e-3"_s);
    QCOMPARE(document_->experiment().value("train.learning_rate").get<double>(), 2.5e-3);
    QCOMPARE(document_->undo_stack().count(), 1);
  }

  void clearing_a_field_and_the_reset_button_mean_the_default() {
    document_->set("lora.rank", 99);
    auto* rank = editor<QLineEdit>("lora.rank");
    rank->setFocus();
    rank->selectAll();
    QTest::keyClick(rank, Qt::Key_Delete);
    QVERIFY(!document_->experiment().has("lora.rank"));
    QCOMPARE(rank->placeholderText(), u"16"_s);
    document_->set("lora.rank", 99);
    for (QToolButton* b : panel_->form().row("lora.rank")->findChildren<QToolButton*>())
      if (b->accessibleName().startsWith(u"Reset"_s)) QTest::mouseClick(b, Qt::LeftButton);
    QVERIFY(!document_->experiment().has("lora.rank"));
  }

  void arrow_keys_step_and_merge() {
    auto* rank = editor<QLineEdit>("lora.rank");
    rank->setFocus();
    for (int i = 0; i < 4; ++i) QTest::keyClick(rank, Qt::Key_Up);
    QCOMPARE(document_->experiment().value("lora.rank").get<long long>(), 20);
    QCOMPARE(document_->undo_stack().count(), 1);
  }

  void a_slider_drag_is_one_undo_step() {
    FormRow* row = panel_->form().row("lora.rank");
    for (QToolButton* b : row->findChildren<QToolButton*>())
      if (b->accessibleName().startsWith(u"Slider"_s)) QTest::mouseClick(b, Qt::LeftButton);
    auto* slider = row->findChild<QSlider*>();
    QVERIFY(slider);
    const int start = slider->value();
    for (int i = 1; i <= 60; ++i) slider->setValue(start + i);
    QVERIFY(document_->experiment().value("lora.rank").get<long long>() > 16);
    QCOMPARE(document_->undo_stack().count(), 1);
  }

  void choosing_and_ticking_reach_the_document() {
    auto* schedule = editor<QComboBox>("train.schedule");
    schedule->setFocus();
    QTest::keyClick(schedule, Qt::Key_Down);
    QCOMPARE(document_->experiment().value("train.schedule").get<std::string>(), std::string("linear"));
    auto* chip = editor<QToolButton>("lora.targets");
    QTest::mouseClick(chip, Qt::LeftButton);
    QCOMPARE(document_->experiment().value("lora.targets").get<std::vector<std::string>>().size(), size_t{6});
  }

  void search_finds_folded_settings() {
    QVERIFY(!panel_->form().row("lora.rslora")->isVisible());
    QTest::keyClicks(panel_->form().search(), u"rslora"_s);
    QVERIFY(panel_->form().row("lora.rslora")->isVisible());
    QVERIFY(!panel_->form().row("lora.rank")->isVisible());
    panel_->form().search()->clear();
    QVERIFY(panel_->form().row("lora.rank")->isVisible());
    QTest::keyClicks(panel_->form().search(), u"max_grad_norm"_s);  // TRL's name
    QVERIFY(panel_->form().row("train.clip")->isVisible());
    QVERIFY(!panel_->form().row("lora.rank")->isVisible());
    panel_->form().search()->clear();
  }

  void a_problem_leads_to_its_field_even_when_folded() {
    panel_->go_to({.place = "train.beta2"});
    auto* field = editor<QLineEdit>("train.beta2");
    QTRY_VERIFY(field->hasFocus());
    QVERIFY(field->isVisible());
  }

  void settings_without_effect_are_hidden_until_they_are_wanted() {
    const auto header = [this](const QString& name) {
      for (QToolButton* b : panel_->findChildren<QToolButton*>())
        if (b->accessibleName() == name) return b;
      return static_cast<QToolButton*>(nullptr);
    };
    QVERIFY(header(u"Training settings"_s)->isVisible());
    QVERIFY(!header(u"Sweep settings"_s)->isVisible() && !header(u"Export settings"_s)->isVisible());
    document_->set("target.id", "v5p-8");
    QVERIFY(header(u"Export settings"_s)->isVisible());
    const auto saved_has_effect = [this] { return panel_->form().row("train.saved")->is_concerned(); };
    document_->set("train.stack", "maxtext");
    QVERIFY(saved_has_effect());
    document_->set("train.stack", "tunix");
    QVERIFY(!saved_has_effect());
    document_->reset("train.stack");
    QVERIFY(saved_has_effect());
    panel_->form().set_stack(model::Stack::tunix);  // of the plan
    QVERIFY(!saved_has_effect());
    panel_->form().set_kind(experiment::Kind::serve);
    QVERIFY(header(u"Sweep settings"_s)->isVisible());
    QVERIFY(!panel_->form().row("train.steps")->isVisible());
    document_->set("train.steps", -1);  // a problem is never hidden
    QVERIFY(panel_->form().row("train.steps")->isVisible());
    document_->reset("train.steps");
    panel_->form().focus_key("train.steps");
    QTRY_VERIFY(panel_->form().row("train.steps")->isVisible());
  }

  void fields_are_whole_in_the_narrowest_panel_and_the_panel_folds() {
    panel_->resize(260, 700);
    QTest::qWait(20);
    QCOMPARE(panel_->width(), 260);
    QCOMPARE(test::clipped(panel_->form()).join(u"; "_s), QString());
    QSignalSpy wanted(panel_.get(), &ExperimentPanel::state_wanted);
    for (QToolButton* b : panel_->findChildren<QToolButton*>())
      if (b->accessibleName().startsWith(u"Fold"_s)) QTest::mouseClick(b, Qt::LeftButton);
    QCOMPARE(wanted.count(), 1);
    panel_->set_state(PanelState::folded);
    QTRY_VERIFY(panel_->width() < 40);
    QCOMPARE(test::unnamed(*panel_).join(u"; "_s), QString());
    panel_->show_json();
    QCOMPARE(wanted.last().front().value<PanelState>(), PanelState::open);
  }

  void pickers_find_targets_and_models_and_say_what_fits() {
    add_pickers(panel_->form(), *document_,
                plan::load_once([] { return plan::PlanContext::load(MW_RESOURCES "/hardware"); }));
    const auto open = [this](const QString& button) {
      for (QToolButton* b : panel_->findChildren<QToolButton*>())
        if (b->accessibleName() == button) QTest::mouseClick(b, Qt::LeftButton);
      return panel_->findChild<PickerPopup*>();
    };
    PickerPopup* targets = open(u"Choose: Target"_s);
    QVERIFY(targets && targets->isVisible());
    QCOMPARE(targets->table().currentIndex().siblingAtColumn(0).data().toString(), u"cpu"_s);
    QTest::keyClicks(&targets->search(), u"v5p-8"_s);
    QCOMPARE(targets->table().currentIndex().siblingAtColumn(2).data().toString(), u"4"_s);
    QTest::keyClick(&targets->search(), Qt::Key_Return);
    QCOMPARE(document_->experiment().value("target.id").get<std::string>(), std::string("v5p-8"));
    QTRY_VERIFY(!panel_->findChild<PickerPopup*>());
    PickerPopup* models = open(u"Choose: Catalogue id"_s);
    QTest::keyClicks(&models->search(), u"gemma3-1b"_s);
    QTRY_COMPARE(models->table().model()->index(0, 4).data().toString(), u"Fits"_s);
    QTest::keyClicks(&models->search(), u"x"_s);
    QCOMPARE(models->table().model()->rowCount(), 0);
    models->close();
  }

  void models_on_this_machine_are_found_with_a_prediction_and_skipped_ones_cannot_be_chosen() {
    namespace fs = std::filesystem;
    const test::Scratch scratch;
    const fs::path tiny = fs::path(MW_FIXTURES) / "gemma3_tiny", model = scratch / "models" / "tiny";
    scratch.put("models/broken/config.json", "{}");
    fs::copy(tiny, model, fs::copy_options::recursive);
    document_->set("model.path", (scratch / "models" / "other").string());
    importing::ModelFolders folders{.hugging_face = {}, .kaggle = {}, .runs = {}, .others = {scratch / "models"}};
    PickerPopup popup(make_found_models(importing::ModelKind::model, folders, *document_, plan::load_once([] {
                                          return plan::PlanContext::load(MW_RESOURCES "/hardware");
                                        })),
                      u"Folder"_s, panel_.get());
    popup.setAttribute(Qt::WA_DeleteOnClose, false);
    QSignalSpy chosen(&popup, &PickerPopup::chosen);
    popup.open_below(*panel_, {});
    const QAbstractItemModel& rows = *popup.table().model();
    QTRY_COMPARE(rows.rowCount(), 2);
    QTRY_VERIFY(rows.index(0, 4).data().toString().startsWith(u"Fits, "_s));
    QCOMPARE(rows.index(0, 0).data().toString(), u"models/tiny"_s);
    QVERIFY(rows.index(1, 4).data().toString().startsWith(u"Skipped: "_s));
    popup.table().setCurrentIndex(rows.index(1, 0));
    QTest::keyClick(&popup.search(), Qt::Key_Return);
    QCOMPARE(chosen.count(), 0);
    popup.table().setCurrentIndex(rows.index(0, 0));
    QTest::keyClick(&popup.search(), Qt::Key_Return);
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen.front().front().toString(), qpath(model));
  }

  void mesh_axes_are_one_field() {
    auto* mesh = editor<QLineEdit>("mesh");
    mesh->setFocus();
    panel_->form().focus_key("mesh");
    QTRY_VERIFY(mesh->isVisible());
    mesh->setFocus();
    QTest::keyClicks(mesh, u"fsdp=2, tp=4"_s);
    const auto axes = document_->experiment().config().mesh.axes;
    QCOMPARE(axes.size(), size_t{2});
    QCOMPARE(axes[1].size, 4);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::FormTest)
#include "form_test.moc"
