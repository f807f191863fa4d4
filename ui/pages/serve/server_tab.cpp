// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/server_tab.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QPlainTextEdit>
#include <QSpinBox>

#include "core/serve/http/http_access.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

constexpr int kFigureMs = 500;  // numbers that change every frame are unreadable
constexpr int kLogLines = 1000;

using State = serve::ServingLoop::State;
struct Figure {
  const char* name;
  QString (*text)(const State& now, const State& before, double seconds, const jobs::ServedModel& served);
};

constexpr Figure kFigures[] = {
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Running"),
     [](const State& s, const State&, double, const auto&) { return QString::number(s.scheduler.running); }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Waiting"),
     [](const State& s, const State&, double, const auto&) { return QString::number(s.scheduler.waiting); }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Tokens/s"),
     [](const State& s, const State& before, double seconds, const auto&) {
       return QString::number(static_cast<double>(s.output_tokens - before.output_tokens) / seconds, 'f', 1);
     }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "KV blocks in use"),
     [](const State& s, const State&, double, const jobs::ServedModel& served) {
       return ServerTab::tr("%1 % of %2")
           .arg(100 * s.scheduler.kv_used, 0, 'f', 0)
           .arg(qs(to_text(served.settings.kv.capacity)));
     }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Answered"),
     [](const State& s, const State&, double, const auto&) { return grouped(s.finished); }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Cancelled"),
     [](const State& s, const State&, double, const auto&) { return grouped(s.cancelled); }},
    {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Rejected"),
     [](const State& s, const State&, double, const auto&) { return grouped(s.rejected); }}};

QString live_state_text(serve::LiveState state) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Waiting"),
                                           QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Prefill"),
                                           QT_TRANSLATE_NOOP("mw::ui::ServerTab", "Decode")};
  return ServerTab::tr(kTexts[static_cast<size_t>(state)]);
}

TableModel<serve::LiveRequest>::Columns live_columns() {
  using Table = TableModel<serve::LiveRequest>;
  return {
      Table::number(ServerTab::tr("Request"), [](const auto& r) { return QString::number(static_cast<qint64>(r.id)); }),
      {.title = ServerTab::tr("State"), .text = [](const auto& r) { return live_state_text(r.state); }},
      Table::number(ServerTab::tr("Age (s)"), [](const auto& r) { return QString::number(r.age_s, 'f', 1); }),
      Table::number(ServerTab::tr("Prompt (tokens)"), [](const auto& r) { return grouped(r.prompt_tokens); }),
      Table::number(ServerTab::tr("Answer (tokens)"),
                    [](const auto& r) {
                      return ServerTab::tr("%1 of %2").arg(grouped(r.output_tokens), grouped(r.max_new_tokens));
                    }),
      Table::number(ServerTab::tr("Tokens/s"), [](const auto& r) {
        return r.tokens_per_second ? QString::number(*r.tokens_per_second, 'f', 1) : QString();
      })};
}

}  // namespace

ServerTab::ServerTab(Document& document, QWidget* parent)
    : QWidget(parent),
      host_(document),
      requests_(live_columns()),
      playground_(nullptr),
      rows_(make_splitter(Qt::Vertical, this)) {
  setObjectName(u"pageBody"_s);
  make_layout<QVBoxLayout>(this, {8, 6, 8, 6}, 4)->addWidget(rows_);
  auto* server = new QWidget(rows_);
  build_controls(*flush_layout<QVBoxLayout>(server, 4));
  playground_ = new Playground(document, host_, rows_);
  rows_->setChildrenCollapsible(false);
  set_shares(*rows_, {240, 330}, {0, 1});
  connect(start_, &QPushButton::clicked, this, &ServerTab::start);
  connect(stop_, &QPushButton::clicked, &host_, &ModelHost::stop_listening);
  connect(cancel_, &QPushButton::clicked, &host_, &ModelHost::cancel);
  connect(copy_, &QPushButton::clicked, this, [this] {
    const QString prompt = playground_->prompt().toPlainText();
    if (const auto model = host_.model(); model && host_.is_listening())
      QGuiApplication::clipboard()->setText(
          qs(model->curl_command(prompt.isEmpty() ? "Hello" : ss(prompt), ss(key_->text()))));
  });
  connect(&host_, &ModelHost::changed, this, &ServerTab::update_state);
  update_state();
}

