// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/data_page.h"

#include <QComboBox>
#include <QDataStream>
#include <QEvent>
#include <QFileDialog>
#include <QFrame>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>

#include "ui/pages/data/length_chart.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

enum StackPage { kEmpty, kFull };
enum DetailPage { kTokens, kBad };
constexpr int kRowsHeaderAir = 26, kRowsCellAir = 14;  // padding; the first includes the sort indicator

QString in_bold(const QString& text) {
  return u"<b>"_s + text.toHtmlEscaped() + u"</b>"_s;
}

// The error of a row with one part per line.
QString problem_html(const Problem& p) {
  QStringList lines{in_bold(qs(p.message))};
  const auto add = [&](const QString& name, const std::string& value) {
    if (!value.empty()) lines << name + u": "_s + qs(value).toHtmlEscaped();
  };
  add(DataPage::tr("Where"), p.file.empty() ? p.place : p.place.empty() ? p.file : p.file + ", " + p.place);
  add(DataPage::tr("Found"), p.found);
  add(DataPage::tr("Expected"), p.expected);
  add(DataPage::tr("Fix"), p.fix);
  return lines.join(u"<br>"_s);
}

}  // namespace

DataPage::DataPage(Document& document, QWidget* parent)
    : QWidget(parent), document_(document), model_(reader_.rows()), stack_(new QStackedWidget(this)) {
  setObjectName(u"pageBody"_s);
  by_length_.set_x(tr("tokens"), Quantity::count);
  build();
  connect(&document_, &Document::changed, this, [this] { asked_ = false; });
  connect(&reader_, &DataReader::restarted, this, [this] {
    model_.restart();
    select_first();
    changed_ = true;
  });
  connect(&reader_, &DataReader::grew, this, [this] {
    model_.grow();
    select_first();
    changed_ = true;
  });
  connect(&reader_, &DataReader::changed, this, [this] { changed_ = true; });
  connect(&reader_, &DataReader::detail_changed, this, &DataPage::show_detail);
}

// Index of the previously selected row, otherwise the first.
void DataPage::select_first() {
  if (table_->currentIndex().isValid() || model_.rowCount() == 0) return;
  const int at = model_.find(wanted_row_);
  if (at < 0 && reader_.state() == DataReader::State::reading && model_.filter() == RowFilter::all)
    return;  // it follows
  table_->setCurrentIndex(model_.index(std::max(0, at), 0));
}

void DataPage::look_at_current() {
  const QModelIndex at = table_->currentIndex();
  if (!at.isValid()) return;
  const planning::DataRow& row = model_.row(at.row());
  wanted_row_ = row.row;
  reader_.look_at(row);
}

const Problem* DataPage::what_is_wrong() const {
  if (reader_.problem()) return &*reader_.problem();
  const auto& index = reader_.index();
  if (!index) return nullptr;
  if (index->ended) return &*index->ended;
  const bool stops = reader_.question().options.on_error == data::OnError::stop;
  return stops && index->first_bad ? &*index->first_bad : nullptr;
}

QString DataPage::notice() const {
  const Problem* p = what_is_wrong();
  if (!p) return {};
  if (reader_.problem() || p == &*reader_.index()->ended) return qs(to_text(*p));
  return tr("Training would stop at %1: %2. %3 of %4 rows are bad")
      .arg(qs(p->place), qs(p->message), grouped(reader_.index()->report.skipped_bad),
           grouped(reader_.index()->report.rows));
}

void DataPage::attach(Workspace& workspace) {
  register_actions(workspace);
  Pricer& pricer = workspace.pricer();
  connect(&workspace.clock(), &FrameClock::drain, &reader_, &DataReader::drain);
  connect(this, &DataPage::problem, this, [&workspace](const Problem& p) { workspace.report(ProblemSource::file, p); });
  connect(this, &DataPage::setting_wanted, this, [&workspace](const QString& key) { workspace.show_setting(ss(key)); });
  connect(&pricer, &Pricer::changed, this, [this, &pricer] {
    if (pricer.has_no_prediction() || !pricer.stale()) price_tokens(pricer);
  });
}

