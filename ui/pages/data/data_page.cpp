// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/data_page.h"

#include <QComboBox>
#include <QProgressBar>
#include <QStackedWidget>

#include "core/experiment/parameters.h"
#include "ui/session/action_registry.h"
#include "ui/session/frame_clock.h"
#include "ui/session/predictor.h"
#include "ui/session/session.h"
#include "ui/theme/table_model.h"
#include "ui/theme/widgets.h"

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

constexpr int kMostFileName = 300, kNarrow = 800, kLeastChart = 150;  // pixels

// The first rows that are repeated or seen by training although they are held out.
QString overlap_text(const data::OverlapReport& overlap) {
  QStringList lines;
  const auto list = [&](const std::vector<data::RowPair>& pairs, const QString& line) {
    for (const data::RowPair& pair : pairs) lines << line.arg(grouped(pair.row + 1), grouped(pair.same_as + 1));
  };
  list(overlap.leaks, QObject::tr("Row %1 is held out, but equal to row %2 of the training data"));
  list(overlap.prompt_leaks, QObject::tr("Row %1 is held out, but row %2 of the training data has its prompt"));
  list(overlap.repeats, QObject::tr("Row %1 repeats row %2"));
  return lines.join(u'\n');
}

}  // namespace

DataPage::DataPage(Document& document, StoreReader& store, QWidget* parent)
    : QWidget(parent),
      document_(document),
      context_(reader_, store),
      model_(reader_.rows()),
      stack_(new QStackedWidget(this)) {
  setObjectName(u"pageBody"_s);
  by_length_.set_x(tr("tokens of a row"), AxisQuantity::count);
  build();
  connect(&document_, &Document::changed, this, [this] { requested_ = false; });
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
  connect(&context_, &TokenContext::changed, this, &DataPage::show_context);
}

// Index of the previously selected row, otherwise the first.
void DataPage::select_first() {
  if (table_->currentIndex().isValid() || model_.rowCount() == 0) return;
  const int at = model_.find(wanted_row_);
  if (at < 0 && reader_.state() == DataReader::State::reading && model_.filter() == RowFilter::all)
    return;  // it follows
  table_->setCurrentIndex(model_.index(std::max(0, at), 0));
}

void DataPage::show_current_row() {
  const QModelIndex at = table_->currentIndex();
  if (!at.isValid()) return;
  const data::DataRow& row = model_.row(at.row());
  wanted_row_ = row.row;
  reader_.show_row(row);
}

const Problem* DataPage::current_problem() const {
  if (reader_.problem()) return &*reader_.problem();
  const auto& index = reader_.index();
  if (!index) return nullptr;
  if (index->ended) return &*index->ended;
  const bool stops = reader_.request().options.on_error == options::OnError::stop;
  return stops && index->first_bad ? &*index->first_bad : nullptr;
}

QString DataPage::notice() const {
  const Problem* p = current_problem();
  if (!p) return {};
  if (reader_.problem() || p == &*reader_.index()->ended) return qs(to_text(*p));
  return tr("Training would stop at %1: %2. Bad rows: %3 of %4")
      .arg(qs(p->place), qs(p->message), grouped(reader_.index()->report.skipped_bad),
           grouped(reader_.index()->report.rows));
}

void DataPage::attach(Workspace& workspace) {
  workspace_ = &workspace;
  register_actions(workspace);
  Predictor& predictor = workspace.predictor();
  connect(&workspace.clock(), &FrameClock::drain, &reader_, &DataReader::drain);
  connect(&predictor, &Predictor::changed, this, [this, &predictor] {
    if (predictor.has_no_prediction() || !predictor.is_stale()) price_tokens(predictor);
  });
}

void DataPage::register_actions(Workspace& workspace) {
  workspace.actions().add(
      {u"data.read_again"_s, tr("Read the Data Again"), tr("Read the data file and the tokenizer again")},
      [this, &workspace] {
        workspace.show_page(Page::data);
        reader_.read_again();
      });
  workspace.actions().add({u"data.save_lengths"_s, tr("Save Lengths of the Data…"),
                           tr("Export the length histogram, to plan without the dataset")},
                          [this, &workspace] {
                            workspace.show_page(Page::data);
                            choose_lengths_file();
                          });
}

