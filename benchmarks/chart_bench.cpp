// SPDX-License-Identifier: GPL-3.0-or-later
// Compares Chart, which draws with Qt Charts, with the same decimated line, grid and axis labels drawn by QPainter
// alone. The line grows by one sample per picture, as in a live run, so that ranges and labels change. Prints JSON:
// median milliseconds of a picture and their ratio for 1e3 to 1e6 samples. The chart has a title and a legend, too.
//   mw_chart_bench [PICTURES]
#include <QApplication>
#include <QElapsedTimer>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/base/json.h"
#include "ui/charts/chart.h"
#include "ui/charts/chart_link.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

constexpr QSize kSize(600, 240);
constexpr double kLeft = 50, kRight = 14, kTop = 25, kBottom = 40;
constexpr double kTickWidth = 78, kTickHeight = 30;  // as Chart

double value_at(double x) {
  return 3 + std::sin(x * 0.01) + 0.3 * std::sin(x * 1.7);
}

// The line, its grid and its labels.
void paint_plainly(QPainter& painter, const views::Series& series, AxisRange x) {
  const QRectF area(kLeft, kTop, kSize.width() - kLeft - kRight, kSize.height() - kTop - kBottom);
  const auto range = series.y_range(x.low, x.high);
  const AxisRange y = padded({range->min, range->max}, Scale::linear);
  const auto to_x = [&](double at) { return area.left() + (at - x.low) / x.size() * area.width(); };
  const auto to_y = [&](double at) { return area.bottom() - (at - y.low) / y.size() * area.height(); };
  painter.fillRect(QRect(QPoint(), kSize), theme().panel);
  painter.setFont(small_font());
  for (const Tick& tick : ticks(x, static_cast<int>(area.width() / kTickWidth), AxisQuantity::count, Scale::linear)) {
    const double at = to_x(tick.value);
    painter.setPen(theme().line);
    painter.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
    painter.setPen(theme().muted);
    painter.drawText(QRectF(at - 40, area.bottom() + 4, 80, 16), Qt::AlignCenter, tick.label);
  }
  for (const Tick& tick : ticks(y, static_cast<int>(area.height() / kTickHeight), AxisQuantity::plain, Scale::linear)) {
    const double at = to_y(tick.value);
    painter.setPen(theme().line);
    painter.drawLine(QPointF(area.left(), at), QPointF(area.right(), at));
    painter.setPen(theme().muted);
    painter.drawText(QRectF(0, at - 8, kLeft - 5, 16), Qt::AlignRight | Qt::AlignVCenter, tick.label);
  }
  QPolygonF line;
  for (const views::Point& p : series.decimate(x.low, x.high, static_cast<int>(area.width()) / 2))
    line << QPointF(to_x(p.x), to_y(p.y));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(Qt::blue, line.size() > area.width() ? 1.0 : 1.7));
  painter.drawPolyline(line);
}

template <class Work>
double timed(const Work& work) {
  QElapsedTimer clock;
  clock.start();
  work();
  return static_cast<double>(clock.nsecsElapsed()) * 1e-6;
}

double median(std::vector<double> ms) {
  std::nth_element(ms.begin(), ms.begin() + static_cast<long>(ms.size() / 2), ms.end());
  return ms[ms.size() / 2];
}

// Both draw each picture, one after the other.
Json compare(int samples, int pictures) {
  auto series = std::make_shared<views::Series>();
  for (int i = 0; i < samples; ++i) series->append(i, value_at(i));
  ChartLink link;
  link.set_x(u"step"_s, AxisQuantity::count);
  Chart chart({.title = u"Loss"_s, .unit = u"nats/token"_s}, link);
  chart.resize(kSize);
  chart.set_lines({{.name = u"train"_s, .color = Qt::blue, .raw = series}});
  QPixmap picture(kSize);
  std::vector<double> charts, plain;
  for (int i = 0; i < pictures; ++i) {
    const double x = samples + i;
    series->append(x, value_at(x));
    link.set_data({0, x});
    chart.refresh();
    charts.push_back(timed([&] { chart.render(&picture); }));
    plain.push_back(timed([&] {
      QPainter painter(&picture);
      paint_plainly(painter, *series, {0, x});
    }));
  }
  return {{"samples", samples},
          {"chart_ms", median(charts)},
          {"painter_ms", median(plain)},
          {"ratio", median(charts) / median(plain)}};
}

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  const int pictures = argc > 1 ? std::atoi(argv[1]) : 101;
  if (argc > 2 || pictures < 1) {
    std::fprintf(stderr, "usage: mw_chart_bench [PICTURES]\n");
    return 2;
  }
  mw::ui::apply(mw::ui::make_theme(mw::ui::Shade::light), application);
  mw::Json out = mw::Json::array();
  for (const int samples : {1000, 10000, 100000, 1000000}) out.push_back(mw::ui::compare(samples, pictures));
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}
