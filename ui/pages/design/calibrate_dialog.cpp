// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/design/calibrate_dialog.h"

#include <QPlainTextEdit>

#include "ui/session/dialog_parts.h"

namespace mw::ui {
namespace {

using plan::ProposedEfficiency;
using plan::ProposedRow;

QString value_text(double value) {
  return qs(number_text(value, 3));
}

QString row_tooltip(const ProposedRow& r) {
  QStringList parts{CalibrationRowsModel::tr("measured; from %1").arg(qs(r.measured.source))};
  if (r.held_out)
    parts << (r.others > 0
                  ? CalibrationRowsModel::tr("held out: predicted by %n other row(s) of this chip and stack", nullptr,
                                             r.others)
                  : CalibrationRowsModel::tr(
                        "held out: no other row of this chip and stack; predicted from other chips or the defaults"));
  else
    parts << CalibrationRowsModel::tr("predicted only, never used for fitting");
  for (const std::string& text : r.measured.assumed) parts << CalibrationRowsModel::tr("assumed: %1").arg(qs(text));
  return parts.join(u'\n');
}

QVariant row_color(const ProposedRow& r, int column) {
  using Model = CalibrationRowsModel;
  const Theme& t = theme();
  if (column == Model::chip || column == Model::stack || column == Model::use || column == Model::now) return t.muted;
  if (column != Model::error_held_out || !r.held_out) return {};
  const double before = std::abs(r.now.error), after = std::abs(r.held_out->error);
  if (after > before + 0.005) return t.warn;
  return after < before - 0.005 ? QVariant(t.good) : QVariant();
}

QString efficiency_tooltip(const ProposedEfficiency& e) {
  QStringList parts;
  for (const auto& n : plan::Efficiencies::names())
    if (n.name == e.factor.name) parts << qs(n.help);
  parts << EfficienciesModel::tr("default %1: %2").arg(value_text(e.original.value), qs(e.original.source));
  QStringList ids;
  for (const std::string& id : e.factor.rows) ids << qs(id);
  parts << EfficienciesModel::tr("fitted to: %1").arg(ids.join(u", "_s));
  if (e.at_limit) parts << EfficienciesModel::tr("the rows require a value beyond the limit");
  return parts.join(u'\n');
}

QTableView* table(QAbstractTableModel& model, const QString& name) {
  QTableView* t = make_table(model, name);
  t->setSelectionMode(QAbstractItemView::SingleSelection);
  t->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  return t;
}

}  // namespace

CalibrationRowsModel::CalibrationRowsModel()
    : TableModel(
          {{.title = tr("Row"), .text = [](const auto& r) { return qs(r.measured.id); }},
           {.title = tr("Chip"), .text = [](const auto& r) { return qs(r.measured.request.target.chip.id); }},
           {.title = tr("Stack"), .text = [](const auto& r) { return qs(to_string(r.measured.request.stack)); }},
           {.title = tr("Use"), .text = [](const auto& r) { return r.used() ? tr("fitted") : tr("held out"); }},
           number(tr("Measured"),
                  [](const auto& r) -> QString { return value_text(r.measured.value) + u" "_s + qs(r.measured.unit); }),
           number(tr("Now"), [](const auto& r) { return value_text(r.now.predicted); }),
           number(tr("Held out"),
                  [](const auto& r) { return r.held_out ? value_text(r.held_out->predicted) : QString(); }),
           number(tr("Fitted"), [](const auto& r) { return value_text(r.fitted.predicted); }),
           number(tr("Current error"), [](const auto& r) { return qs(audit::error_text(r.now.error)); }),
           number(tr("Held-out error"),
                  [](const auto& r) { return r.held_out ? qs(audit::error_text(r.held_out->error)) : QString(); }),
           number(tr("Fitted error"), [](const auto& r) { return qs(audit::error_text(r.fitted.error)); })},
          [](const ProposedRow& r, int column, int role) -> QVariant {
            if (role == Qt::ToolTipRole) return row_tooltip(r);
            return role == Qt::ForegroundRole ? row_color(r, column) : QVariant();
          }) {}

EfficienciesModel::EfficienciesModel()
    : TableModel({{.title = tr("Efficiency"), .text = [](const auto& e) { return qs(e.factor.name); }},
                  {.title = tr("Chip"), .text = [](const auto& e) { return qs(e.factor.chip); }},
                  {.title = tr("Stack"), .text = [](const auto& e) { return qs(to_string(e.factor.stack)); }},
                  number(tr("Now"), [](const auto& e) { return value_text(e.before); }),
                  number(tr("Proposed"),
                         [](const auto& e) -> QString {
                           const QString value = value_text(e.after);
                           return e.at_limit ? tr("%1 (limit)").arg(value) : value;
                         }),
                  number(tr("Interval"),
                         [](const auto& e) { return tr("%1 to %2").arg(value_text(e.low), value_text(e.high)); }),
                  number(tr("Rows"), [](const auto& e) { return QString::number(e.factor.rows.size()); })},
                 [](const ProposedEfficiency& e, int column, int role) -> QVariant {
                   if (role == Qt::ToolTipRole) return efficiency_tooltip(e);
                   if (role != Qt::ForegroundRole) return {};
                   if (column == after && e.at_limit) return theme().warn;
                   return column == after || column == name ? QVariant() : QVariant(theme().muted);
                 }) {}

CalibrateDialog::CalibrateDialog(Calibrator& calibrator, QWidget* parent) : QDialog(parent), calibrator_(calibrator) {
  setWindowTitle(tr("Calibrate the Plan"));
  setObjectName(u"calibrate"_s);
  build();
  wire();
  resize(1040, 660);
}

void CalibrateDialog::wire() {
  connect(add_files_, &QPushButton::clicked, this, &CalibrateDialog::choose_files);
  connect(clear_, &QPushButton::clicked, this, &CalibrateDialog::clear);
  for (QToolButton* name : names_)
    connect(name, &QToolButton::clicked, this, [this, name] {
      if (std::none_of(names_.begin(), names_.end(), [](const QToolButton* b) { return b->isChecked(); }))
        name->setChecked(true);
      names_chosen_ = true;
      update_result();
    });
  connect(accept_, &QPushButton::clicked, this, [this] {
    bool failed = false;
    const auto watch = connect(&calibrator_, &Calibrator::problem, this, [&] { failed = true; });
    calibrator_.accept();
    disconnect(watch);
    if (failed) return;
    clear();
    accept();
  });
  connect(cancel_, &QPushButton::clicked, this, &CalibrateDialog::reject);
  connect(remove_, &QPushButton::clicked, &calibrator_, &Calibrator::remove);
  connect(undo_, &QPushButton::clicked, &calibrator_, &Calibrator::undo);
  connect(&calibrator_, &Calibrator::changed, this, &CalibrateDialog::show_result);
  connect(&calibrator_, &Calibrator::problem, this,
          [this](const Problem& problem) { show_notes({qs(to_text(problem))}); });
  connect(&calibrator_, &Calibrator::accepted_changed, this, [this] {
    show_current();
    if (isVisible()) update_result();  // the current predictions have changed
  });
}

void CalibrateDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  show_current();
  show_sources();
  show_result();
  add_files_->setFocus();
}

