// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/port/port_dialog.h"

#include <QFontDatabase>
#include <QListWidget>
#include <QPlainTextEdit>

#include "core/base/files.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

using Outcome = PortSettingRow::Outcome;
using port::VariantFigures;
constexpr QSize kPortSize(1000, 620);

QString outcome_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::mapped:
      return PortDialog::tr("Mapped");
    case Outcome::assumed:
      return PortDialog::tr("Assumed");
    case Outcome::not_read:
      return PortDialog::tr("Not read");
    case Outcome::missing:
      break;
  }
  return PortDialog::tr("No counterpart");
}

TableColumn<PortSettingRow> setting_column(const QString& title, std::string PortSettingRow::*member,
                                           const QString& tooltip = {}) {
  return {.title = title, .tooltip = tooltip, .text = [member](const PortSettingRow& r) { return qs(r.*member); }};
}

TableModel<PortSettingRow>::Columns setting_columns() {
  return {{.title = PortDialog::tr("Outcome"),
           .tooltip = PortDialog::tr("Mapped to a key, assumed from a library's default, computed and not read, or "
                                     "without a key in the experiment"),
           .text = [](const PortSettingRow& r) { return outcome_text(r.outcome); }},
          setting_column(PortDialog::tr("Setting"), &PortSettingRow::setting),
          setting_column(PortDialog::tr("Value"), &PortSettingRow::text, PortDialog::tr("As it stands in the file")),
          setting_column(PortDialog::tr("Key"), &PortSettingRow::key),
          setting_column(PortDialog::tr("In the experiment"), &PortSettingRow::value),
          {.title = PortDialog::tr("Place"),
           .text = [](const PortSettingRow& r) { return qs(r.place.substr(r.place.rfind('/') + 1)); }},
          setting_column(PortDialog::tr("Note"), &PortSettingRow::note)};
}

QString setting_tip(const PortSettingRow& row) {
  QStringList lines;
  for (const std::string* part : {&row.setting, &row.text, &row.place, &row.note})
    if (!part->empty()) lines << qs(*part);
  return lines.join(u'\n');
}

// Columns as wide as their texts up to `widest` pixels; the last one takes the rest.
void fit_columns(QTableView& table, int widest) {
  const int last = table.model()->columnCount() - 1;
  table.resizeColumnsToContents();
  for (int c = 0; c < last; ++c) table.setColumnWidth(c, std::min(table.columnWidth(c), widest));
  table.horizontalHeader()->setSectionResizeMode(last, QHeaderView::Stretch);
}

QString unless_error(const VariantFigures& figures, const QString& text) {
  return figures.error ? PortDialog::tr("no plan") : text;
}

TableModel<PortEffectRow>::Columns effect_columns() {
  using Table = TableModel<PortEffectRow>;
  return {{.title = PortDialog::tr("Target"), .text = &PortEffectRow::target},
          {.title = PortDialog::tr("Variant"), .text = &PortEffectRow::variant},
          Table::number(PortDialog::tr("Peak per device"),
                        [](const auto& r) {
                          const QString peak = shown(r.figures.peak);
                          return unless_error(r.figures,
                                              r.figures.fits ? peak : PortDialog::tr("%1, does not fit").arg(peak));
                        }),
          Table::number(PortDialog::tr("Step"),
                        [](const auto& r) { return unless_error(r.figures, shown(Seconds(r.figures.seconds))); }),
          Table::number(PortDialog::tr("USD per 1,000"),
                        [](const auto& r) {
                          const double usd = r.figures.usd_per_1000_steps;
                          return usd > 0 ? shown(Usd(usd)) : QString();
                        }),
          Table::number(PortDialog::tr("Trained parameters"),
                        [](const auto& r) { return r.figures.trained > 0 ? grouped(r.figures.trained) : QString(); })};
}

TableModel<port::GuardRule>::Columns rule_columns() {
  return {{.title = PortDialog::tr("Rule"), .text = [](const port::GuardRule& r) { return qs(r.id); }},
          {.title = PortDialog::tr("Ported experiment"),
           .text = [](const port::GuardRule& r) { return qs(to_string(r.outcome)); }},
          {.title = PortDialog::tr("Mistake that it finds"), .text = [](const port::GuardRule& r) {
             return qs(r.message.empty() ? r.title : r.title + ": " + r.message);
           }}};
}

