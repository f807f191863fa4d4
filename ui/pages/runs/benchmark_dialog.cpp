// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/benchmark_dialog.h"

#include <QComboBox>

#include "core/model/catalogue.h"
#include "core/model/inventory.h"
#include "ui/session/store_reader.h"

namespace mw::ui {
namespace {

using jobs::BenchmarkFigure;
using jobs::BenchmarkLength;
using jobs::BenchmarkLimit;

constexpr int kBenchmarkWidth = 980;
constexpr int kFiguresHeight = 230;  // pixels: all figures and the header
constexpr const char* kDefaultModel = "gemma3-270m";
constexpr double kMostParameters = 1.5e9;  // larger built-in shapes take much longer than a minute

QString limit_name(BenchmarkLimit limit) {
  switch (limit) {
    case BenchmarkLimit::arithmetic:
      return BenchmarkDialog::tr("arithmetic");
    case BenchmarkLimit::memory:
      return BenchmarkDialog::tr("memory");
    case BenchmarkLimit::neither:
      return BenchmarkDialog::tr("neither");
  }
  return {};
}

QString benchmark_percent(const std::optional<double>& share) {
  return share ? QString::number(100 * *share, 'f', 0) + u" %"_s : u"\u2013"_s;
}

TableModel<BenchmarkFigure>::Columns benchmark_columns() {
  using Table = TableModel<BenchmarkFigure>;
  const auto percent = [](const QString& title, std::optional<double> BenchmarkFigure::*share) {
    return Table::number(
        title, [share](const auto& f) { return benchmark_percent(f.*share); },
        [share](const auto& f) { return QVariant((f.*share).value_or(0)); });
  };
  return {{.title = BenchmarkDialog::tr("Work"), .text = &BenchmarkFigure::title},
          Table::number_of(BenchmarkDialog::tr("Tokens/s"), &BenchmarkFigure::tokens_per_second,
                           [](double rate) { return qs(count_text(rate)); }),
          Table::number_of(
              BenchmarkDialog::tr("Rounds"), [](const auto& f) { return f.seconds.size(); },
              [](size_t rounds) { return QString::number(rounds); }),
          Table::number_of(BenchmarkDialog::tr("Spread"), &BenchmarkFigure::spread,
                           [](double spread) { return benchmark_percent(spread); }),
          percent(BenchmarkDialog::tr("Of peak arithmetic"), &BenchmarkFigure::arithmetic_share),
          percent(BenchmarkDialog::tr("Of memory bandwidth"), &BenchmarkFigure::memory_share),
          {.title = BenchmarkDialog::tr("Kernel"),
           .tooltip = BenchmarkDialog::tr("Instructions that the products with the weights use"),
           .text = &BenchmarkFigure::kernel},
          {.title = BenchmarkDialog::tr("Limited by"),
           .tooltip = BenchmarkDialog::tr("The larger share; neither, if both are under one half"),
           .text = [](const auto& f) { return limit_name(f.limit()); }}};
}

QString rate_text(double per_second, const QString& unit) {
  return per_second > 0 ? qs(number_text(per_second / 1e9, 3)) + u" G"_s + unit : u"\u2013"_s;
}

QString peak_text(const jobs::MachineBenchmark& b) {
  const QString threads = BenchmarkDialog::tr("%n thread(s)", nullptr, b.threads);
  return BenchmarkDialog::tr("%1 on %2, up to %3, %4. Peak: f32 %5, bf16 %6; reads %7 from cache, %8 from memory.")
      .arg(qs(b.model), qs(b.processor), qs(b.instruction_set), threads, rate_text(b.peak.f32_flops, u"FLOP/s"_s),
           rate_text(b.peak.bf16_flops, u"FLOP/s"_s), rate_text(b.peak.cache_bytes, u"B/s"_s),
           rate_text(b.peak.dram_bytes, u"B/s"_s));
}

}  // namespace

BenchmarkDialog::BenchmarkDialog(std::filesystem::path runs_folder, std::filesystem::path hardware_folder,
                                 QWidget* parent)
    : TaskDialog(tr("Benchmark This Machine"), u"benchmark"_s, kBenchmarkWidth, parent),
      runs_folder_(std::move(runs_folder)),
      hardware_folder_(std::move(hardware_folder)),
      model_(new QComboBox(this)),
      length_(new QComboBox(this)),
      figures_(benchmark_columns()) {
  description_->setText(tr(
      "Measures the highest rates of arithmetic and of reads on this machine, then prefill, decoding and LoRA steps of "
      "one model in bf16, int8 and f32, each with its share of those peaks. Other programs slow all of it down."));
  auto* form = new QFormLayout;
  add_field(*form, tr("Model"), model_,
            tr("Built-in shapes get random weights: the speed does not depend on the values"));
  length_->addItem(tr("Full: two minutes or more for gemma3-270m"), QVariant::fromValue(BenchmarkLength::full));
  length_->addItem(tr("Quick: fewer and shorter rounds"), QVariant::fromValue(BenchmarkLength::quick));
  add_field(*form, tr("Length"), length_);
  column_->addLayout(form);
  table_ = make_table(figures_, tr("Measured figures"), this);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setMinimumHeight(kFiguresHeight);
  show_when_empty(*table_, tr("Nothing measured yet"));
  copy_on_ctrl_c(*table_);
  column_->addWidget(table_, 1);
  add_task_rows({.result = tr("Result"),
                 .progress = tr("Progress of the benchmark"),
                 .cancel = tr("Close"),
                 .confirm = tr("Measure"),
                 .stretch = 0});
  follow(task_);
  connect(confirm_, &QPushButton::clicked, this, &BenchmarkDialog::begin);
  connect(&task_, &BackgroundWork::changed, this, &BenchmarkDialog::show_state);
  connect(&task_, &BackgroundWork::ended, this, &BenchmarkDialog::show_outcome);
  show_state();
}

void BenchmarkDialog::open_with(const std::filesystem::path& model) {
  if (!task_.is_busy()) {
    model_->clear();
    figures_.set_rows({});
    result_->show_text({});
    if (!model.empty()) model_->addItem(qpath(model.filename()), qpath(model));
    for (const std::string& id : model::catalogue_ids()) {
      const model::Config c = model::catalogue_config(id);
      if (!model::is_planning_only(c) && static_cast<double>(model::TensorInventory(c).parameters()) <= kMostParameters)
        model_->addItem(qs(id), qs(id));
    }
    if (model.empty()) model_->setCurrentIndex(std::max(0, model_->findData(qs(kDefaultModel))));
  }
  show_state();
  open();
  model_->setFocus();
}

void BenchmarkDialog::begin() {
  if (task_.is_busy()) return;
  figures_.set_rows({});
  result_->show_text({});
  // The store is opened before the measurement, so that an error costs no time.
  task_.start(with_store(
      runs_folder_,
      [model = ss(model_->currentData().toString()), length = length_->currentData().value<BenchmarkLength>(),
       rates = hardware_folder_](store::Store& store, const ReportProgress& report, const std::stop_token& stop) {
        const jobs::MachineBenchmarkRequest request = jobs::benchmark_request(model, length);
        plan::own_measurements(rates);
        jobs::MachineBenchmark benchmark = jobs::measure_machine(
            request,
            [&](const jobs::BenchmarkProgress& p) {
              report({p.part, p.done, p.total});
            },
            stop);
        jobs::SavedBenchmark saved = jobs::save_benchmark(store, request, benchmark, rates);
        return Outcome{std::move(benchmark), std::move(saved)};
      }));
}

void BenchmarkDialog::show_state() {
  const bool busy = task_.is_busy();
  if (busy) {
    const QString part = qs(task_.progress().phase);
    const std::optional<double> left = task_.eta_seconds();
    result_->show_text(left ? tr("%1, about %2 left").arg(part, qs(to_text(Seconds(*left)))) : part);
  }
  for (QComboBox* box : {model_, length_}) box->setEnabled(!busy);
  cancel_->setText(busy ? tr("Cancel") : tr("Close"));
  confirm_->setEnabled(!busy && model_->count() > 0);
}

void BenchmarkDialog::show_outcome() {
  if (task_.was_cancelled()) return result_->show_text(tr("Cancelled; nothing was saved."));
  if (task_.problem()) return result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
  const Outcome& outcome = *task_.result();
  figures_.set_rows(outcome.benchmark.figures);
  QStringList lines{peak_text(outcome.benchmark), tr("Saved as %1.").arg(qs(outcome.saved.run))};
  for (const jobs::SkippedWork& s : outcome.benchmark.skipped)
    lines << tr("Not measured: %1: %2").arg(qs(s.work), qs(s.reason));
  if (outcome.benchmark.is_noisy()) lines << qs(jobs::kNoisyBenchmark);
  if (!outcome.saved.without_rates.empty()) lines << qs(outcome.saved.without_rates);
  result_->show_text(lines.join(u'\n'));
  emit saved(qs(outcome.saved.run));
}

}  // namespace mw::ui

#include "moc_benchmark_dialog.cpp"
