// SPDX-License-Identifier: GPL-3.0-or-later
// The Data page on real files, by clicks and keys.
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <fstream>

#include "core/experiment/bound_experiment.h"
#include "core/train/model.h"
#include "core/train/settings.h"
#include "tests/ui/window_fixture.h"
#include "ui/form/experiment_panel.h"
#include "ui/pages/data/data_page.h"
#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/shell/page_stack.h"
#include "ui/shell/problems_panel.h"
#include "ui/shell/window_docks.h"
#include "ui/theme/text.h"

namespace mw::ui {

class DataTest : public test::WindowFixture {
  Q_OBJECT

  DataPage& page() { return window_->pages().data; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder() / name, std::ios::binary) << content;
    return (folder() / name).string();
  }
  void open_window(const Json& data) {
    experiment::Experiment e;
    e.set_value("model.path", MW_RESOURCES "/base-model");
    e.set_value("data", data);
    e.save(folder() / "e.json");
    WindowFixture::open_window(setup(folder() / "e.json"), Page::train);
  }
  void open_page(const Json& data) {
    open_window(data);
    for (auto* b : window_->findChildren<QToolButton*>(u"page"_s))
      if (b->text() == u"Data"_s) QTest::mouseClick(b, Qt::LeftButton);
    QCOMPARE(window_->page(), Page::data);
  }
  // All is read, and what it says is on the screen.
  void read_through() {
    QTRY_VERIFY(!page().reader().is_outdated() && page().reader().state() == DataReader::State::done);
    page().show_frame();
  }
  QString economy() { return page().economy().chart().summary(); }
  void choose(int row) {
    const QRect cell = page().table().visualRect(page().model().index(row, DataRowsModel::state));
    QTest::mouseClick(page().table().viewport(), Qt::LeftButton, {}, cell.center());
    const std::int64_t number = page().model().row(row).row;
    QTRY_VERIFY(page().reader().detail() && page().reader().detail()->row.row == number);
  }
  QString shown_text() {  // every label of the page
    QStringList all;
    for (const QLabel* l : page().findChildren<QLabel*>())
      if (l->isVisible()) all << l->text();
    return all.join(u'\n');
  }
  Json small_world(const Json& more = Json::object()) const {
    Json data{{"path", MW_RESOURCES "/instructions/small-world.json"}};
    data.update(more);
    return data;
  }
  const std::string kGood = R"({"prompt":"What is the river?","completion":"Long"})"
                            "\n";

 private slots:
  void every_row_and_token_is_what_the_trainer_gets() {
    open_page(small_world({{"max_len", 56}, {"overlong", "truncate"}}));
    read_through();
    const train::Settings settings = train::train_settings(window_->document().experiment().config());
    const auto tokenizer = train::load_tokenizer_of(settings.model);
    const data::Dataset loaded = data::load_dataset(settings.data, *tokenizer);
    QCOMPARE(page().model().rowCount(), static_cast<int>(loaded.report.rows));
    QCOMPARE(page().model().count(RowFilter::truncated), loaded.report.truncated);
    QCOMPARE(page().model().count(RowFilter::held_out), static_cast<std::int64_t>(loaded.eval.size()));
    for (const int row : {0, 3, 11}) {
      choose(row);
      const data::Example* example = nullptr;
      for (const auto* part : {&loaded.train, &loaded.eval})
        for (const auto& e : *part)
          if (e.row == row) example = &e;
      QVERIFY(example);
      const views::DataDetail& seen = page().tokens().detail();
      QCOMPARE(seen.row.used, static_cast<int>(example->ids.size()));
      int loss = 0;
      for (size_t t = 0; t < example->ids.size(); ++t) {
        QCOMPARE(seen.tokens[t].id, example->ids[t]);
        QCOMPARE(seen.tokens[t].loss, example->loss[t] != 0);
        loss += example->loss[t];
      }
      QCOMPARE(page().model().index(row, DataRowsModel::loss).data().toInt(), loss);
    }
    // The chart and the bars say the same as the batches.
    double drawn = 0;
    for (const double v : page().lengths().content().stack.overall()) drawn += v;
    QCOMPARE(drawn, static_cast<double>(loaded.report.rows));
    QVERIFY(page().lengths().summary().contains(u"too long, truncated"_s));
    QCOMPARE(page().lengths().content().limits.front().value, 56.0);
    data::BatchStream stream(loaded.train, train::batch_options(settings), tokenizer->pad());
    std::int64_t real = 0, with_loss = 0, all = 0;
    for (std::int64_t n = 0; n < stream.batches_per_epoch(); ++n) {
      const data::Batch b = stream.next();
      real += b.real_tokens;
      with_loss += b.loss_tokens;
      all += std::int64_t{b.rows} * b.len;
    }
    const auto share = [all](std::int64_t tokens) {
      return QString::number(100.0 * static_cast<double>(tokens) / static_cast<double>(all), 'f', 0);
    };
    const QString row = u"Token economy: longest row: with loss %1 %, without loss %2 %, padding %3 %, %4; "_s.arg(
        share(with_loss), share(real - with_loss), share(all - real), qs(count_text(static_cast<double>(all))));
    QVERIFY2(economy().startsWith(row), qPrintable(economy() + u" / "_s + row));
  }