std::vector<PortSettingRow> rows_of(const port::PortedRecipe& recipe) {
  std::vector<PortSettingRow> rows;
  const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
  for (const port::MappedSetting& m : recipe.mapped)
    rows.push_back({Outcome::mapped, port::setting_name(m.from), m.from.text, m.key, text(m.value),
                    to_text(m.from.place), m.note});
  for (const port::AssumedSetting& a : recipe.assumed)
    rows.push_back({Outcome::assumed, {}, {}, a.key, text(a.value), {}, a.reason});
  for (const formats::ConfigSetting& s : recipe.not_read)
    rows.push_back({Outcome::not_read, port::setting_name(s), s.text, {}, {}, to_text(s.place), s.reason});
  for (const port::UnmatchedSetting& u : recipe.without_counterpart)
    rows.push_back(
        {Outcome::missing, port::setting_name(u.from), u.from.text, {}, {}, to_text(u.from.place), u.reason});
  return rows;
}

QPlainTextEdit* code_view(const QString& name, QWidget* parent) {
  auto* view = new QPlainTextEdit(parent);
  view->setReadOnly(true);
  view->setAccessibleName(name);
  view->setTabChangesFocus(true);
  view->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  return view;
}

}  // namespace

PortDialog::PortDialog(plan::LoadContext context, QWidget* parent)
    : QDialog(parent),
      context_(std::move(context)),
      setting_rows_(setting_columns(),
                    [](const PortSettingRow& r, int, int role) {
                      return role == Qt::ToolTipRole ? QVariant(setting_tip(r)) : QVariant();
                    }),
      effect_rows_(effect_columns(),
                   [](const PortEffectRow& r, int, int role) {
                     return role == Qt::ToolTipRole ? QVariant(qs(port::figures_text(r.figures))) : QVariant();
                   }),
      rule_rows_(rule_columns()) {
  setWindowTitle(tr("Port a Recipe"));
  setObjectName(u"port"_s);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(8);
  build_inputs(*column);
  tabs_ = new QTabWidget(this);
  tabs_->setAccessibleName(tr("Recipe"));
  tabs_->setDocumentMode(true);
  build_settings();
  build_adaptations();
  build_trl();
  column->addWidget(tabs_, 1);
  column->addWidget(result_ = new ResultText(tr("Result"), this));
  progress_ = add_progress(*column, tr("Reading the recipe"));
  build_buttons(*column);
  resize(kPortSize);
  connect(&task_, &BackgroundWork::changed, this, &PortDialog::show_state);
  connect(&task_, &BackgroundWork::ended, this, &PortDialog::show_report);
  connect(&trl_task_, &BackgroundWork::ended, this, &PortDialog::show_trl);
  show_state();
}

void PortDialog::build_inputs(QVBoxLayout& column) {
  auto* text =
      new QLabel(tr("Reads settings of TRL, PEFT and Accelerate from scripts, notebooks, JSON and YAML without "
                    "running them. What is computed is listed and not guessed."),
                 this);
  text->setWordWrap(true);
  column.addWidget(text);
  auto* row = new QHBoxLayout;
  column.addLayout(row);
  chosen_ = new ElidedLabel(Qt::ElideMiddle, this);
  row->addWidget(chosen_, 1);
  const auto target = [&](const QString& name, const QString& tooltip) {
    auto* line = new QLineEdit(this);
    line->setPlaceholderText(tr("automatic"));
    line->setToolTip(tooltip);
    line->setMaximumWidth(120);
    add_labelled(*row, name, line);
    connect(line, &QLineEdit::editingFinished, this, [this, line] {
      if (line->isModified()) read();
      line->setModified(false);
    });
    return line;
  };
  gpu_ = target(tr("GPU target"), tr("Hardware of the recipe, e.g. 8xh100; automatic: as many H100 as processes"));
  tpu_ = target(tr("TPU target"), tr("Slice to port to, e.g. v5p-8; automatic: the v5p slice with as many chips"));
  QPushButton* choose = add_button(*row, tr("Choose Files…"), tr("Choose the files of one recipe"), Glyph::open);
  choose->setAutoDefault(false);
  connect(choose, &QPushButton::clicked, this, &PortDialog::choose_files);
}