void CalibrateDialog::reject() {
  clear();
  QDialog::reject();
}

void CalibrateDialog::choose_files() {
  open_file_dialog(
      this,
      {.title = tr("Add Measurements"), .filters = tr("Measurements (*.json)"), .mode = QFileDialog::ExistingFiles},
      [this](const auto& files) { add_files(files); });
}

void CalibrateDialog::add_files(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files)
    if (std::find(request_.files.begin(), request_.files.end(), file) == request_.files.end())
      request_.files.push_back(file);
  update_result();
}

void CalibrateDialog::clear() {
  request_.files.clear();
  update_result();
}

void CalibrateDialog::update_result() {
  show_sources();
  if (request_.files.empty()) return calibrator_.cancel();
  request_.names.clear();
  for (const QToolButton* name : names_)
    if (names_chosen_ && name->isChecked()) request_.names.push_back(ss(name->text()));
  calibrator_.calibrate(request_);
}

void CalibrateDialog::show_sources() {
  QStringList all;
  for (const auto& file : request_.files) all << qpath(file.filename());
  const bool any = !all.isEmpty();
  const QString text = any ? all.join(u", "_s) : tr("Add rows in the format of resources/hardware/measurements.json");
  sources_->setText(text);
  clear_->setEnabled(any);
}