void ServerTab::build_controls(QVBoxLayout& column) {
  auto* row = new QHBoxLayout;
  add_labelled(*row, tr("Address"), address_ = new QLineEdit(u"127.0.0.1"_s, this));
  add_labelled(*row, tr("Port"), port_ = new QSpinBox(this));
  add_labelled(*row, tr("API key"), key_ = new QLineEdit(this));
  address_->setToolTip(tr("Address to listen on; 0.0.0.0 accepts clients of other machines"));
  port_->findChild<QLineEdit*>()->setAccessibleName(tr("Port"));
  port_->setRange(0, 65535);
  port_->setValue(8000);
  port_->setToolTip(tr("Port to listen on; 0 picks a free one"));
  key_->setEchoMode(QLineEdit::Password);
  key_->setPlaceholderText(tr("none required"));
  key_->setToolTip(tr("Key that clients must send; it is not saved"));
  start_ =
      add_button(*row, tr("Start Server"), tr("Serve the model of the form over the OpenAI HTTP protocol"), Glyph::run);
  stop_ = add_button(*row, tr("Stop Server"), tr("Stop the server and cancel its requests"), Glyph::stop);
  cancel_ = add_button(*row, tr("Cancel"), tr("Stop loading the model"));
  row->setStretchFactor(address_, 2);
  row->setStretchFactor(key_, 2);
  column.addLayout(row);
  column.addWidget(message_ = new ResultText(tr("State of the server"), this));
  progress_ = add_progress(column, tr("Progress of loading the model"));
  auto* figures = new QHBoxLayout;
  for (const Figure& figure : kFigures) {
    auto* cell = new QVBoxLayout;
    auto* caption = muted_label(tr(figure.name), this);
    caption->setFont(small_font());
    cell->setSpacing(0);
    cell->addWidget(caption);
    cell->addWidget(figures_.emplace_back(new QLabel(this)));
    figures->addLayout(cell, 1);
  }
  copy_ = add_button(*figures, tr("Copy curl Command"), tr("Copy a command line that sends the prompt to the server"),
                     Glyph::copy);
  figures->setAlignment(copy_, Qt::AlignBottom);
  column.addLayout(figures);
  log_ = new QPlainTextEdit(this);
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(kLogLines);
  log_->setFont(mono_font(0.9));
  log_->setMinimumHeight(48);
  log_->setAccessibleName(tr("Log of the server"));
  log_->setPlaceholderText(tr("Requests of clients are listed here"));
  auto* requests = make_table(requests_, tr("Requests in progress"), this);
  requests->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  requests->setMinimumHeight(48);
  show_when_empty(*requests, tr("No request in progress"));
  auto* below = new QTabWidget(this);
  below->setDocumentMode(true);
  below->setAccessibleName(tr("Requests and log"));
  below->tabBar()->setAccessibleName(tr("Requests and log"));
  below->addTab(requests, tr("Requests"));
  below->addTab(log_, tr("Log"));
  column.addWidget(below, 1);
}

void ServerTab::start() {
  before_ = {};
  serve::HttpOptions options{.host = ss(address_->text()), .port = port_->value(), .api_key = ss(key_->text())};
  options.on_response = [responses = responses_](const std::string& method, const std::string& path, int status) {
    responses->push({method, path, status}, Delivery::telemetry);
  };
  host_.listen(std::move(options));
}

void ServerTab::add_log(const QString& text) {
  log_->appendPlainText(QTime::currentTime().toString(u"HH:mm:ss  "_s) + text);
}