void PortDialog::build_settings() {
  auto* page = new QWidget(this);
  auto* column = flush_layout<QVBoxLayout>(page, 6);
  counts_ = muted_label({}, page);
  column->addWidget(counts_);
  settings_ = make_table(setting_rows_, tr("Settings of the recipe"), page);
  copy_on_ctrl_c(*settings_);
  show_when_empty(*settings_, tr("Choose the files of a recipe."));
  column->addWidget(settings_, 1);
  tabs_->addTab(page, tr("Settings"));
}

void PortDialog::build_adaptations() {
  auto* page = make_splitter(Qt::Horizontal, this);
  steps_ = new QListWidget(page);
  steps_->setAccessibleName(tr("Adaptations"));
  page->addWidget(steps_);
  auto* right = new QWidget(page);
  auto* column = flush_layout<QVBoxLayout>(right, 6);
  reason_ = new QLabel(right);
  reason_->setWordWrap(true);
  column->addWidget(reason_);
  auto* codes = make_splitter(Qt::Horizontal, right);
  before_ = code_view(tr("Before"), codes);
  after_ = code_view(tr("After"), codes);
  codes->addWidget(before_);
  codes->addWidget(after_);
  column->addWidget(codes, 2);
  column->addWidget(muted_label(tr("Predicted by the planner"), right));
  effects_ = make_table(effect_rows_, tr("Predicted effects"), right);
  copy_on_ctrl_c(*effects_);
  column->addWidget(effects_, 2);
  rules_ = make_table(rule_rows_, tr("Rules of the checker"), right);
  column->addWidget(rules_, 2);
  page->addWidget(right);
  set_shares(*page, {240, 700}, {0, 1});
  tabs_->addTab(page, tr("Adaptations to JAX"));
  connect(steps_, &QListWidget::currentRowChanged, this, &PortDialog::show_step);
}

void PortDialog::build_trl() {
  trl_text_ = code_view(tr("Settings of TRL"), this);
  tabs_->addTab(trl_text_, tr("This Experiment for TRL"));
}

void PortDialog::build_buttons(QVBoxLayout& column) {
  auto* row = new QHBoxLayout;
  column.addLayout(row);
  row->addStretch(1);
  QPushButton* close = add_button(*row, tr("Close"), {});
  save_ = add_button(*row, tr("Save Document…"), tr("Write settings and adaptations as a Markdown file"));
  open_gpu_ = add_button(*row, tr("Open as Read"), tr("Open the experiment of the recipe on its GPUs"));
  open_tpu_ = add_button(*row, tr("Open Ported"), tr("Open the experiment on the TPU target, with Tunix"));
  for (QPushButton* b : {close, save_, open_gpu_}) b->setAutoDefault(false);
  open_tpu_->setDefault(true);
  connect(close, &QPushButton::clicked, this, &QDialog::reject);
  connect(save_, &QPushButton::clicked, this, &PortDialog::save_document);
  connect(open_gpu_, &QPushButton::clicked, this, [this] { open_experiment(report_->recipe.experiment); });
  connect(open_tpu_, &QPushButton::clicked, this, [this] { open_experiment(report_->tpu->experiment); });
}

void PortDialog::open_with(std::vector<std::filesystem::path> files, const experiment::Experiment& document) {
  trl_task_.start([document, load = context_](const ReportProgress&, const std::stop_token&) {
    return port::trl_settings(document, *load());
  });
  if (!files.empty()) {
    files_ = std::move(files);
    read();
  }
  open();
  show_state();
}