void CalibrateDialog::show_current() {
  const QString now = calibrator_.current_calibration();
  current_->setText(now.isEmpty() ? tr("Current: defaults (not calibrated)") : tr("Current: %1").arg(now));
  remove_->setEnabled(calibrator_.has_user_calibration());
  undo_->setEnabled(calibrator_.can_undo());
}

void CalibrateDialog::show_result() {
  const auto& result = calibrator_.result();
  progress_->setVisible(calibrator_.is_busy());
  progress_->setValue(calibrator_.percent());
  const bool proposed = result && result->proposal;
  accept_->setEnabled(proposed && calibrator_.can_accept());
  if (calibrator_.is_busy()) return;  // keeps the previous result until the next one
  rows_.set_rows(proposed ? result->proposal->rows : std::vector<plan::ProposedRow>());
  efficiencies_.set_rows(proposed ? result->proposal->efficiencies : std::vector<plan::ProposedEfficiency>());
  for (QTableView* t : {rows_table_, efficiencies_table_}) t->resizeColumnsToContents();
  verdict_->setText(
      proposed ? qs(audit::verdict_text(*result->proposal))
      : result ? tr("Nothing to fit")
               : tr("Add measurements to fit the efficiencies to them. Nothing is saved until you accept the result."));
  QStringList notes;
  if (result) {
    for (const Problem& p : result->problems) notes << tr("Omitted: %1").arg(qs(to_text(p)));
    if (proposed)
      for (const Problem& p : result->proposal->notes) notes << qs(to_string(p.severity) + ": " + to_text(p));
  }
  show_notes(notes);
  draw();
}

// As high as its lines, at most four.
void CalibrateDialog::show_notes(const QStringList& notes) {
  notes_->setPlainText(notes.join(u'\n'));
  notes_->setFixedHeight(
      notes_->fontMetrics().lineSpacing() * static_cast<int>(std::clamp<qsizetype>(notes.size(), 1, 4)) + 12);
  notes_->setVisible(!notes.isEmpty());
}

// Points on the diagonal are predicted exactly. A gap before each prevents a connecting line.
void CalibrateDialog::draw() {
  const auto& result = calibrator_.result();
  std::vector<const plan::ProposedRow*> rows;
  if (result && result->proposal)
    for (const plan::ProposedRow& r : result->proposal->rows)
      if (r.measured_s > 0) rows.push_back(&r);
  if (rows.empty()) return chart_->set_lines({});
  std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->measured_s < b->measured_s; });
  const double longest = rows.back()->measured_s * 1.1;
  auto exact = std::make_shared<views::Series>(), now = std::make_shared<views::Series>(),
       held_out = std::make_shared<views::Series>();
  exact->append(0, 0);
  exact->append(longest, longest);
  for (const plan::ProposedRow* r : rows) {
    const auto add = [&](views::Series& line, const plan::RowPrediction& c) {
      line.append(r->measured_s, std::nan(""));
      line.append(r->measured_s, r->measured_s * (1 + c.error));
    };
    add(*now, r->now);
    add(*held_out, r->held_out.value_or(r->fitted));
  }
  link_.set_data({0, longest});
  const auto line = [](const QString& name, const QColor& color, std::shared_ptr<views::Series> series, Marks marks) {
    return ChartLine{.name = name,
                     .color = color,
                     .raw = std::move(series),
                     .origin = marks == Marks::none ? LineOrigin::measured : LineOrigin::predicted,
                     .marks = marks};
  };
  chart_->set_lines({line(tr("measured"), theme().muted, exact, Marks::none),
                     line(tr("now"), theme().series(3), now, Marks::points),
                     line(tr("held out"), theme().accent, held_out, Marks::squares)});
}