void DataPage::register_actions(Workspace& workspace) {
  workspace.actions().add(
      {u"data.read_again"_s, tr("Read the Data Again"), tr("Read the data file and the tokenizer anew"), {}},
      [this, &workspace] {
        workspace.show_page(Page::data);
        reader_.read_again();
      });
  workspace.actions().add({u"data.save_lengths"_s,
                           tr("Save the Data's Lengths…"),
                           tr("Export the length histogram, to plan without the dataset"),
                           {}},
                          [this, &workspace] {
                            workspace.show_page(Page::data);
                            choose_lengths_file();
                          });
}

// Padding has a price only for a plan of training on another target.
void DataPage::price_tokens(const Pricer& pricer) {
  const views::DesignPtr& d = pricer.design();
  const bool known = d && !pricer.design_outdated() && !pricer.prediction() && d->request().work == plan::Work::train;
  if (!known) return economy_->set_price({}, views::PadTo::longest);
  const plan::RunTotals& run = d->plan().run;
  views::TokenPrice price{.per_padded_token = Seconds(1 / run.padded_tokens_per_second), .per_hour = {}};
  if (run.usd_per_hour > 0) price.per_hour = Usd(run.usd_per_hour);
  economy_->set_price(
      price, d->request().lengths.rows == plan::RowLayout::padded ? views::PadTo::max_len : views::PadTo::longest);
}

void DataPage::save_state(Session& session) const {
  session.set_value(u"layout/data"_s, save_layout());
}

void DataPage::restore_state(const Session& session) {
  restore_layout(session.value(u"layout/data"_s).toByteArray());
}

bool DataPage::follow_newest() {
  by_length_.set_playhead(std::nullopt);
  by_length_.set_following(true);
  return true;
}

void DataPage::show_frame() {
  if (!isVisible()) return;
  if (!asked_) {
    asked_ = true;
    reader_.ask(document_.experiment());
  }
  if (!changed_) return;
  changed_ = false;
  show_state();
  show_counts();
  show_results();
}

void DataPage::show_state() {
  using State = DataReader::State;
  const State state = reader_.state();
  const auto source = reader_.question().source;
  const bool reading = state == State::reading || reader_.outdated();
  const bool none = source == planning::DataSource::none;
  const bool nothing = reader_.index() && reader_.index()->report.rows == 0 && reader_.rows().empty();
  const bool first = none && reading && !reader_.problem();  // nothing has been read yet
  const bool empty = reader_.problem() || (none && !first) || (nothing && !reading);
  stack_->setCurrentIndex(empty ? kEmpty : kFull);
  const bool rows = source != planning::DataSource::lengths;
  rows_side_->setVisible(rows);
  token_side_->setVisible(rows);
  const QString wrong = notice();
  empty_title_->setText(wrong.isEmpty() ? tr("No data yet") : tr("The data cannot be read"));
  empty_text_->setText(!wrong.isEmpty()
                           ? wrong
                           : tr("Name a data file in the form to see what training will make of it: each row's tokens "
                                "and which of them carry loss, how long the rows are, and how much of a batch is "
                                "padding. Where the data is not at hand, a file of lengths is enough to plan with."));
  notice_->setVisible(!empty && !wrong.isEmpty());
  notice_text_->setText(wrong);
  const auto& index = reader_.index();
  fix_->setVisible(index && !index->ended && index->first_bad);
  const auto& path =
      source == planning::DataSource::lengths ? reader_.question().lengths : reader_.question().options.path;
  name_->setText(none ? tr("Data") : qpath(path.filename()));
  name_->setToolTip(qpath(path));
  summary_->setText(summary_text());
  progress_->setVisible(reading);
  progress_->setValue(reader_.outdated() ? 0 : static_cast<int>(1000 * reader_.fraction()));
  const auto eta = reader_.eta();
  eta_->setVisible(reading);
  eta_->setText(eta ? tr("ETA %1").arg(qs(to_text(*eta))) : QString());
  stop_->setVisible(reading);
  stop_->setEnabled(state == State::reading);
  again_->setEnabled(!reading && (!none || reader_.problem()));
  save_->setEnabled(!reading && can_save_lengths());
}

