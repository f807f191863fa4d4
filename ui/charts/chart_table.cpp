// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_table.h"

#include <QBuffer>
#include <QClipboard>
#include <QGuiApplication>
#include <QPainter>
#include <QSvgGenerator>
#include <map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "ui/charts/chart.h"

namespace mw::ui {
namespace {

constexpr size_t kMaxRows = 100000;

// Values by x, one per layer or line.
std::map<double, std::vector<double>> visible_values(const Chart& chart) {
  std::map<double, std::vector<double>> rows;
  const AxisRange x = chart.link().range();
  const auto add = [&](double at, size_t column, size_t columns, double value) {
    if (rows.size() >= kMaxRows && !rows.contains(at)) return;
    rows.try_emplace(at, columns, std::nan("")).first->second[column] = value;
  };
  if (chart.content().stack.sample) {
    const StackSamples all = chart.content().stack.sample(x.low, x.high, static_cast<int>(kMaxRows / 2));
    for (size_t l = 0; l < all.values.size(); ++l)
      for (size_t i = 0; i < all.x.size(); ++i) add(all.x[i], l, all.values.size(), all.values[l][i]);
    return rows;
  }
  for (size_t l = 0; l < chart.lines().size(); ++l) {
    const auto& raw = chart.lines()[l].raw;
    if (!raw) continue;
    const auto [begin, end] = raw->window(x.low, x.high);
    for (size_t i = begin; i < end; ++i) add((*raw)[i].x, l, chart.lines().size(), (*raw)[i].y);
  }
  return rows;
}

TableColumn<ChartRow> chart_column(const QString& title, size_t column, AxisQuantity quantity) {
  return {.title = title, .alignment = Qt::AlignRight, .text = [column, quantity](const ChartRow& row) {
            if (column == 0 && !row.name.isEmpty()) return row.name;
            const double value = row.values[column];
            return std::isnan(value) ? QString() : value_text(value, quantity);
          }};
}

}  // namespace

void ChartTableModel::load(const Chart& chart) {
  const ChartLink& link = chart.link();
  QStringList titles{link.x_name()};
  if (chart.content().stack.sample)
    for (const auto& layer : chart.content().stack.layers) titles << layer.first;
  else
    for (const ChartLine& line : chart.lines()) titles << line.name;
  std::vector<ChartRow> rows;
  for (const auto& [x, values] : visible_values(chart)) {
    ChartRow& row = rows.emplace_back(ChartRow{.values = {x}});
    row.values.insert(row.values.end(), values.begin(), values.end());
    if (link.stops().empty()) continue;
    const bool measured = !chart.content().stack.sample || chart.content().stack.origin_at(x) == LineOrigin::measured;
    row.name = measured ? link.x_text(x) : tr("%1 (predicted)").arg(link.x_text(x));
    if (chart.options().rows) row.text = chart.bars().bars[static_cast<size_t>(std::lround(x))].text;
  }
  if (!chart.bars().text_title.isEmpty()) titles << chart.bars().text_title;
  // During a run rows are only appended, without a reset, so that the scroll position stays.
  if (titles == titles_)
    return set_rows(std::move(rows), [](const ChartRow& a, const ChartRow& b) { return a.values[0] == b.values[0]; });
  titles_ = titles;
  Columns columns;
  for (const QString& title : titles)
    columns.push_back(
        chart_column(title, columns.size(), columns.empty() ? link.x_quantity() : chart.options().quantity));
  if (!chart.bars().text_title.isEmpty()) columns.back().text = [](const ChartRow& row) { return row.text; };
  set_table(std::move(columns), std::move(rows));
}

QString ChartTableModel::csv() const {
  const auto line = [](const QStringList& cells) -> QString { return cells.join(u',') + u"\r\n"_s; };
  QStringList header;
  for (const QString& title : titles_) header << csv_cell(title);
  QString out = line(header);
  for (const ChartRow& row : rows_) {
    QStringList cells;
    for (const double value : row.values) cells << (std::isnan(value) ? QString() : QString::number(value, 'g', 17));
    if (!row.name.isEmpty()) cells[0] = csv_cell(row.name);
    if (cells.size() < titles_.size()) cells << csv_cell(row.text);
    out += line(cells);
  }
  return out;
}

ChartTable::ChartTable(Chart& chart) : chart_(chart) {
  constexpr int kTableMs = 400;
  view_ = make_table(model_, Chart::tr("%1 as a table").arg(chart.options().title), &chart);
  view_->horizontalHeader()->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter);
  view_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  due_.setSingleShot(true);
  due_.setInterval(kTableMs);
  QObject::connect(&due_, &QTimer::timeout, view_, [this] {
    if (!view_->isHidden()) load();
  });
}

void ChartTable::refresh() {
  if (!due_.isActive()) due_.start();
}

void copy_csv(const Chart& chart) {
  ChartTableModel model(nullptr);
  model.load(chart);
  QGuiApplication::clipboard()->setText(model.csv());
}

namespace {

constexpr double kPixelRatio = 2;

QByteArray png_of(Chart& chart) {
  QPixmap picture(chart.size() * kPixelRatio);
  picture.setDevicePixelRatio(kPixelRatio);
  chart.render(&picture, QPoint(), QRegion(), QWidget::DrawWindowBackground);
  QBuffer buffer;
  picture.save(&buffer, "PNG");
  return buffer.data();
}

QByteArray svg_of(Chart& chart) {
  QBuffer buffer;
  QSvgGenerator svg;
  svg.setOutputDevice(&buffer);
  svg.setSize(chart.size());
  svg.setViewBox(chart.rect());
  svg.setTitle(chart.options().title);
  QPainter painter(&svg);
  chart.paint_whole(painter);
  painter.end();
  return buffer.data();
}

QByteArray csv_of(const Chart& chart) {
  ChartTableModel table(nullptr);
  table.load(chart);
  return table.csv().toUtf8();
}

}  // namespace

QString chart_file_filter() {
  return QObject::tr("PNG image (*.png);;SVG image (*.svg);;CSV (*.csv)");
}

void export_chart(Chart& chart, const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".png" && ending != ".svg" && ending != ".csv")
    throw Error("EXPORT", "a chart is not written in this format",
                {.file = file.string(), .found = ending, .expected = ".png, .svg or .csv"});
  const QByteArray content = ending == ".png" ? png_of(chart) : ending == ".svg" ? svg_of(chart) : csv_of(chart);
  write_file_atomically(file, {content.constData(), static_cast<size_t>(content.size())});
}

}  // namespace mw::ui
