// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/playground.h"

#include <QComboBox>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QShortcut>
#include <QStackedWidget>
#include <QTextEdit>

#include "core/experiment/bound_experiment.h"
#include "ui/pages/serve/settings_row.h"

namespace mw::ui {
namespace {

using views::AnswerToken;

constexpr double kDoubtful = 0.5;  // tokens below this probability are shaded

QString percent_text(double share) {
  return share < 0.001 ? u"<0.1 %"_s : QString::number(100 * share, 'f', share < 0.1 ? 1 : 0) + u" %"_s;
}

QString likeliest_text(const AnswerToken& token) {
  QStringList parts;
  for (const AnswerToken::Alternative& other : token.likeliest)
    parts << qs(other.piece) + u' ' + percent_text(other.probability);
  return parts.join(u",  "_s);
}

TableModel<AnswerToken>::Columns token_columns() {
  return {{.title = AnswerPane::tr("Token"), .text = [](const AnswerToken& t) { return qs(t.piece); }},
          {.title = AnswerPane::tr("Probability"),
           .tooltip = AnswerPane::tr("Probability that the model gives the token, before temperature and limits"),
           .alignment = Qt::AlignRight,
           .text = [](const AnswerToken& t) { return percent_text(t.probability); },
           .sort_key = [](const AnswerToken& t) { return t.probability; }},
          {.title = AnswerPane::tr("Likeliest tokens"), .text = likeliest_text}};
}

QString end_text(serve::FinishReason reason) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("mw::ui::AnswerPane", "limit of tokens reached"),
                                           QT_TRANSLATE_NOOP("mw::ui::AnswerPane", "complete"),
                                           QT_TRANSLATE_NOOP("mw::ui::AnswerPane", "stopped"),
                                           QT_TRANSLATE_NOOP("mw::ui::AnswerPane", "failed")};
  return AnswerPane::tr(kTexts[static_cast<size_t>(reason)]);
}

}  // namespace

AnswerPane::AnswerPane(const QString& name, QWidget* parent)
    : QWidget(parent),
      tokens_(token_columns()),
      title_(new QLabel(name, this)),
      status_(new ElidedLabel(Qt::ElideRight, this)),
      stack_(new QStackedWidget(this)),
      text_(new QTextEdit(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 2);
  auto* head = new QHBoxLayout;
  title_->setFont(demi_bold(font()));
  status_->setProperty("muted", true);
  head->setSpacing(10);
  head->addWidget(title_);
  head->addWidget(status_, 1);
  column->addLayout(head);
  column->addWidget(stack_, 1);
  text_->setReadOnly(true);
  text_->setAccessibleName(tr("%1 answer").arg(name));
  text_->viewport()->installEventFilter(this);
  auto* table = make_table(tokens_, tr("Tokens of %1").arg(name), stack_);
  table->horizontalHeader()->setStretchLastSection(true);
  copy_on_ctrl_c(*table);
  stack_->addWidget(text_);
  stack_->addWidget(table);
}

void AnswerPane::clear() {
  answer_.reset();
  ends_.clear();
  shown_bytes_ = 0;
  tokens_.set_rows({});
  text_->clear();
  status_->clear();
}

void AnswerPane::ask(std::shared_ptr<jobs::ModelServer> model, serve::GenerationRequest request) {
  clear();
  try {
    answer_ = std::make_unique<views::StreamedAnswer>(std::move(model), std::move(request));
    status_->setText(status());
  } catch (const Error& error) {
    status_->setText(qs(to_text(error.problem())));
  }
}

void AnswerPane::stop() {
  if (answer_) answer_->cancel();
}

void AnswerPane::append(const AnswerToken& token, const std::string& text) {
  QTextCursor cursor(text_->document());
  cursor.movePosition(QTextCursor::End);
  QTextCharFormat format;
  if (token.probability < kDoubtful)
    format.setBackground(mix(theme().field, theme().warn, 0.35 * (1 - token.probability / kDoubtful)));
  cursor.insertText(qs(text), format);
  shown_bytes_ += text.size();
  ends_.push_back(cursor.position());
}