// With the warnings, which the log has, too: it is not the tab that is shown first.
QString ServerTab::served_text(const jobs::ServedModel& served) const {
  QStringList lines{(host_.is_outdated()
                         ? tr("%1/v1 serves %2; the form has changed since, restart the server to serve its model")
                         : tr("%1/v1 serves %2"))
                        .arg(host_.address(), qs(served.name))};
  for (const std::string& warning : served.warnings) lines << tr("Warning: %1").arg(qs(warning));
  return lines.join(u'\n');
}

void ServerTab::update_state() {
  const bool busy = host_.is_busy(), listening = host_.is_listening();
  const TaskProgress& progress = host_.task().progress();
  if (!busy && listening != was_listening_) {
    add_log(listening ? tr("Listening on %1").arg(host_.address()) : tr("Stopped"));
    if (const auto model = host_.model(); model && listening)
      for (const std::string& warning : model->served().warnings) add_log(tr("Warning: %1").arg(qs(warning)));
    was_listening_ = listening;
  }
  const QString refusal = listening ? QString() : host_.refusal();
  for (QWidget* field : std::initializer_list<QWidget*>{address_, port_, key_}) field->setEnabled(!busy && !listening);
  start_->setEnabled(!busy && !listening && refusal.isEmpty());
  stop_->setEnabled(!busy && listening);
  cancel_->setVisible(busy && progress.total > 0);
  copy_->setEnabled(!busy && listening);
  progress_->setVisible(busy);
  progress_->setRange(0, static_cast<int>(progress.total));
  progress_->setValue(static_cast<int>(progress.done));
  using Tone = ResultText::Tone;
  if (busy)
    message_->show_text(progress.total > 0
                            ? tr("Loading the model: %1 of %2 tensors").arg(progress.done).arg(progress.total)
                            : tr("Working\u2026"));
  else if (host_.problem())
    message_->show_text(qs(to_text(*host_.problem())), Tone::bad);
  else if (!refusal.isEmpty())
    message_->show_text(refusal);
  else if (const auto model = host_.model(); model && listening)
    message_->show_text(served_text(model->served()));
  else
    message_->show_text({});
  show_figures();
}

void ServerTab::show_figures() {
  const auto model = host_.model();
  if (model && since_.isValid() && since_.elapsed() < kFigureMs) return;  // a speed over a shorter time says little
  const State now = model ? model->loop().state() : State{};
  const double seconds = since_.isValid() ? std::max(1e-3, static_cast<double>(since_.restart()) / 1000) : 1e9;
  if (!since_.isValid()) since_.start();
  for (size_t i = 0; i < figures_.size(); ++i)
    figures_[i]->setText(model ? kFigures[i].text(now, before_, seconds, model->served()) : u"\u2013"_s);
  before_ = now;
  requests_.set_rows(model ? model->loop().live_requests() : std::vector<serve::LiveRequest>(),
                     [](const serve::LiveRequest& a, const serve::LiveRequest& b) { return a.id == b.id; });
}

void ServerTab::show_frame() {
  for (const Response& r : responses_->drain().items)
    add_log(u"%1 %2 %3"_s.arg(qs(r.method), qs(r.path)).arg(r.status));
  playground_->show_frame();
  if (isVisible()) show_figures();
}

QString ServerTab::log() const {
  return log_->toPlainText();
}

QString ServerTab::figure(const QString& name) const {
  for (size_t i = 0; i < figures_.size(); ++i)
    if (tr(kFigures[i].name) == name) return figures_[i]->text();
  return {};
}

QString ServerTab::message() const {
  return message_->text();
}

void ServerTab::save_state(Session& session) const {
  session.set_value(u"serve/address"_s, address_->text());
  session.set_value(u"serve/port"_s, port_->value());
}

void ServerTab::restore_state(const Session& session) {
  address_->setText(session.value(u"serve/address"_s, address_->text()).toString());
  port_->setValue(session.value(u"serve/port"_s, port_->value()).toInt());
}

}  // namespace mw::ui

#include "moc_server_tab.cpp"