// Padding has a price only for a training on another target: the engine computes none.
void DataPage::price_tokens(const Predictor& predictor) {
  const views::DesignPtr& d = predictor.design();
  const bool known = d && !predictor.is_outdated() && d->request().work == plan::Work::train && !d->request().engine;
  if (!known) return economy_->set_price({}, views::PadTo::longest);
  const plan::RunTotals& run = d->plan().run;
  views::TokenPrice price{.per_padded_token = Seconds(1 / run.padded_tokens_per_second), .per_hour = {}};
  if (run.usd_per_hour > 0) price.per_hour = Usd(run.usd_per_hour);
  economy_->set_price(
      price, d->request().lengths.rows == plan::RowLayout::padded ? views::PadTo::max_len : views::PadTo::longest);
}

void DataPage::save_state(Session& session) const {
  QByteArray state;
  QDataStream out(&state, QIODevice::WriteOnly);
  for (const QSplitter* s : {across_, down_, bottom_}) out << s->saveState();
  session.set_value(u"layout/data"_s, state);
}

void DataPage::restore_state(const Session& session) {
  QDataStream in(session.value(u"layout/data"_s).toByteArray());
  for (QSplitter* s : {across_, down_, bottom_}) {
    QByteArray state;
    in >> state;
    if (!state.isEmpty()) s->restoreState(state);
  }
}

bool DataPage::follow_newest() {
  by_length_.set_playhead(std::nullopt);
  by_length_.set_following(true);
  return true;
}