QString DataPage::summary_text() const {
  using State = DataReader::State;
  const State state = reader_.state();
  const auto read = grouped(static_cast<std::int64_t>(reader_.rows().size()));
  if (reader_.outdated()) return tr("updating");
  if (state == State::reading) return tr("reading, %1 rows so far").arg(read);
  if (state == State::stopped) return tr("cancelled after %1 rows").arg(read);
  const auto& index = reader_.index();
  if (!index || reader_.question().source == planning::DataSource::none) return {};
  const data::DatasetReport& r = index->report;
  QStringList parts{tr("%1 rows").arg(grouped(r.rows)),
                    tr("%1 to train on").arg(grouped(static_cast<std::int64_t>(index->train.size())))};
  const auto add = [&](std::int64_t n, const QString& what) {
    if (n > 0) parts << what.arg(grouped(n));
  };
  add(index->held_out, tr("%1 held out"));
  add(r.dropped_long, tr("%1 too long"));
  add(r.truncated, tr("%1 truncated"));
  add(r.no_loss, tr("%1 without loss"));
  add(r.skipped_bad, tr("%1 bad"));
  add(r.tokens, tr("%1 tokens used"));
  if (reader_.question().source == planning::DataSource::rows)
    add(r.loss_tokens, tr("%1 carry loss"));
  else
    parts << tr("a histogram of lengths, loss not known");
  return parts.join(u"  \u00B7  "_s);
}