void PortDialog::choose_files() {
  open_file_dialog(this,
                   {.title = tr("Choose the Files of a Recipe"),
                    .filters = tr("Recipe (*.py *.ipynb *.json *.yaml *.yml)"),
                    .mode = QFileDialog::ExistingFiles},
                   [this](const auto& files) {
                     files_ = files;
                     read();
                   });
}

void PortDialog::read() {
  if (files_.empty()) return;
  report_.reset();
  result_->show_text({});
  task_.start(
      [request = port::PortRequest{files_, ss(gpu_->text().trimmed()), ss(tpu_->text().trimmed())}, load = context_](
          const ReportProgress&, const std::stop_token&) { return port::port_recipe(request, *load()); });
}

void PortDialog::show_report() {
  report_ = std::move(task_.result());
  steps_->clear();
  if (!report_) {
    setting_rows_.set_rows({});
    counts_->clear();
    if (task_.problem()) result_->show_text(qs(to_text(*task_.problem())), ResultText::Tone::bad);
    return show_state();
  }
  const port::PortedRecipe& recipe = report_->recipe;
  setting_rows_.set_rows(rows_of(recipe));
  fit_columns(*settings_, 190);
  counts_->setText(tr("%1 mapped, %2 assumed, %3 not read, %4 without counterpart")
                       .arg(recipe.mapped.size())
                       .arg(recipe.assumed.size())
                       .arg(recipe.not_read.size())
                       .arg(recipe.without_counterpart.size()));
  int number = 0;
  for (const port::Adaptation& a : report_->adaptations) steps_->addItem(u"%1. %2"_s.arg(++number).arg(qs(a.title)));
  steps_->setCurrentRow(report_->adaptations.empty() ? -1 : 0);
  if (report_->no_plan) result_->show_text(qs(to_text(*report_->no_plan)), ResultText::Tone::bad);
  show_state();
}

void PortDialog::show_step(int index) {
  const bool any = report_ && index >= 0 && index < static_cast<int>(report_->adaptations.size());
  const port::Adaptation none;
  const port::Adaptation& a = any ? report_->adaptations[static_cast<size_t>(index)] : none;
  reason_->setText(qs(a.effect_note.empty() ? a.reason : a.reason + " " + a.effect_note));
  before_->setPlainText(qs(a.before));
  after_->setPlainText(qs(a.after));
  std::vector<PortEffectRow> rows;
  for (const port::AdaptationEffect& e : a.effects) {
    rows.push_back({e.target, e.before_label, e.before});
    rows.push_back({e.target, e.after_label, e.after});
  }
  effect_rows_.set_rows(std::move(rows));
  rule_rows_.set_rows(a.rules);
  effects_->resizeColumnsToContents();
  fit_columns(*rules_, 190);
  for (int row = 0; row < rule_rows_.rowCount(); ++row) rules_->resizeRowToContents(row);
}

void PortDialog::show_trl() {
  if (const auto& settings = trl_task_.result())
    trl_text_->setPlainText(qs(port::trl_text(*settings)));
  else if (trl_task_.problem())
    trl_text_->setPlainText(qs(to_text(*trl_task_.problem())));
}

void PortDialog::show_state() {
  QStringList names;
  for (const std::filesystem::path& file : files_) names << qpath(file);
  chosen_->setText(names.isEmpty() ? tr("No files chosen") : names.join(u", "_s));
  progress_->setVisible(task_.is_busy());
  save_->setEnabled(report_.has_value());
  open_gpu_->setEnabled(report_.has_value());
  open_tpu_->setEnabled(report_ && report_->tpu);
}

void PortDialog::save_document() {
  open_save_dialog(
      this, {.title = tr("Save Document"), .start = u"port.md"_s, .filters = tr("Markdown (*.md)"), .suffix = u"md"_s},
      [this, text = port::report_document(*report_)](const auto& files) {
        try {
          write_file_atomically(files.front(), text);
        } catch (const Error& error) {
          result_->show_text(qs(to_text(error.problem())), ResultText::Tone::bad);
        }
      });
}

void PortDialog::open_experiment(const experiment::Experiment& experiment) {
  accept();
  emit experiment_wanted(experiment);
}

}  // namespace mw::ui

#include "moc_port_dialog.cpp"