  void repeated_and_leaked_rows_are_counted() {
    const auto train = write("train.jsonl", kGood + kGood), eval = write("eval.jsonl", kGood);
    open_page({{"path", train}, {"eval_path", eval}});
    read_through();
    QVERIFY(shown_text().contains(u"1 repeated"_s));
    QVERIFY(shown_text().contains(u"1 held out but in training"_s));
  }

  void tokens_are_walked_by_keys_and_pointed_at_by_the_mouse() {
    open_page(small_world());
    read_through();
    choose(0);
    TokenView& tokens = page().tokens();
    tokens.setFocus();
    QTest::keyClick(&tokens, Qt::Key_Home);
    QCOMPARE(tokens.current(), 0);
    QVERIFY(shown_text().contains(u"token 1 of "_s));
    QVERIFY(shown_text().contains(u"<bos>  \u00B7  special  \u00B7  no loss"_s));
    QTest::keyClick(&tokens, Qt::Key_Right);
    QCOMPARE(tokens.current(), 1);
    QTest::keyClick(&tokens, Qt::Key_Down);
    QVERIFY(tokens.chip(tokens.current()).top() > tokens.chip(1).top());
    QTest::keyClick(&tokens, Qt::Key_Up);
    QCOMPARE(tokens.chip(tokens.current()).top(), tokens.chip(1).top());
    QTest::keyClick(&tokens, Qt::Key_End);
    QCOMPARE(tokens.current(), static_cast<int>(tokens.detail().tokens.size()) - 1);
    int with_loss = -1;
    for (size_t t = 0; t < tokens.detail().tokens.size(); ++t)
      if (tokens.detail().tokens[t].loss && with_loss < 0) with_loss = static_cast<int>(t);
    // Until the layout stands: a plan that arrives meanwhile may move the view from under the mouse.
    QTRY_VERIFY([&] {
      QTest::mouseMove(tokens.viewport(), QPoint(1, 1));
      QTest::mouseMove(tokens.viewport(), tokens.chip(with_loss).center());
      return shown_text().contains(u"carries loss"_s) && tokens.pointed_at() == with_loss;
    }());
    QVERIFY(shown_text().contains(u"id %1"_s.arg(tokens.detail().tokens[static_cast<size_t>(with_loss)].id)));
    QTest::mouseClick(tokens.viewport(), Qt::LeftButton, {}, tokens.chip(with_loss).center());
    QCOMPARE(tokens.current(), with_loss);
    QTest::keyClick(&tokens, Qt::Key_C, Qt::ControlModifier);
    const QStringList lines = QGuiApplication::clipboard()->text().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), qsizetype{1} + std::ssize(tokens.detail().tokens));
    QVERIFY(lines[with_loss + 1].endsWith(u"\t1"_s));
  }

  void losses_of_a_model_colour_the_tokens_and_the_served_template_is_compared() {
    Json data = small_world();
    data["chat"] = "none";
    open_page(data);
    read_through();
    choose(0);
    TokenContext& context = page().token_context();
    QTRY_VERIFY(!context.is_busy());
    QVERIFY2(shown_text().contains(u"encodes the prompt differently from token 2"_s), qPrintable(context.note()));
    QToolButton* button = nullptr;
    for (auto* b : page().findChildren<QToolButton*>())
      if (b->text() == u"Losses"_s) button = b;
    QVERIFY(button && button->menu());
    emit button->menu()->aboutToShow();
    for (QAction* a : button->menu()->actions())
      if (a->text() == u"Base Model"_s) a->trigger();
    QCOMPARE(button->text(), u"Losses: base"_s);
    QTRY_VERIFY(!context.is_busy());
    TokenView& tokens = page().tokens();
    QVERIFY2(shown_loss(tokens.context(), 2).has_value(), qPrintable(context.note()));
    QVERIFY(!shown_loss(tokens.context(), 0));
    tokens.setFocus();
    tokens.set_current(2);
    QVERIFY2(shown_text().contains(u" nats"_s) && shown_text().contains(u"sees tokens 1 to 3"_s),
             qPrintable(shown_text()));
    QTest::keyClick(&tokens, Qt::Key_C, Qt::ControlModifier);
    QVERIFY(QGuiApplication::clipboard()->text().startsWith(u"position\tid\tpiece\tloss\tnats\n"_s));
    picture(u"data-losses"_s);
    context.choose(TokenContext::Losses::run, "run-77");
    QTRY_VERIFY(!context.is_busy());
    QVERIFY2(shown_text().contains(u"no checkpoint"_s), qPrintable(context.note()));
  }

  void a_bad_row_shows_its_error_and_skipping_is_one_click_that_can_be_undone() {
    const std::string file = write("a.jsonl", kGood + "{\"prompt\":\"only asked\"}\n" + kGood + "not json\n" + kGood);
    open_page({{"path", file}, {"eval_fraction", 0.0}});
    read_through();
    QVERIFY2(page().notice().startsWith(u"Training would stop at line 2: "_s), qPrintable(page().notice()));
    QVERIFY(page().notice().endsWith(u"Bad rows: 2 of 5"_s));
    choose(1);
    QTRY_VERIFY(shown_text().contains(u"the row has no"_s));
    QVERIFY(shown_text().contains(u"line 2"_s) && shown_text().contains(u"Expected: "_s));
    choose(3);
    QTRY_VERIFY(shown_text().contains(u"line 4"_s) && !shown_text().contains(u"the row has no &quot;"_s));
    QVERIFY(!page().tokens().isVisible());
    choose(2);
    QTRY_VERIFY(page().tokens().isVisible());
    QVERIFY(economy().contains(u"without loss"_s));  // of the three good ones
    choose(1);
    picture(u"data-bad-row"_s);
    press(u"Skip Bad Rows"_s);
    QCOMPARE(window_->document().experiment().value("data.on_error").get<std::string>(), std::string("skip"));
    QTRY_VERIFY(page().notice().isEmpty());
    read_through();
    QCOMPARE(page().table().currentIndex().row(), 1);  // the row looked at stays
    window_->document().undo_stack().undo();
    QTRY_VERIFY(!page().notice().isEmpty());
  }

  void duplicates_are_dropped_and_listed() {
    const std::string other = R"({"prompt":"What is the rope?","completion":"Red"})"
                              "\n";
    open_page({{"path", write("rows.jsonl", kGood + other + kGood + other + kGood)}, {"eval_fraction", 0.0}});
    read_through();
    QCOMPARE(page().model().count(RowFilter::repeated), 0);
    QVERIFY(shown_text().contains(u"3 repeated"_s));
    window_->document().set("data.dedup", true);
    QTRY_COMPARE(page().model().count(RowFilter::repeated), 3);
    read_through();
    QVERIFY(shown_text().contains(u"2 to train on"_s));
    QVERIFY(shown_text().contains(u"3 repeated and dropped"_s));
    page().filter().setFocus();
    QTest::keyClicks(&page().filter(), u"Repeated"_s);
    QCOMPARE(page().model().filter(), RowFilter::repeated);
    QCOMPARE(page().model().rowCount(), 3);
    for (int r = 0; r < 3; ++r) QCOMPARE(page().model().row(r).row, std::int64_t{r + 2});
    choose(1);
    QVERIFY(page().tokens().detail().row.state == data::RowState::repeated);
    QVERIFY(!page().tokens().detail().tokens.empty());
    window_->document().undo_stack().undo();
    QTRY_COMPARE(page().model().count(RowFilter::repeated), 0);
  }

  void filter_and_order_find_rows() {
    open_page(small_world({{"max_len", 56}}));
    read_through();
    page().filter().setFocus();
    QTest::keyClicks(&page().filter(), u"Too"_s);
    QCOMPARE(page().model().filter(), RowFilter::too_long);
    QCOMPARE(page().model().rowCount(), static_cast<int>(page().model().count(RowFilter::too_long)));
    QVERIFY(page().model().rowCount() > 3);
    for (int r = 0; r < page().model().rowCount(); ++r) QVERIFY(page().model().row(r).tokens > 56);
    QTRY_VERIFY(page().tokens().detail().row.state == data::RowState::too_long);
    // Longest first, by a click on the header.
    QHeaderView* header = page().table().horizontalHeader();
    const QPoint at(header->sectionViewportPosition(DataRowsModel::tokens) + 12, header->height() / 2);
    QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, at);
    if (header->sortIndicatorOrder() == Qt::AscendingOrder)
      QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, at);
    for (int r = 1; r < page().model().rowCount(); ++r)
      QVERIFY(page().model().row(r - 1).tokens >= page().model().row(r).tokens);
    page().filter().setCurrentIndex(static_cast<int>(RowFilter::bad));
    QCOMPARE(page().model().rowCount(), 0);
    QTRY_VERIFY(page().tokens().detail().tokens.empty());
    page().filter().setCurrentIndex(static_cast<int>(RowFilter::all));
    QCOMPARE(page().model().row(0).tokens, page().reader().index()->lengths.rbegin()->first);
  }

  void a_long_file_is_counted_whole_and_listed_in_part() {
    experiment::Experiment e;
    e.set_value("model.path", MW_RESOURCES "/base-model");
    e.set_value("data", small_world());
    DataReader reader(nullptr, 7);
    reader.read(e);
    QTRY_VERIFY((reader.drain(), reader.state() == DataReader::State::done));
    QCOMPARE(reader.rows().size(), size_t{7});
    QVERIFY(!reader.lists_all());
    QCOMPARE(reader.rows_read(), reader.index()->report.rows);
    QVERIFY(reader.rows_read() > 7);
    QCOMPARE(reader.rows().back().row, std::int64_t{6});
  }

  void edits_restart_the_reading_and_only_the_last_one_is_shown() {
    open_page(small_world());
    read_through();
    int restarts = 0;
    connect(&page().reader(), &DataReader::restarted, this, [&] { ++restarts; });
    window_->document().set("train.learning_rate", 1e-3);  // nothing to do with the data
    window_->document().set("lora.rank", 2);
    QTest::qWait(400);
    QCOMPARE(restarts, 0);
    for (const int limit : {30, 31, 32, 33, 40}) window_->document().set("data.max_len", limit);
    QTRY_VERIFY(page().reader().is_outdated());
    QTRY_COMPARE(page().reader().request().options.max_len, 40);
    read_through();
    QCOMPARE(restarts, 1);
    QVERIFY(page().model().count(RowFilter::too_long) > 0);
    // Batches alone need no rows anew.
    const auto before = economy();
    window_->document().set("train.batch", 1);
    QTRY_VERIFY((page().show_frame(), economy() != before));
    QCOMPARE(restarts, 1);
    const std::vector<double> unpadded = page().economy().chart().content().stack.at(0);
    QCOMPARE(unpadded[0] + unpadded[1], 100.0);
    QCOMPARE(unpadded[2], 0.0);
    // While the page is hidden nothing is read.
    window_->show_page(Page::train);
    window_->document().set("data.max_len", 64);
    QTest::qWait(400);
    QCOMPARE(restarts, 1);
    window_->show_page(Page::data);
    QTRY_COMPARE(page().reader().request().options.max_len, 64);
  }

  void a_large_file_is_read_in_the_background_and_can_be_cancelled() {
    std::string many;
    for (int i = 0; i < 400; ++i) many += kGood;
    {
      std::ofstream out(folder() / "large.jsonl", std::ios::binary);
      for (int i = 0; i < 1000; ++i) out << many;
    }
    open_page({{"path", (folder() / "large.jsonl").string()}});
    QTRY_VERIFY(page().model().rowCount() > 0);
    QCOMPARE(page().reader().state(), DataReader::State::reading);
    choose(0);  // its tokens are there while the others are still read
    QVERIFY(!page().tokens().detail().tokens.empty());
    QTRY_VERIFY(page().reader().eta().has_value());
    QVERIFY(shown_text().contains(u"rows so far"_s));
    picture(u"data-reading"_s);
    press(u"Cancel"_s);
    QCOMPARE(page().reader().state(), DataReader::State::stopped);
    const int kept = page().model().rowCount();
    QVERIFY(kept > 0 && kept < 400000);
    QTest::qWait(200);
    QCOMPARE(page().model().rowCount(), kept);
    QVERIFY(!page().reader().index());
    QVERIFY(economy().contains(u"Cancelled"_s));
    page().table().setFocus();
    QTest::keyClick(&page().table(), Qt::Key_End);
    QTRY_COMPARE(page().tokens().detail().row.row, page().model().row(kept - 1).row);
    press(u"Read Again"_s);
    QTRY_COMPARE(page().reader().state(), DataReader::State::reading);
  }

  void a_very_long_row_wraps_and_scrolls() {
    std::string text = "{\"text\":\"";
    for (int i = 0; i < 60000; ++i) text += "the river ";
    open_page({{"path", write("a.jsonl", text + "\"}\n")}, {"max_len", 1000}, {"overlong", "truncate"}});
    read_through();
    TokenView& tokens = page().tokens();
    QTRY_VERIFY(tokens.detail().tokens.size() > 100000);
    QVERIFY(tokens.verticalScrollBar()->maximum() > 20000);
    tokens.setFocus();
    QElapsedTimer clock;
    clock.start();
    for (int i = 0; i < 20; ++i) {
      QTest::keyClick(&tokens, Qt::Key_PageDown);
      tokens.grab();
    }
    QTest::keyClick(&tokens, Qt::Key_End);
    QVERIFY(tokens.viewport()->rect().contains(tokens.chip(tokens.current())));
    QVERIFY2(clock.elapsed() < 5000, qPrintable(QString::number(clock.elapsed())));  // not for each token of the row
    QVERIFY(shown_text().contains(u"not used"_s));
    picture(u"data-long-row"_s);
  }

  void a_file_that_changes_is_read_again_by_itself() {
    const std::string file = write("a.jsonl", kGood + kGood);
    open_page({{"path", file}, {"eval_fraction", 0.0}});
    read_through();
    QCOMPARE(page().model().rowCount(), 2);
    write("a.jsonl", kGood + kGood + kGood);  // written in place
    QTRY_COMPARE(page().model().rowCount(), 3);
    std::filesystem::rename(write("b.jsonl", kGood), file);  // replaced
    QTRY_COMPARE(page().model().rowCount(), 1);
    write("a.jsonl", kGood + kGood);  // the new one is watched, too
    QTRY_COMPARE(page().model().rowCount(), 2);
    std::filesystem::remove(file);
    QTRY_VERIFY(shown_text().contains(u"cannot be read"_s));
    QCOMPARE(page().model().rowCount(), 0);
    write("a.jsonl", kGood + kGood + kGood + kGood);  // made again
    QTRY_COMPARE(page().model().rowCount(), 4);
    read_through();
    choose(3);
    write("other.jsonl", kGood);  // a neighbour is none of it
    QTest::qWait(600);
    QVERIFY(!page().reader().is_outdated());
  }

  void files_of_a_pattern_that_change_are_read_again() {
    const std::string pattern = folder().string() + "/part-*.jsonl";
    write("part-1.jsonl", kGood);
    open_page({{"path", pattern}, {"eval_path", write("held.jsonl", kGood)}});
    read_through();
    const int rows = page().model().rowCount();
    write("part-2.jsonl", kGood + kGood);  // a file more
    QTRY_COMPARE(page().model().rowCount(), rows + 2);
    write("part-2.jsonl", kGood);  // written in place
    QTRY_COMPARE(page().model().rowCount(), rows + 1);
    write("held.jsonl", kGood + kGood);
    QTRY_COMPARE(page().model().rowCount(), rows + 2);
    std::filesystem::remove(folder() / "part-1.jsonl");
    QTRY_COMPARE(page().model().rowCount(), rows + 1);
    std::filesystem::remove(folder() / "part-2.jsonl");
    QTRY_VERIFY(shown_text().contains(u"no file matches"_s));
    write("part-3.jsonl", kGood + kGood + kGood);  // made again
    QTRY_COMPARE(page().model().rowCount(), rows + 3);
  }

  void what_cannot_be_read_says_why_and_leads_to_the_setting() {
    open_page({{"max_len", 64}});
    QTRY_VERIFY(shown_text().contains(u"No data yet"_s));
    press(u"Go to Data File"_s);
    QTRY_COMPARE(QApplication::focusWidget(), window_->docks().panel.form().row("data.path")->field()->editor());
    window_->document().set("data.path", (folder() / "none.jsonl").string());
    QTRY_VERIFY(shown_text().contains(u"none.jsonl"_s) && shown_text().contains(u"cannot be read"_s));
    window_->document().set("data.path", write("a.jsonl", "{\"q\":\"a\",\"b\":\"c\"}\n"));
    QTRY_VERIFY(shown_text().contains(u"cannot be detected"_s));
    picture(u"data-unreadable"_s);
    window_->document().set("data.columns.prompt", "q");
    window_->document().set("data.columns.completion", "b");
    QTRY_COMPARE(page().model().rowCount(), 1);
    window_->document().set("data.max_len", 1);
    QTRY_VERIFY(shown_text().contains(u"out of range"_s));
    press(u"Go to Data File"_s);
    QTRY_COMPARE(QApplication::focusWidget(), window_->docks().panel.form().row("data.max_len")->field()->editor());
    window_->document().set("data.max_len", 64);
    window_->document().reset("model.path");
    QTRY_VERIFY(shown_text().contains(u"the experiment has no model"_s));
  }

  void lengths_are_saved_and_planned_with_where_the_data_is_not() {
    open_page(small_world({{"eval_fraction", 0.0}}));
    read_through();
    QVERIFY(button(u"Save Lengths\u2026"_s)->isEnabled());
    const QString file = qpath(folder() / "kept.json"), csv = qpath(folder() / "kept.csv");
    page().save_lengths(file);
    page().save_lengths(csv);
    const data::LengthCounts lengths = page().reader().index()->lengths;
    QVERIFY(data::read_lengths(fspath(file)) == lengths && data::read_lengths(fspath(csv)) == lengths);
    // Padding of fixed shapes, and the tokens with the packing factor.
    const double padding = page().economy().chart().content().stack.at(2)[2];
    const QString packed = page().economy().chart().bars().bars[3].text;
    QVERIFY(padding > 0 && packed.contains(u'\u00D7'));
    window_->document().reset("data.path");
    window_->document().reset("model.path");
    window_->document().set("data.lengths", ss(file));
    QTRY_VERIFY(page().reader().request().source == train::DataSource::lengths);
    read_through();
    QVERIFY(!page().table().isVisible() && !page().tokens().isVisible() && page().lengths().isVisible());
    QVERIFY(economy().contains(u"padding"_s) && !economy().contains(u"loss"_s));
    // Percent; lengths do not say which rows are in the last, incomplete batch.
    QVERIFY(std::abs(page().economy().chart().content().stack.at(2)[1] - padding) < 0.01);
    QCOMPARE(page().economy().chart().bars().bars[3].text, packed);
    QVERIFY(shown_text().contains(u"loss is unknown"_s));
    picture(u"data-lengths-only"_s);
    window_->document().set("data.lengths", write("bad.csv", "12,3\nx,1\n"));
    QTRY_VERIFY(shown_text().contains(u"bad.csv, line 2"_s));
    page().save_lengths(u"/proc/none.json"_s);  // nothing to save: nothing happens
    window_->document().set("data.lengths", ss(csv));
    QTRY_VERIFY(page().can_save_lengths());
    const int before = window_->problems().count(Severity::error);
    page().save_lengths(u"/proc/none/there.json"_s);
    QCOMPARE(window_->problems().count(Severity::error), before + 1);
  }

  void padding_has_a_price_only_where_it_is_known() {
    open_page(small_world());
    read_through();
    QVERIFY(page().economy().cost_text().isEmpty());
    page().economy().set_price({Seconds(0.001), std::nullopt}, views::PadTo::max_len);
    const auto& e = *page().reader().economy();
    const QString padding = qs(to_text(Seconds(0.001 * static_cast<double>(e.plain.fixed - e.plain.tokens))));
    QVERIFY2(page().economy().cost_text().contains(padding), qPrintable(page().economy().cost_text()));
    QVERIFY(!page().economy().cost_text().contains(u'$'));
    picture(u"data-priced"_s);
    page().economy().set_price({Seconds(0.001), Usd(36)}, views::PadTo::max_len);
    const auto saved = *epoch_cost(e, views::PadTo::max_len, {Seconds(0.001), Usd(36)}).saved.usd;
    QVERIFY(saved.value > 1);
    QVERIFY(page().economy().cost_text().contains(qs(to_text(saved))));
  }

  void keys_reach_everything_in_both_themes_and_sizes() {
    open_page(small_world());
    read_through();
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    QStringList reached;
    for (int i = 0; i < 300; ++i) {
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(), Qt::Key_Tab);
      QWidget* f = QApplication::focusWidget();
      const auto* b = qobject_cast<QPushButton*>(f);
      if (f) reached << (b ? b->text() : f->accessibleName());
    }
    for (const auto& name : {u"Data page"_s, u"Filter of rows"_s, u"Rows of the data"_s, u"Tokens of the row"_s,
                             u"Rows chart"_s, u"Read Again"_s, u"Save Lengths\u2026"_s})
      QVERIFY2(reached.contains(name), qPrintable(name));
    for (const Shade shade : {Shade::light, Shade::dark})
      for (const QSize size : {QSize(1000, 650), QSize(1280, 800), QSize(2560, 1440)}) {
        window_->set_shade(shade);
        window_->resize(size);
        QTest::qWait(60);
        picture(u"data-%1-%2"_s.arg(size.width()).arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
        QVERIFY2(page().lengths().area().width() > 200 && page().lengths().area().height() > 60,
                 qPrintable(u"%1 x %2"_s.arg(page().lengths().area().width()).arg(page().lengths().area().height())));
        QVERIFY(page().lengths().height() >= 120);  // with axis titles
        QCOMPARE(test::clipped(page()).join(u"; "_s), QString());
        QCOMPARE(window_->height(), size.height());
        for (auto* area : page().findChildren<QAbstractScrollArea*>())
          QVERIFY(!area->horizontalScrollBar()->isVisible());
        QVERIFY(page().economy().chart().height() >= 120);  // with axis titles
        QVERIFY2(page().economy().chart().area().height() >= 60,
                 qPrintable(QString::number(page().economy().chart().area().height())));
        QVERIFY(page().table().columnWidth(DataRowsModel::state) > 70);
        QVERIFY(page().tokens().viewport()->height() > (size.height() < 700 ? 60 : 150));
      }
    window_->close();
    window_.reset();
    MainWindow again({{}, store(), MW_RESOURCES, folder() / "state"});
    QCOMPARE(again.page(), Page::data);
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::DataTest)
#include "data_test.moc"
