// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSignalSpy>
#include <QTest>
#include <QThread>

#include "core/base/files.h"
#include "tests/ui/support.h"
#include "ui/form/experiment_panel.h"
#include "ui/session/session.h"
#include "ui/session/store_reader.h"
#include "ui/theme/text.h"

namespace mw::ui {

class DocumentTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;

 private slots:
  void init() { warnings_.start(); }
  void cleanup() { QCOMPARE(warnings_.take().join(u"; "_s), QString()); }

  void an_edit_is_one_undo_step() {
    Document d;
    d.set("lora.rank", 32);
    d.set("train.steps", 10);
    QCOMPARE(d.undo_stack().count(), 2);
    d.undo_stack().undo();
    QVERIFY(!d.experiment().has("train.steps"));
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 32);
    d.undo_stack().redo();
    QCOMPARE(d.experiment().value("train.steps").get<long long>(), 10);
  }

  void a_drag_merges_and_vanishes_when_it_comes_back() {
    Document d;
    d.set("lora.rank", 8);
    for (int r = 9; r < 40; ++r) d.set("lora.rank", r, Gesture::continuing);
    d.end_gesture();
    QCOMPARE(d.undo_stack().count(), 2);
    d.undo_stack().undo();
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 8);
    for (const int r : {9, 10, 9, 8}) d.set("lora.rank", r, Gesture::continuing);
    QCOMPARE(d.undo_stack().count(), 1);  // nothing changed in the end
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 8);
  }

  void two_gestures_on_one_key_stay_two_steps() {
    Document d;
    d.set("lora.rank", 9, Gesture::continuing);
    d.end_gesture();
    d.set("lora.rank", 10, Gesture::continuing);
    QCOMPARE(d.undo_stack().count(), 2);
  }

  void broken_json_is_kept_and_reported_and_undone() {
    Document d;
    d.set("lora.rank", 32);
    const std::string good = d.json_text();
    const std::string broken = good.substr(0, good.size() - 3);
    d.set_text(broken);
    QVERIFY(d.has_invalid_text());
    QCOMPARE(d.json_text(), broken);
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 32);  // the last valid value stays in force
    QCOMPARE(d.problems().front().severity, Severity::error);
    QVERIFY(!d.problems().front().place.empty());
    d.set("train.steps", 5);  // an edit in the form wins, and undo brings the text back
    QVERIFY(!d.has_invalid_text());
    d.undo_stack().undo();
    QCOMPARE(d.json_text(), broken);
  }

  void own_spacing_of_the_text_stays() {
    Document d;
    const std::string text = "{ \"schema\": 1,\n\n   \"lora\": {\"rank\": 64} }";
    d.set_text(text);
    QVERIFY(!d.has_invalid_text());
    QCOMPARE(d.json_text(), text);
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 64);
  }

  void unknown_keys_survive_every_edit() {
    Document d;
    d.set_text("{\"schema\": 1, \"ours\": {\"note\": [1, 2]}, \"lora\": {\"rank\": 4}}");
    d.set("lora.rank", 5);
    d.reset("lora.rank");
    QVERIFY(d.experiment().json()["ours"]["note"] == Json::array({1, 2}));
  }

  void a_failed_open_leaves_the_document() {
    test::Scratch scratch;
    Document d;
    d.set("lora.rank", 7);
    write_file_atomically(scratch.path() / "newer.json", "{\"schema\": 999}");
    QVERIFY_EXCEPTION_THROWN(d.open(scratch.path() / "newer.json"), Error);
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 7);
    QCOMPARE(d.undo_stack().count(), 1);
  }

  void saving_elsewhere_keeps_relative_paths_right() {
    test::Scratch scratch;
    const auto a = scratch.path() / "a", b = scratch.path() / "b";
    write_file_atomically(a / "e.json", "{\"schema\": 1, \"data\": {\"path\": \"rows.jsonl\"}}");
    Document d;
    d.open(a / "e.json");
    d.save_as(b / "e.json");
    QVERIFY(!d.is_dirty());
    QCOMPARE(d.experiment().path("data.path"), a / "rows.jsonl");
    QCOMPARE(experiment::Experiment::load(b / "e.json").path("data.path"), a / "rows.jsonl");
    d.undo_stack().undo();  // back to the old folder's spelling; the next save is right again
    d.save();
    QCOMPARE(experiment::Experiment::load(b / "e.json").path("data.path"), a / "rows.jsonl");
  }

  void the_journal_brings_unsaved_work_back() {
    test::Scratch scratch;
    const auto file = scratch.path() / "e.json";
    write_file_atomically(file, "{\"schema\": 1, \"lora\": {\"rank\": 4}}");
    Session session(scratch.path() / "state");
    {
      Document d;
      d.open(file);
      d.set("lora.rank", 48);
      d.set_text(d.json_text() + "   oops");
      session.write_journal(d);
    }
    const auto left = session.read_journal();
    QVERIFY(left && left->dirty);
    Document d;
    d.restore(left->snapshot, left->file, Edited::yes);
    QVERIFY(d.is_dirty() && d.has_invalid_text());
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 48);
    QVERIFY(!d.undo_stack().canUndo());  // undo ends where the session began
    d.discard_text();
    d.save();
    QVERIFY(!d.is_dirty());
    QCOMPARE(experiment::Experiment::load(file).value("lora.rank").get<long long>(), 48);
  }

  void a_restored_document_has_edits_only_where_it_differs_from_its_file() {
    test::Scratch scratch;
    const auto file = scratch.path() / "e.json";
    write_file_atomically(file, "{\"schema\": 1, \"lora\": {\"rank\": 4}}");
    Document d;
    d.open(file);
    const Document::Snapshot same = d.snapshot();
    d.set("lora.rank", 5);
    const Document::Snapshot other = d.snapshot();
    d.restore(same, file, Edited::yes);
    QVERIFY(!d.is_dirty());
    d.restore(other, file, Edited::no);
    QVERIFY(d.is_dirty());
    d.restore(other, {}, Edited::no);
    QVERIFY(!d.is_dirty());
    d.restore(other, {}, Edited::yes);
    QVERIFY(d.is_dirty() && !d.undo_stack().canUndo());
    d.restore(same, scratch.path() / "gone.json", Edited::no);
    QVERIFY(d.is_dirty());
  }

  void a_cleared_document_and_a_copy_have_no_file() {
    test::Scratch scratch;
    const auto file = scratch.path() / "e.json";
    write_file_atomically(file, "{\"schema\": 1, \"lora\": {\"rank\": 4}}");
    Document d;
    QSignalSpy replaced(&d, &Document::replaced);
    d.open(file);
    d.set("lora.rank", 5);
    d.clear();
    QVERIFY(d.file().empty() && !d.is_dirty() && !d.experiment().has("lora.rank"));
    d.open(file);
    d.open_copy(d.experiment());
    QVERIFY(d.file().empty() && !d.is_dirty());
    QCOMPARE(d.experiment().value("lora.rank").get<long long>(), 4);
    QCOMPARE(replaced.count(), 4);
  }

  void a_recent_file_that_cannot_be_looked_at_is_left_out() {
    test::Scratch scratch;
    const auto file = scratch.path() / "e.json";
    write_file_atomically(file, "{\"schema\": 1}");
    Session session(scratch.path() / "state");
    session.add_recent(qpath(file));
    session.add_recent(qpath(scratch.path() / std::string(300, 'n')));
    QCOMPARE(session.recent(), QStringList{qpath(file)});
  }

  void an_unreadable_journal_is_set_aside() {
    test::Scratch scratch;
    write_file_atomically(scratch.path() / "unsaved.json", "{\"version\": ");
    QVERIFY(!Session(scratch.path()).read_journal());
    QVERIFY(std::filesystem::exists(scratch.path() / "unsaved.json.unreadable"));
  }

  void the_command_line_gives_the_same_experiment() {
    test::Scratch scratch;
    const auto file = scratch.path() / "it's mine.json";
    write_file_atomically(
        file, "{\"schema\": 1, \"data\": {\"path\": \"rows.jsonl\"}, \"lora\": {\"rank\": 4, \"alpha\": 8}}");
    Document d;
    d.open(file);
    QCOMPARE(command_line(d, store::default_folder()),
             QString(u"meshwright run "_s + shell_quoted(qpath(file)) + u'\n'));
    d.set("lora.rank", 32);
    d.set("data.path", "other.jsonl");
    d.reset("lora.alpha");
    d.set("lora.targets", Json::array({"q_proj", "v_proj"}));
    QStringList sets;
    for (const QString& line : command_line(d, store::default_folder()).split(u'\n'))
      if (line.contains(u"--set"_s)) sets << line.section(u"--set "_s, 1).remove(u" \\"_s).remove(u'\'');
    experiment::Experiment replay = experiment::Experiment::load(file);
    std::vector<std::string> plain;
    for (const QString& s : sets) plain.push_back(ss(s));
    experiment::apply_sets(replay, plain);
    for (const char* key : {"lora.rank", "lora.alpha", "lora.targets"})
      QVERIFY2(replay.value(key) == d.experiment().value(key), key);
    QCOMPARE(replay.path("data.path"), d.experiment().path("data.path"));
  }

  void the_store_is_read_on_another_thread_and_delivered_in_order() {
    test::Scratch scratch;
    test::add_run(scratch.path(), "one", 4, RunState::done);
    StoreReader reader(scratch.path());
    QObject owner;
    QStringList delivered;
    for (const int request : {1, 2, 3})
      reader.read(
          owner, [](const store::Store& store) { return std::pair(store.list().size(), QThread::currentThread()); },
          [&delivered, request](const auto& found) {
            QCOMPARE(QThread::currentThread(), qApp->thread());
            QVERIFY(found.second != qApp->thread());
            delivered << u"%1: %2"_s.arg(request).arg(found.first);
          });
    QCOMPARE(delivered, QStringList());
    QTRY_VERIFY(!reader.is_busy());
    QCOMPARE(delivered, QStringList({u"1: 1"_s, u"2: 1"_s, u"3: 1"_s}));
  }

  void an_error_of_the_store_is_delivered_as_a_problem_and_nothing_to_who_is_gone() {
    test::Scratch scratch;
    StoreReader reader(scratch.path());
    QObject owner;
    auto gone = std::make_unique<QObject>();
    int results = 0;
    std::string problem;
    const auto find = [](const store::Store& store) { return store.experiment("run-7"); };
    const auto take = [&results](const experiment::Experiment&) { ++results; };
    reader.read(owner, find, take, [&problem](const Problem& found) { problem = found.id; });
    reader.read(
        *gone, [](const store::Store&) { return experiment::Experiment(); }, take,
        [&results](const Problem&) { ++results; });
    gone.reset();
    QTRY_VERIFY(!reader.is_busy());
    QVERIFY(!problem.empty());
    QCOMPARE(results, 0);
  }

  void steps_edited_beside_epochs_keep_their_meaning_on_the_command_line() {
    test::Scratch scratch;
    const auto file = scratch.path() / "epochs.json";
    write_file_atomically(file, "{\"schema\": 1, \"train\": {\"epochs\": 2}}");
    Document d;
    d.open(file);
    d.set("train.steps", 5);  // not read: the epochs count, and the checker says so
    const auto problems = d.experiment().validate();
    QVERIFY(std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.id == "EPOCHS"; }));
    const QString line = command_line(d, store::default_folder());
    QVERIFY2(line.contains(u"--set train.steps=5"_s) && line.contains(u"--set train.epochs=2"_s), qPrintable(line));
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::DocumentTest)
#include "document_test.moc"