void AnswerPane::show_frame() {
  if (!answer_ || !answer_->drain()) return;
  QScrollBar& scroll = *text_->verticalScrollBar();
  const bool at_end = scroll.value() == scroll.maximum();
  const std::vector<AnswerToken>& all = answer_->tokens();
  for (size_t i = ends_.size(); i < all.size(); ++i) append(all[i], all[i].text);
  // At the end, text that was held back follows the last token.
  const std::string whole = answer_->has_ended() && !all.empty() ? answer_->text() : std::string();
  if (whole.size() > shown_bytes_) {
    const std::string rest = whole.substr(shown_bytes_);
    ends_.pop_back();
    append(all.back(), rest);
  }
  if (at_end) scroll.setValue(scroll.maximum());
  tokens_.append_rows(all);
  status_->setText(status());
}

QString AnswerPane::text() const {
  return text_->toPlainText();
}

QString AnswerPane::status() const {
  if (!answer_) return status_->text();
  QStringList parts;
  if (const auto reason = answer_->finish_reason()) parts << end_text(*reason);
  if (!answer_->error().empty()) parts << qs(answer_->error());
  if (answer_->tokens().empty()) return parts.isEmpty() ? tr("reading the prompt") : parts.join(u", "_s);
  const size_t count = answer_->tokens().size();
  parts << tr("%n token(s)", nullptr, plural_count(count));
  if (const auto speed = answer_->tokens_per_second()) parts << tr("%1 tokens/s").arg(*speed, 0, 'f', 1);
  if (const auto first = answer_->first_token_seconds())
    parts << tr("first token after %1").arg(qs(to_text(Seconds(*first))));
  return parts.join(u", "_s);
}

QString AnswerPane::tooltip_at(int position) const {
  const auto at = std::upper_bound(ends_.begin(), ends_.end(), position);
  if (at == ends_.end()) return {};
  const AnswerToken& token = tokens_.row(static_cast<int>(at - ends_.begin()));
  QString rows;
  for (const AnswerToken::Alternative& other : token.likeliest)
    rows += u"<tr><td style='padding-right:12px'>%1</td><td align='right'>%2</td></tr>"_s.arg(
        qs(other.piece).toHtmlEscaped(), percent_text(other.probability));
  return u"<p><b>%1</b> %2</p><table>%3</table>"_s.arg(qs(token.piece).toHtmlEscaped(), percent_text(token.probability),
                                                       rows);
}

bool AnswerPane::eventFilter(QObject* watched, QEvent* event) {
  const bool handled = show_tooltip(event, *text_->viewport(),
                                    [this](QPoint at) { return tooltip_at(text_->cursorForPosition(at).position()); });
  return handled || QWidget::eventFilter(watched, event);
}

void AnswerPane::show_tokens(bool on) {
  stack_->setCurrentIndex(on ? 1 : 0);
}

namespace {

constexpr int kLikeliest = 5;      // alternatives of each token
constexpr int kPromptHeight = 62;  // pixels: three lines

std::vector<SettingsRow::Setting> sampling_settings() {
  return {{"sample.temperature", Playground::tr("Temperature")},
          {"sample.top_k", Playground::tr("Top-k")},
          {"sample.top_p", Playground::tr("Top-p")},
          {"sample.min_p", Playground::tr("Min-p")},
          {"sample.max_new_tokens", Playground::tr("Max tokens")},
          {"sample.seed", Playground::tr("Seed")}};
}

}  // namespace

