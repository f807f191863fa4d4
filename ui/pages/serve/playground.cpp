// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/playground.h"

#include <QComboBox>
#include <QPlainTextEdit>
#include <QShortcut>
#include <QToolButton>

#include "core/experiment/bind.h"
#include "ui/pages/serve/settings_row.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
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
  const experiment::ExperimentConfig form = document_.experiment().valid_values();
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