void CalibrateDialog::build() {
  auto* column = make_layout<QVBoxLayout>(this, {12, 10, 12, 10}, 6);
  column->addWidget(sources_bar());
  column->addWidget(names_bar());
  progress_ = add_progress(*column, tr("Progress of the fit"));
  progress_->setRange(0, 100);
  progress_->hide();
  verdict_ = new QLabel(this);
  verdict_->setWordWrap(true);
  column->addWidget(tables(), 1);
  column->addWidget(verdict_);
  notes_ = new QPlainTextEdit(this);
  notes_->setReadOnly(true);
  notes_->setLineWrapMode(QPlainTextEdit::NoWrap);
  notes_->setTabChangesFocus(true);
  notes_->setAccessibleName(tr("Notes"));
  notes_->hide();
  column->addWidget(notes_);
  column->addWidget(current_bar());
  column->addWidget(buttons());
}

QWidget* CalibrateDialog::sources_bar() {
  auto* bar = new QWidget(this);
  auto* row = flush_layout<QHBoxLayout>(bar, 6);
  add_files_ =
      add_button(*row, tr("Add Files…"), tr("Add measurements with their configurations from JSON files"), Glyph::open);
  clear_ = add_button(*row, tr("Clear"), {});
  sources_ = new ElidedLabel(Qt::ElideMiddle, bar);
  sources_->setProperty("muted", true);
  row->addWidget(sources_, 1);
  return bar;
}

QWidget* CalibrateDialog::names_bar() {
  constexpr int kPerLine = 7;
  auto* bar = new QWidget(this);
  auto* grid = flush_layout<QGridLayout>(bar, 6);
  grid->addWidget(new QLabel(tr("Fit"), bar), 0, 0);
  for (const auto& n : audit::fittable_efficiencies()) {
    QToolButton* chip = chip_button(qs(n.name), qs(n.help), bar);
    chip->setChecked(n.name == plan::FitOptions{}.names.front());
    chip->setFocusPolicy(Qt::StrongFocus);
    chip->setAccessibleName(tr("Fit %1: %2").arg(qs(n.name), qs(n.help)));
    const int at = static_cast<int>(names_.size());
    grid->addWidget(chip, at / kPerLine, 1 + at % kPerLine);
    names_.push_back(chip);
  }
  grid->setColumnStretch(1 + kPerLine, 1);
  return bar;
}

QWidget* CalibrateDialog::tables() {
  rows_table_ = table(rows_, tr("Measured rows with current, held-out and fitted predictions"));
  efficiencies_table_ = table(efficiencies_, tr("Current and proposed efficiencies"));
  chart_ = new Chart({.title = tr("Step time"),
                      .unit = tr("predicted by measured"),
                      .quantity = AxisQuantity::seconds,
                      .empty = tr("Every row is shown as a point"),
                      .from_zero = true},
                     link_);
  link_.set_x(tr("measured"), AxisQuantity::seconds);
  auto* down = make_splitter(Qt::Vertical, this);
  auto* across = make_splitter(Qt::Horizontal, down);
  down->addWidget(rows_table_);
  down->addWidget(across);
  across->addWidget(efficiencies_table_);
  across->addWidget(chart_);
  for (QSplitter* s : {down, across}) s->setChildrenCollapsible(false);
  across->setSizes({560, 460});
  down->setSizes({230, 200});
  return down;
}

QWidget* CalibrateDialog::current_bar() {
  auto* bar = new QWidget(this);
  auto* row = flush_layout<QHBoxLayout>(bar, 6);
  current_ = new ElidedLabel(Qt::ElideRight, bar);
  current_->setProperty("muted", true);
  row->addWidget(current_, 1);
  undo_ = add_button(*row, tr("Undo"), tr("Undo the last accepted or removed calibration"));
  remove_ = add_button(*row, tr("Remove Calibration"),
                       tr("Restore the shipped calibration and keep yours as calibration.json.bak"));
  return bar;
}

QWidget* CalibrateDialog::buttons() {
  auto* bar = new QWidget(this);
  auto* row = flush_layout<QHBoxLayout>(bar, 6);
  row->addStretch(1);
  cancel_ = add_button(*row, tr("Cancel"), {});  // the confirming button is last, as in the other dialogs
  accept_ = add_button(*row, tr("Accept"), tr("Use these efficiencies for all plans"));
  for (QPushButton* b : findChildren<QPushButton*>()) b->setAutoDefault(false);  // Return must not accept the result
  return bar;
}

}  // namespace mw::ui

#include "moc_calibrate_dialog.cpp"