bool DataPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::KeyPress && model_.rowCount() > 0) {
    // Home and End move to the first and last row instead of columns.
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Home || key == Qt::Key_End) {
      table_->setCurrentIndex(model_.index(key == Qt::Key_Home ? 0 : model_.rowCount() - 1, 0));
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

void DataPage::show_counts() {
  for (int f = 0; f < kRowFilters; ++f) {
    const auto filter = static_cast<RowFilter>(f);
    filter_->setItemText(f, tr("%1 (%2)").arg(filter_text(filter), grouped(model_.count(filter))));
  }
}

void DataPage::show_results() {
  const auto& index = reader_.index();
  const QString waiting = reader_.state() == DataReader::State::stopped ? tr("Cancelled before all rows were read")
                                                                        : tr("Shown when all rows have been read");
  lengths_->set_empty_text(waiting);
  const bool none_to_train = index && index->train.empty();
  economy_->set_empty_text(none_to_train ? tr("There is no row to train on") : waiting);
  economy_->show_economy(reader_.economy(), reader_.question().batches.packing);
  fit_columns();
  const LengthChart chart = index && !index->lengths.empty() ? length_chart(*index, reader_.question()) : LengthChart{};
  by_length_.set_data(chart.range);
  lengths_->set_stack(chart.stack);
  lengths_->set_limits(chart.limits);
  lengths_->set_notes({}, chart.caption);
  show_head();
}

// Numbers are never elided; the state gets the remaining width.
void DataPage::fit_columns() {
  const QFontMetrics metrics = table_->fontMetrics();
  const auto longest =
      reader_.index() && !reader_.index()->lengths.empty() ? reader_.index()->lengths.rbegin()->first : 0;
  const auto fit = [&](int column, std::int64_t largest) {
    const int title = metrics.horizontalAdvance(model_.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString());
    table_->setColumnWidth(
        column, std::max(title + kRowsHeaderAir, metrics.horizontalAdvance(grouped(largest)) + kRowsCellAir));
  };
  fit(DataRowsModel::number, static_cast<std::int64_t>(reader_.rows().size()));
  fit(DataRowsModel::tokens, longest);
  fit(DataRowsModel::loss, longest);
}

QString DataPage::row_text() const {
  const QModelIndex at = table_->currentIndex();
  if (!at.isValid()) return {};
  const planning::DataRow& row = model_.row(at.row());
  QStringList parts{place_text(row), state_text(row)};
  if (row.state != data::RowState::bad)
    parts << tr("%1 tokens, %2 carry loss").arg(grouped(row.tokens), grouped(row.loss_tokens));
  if (constexpr auto most = static_cast<std::int64_t>(views::DataDetail::kMostTokens); row.tokens > most)
    parts << tr("the first %1 are shown").arg(grouped(most));
  return parts.join(u"  \u00B7  "_s);
}

void DataPage::show_head() {
  row_->setText(row_text());
  const auto chip = [](const QColor& ground, const QColor& ink, const QString& text) {
    return u"<span style='background-color:%1; color:%2'>&nbsp;%3&nbsp;</span>"_s.arg(ground.name(), ink.name(), text);
  };
  const Theme& t = theme();
  const bool dark = t.shade == Shade::dark;
  legend_->setText(chip(mix(t.panel, t.accent, dark ? 0.40 : 0.26), t.text, tr("carries loss")) + u"&nbsp; "_s +
                   chip(mix(t.panel, t.text, dark ? 0.07 : 0.05), t.text, tr("no loss")) + u"&nbsp; "_s +
                   chip(t.panel, t.muted, tr("dashed: special")));
  if (model_.rowCount() > 0) return;
  detail_stack_->setCurrentIndex(kTokens);
  tokens_->clear(model_.filter() == RowFilter::all ? tr("No row to look at yet") : tr("No such row"));
}

void DataPage::show_detail() {
  show_head();
  if (model_.rowCount() == 0) return;
  const auto& detail = reader_.detail();
  const bool bad = !detail || detail->row.state == data::RowState::bad;
  detail_stack_->setCurrentIndex(bad ? kBad : kTokens);
  if (bad)
    bad_->setText(problem_html(detail ? detail->problem : *reader_.detail_problem()));
  else
    tokens_->show_tokens(*detail);
  show_pointed();
}

void DataPage::show_pointed() {
  const int token = tokens_->pointed_at();
  const bool any = !tokens_->detail().tokens.empty() && detail_stack_->currentIndex() == kTokens;
  pointed_->setText(token >= 0 && any ? token_text(tokens_->detail(), token)
                    : any             ? tr("Point at a token, or walk through them with the arrow keys")
                                      : QString());
}

void DataPage::restyle() {
  changed_ = true;
  show_frame();
}

void DataPage::choose_lengths_file() {
  if (!can_save_lengths()) return;
  const auto& question = reader_.question();
  const auto& from = question.source == planning::DataSource::lengths ? question.lengths : question.options.path;
  auto* dialog = new QFileDialog(window(), tr("Save Lengths"),
                                 qpath(document_.experiment().folder() / from.stem().concat(".lengths.json")),
                                 tr("Histogram of lengths (*.json *.csv)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(u"json"_s);
  connect(dialog, &QFileDialog::fileSelected, this, &DataPage::save_lengths);
  dialog->open();
}

void DataPage::save_lengths(const QString& file) {
  if (!can_save_lengths()) return;
  try {
    const auto& question = reader_.question();
    const std::string source = question.source == planning::DataSource::lengths
                                   ? question.lengths.string()
                                   : question.options.path.string() + ", tokenizer " + question.tokenizer.string();
    data::write_lengths(fspath(file), reader_.index()->lengths, source);
  } catch (const Error& error) {
    emit problem(error.problem());
  }
}

QByteArray DataPage::save_layout() const {
  QByteArray all;
  QDataStream out(&all, QIODevice::WriteOnly);
  for (const QSplitter* s : {across_, down_, bottom_}) out << s->saveState();
  return all;
}

void DataPage::restore_layout(const QByteArray& state) {
  QDataStream in(state);
  for (QSplitter* s : {across_, down_, bottom_}) {
    QByteArray one;
    in >> one;
    if (!one.isEmpty()) s->restoreState(one);
  }
}

}  // namespace mw::ui
