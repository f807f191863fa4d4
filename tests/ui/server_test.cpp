// SPDX-License-Identifier: GPL-3.0-or-later
// The server and the playground of the Serve page, with the shipped model and an adapter that is really trained.
#include <httplib.h>

#include <QClipboard>
#include <QGuiApplication>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <future>

#include "core/jobs/job.h"
#include "core/train/checkpoint.h"
#include "tests/ui/window_fixture.h"
#include "ui/pages/serve/serve_page.h"
#include "ui/session/document.h"
#include "ui/shell/page_stack.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace fs = std::filesystem;

class ServerTest : public test::WindowFixture {
  Q_OBJECT

  ServerTab& tab() { return window_->pages().serve.server(); }
  Playground& playground() { return tab().playground(); }
  QPushButton& button(const QString& text) { return test::button_of(tab(), text); }
  void click(const QString& text) {
    QVERIFY2(button(text).isEnabled(), qPrintable(text));
    QTest::mouseClick(&button(text), Qt::LeftButton);
  }

  static experiment::Experiment tiny() {
    experiment::Experiment e = experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples/tiny-lora.json");
    e.set_value("target.threads", 2);
    e.set_value("serve.max_model_len", 256);
    e.set_value("sample.max_new_tokens", 16);
    return e;
  }
  void open_tab(const experiment::Experiment& experiment) {
    const fs::path file = fs::path(MW_RESOURCES) / "examples/tiny-lora.json";
    open_window(setup(file), Page::serve);
    window_->document().replace(experiment, u"test"_s);
    window_->pages().serve.show_server();
    tab().port().setValue(0);
  }
  void start_server() {
    click(u"Start Server"_s);
    QTRY_VERIFY(tab().host().is_listening() && !tab().host().is_busy());
  }
  int served_port() { return tab().host().model()->http()->port(); }
  std::future<httplib::Result> post(const std::string& body, const httplib::Headers& headers = {}) {
    return std::async(std::launch::async, [port = served_port(), body, headers] {
      httplib::Client client("127.0.0.1", port);
      client.set_read_timeout(60);
      return client.Post("/v1/chat/completions", headers, body, "application/json");
    });
  }
  static bool ready(const std::future<httplib::Result>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  void generate(const QString& prompt) {
    playground().prompt().setPlainText(prompt);
    click(u"Generate"_s);
    QTRY_VERIFY(playground().base().answer() != nullptr);
  }
  void finish_answers() { QTRY_VERIFY(!playground().is_answering()); }
  // A checkpoint of two steps with a large rate, so that it answers differently.
  fs::path train_adapter() {
    experiment::Experiment e = tiny();
    e.set_value("train.steps", 4);
    e.set_value("train.answers", 0);
    e.set_value("train.learning_rate", 0.05);
    e.set_value("train.warmup_steps", 0);
    jobs::run_blocking({e, store(), std::nullopt}, [](const Event&) {}, {});
    return *train::latest_checkpoint(store::Store(store()).run_folder("run-1"));
  }

 private slots:
  void a_server_starts_answers_over_http_and_stops() {
    open_tab(tiny());
    tab().key().setText(u"secret"_s);
    start_server();
    QVERIFY2(tab().message().contains(tab().host().address() + u"/v1 serves "_s), qPrintable(tab().message()));
    QVERIFY(!button(u"Start Server"_s).isEnabled() && !tab().port().isEnabled());
    const std::string body = R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "temperature": 0})";
    auto refused = post(body);
    QTRY_VERIFY(ready(refused));
    QCOMPARE(refused.get()->status, 401);
    auto answered = post(body, {{"Authorization", "Bearer secret"}});
    QTRY_VERIFY(ready(answered));
    QCOMPARE(answered.get()->status, 200);
    QTRY_COMPARE(tab().figure(u"Answered"_s), u"1"_s);
    QTRY_VERIFY2(tab().log().contains(u"POST /v1/chat/completions 200"_s), qPrintable(tab().log()));
    QVERIFY(tab().log().contains(u"POST /v1/chat/completions 401"_s));
    playground().prompt().setPlainText(u"it's"_s);
    click(u"Copy curl Command"_s);
    const QString command = QGuiApplication::clipboard()->text();
    QVERIFY2(command.startsWith(u"curl "_s + tab().host().address()) && command.contains(u"Bearer secret"_s),
             qPrintable(command));
    QCOMPARE(window_->pages().serve.subcommand(), u"serve"_s);
    const int port = served_port();
    click(u"Stop Server"_s);
    QTRY_VERIFY(!tab().host().is_listening() && !tab().host().is_busy());
    QVERIFY(!httplib::Client("127.0.0.1", port).Get("/health"));
    QVERIFY(button(u"Start Server"_s).isEnabled());
  }

  void stopping_and_closing_cancel_requests_without_waiting_for_them() {
    experiment::Experiment e = tiny();
    e.set_value("serve.max_model_len", 512);
    e.set_value("serve.max_num_seqs", 1);
    open_tab(e);
    for (const bool closes : {false, true}) {
      start_server();
      // One after the other, so that they outlast several updates of the figures.
      std::vector<std::future<httplib::Result>> requests;
      for (int i = 0; i < 24; ++i)
        requests.push_back(
            post(R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 480, "ignore_eos": true})"));
      QTRY_COMPARE(tab().figure(u"Running"_s), u"1"_s);
      QVERIFY(tab().figure(u"KV blocks in use"_s) != u"\u2013"_s);
      // One at a time is computed; the table shows the others as they wait.
      QTRY_VERIFY(tab().requests().rowCount() > 2);
      QCOMPARE(tab().requests().row(tab().requests().rowCount() - 1).state, serve::LiveState::waiting);
      picture(u"server-requests"_s);
      if (closes)
        window_.reset();
      else
        click(u"Stop Server"_s);
      int cancelled = 0;
      for (auto& request : requests) {
        QTRY_VERIFY(ready(request));
        const httplib::Result answer = request.get();
        QVERIFY(!answer || answer->status == 503 || answer->status == 200);
        cancelled += !answer || answer->status == 503;
      }
      QVERIFY(cancelled > 0);
      QTRY_VERIFY(closes || (!tab().host().is_listening() && !tab().host().is_busy()));
    }
  }

  void a_port_in_use_is_said_in_place_and_another_works() {
    open_tab(tiny());
    httplib::Server other;
    const int taken = other.bind_to_any_port("127.0.0.1");
    tab().port().setValue(taken);
    click(u"Start Server"_s);
    QTRY_VERIFY(!tab().host().is_busy());
    QVERIFY2(tab().message().contains(QString::number(taken)), qPrintable(tab().message()));
    QVERIFY(!tab().host().is_listening());
    tab().port().setValue(0);
    start_server();
  }

  void what_this_machine_cannot_serve_is_refused_with_a_reason() {
    open_tab(tiny());
    window_->document().set("target.id", "v6e-8");
    QVERIFY(!button(u"Start Server"_s).isEnabled() && !button(u"Generate"_s).isEnabled());
    QVERIFY2(tab().message().contains(u"v6e-8"_s), qPrintable(tab().message()));
    window_->document().set("target.id", "cpu");
    QVERIFY(button(u"Start Server"_s).isEnabled() && tab().message().isEmpty());
    window_->document().set("model.path", "/nowhere");
    click(u"Start Server"_s);
    QTRY_VERIFY(!tab().host().is_busy());
    QVERIFY2(tab().message().contains(u"/nowhere"_s), qPrintable(tab().message()));
    QVERIFY(!tab().host().is_listening() && button(u"Start Server"_s).isEnabled());
  }

  void answers_stream_with_probabilities_and_seeds_reproduce_them() {
    experiment::Experiment e = tiny();
    e.set_value("sample.temperature", 1.5);
    e.set_value("sample.seed", 3);
    open_tab(e);
    generate(u"Tell me about the sky."_s);
    finish_answers();
    const QString first = playground().base().text();
    QVERIFY(!first.isEmpty());
    QVERIFY2(playground().base().status().contains(u"tokens/s"_s), qPrintable(playground().base().status()));
    QVERIFY(!playground().tuned().isVisible());  // there is no adapter
    auto& tokens = playground().base().tokens();
    QCOMPARE(tokens.rowCount(), static_cast<int>(playground().base().answer()->tokens().size()));
    for (int row = 0; row < tokens.rowCount(); ++row) {
      const double p = tokens.index(row, 1).data(sort_role).toDouble();
      QVERIFY(p > 0 && p <= 1);
      QCOMPARE(tokens.row(row).likeliest.size(), size_t{5});
    }
    QVERIFY(playground().base().tooltip_at(0).contains(u"%"_s));
    playground().tokens().click();
    QTest::qWait(30);
    picture(u"playground-tokens"_s);
    generate(u"Tell me about the sky."_s);
    finish_answers();
    QCOMPARE(playground().base().text(), first);
    window_->document().set("sample.seed", 4);
    generate(u"Tell me about the sky."_s);
    finish_answers();
    QVERIFY(playground().base().text() != first);
  }

  void an_answer_is_stopped_and_keeps_its_tokens() {
    experiment::Experiment e = tiny();
    e.set_value("serve.max_model_len", 512);
    e.set_value("sample.max_new_tokens", 480);
    e.set_value("sample.temperature", 10);  // so that no end of turn comes early
    open_tab(e);
    generate(u"Hello"_s);
    QTRY_VERIFY(playground().base().tokens().rowCount() >= 3);
    QVERIFY(!button(u"Generate"_s).isEnabled());
    click(u"Stop Answer"_s);
    finish_answers();
    QVERIFY(playground().base().tokens().rowCount() < 480);
    QVERIFY2(playground().base().status().startsWith(u"stopped"_s), qPrintable(playground().base().status()));
    QVERIFY(button(u"Generate"_s).isEnabled());
    window_->document().set("sample.max_new_tokens", 4);
    playground().prompt().setPlainText(u"word "_s.repeated(6000));
    click(u"Generate"_s);
    QVERIFY(playground().base().answer() == nullptr);  // refused
    QVERIFY2(playground().base().status().contains(u"tokens"_s) && !playground().is_answering(),
             qPrintable(playground().base().status()));
  }

  void base_and_tuned_answer_side_by_side_and_a_changed_form_is_loaded_anew() {
    experiment::Experiment e = tiny();
    open_tab(e);
    generate(u"What colour is the sky?"_s);
    finish_answers();
    const QString base = playground().base().text();
    window_->document().set("lora.adapter", train_adapter().string());
    generate(u"What colour is the sky?"_s);
    QVERIFY(playground().tuned().isVisible());
    finish_answers();
    QCOMPARE(playground().base().text(), base);
    QVERIFY(!playground().tuned().text().isEmpty());
    QVERIFY(playground().tuned().text() != base);
    picture(u"playground"_s);
    // A server that listens keeps its model, and says that the form has changed.
    start_server();
    window_->document().set("serve.max_model_len", 200);
    QTRY_VERIFY2(tab().message().contains(u"has changed"_s), qPrintable(tab().message()));
    generate(u"What colour is the sky?"_s);
    QVERIFY(tab().host().is_listening());
    finish_answers();
    QCOMPARE(playground().base().text(), base);
  }

  void an_adapter_that_was_trained_with_another_template_is_warned_of() {
    open_tab(tiny());
    window_->document().set("lora.adapter", train_adapter().string());
    start_server();
    QVERIFY2(!tab().log().contains(u"Warning"_s), qPrintable(tab().log()));
    click(u"Stop Server"_s);
    QTRY_VERIFY(!tab().host().is_listening() && !tab().host().is_busy());
    window_->document().set("data.chat", "gemma4");
    start_server();
    QTRY_VERIFY2(tab().log().contains(u"Warning: "_s), qPrintable(tab().log()));
    QVERIFY2(tab().log().contains(u"template"_s), qPrintable(tab().log()));
    QVERIFY2(tab().message().contains(u"Warning: "_s), qPrintable(tab().message()));
    QTRY_COMPARE(test::clipped(tab()).join(u"; "_s), QString());
    picture(u"server-template-warning"_s);
  }

  void everything_has_a_name_and_is_readable_at_every_size() {
    open_tab(tiny());
    const int least = window_->pages().serve.minimumSizeHint().width();
    QVERIFY2(least <= 740, qPrintable(QString::number(least)));  // beside a form of 260 in a window of 1000
    QCOMPARE(test::unnamed(*window_).join(u"; "_s), QString());
    for (const Shade shade : {Shade::light, Shade::dark})
      for (const QSize size : {QSize(1000, 650), QSize(1280, 800), QSize(2560, 1440)}) {
        window_->set_shade(shade);
        window_->resize(size);
        QTest::qWait(60);
        QTRY_COMPARE(test::clipped(tab()).join(u"; "_s), QString());
        picture(u"server-%1-%2"_s.arg(size.width()).arg(shade == Shade::dark ? u"dark"_s : u"light"_s));
      }
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ServerTest)
#include "server_test.moc"
