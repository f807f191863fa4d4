// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/merge_dialog.h"

namespace mw::ui {
namespace {

constexpr int kParityChartHeight = 170, kParityTableHeight = 120;

TableModel<views::ParityRow>::Columns parity_columns() {
  using Row = views::ParityRow;
  using Table = TableModel<Row>;
  const auto plain = [](double value) { return value_text(value, AxisQuantity::plain); };
  return {{.title = ParityCharts::tr("Merged model"), .text = &Row::name},
          {.title = ParityCharts::tr("Verdict"), .text = &Row::verdict},
          Table::number_of(ParityCharts::tr("Largest"), &Row::largest, plain),
          Table::number_of(ParityCharts::tr("Mean"), &Row::mean, plain),
          Table::number_of(ParityCharts::tr("RMS"), &Row::rms, plain),
          Table::number(ParityCharts::tr("Allowed"),
                        [plain](const Row& r) -> QString { return qs(r.measure) + u" "_s + plain(r.allowed); }),
          {.title = ParityCharts::tr("Text and reason"), .text = &Row::text}};
}

}  // namespace

ParityCharts::ParityCharts(QWidget* parent) : QWidget(parent), rows_(parity_columns()) {
  auto* column = flush_layout<QVBoxLayout>(this, 6);
  auto* charts = make_splitter(Qt::Horizontal, this);
  logits_ =
      new Chart({.title = tr("Difference of logits"), .unit = tr("largest at each position")}, positions_link_, charts);
  layers_ = new Chart({.title = tr("Difference of hidden states"),
                       .unit = tr("relative to the adapter's"),
                       .empty = tr("This model is not run layer by layer")},
                      layers_link_, charts);
  for (Chart* chart : {logits_, layers_}) {
    chart->set_scale(Scale::logarithmic);
    chart->setMinimumHeight(kParityChartHeight);
    charts->addWidget(chart);
  }
  positions_link_.set_x(tr("position"), AxisQuantity::count);
  layers_link_.set_x(tr("layer"), AxisQuantity::count);
  column->addWidget(charts, 1);
  table_ = make_table(rows_, tr("Forms of the merged model"), this);
  copy_on_ctrl_c(*table_);
  table_->setFixedHeight(kParityTableHeight);
  column->addWidget(table_);
  hide();
}

void ParityCharts::show_parity(const train::Parity& parity) {
  const views::ParityView view = views::parity_view(parity);
  std::vector<ChartLine> logits, layers;
  constexpr Marks kShapes[] = {Marks::points, Marks::squares, Marks::triangles};
  for (size_t i = 0; i < view.lines.size(); ++i) {
    const views::ParityLine& line = view.lines[i];
    const auto add = [&](std::vector<ChartLine>& to, const std::shared_ptr<const views::Series>& series) {
      if (!series->empty())
        to.push_back({.name = qs(line.name),
                      .color = theme().series(static_cast<int>(i)),
                      .raw = series,
                      .marks = kShapes[i % std::size(kShapes)]});
    };
    add(logits, line.largest);
    add(layers, line.layers);
  }
  positions_link_.set_data({1, std::max(2.0, view.positions)});
  layers_link_.set_data({0, std::max(1.0, view.layers)});
  logits_->set_lines(std::move(logits));
  layers_->set_lines(std::move(layers));
  rows_.set_rows(view.rows);
  table_->resizeColumnsToContents();
  setVisible(!view.lines.empty());
}

void ParityCharts::clear() {
  hide();
}

namespace {
constexpr int kMergeWidth = 640;
constexpr const char* kComparingLogits = "comparing logits";

QString merge_verdict(const jobs::MergeResult& result) {
  const auto reason = [](const std::string& text) {
    return text.empty() ? u"."_s : QString(u": "_s + qs(text) + u"."_s);
  };
  return MergeDialog::tr("%1 of %2 tensors merged, %3. Check of all weights %4%5 Parity %6%7 The model was %8.")
      .arg(result.merged.merged)
      .arg(result.merged.tensors)
      .arg(qs(to_text(result.merged.written)), qs(to_string(result.check.verdict)), reason(result.check.reason),
           qs(to_string(result.parity.verdict)), reason(result.parity.reason), qs(jobs::released_text(result)));
}
}  // namespace

MergeDialog::MergeDialog(QWidget* parent) : TaskDialog(tr("Merge an Adapter"), u"merge"_s, kMergeWidth, parent) {
  description_->setText(tr(
      "Adds the adapter to the weights of the base model and writes a Hugging Face folder. Every written weight is "
      "checked against base model and adapter, and the folder appears under its name only if all are right. Nothing is "
      "overwritten."));
  auto* form = new QFormLayout;
  base_ = add_folder(*form, tr("Base model"), tr("Hugging Face folder"), *this).line;
  adapter_ = add_folder(*form, tr("Adapter"), tr("PEFT folder, or an Orbax checkpoint of Tunix"), *this).line;
  checkpoint_ = add_field(*form, tr("Checkpoint"), new QComboBox(this),
                          tr("The best checkpoint is the one that train.keep_best kept"));
  connect(checkpoint_, &QComboBox::activated, this,
          [this](int at) { adapter_->setText(checkpoint_->itemData(at).toString()); });
  form_ = form;
  out_ = add_folder(*form, tr("Merged model"), tr("A new or empty folder"), *this).line;
  alpha_ = add_field(*form, tr("Alpha"), new QLineEdit(this));
  alpha_->setPlaceholderText(tr("Only for checkpoints without alpha"));
  logits_ = new QCheckBox(tr("Compare logits and text, too"), this);
  logits_->setToolTip(
      tr("Runs base model with adapter, merged weights and the served folder on fixed tokens and the prompt; takes "
         "several times as long as merging"));
  logits_->setChecked(true);
  form->addRow(QString(), logits_);
  prompt_ = add_field(*form, tr("Prompt"), new QLineEdit(this));
  prompt_->setPlaceholderText(tr("Optional: compared besides fixed tokens"));
  connect(logits_, &QCheckBox::toggled, prompt_, &QWidget::setEnabled);
  column_->addLayout(form);
  column_->addWidget(charts_ = new ParityCharts(this));
  add_task_rows({tr("Result"), tr("Progress of the merge"), tr("Close"), tr("Merge")});
  follow(task_);
  connect(confirm_, &QPushButton::clicked, this, &MergeDialog::begin);
  connect(&task_, &BackgroundWork::changed, this, &MergeDialog::show_state);
  connect(&task_, &BackgroundWork::ended, this, &MergeDialog::show_outcome);
  for (QLineEdit* l : {base_, adapter_, out_}) connect(l, &QLineEdit::textChanged, this, &MergeDialog::show_state);
  show_state();
}

void MergeDialog::open_with(const std::filesystem::path& base, const std::filesystem::path& adapter,
                            const std::filesystem::path& out, const std::filesystem::path& last) {
  if (!task_.is_busy()) {
    base_->setText(qpath(base));
    adapter_->setText(qpath(adapter));
    out_->setText(qpath(out));
    checkpoint_->clear();
    checkpoint_->addItem(tr("Best"), qpath(adapter));
    checkpoint_->addItem(tr("Last"), qpath(last));
    form_->setRowVisible(checkpoint_, !last.empty());
    alpha_->clear();
    result_->show_text({});
    charts_->clear();
    show_state();
  }
  open();
  base_->setFocus();
}

void MergeDialog::show_state() {
  const bool busy = task_.is_busy();
  if (busy)
    result_->show_text((task_.progress().phase == kComparingLogits
                            ? tr("Comparing logits with base model and adapter: %1 %")
                            : tr("Merging and checking: %1 %"))
                           .arg(task_.percent()));
  for (QLineEdit* l : {base_, adapter_, out_, alpha_}) l->setEnabled(!busy);
  logits_->setEnabled(!busy);
  prompt_->setEnabled(!busy && logits_->isChecked());
  cancel_->setText(busy ? tr("Cancel") : tr("Close"));
  confirm_->setEnabled(!busy && !base_->text().isEmpty() && !adapter_->text().isEmpty() && !out_->text().isEmpty());
}

void MergeDialog::begin() {
  result_->show_text({});
  charts_->clear();
  jobs::MergeRequest request{fspath(base_->text()), fspath(adapter_->text()), fspath(out_->text()), std::nullopt};
  if (logits_->isChecked()) {
    request.logits = jobs::CompareLogits::yes;
    if (!prompt_->text().isEmpty()) request.prompts.push_back(ss(prompt_->text()));
  }
  if (const QString text = alpha_->text().trimmed(); !text.isEmpty()) {
    bool good = false;
    request.alpha = text.toFloat(&good);
    if (!good || !(*request.alpha > 0)) {
      alpha_->setFocus();
      return result_->show_text(tr("Alpha must be a number above 0."), ResultText::Tone::bad);
    }
  }
  if (task_.is_busy()) return;
  task_.start([request](const ReportProgress& report, const std::stop_token& stop) {
    Outcome outcome;
    outcome.merge = jobs::merge_adapter(
        request, [&](const std::string& note) { outcome.notes += u"\n"_s + qs(note); },
        [&](long done, long of) {
          report({"merging", done, of});
        },
        [&](long done, long of) {
          report({kComparingLogits, done, of});
        },
        stop);
    return outcome;
  });
}

void MergeDialog::show_outcome() {
  if (task_.was_cancelled()) return result_->show_text(tr("Cancelled; nothing was written."));
  if (task_.problem()) return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  const Outcome& outcome = *task_.result();
  result_->show_text(merge_verdict(outcome.merge) + outcome.notes,
                     outcome.merge.is_released ? ResultText::Tone::plain : ResultText::Tone::bad);
  if (!outcome.merge.parity.forms.empty()) charts_->show_parity(outcome.merge.parity);
}

}  // namespace mw::ui

#include "moc_merge_dialog.cpp"