Playground::Playground(Document& document, ModelHost& host, QWidget* parent)
    : QWidget(parent), document_(document), host_(host), prompt_(new QPlainTextEdit(this)) {
  auto* column = flush_layout<QVBoxLayout>(this, 4);
  auto* ask = new QHBoxLayout;
  auto* panes = make_splitter(Qt::Horizontal, this);
  prompt_->setAccessibleName(tr("Prompt"));
  prompt_->setPlaceholderText(tr("Prompt (Ctrl+Enter generates)"));
  prompt_->setTabChangesFocus(true);
  prompt_->setFixedHeight(kPromptHeight);
  ask->addWidget(prompt_, 1);
  auto* buttons = new QVBoxLayout;
  generate_ =
      add_button(*buttons, tr("Generate"), tr("Answer the prompt with the base and the tuned model"), Glyph::run);
  stop_ = add_button(*buttons, tr("Stop Answer"), tr("Stop generating and keep the tokens so far"), Glyph::stop);
  ask->addLayout(buttons);
  auto* choices = new QVBoxLayout;
  ask->addLayout(choices);
  auto* settings = new SettingsRow(document, sampling_settings(), this);
  adapter_ = new QComboBox(this);
  adapter_->setAccessibleName(tr("Adapter of the tuned answer"));
  adapter_->setToolTip(tr("Adapter of the tuned answer"));
  tokens_ =
      chip_button(tr("Tokens"), tr("List the tokens with their probabilities and the likeliest alternatives"), this);
  add_adapter_ = add_button(*choices, tr("Add Adapter"), tr("Set an adapter in the form, to compare its answers"));
  choices->addWidget(adapter_);
  choices->addWidget(tokens_);
  base_ = new AnswerPane(tr("Base"), panes);
  tuned_ = new AnswerPane(tr("Tuned"), panes);
  panes->setChildrenCollapsible(false);
  column->addLayout(ask);
  column->addWidget(settings);
  column->addWidget(panes, 1);
  connect(generate_, &QPushButton::clicked, this, &Playground::generate);
  connect(stop_, &QPushButton::clicked, this, &Playground::stop);
  connect(add_adapter_, &QPushButton::clicked, this, &Playground::adapter_wanted);
  connect(tokens_, &QToolButton::toggled, base_, &AnswerPane::show_tokens);
  connect(tokens_, &QToolButton::toggled, tuned_, &AnswerPane::show_tokens);
  connect(&host_, &ModelHost::changed, this, &Playground::update_state);
  connect(&host_, &ModelHost::unloading, base_, &AnswerPane::clear);
  connect(&host_, &ModelHost::unloading, tuned_, &AnswerPane::clear);
  for (const Qt::Key key : {Qt::Key_Return, Qt::Key_Enter}) {
    auto* shortcut = new QShortcut(QKeySequence(Qt::CTRL | key), this);
    shortcut->setContext(Qt::WidgetWithChildrenShortcut);
    connect(shortcut, &QShortcut::activated, this, &Playground::generate);
  }
  update_state();
}

void Playground::generate() {
  if (!generate_->isEnabled()) return;
  host_.with_model([this](const auto& model) { ask(model); });
}

void Playground::ask(const std::shared_ptr<jobs::ModelServer>& model) {
  const options::SampleOptions sampling = document_.experiment().valid_values().sample;
  serve::GenerationRequest request = model->request(ss(prompt_->toPlainText()), sampling);
  request.likeliest = kLikeliest;
  base_->set_title(tr("Base: %1").arg(qs(model->served().name)));
  base_->ask(model, request);
  if (!adapter_->currentText().isEmpty()) {
    request.adapter = ss(adapter_->currentText());
    tuned_->set_title(tr("Tuned: %1").arg(adapter_->currentText()));
    tuned_->ask(model, request);
  }
  update_state();
}

void Playground::stop() {
  base_->stop();
  tuned_->stop();
}

void Playground::show_frame() {
  const bool before = is_answering();
  base_->show_frame();
  tuned_->show_frame();
  if (before != is_answering()) update_state();
}

void Playground::update_state() {
  if (const auto model = host_.model()) {
    QStringList adapters;
    for (const std::string& name : model->adapters()) adapters << qs(name);
    QStringList shown;
    for (int i = 0; i < adapter_->count(); ++i) shown << adapter_->itemText(i);
    if (shown != adapters) {
      adapter_->clear();
      adapter_->addItems(adapters);
    }
  }
  const experiment::BoundExperiment form = document_.experiment().valid_values();
  add_adapter_->setVisible(form.lora.adapter.empty() && form.serve.adapters.empty());
  adapter_->setVisible(adapter_->count() > 1);
  tuned_->setVisible(adapter_->count() > 0);
  const QString refusal = host_.is_listening() ? QString() : host_.refusal();
  generate_->setEnabled(!host_.is_busy() && !is_answering() && refusal.isEmpty());
  stop_->setEnabled(is_answering());
  generate_->setToolTip(refusal.isEmpty() ? tr("Answer the prompt with the base and the tuned model (Ctrl+Enter)")
                                          : refusal);
}

}  // namespace mw::ui

#include "moc_playground.cpp"