void DataPage::show_frame() {
  if (!isVisible()) return;
  if (!requested_) {
    requested_ = true;
    reader_.read(document_.experiment());
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
  const auto source = reader_.request().source;
  const bool reading = state == State::reading || reader_.is_outdated();
  const bool none = source == train::DataSource::none;
  const bool nothing = reader_.index() && reader_.index()->report.rows == 0 && reader_.rows().empty();
  const bool first = none && reading && !reader_.problem();  // nothing has been read yet
  const bool empty = reader_.problem() || (none && !first) || (nothing && !reading);
  stack_->setCurrentIndex(empty ? kEmpty : kFull);
  const bool rows = source != train::DataSource::lengths;
  rows_side_->setVisible(rows);
  token_side_->setVisible(rows);
  const QString wrong = notice();
  empty_title_->setText(wrong.isEmpty() ? tr("No data yet") : tr("The data cannot be read"));
  empty_text_->setText(!wrong.isEmpty()
                           ? wrong
                           : tr("Choose a data file in the form to see how training uses it: the tokens of each row "
                                "and which of them carry loss, the lengths of the rows, and the share of padding in a "
                                "batch. Without the data, a file of lengths is enough to plan."));
  notice_->setVisible(!empty && !wrong.isEmpty());
  notice_text_->setText(wrong);
  const auto& index = reader_.index();
  fix_->setVisible(index && !index->ended && index->first_bad);
  const auto& path = source == train::DataSource::lengths ? reader_.request().lengths : reader_.request().options.path;
  name_->setText(none ? tr("Data") : qpath(path.filename()));
  name_->setToolTip(qpath(path));
  summary_->setText(summary_text());
  const QString pairs = overlap_text(reader_.overlap());
  summary_->setToolTip(pairs.isEmpty() ? QString() : summary_->text() + u'\n' + pairs);
  progress_->setVisible(reading);
  progress_->setValue(reader_.is_outdated() ? 0 : static_cast<int>(1000 * reader_.fraction()));
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
  const auto rows = reader_.rows_read();
  const auto read = grouped(rows);
  if (reader_.is_outdated()) return tr("Updating");
  if (state == State::reading) return tr("Reading, %1 row(s) so far", nullptr, plural_count(rows)).arg(read);
  if (state == State::stopped) return tr("Cancelled after %1 row(s)", nullptr, plural_count(rows)).arg(read);
  const auto& index = reader_.index();
  if (!index || reader_.request().source == train::DataSource::none) return {};
  const data::DatasetReport& r = index->report;
  QStringList parts{tr("%1 row(s)", nullptr, plural_count(r.rows)).arg(grouped(r.rows)),
                    tr("%1 to train on").arg(grouped(static_cast<std::int64_t>(index->train.size())))};
  const auto add = [&](std::int64_t n, const QString& what) {
    if (n > 0) parts << what.arg(grouped(n));
  };
  if (!reader_.lists_all()) parts.insert(1, tr("the first %1 listed").arg(grouped(std::ssize(reader_.rows()))));
  add(index->held_out, tr("%1 held out"));
  add(r.dropped_long, tr("%1 too long"));
  add(r.truncated, tr("%1 truncated"));
  add(r.no_loss, tr("%1 without loss"));
  add(r.skipped_bad, tr("%1 bad"));
  add(r.dropped_repeated, tr("%1 repeated and dropped"));
  add(r.dropped_held_out, tr("%1 also held out and dropped"));
  const data::OverlapReport& overlap = reader_.overlap();
  add(overlap.repeated, tr("%1 repeated"));
  add(overlap.held_out_in_train + overlap.held_out_prompts_in_train, tr("%1 held out but in training"));
  add(r.tokens, tr("%1 token(s) used", nullptr, plural_count(r.tokens)));
  if (reader_.request().source == train::DataSource::rows)
    add(r.loss_tokens, tr("%1 with loss"));
  else
    parts << tr("a histogram of lengths; loss is unknown");
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

// Chart and economy stand side by side only if both have room.
void DataPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  bottom_->setOrientation(width() < kNarrow ? Qt::Vertical : Qt::Horizontal);
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
                                                                        : tr("Shown after all rows have been read");
  lengths_->set_empty_text(waiting);
  const bool none_to_train = index && index->train.empty();
  economy_->chart().set_empty_text(none_to_train ? tr("There are no rows to train on") : waiting);
  economy_->show_economy(reader_.economy(), reader_.request().batches.packing);
  fit_columns();
  const LengthChart chart = index && !index->lengths.empty() ? length_chart(*index, reader_.request()) : LengthChart{};
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
  const data::DataRow& row = model_.row(at.row());
  QStringList parts{place_text(row), state_text(row)};
  if (row.state != data::RowState::bad)
    parts << tr("%1 token(s), %2 with loss", nullptr, plural_count(row.tokens))
                 .arg(grouped(row.tokens), grouped(row.loss_tokens));
  if (constexpr auto most = static_cast<std::int64_t>(views::DataDetail::kMostTokens); row.tokens > most)
    parts << tr("showing the first %1").arg(grouped(most));
  return parts.join(u"  \u00B7  "_s);
}

void DataPage::show_head() {
  row_->setText(row_text());
  const auto chip = [](const QColor& ground, const QColor& ink, const QString& text) {
    return u"<span style='background-color:%1; color:%2'>&nbsp;%3&nbsp;</span>"_s.arg(ground.name(), ink.name(), text);
  };
  const Theme& t = theme();
  const bool dark = t.shade == Shade::dark;
  if (!context_.context().losses.base.empty())
    legend_->setText(chip(loss_color(0), t.text, tr("0")) + chip(loss_color(kFullLoss / 2), t.text, tr("4")) +
                     chip(loss_color(kFullLoss), t.text, tr("8 nats and more")));
  else
    legend_->setText(chip(mix(t.panel, t.accent, dark ? 0.40 : 0.26), t.text, tr("carries loss")) + u"&nbsp; "_s +
                     chip(mix(t.panel, t.text, dark ? 0.07 : 0.05), t.text, tr("no loss")) + u"&nbsp; "_s +
                     chip(t.panel, t.muted, tr("dashed: special token")));
  if (model_.rowCount() > 0) return;
  detail_stack_->setCurrentIndex(kTokens);
  tokens_->clear(model_.filter() == RowFilter::all ? tr("No rows yet") : tr("No row matches the filter"));
}

void DataPage::show_detail() {
  show_head();
  if (model_.rowCount() == 0) return;
  const auto& detail = reader_.detail();
  const bool bad = !detail || detail->row.state == data::RowState::bad;
  detail_stack_->setCurrentIndex(bad ? kBad : kTokens);
  if (bad) {
    bad_->setText(problem_html(detail ? detail->problem : *reader_.detail_problem()));
    context_.clear();
  } else {
    tokens_->show_tokens(*detail);
    context_.read(document_.experiment(), *detail);
  }
  show_context();
}

void DataPage::show_context() {
  tokens_->show_context(context_.context());
  const QString note = detail_stack_->currentIndex() == kTokens ? context_.note() : QString();
  context_note_->setText(note);
  context_note_->setToolTip(note);
  context_note_->setVisible(!note.isEmpty());
  show_head();
  show_pointed();
}

void DataPage::show_pointed() {
  const int token = tokens_->pointed_at();
  const bool any = !tokens_->detail().tokens.empty() && detail_stack_->currentIndex() == kTokens;
  pointed_->setText(token >= 0 && any ? token_text(tokens_->detail(), tokens_->context(), token)
                    : any             ? tr("Point at a token or use the arrow keys")
                                      : QString());
}

void DataPage::restyle() {
  changed_ = true;
  show_frame();
}

void DataPage::choose_lengths_file() {
  if (!can_save_lengths()) return;
  const auto& request = reader_.request();
  const auto& from = request.source == train::DataSource::lengths ? request.lengths : request.options.path;
  open_save_dialog(this,
                   {.title = tr("Save Lengths"),
                    .start = qpath(document_.experiment().folder() / from.stem().concat(".lengths.json")),
                    .filters = tr("Histogram of lengths (*.json *.csv)"),
                    .suffix = u"json"_s},
                   [this](const auto& files) { save_lengths(qpath(files.front())); });
}

void DataPage::save_lengths(const QString& file) {
  if (!can_save_lengths()) return;
  try {
    const auto& request = reader_.request();
    const std::string source = request.source == train::DataSource::lengths
                                   ? request.lengths.string()
                                   : request.options.path.string() + ", tokenizer " + request.tokenizer.string();
    data::write_lengths(fspath(file), reader_.index()->lengths, source);
  } catch (const Error& error) {
    workspace_->report(ProblemSource::file, error.problem());
  }
}

void DataPage::build() {
  auto* column = make_layout<QVBoxLayout>(this, {8, 4, 8, 6}, 4);
  column->addWidget(bar());
  notice_ = new QFrame(this);
  notice_->setObjectName(u"notice"_s);
  auto* row = make_layout<QHBoxLayout>(notice_, {10, 4, 6, 4});
  notice_text_ = new QLabel(notice_);
  notice_text_->setWordWrap(true);
  row->addWidget(notice_text_, 1);
  fix_ = add_button(*row, tr("Skip Bad Rows"), tr("Set data.on_error to skip, which counts and omits bad rows"));
  notice_->hide();
  column->addWidget(notice_);
  stack_->addWidget(empty_page());
  across_ = make_splitter(Qt::Horizontal);
  across_->addWidget(rows_side());
  down_ = make_splitter(Qt::Vertical, across_);
  down_->addWidget(token_side());
  bottom_ = make_splitter(Qt::Horizontal, down_);
  lengths_ = new Chart({.title = tr("Rows"),
                        .unit = tr("by length in tokens"),
                        .quantity = AxisQuantity::count,
                        .empty = tr("Shown after all rows have been read"),
                        .from_zero = true},
                       by_length_, bottom_);
  lengths_->setMinimumHeight(kLeastChart);  // lower ones have no axis titles
  economy_ = new EconomyView(bottom_);
  set_shares(*bottom_, {320, 380}, {1, 1});
  bottom_->setChildrenCollapsible(false);
  set_shares(*down_, {260, 200}, {3, 2});
  set_shares(*across_, {284, 680}, {0, 1});
  stack_->addWidget(across_);
  column->addWidget(stack_, 1);
  connect(fix_, &QPushButton::clicked, this, [this] { document_.set("data.on_error", "skip"); });
}

QWidget* DataPage::bar() {
  auto* bar = new QWidget(this);
  auto* row = make_layout<QHBoxLayout>(bar, {2, 0, 0, 0}, 10);
  name_ = new ElidedLabel(Qt::ElideMiddle, bar, kMostFileName);
  name_->setFont(demi_bold(name_->font()));
  summary_ = new ElidedLabel(Qt::ElideRight, bar);
  summary_->setProperty("muted", true);
  progress_ = new QProgressBar(bar);
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  progress_->setFixedWidth(140);
  progress_->setAccessibleName(tr("Progress of reading the data"));
  eta_ = muted_label(QString(), bar);
  row->addWidget(name_);
  row->addWidget(summary_, 1);
  row->addWidget(progress_);
  row->addWidget(eta_);
  stop_ = add_button(*row, tr("Cancel"), tr("Stop reading and keep the rows read so far"), Glyph::stop);
  again_ = add_button(*row, tr("Read Again"), tr("Read the data file and the tokenizer again"), Glyph::refresh);
  save_ = add_button(*row, tr("Save Lengths\u2026"),
                     tr("Export the length histogram for data.lengths, to plan without the dataset"), Glyph::save);
  connect(stop_, &QPushButton::clicked, &reader_, &DataReader::cancel);
  connect(again_, &QPushButton::clicked, &reader_, &DataReader::read_again);
  connect(save_, &QPushButton::clicked, this, &DataPage::choose_lengths_file);
  return bar;
}

QWidget* DataPage::rows_side() {
  rows_side_ = new QWidget;
  auto* column = flush_layout<QVBoxLayout>(rows_side_, 4);
  filter_ = new QComboBox(rows_side_);
  filter_->setAccessibleName(tr("Filter of rows"));
  for (int f = 0; f < kRowFilters; ++f) filter_->addItem(filter_text(static_cast<RowFilter>(f)));
  column->addWidget(filter_);
  table_ = make_table(model_, tr("Rows of the data"), rows_side_);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setVerticalScrollMode(QAbstractItemView::ScrollPerItem);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  QHeaderView* header = table_->horizontalHeader();
  header->setMinimumSectionSize(30);
  header->setSectionResizeMode(DataRowsModel::state, QHeaderView::Stretch);
  table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->setSortingEnabled(true);
  table_->sortByColumn(DataRowsModel::number, Qt::AscendingOrder);
  column->addWidget(table_, 1);
  table_->installEventFilter(this);
  connect(filter_, &QComboBox::currentIndexChanged, this, [this](int at) {
    model_.set_filter(static_cast<RowFilter>(at));
    select_first();
    show_head();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &DataPage::show_current_row);
  connect(header, &QHeaderView::sortIndicatorChanged, this, &DataPage::select_first);
  return rows_side_;
}

QWidget* DataPage::token_side() {
  token_side_ = new QWidget;
  token_side_->setObjectName(u"panelBody"_s);
  token_side_->setAttribute(Qt::WA_StyledBackground);
  auto* column = flush_layout<QVBoxLayout>(token_side_, 2);
  auto* head = new QHBoxLayout;
  row_ = new ElidedLabel(Qt::ElideRight, token_side_);
  legend_ = new QLabel(token_side_);
  head->setContentsMargins(8, 4, 8, 2);
  head->addWidget(row_, 1);
  head->addWidget(legend_);
  head->addWidget(context_.make_button(token_side_));
  column->addLayout(head);
  context_note_ = new ElidedLabel(Qt::ElideRight, token_side_);
  context_note_->setProperty("muted", true);
  context_note_->setContentsMargins(8, 0, 8, 2);
  column->addWidget(context_note_);
  detail_stack_ = new QStackedWidget(token_side_);
  tokens_ = new TokenView;
  bad_ = new QLabel;
  bad_->setTextFormat(Qt::RichText);
  bad_->setWordWrap(true);
  bad_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  bad_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  bad_->setMargin(14);
  bad_->setProperty("bad", true);
  detail_stack_->addWidget(tokens_);
  detail_stack_->addWidget(bad_);
  column->addWidget(detail_stack_, 1);
  pointed_ = muted_label(QString(), token_side_);
  pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  pointed_->setContentsMargins(8, 2, 8, 3);
  pointed_->setTextFormat(Qt::PlainText);
  column->addWidget(pointed_);
  connect(tokens_, &TokenView::pointed, this, &DataPage::show_pointed);
  show_pointed();
  return token_side_;
}

QWidget* DataPage::empty_page() {
  const auto go_to_file = [this] {
    const Problem* p = current_problem();
    workspace_->show_setting(p && experiment::find_parameter(p->place) ? p->place : "data.path");
  };
  const EmptyPage empty =
      ui::empty_page({}, {},
                     {{tr("Go to Data File"), go_to_file, tr("Select data.path in the form")},
                      {tr("Go to Lengths File"), [this] { workspace_->show_setting("data.lengths"); },
                       tr("Select data.lengths in the form")}},
                     this);
  empty_title_ = empty.title;
  empty_text_ = empty.text;
  empty_text_->setWordWrap(true);
  empty_text_->setMinimumWidth(560);
  return empty.page;
}

}  // namespace mw::ui

#include "moc_data_page.cpp"
