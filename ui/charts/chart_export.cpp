// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/chart_export.h"

#include <QBuffer>
#include <QPainter>
#include <QPixmap>
#include <QSvgGenerator>

#include "core/base/error.h"
#include "core/base/files.h"
#include "ui/charts/chart.h"
#include "ui/charts/chart_table.h"
#include "ui/theme/text.h"

namespace mw::ui {
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
    throw Error({.id = "EXPORT",
                 .message = "a chart is not written in this format",
                 .file = file.string(),
                 .found = ending,
                 .expected = ".png, .svg or .csv"});
  const QByteArray content = ending == ".png" ? png_of(chart) : ending == ".svg" ? svg_of(chart) : csv_of(chart);
  write_file_atomically(file, {content.constData(), static_cast<size_t>(content.size())});
}

}  // namespace mw::ui
