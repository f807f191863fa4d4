// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <cmath>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/views/series.h"
#include "tests/ui/color_vision.h"
#include "tests/ui/support.h"
#include "ui/charts/chart.h"
#include "ui/charts/chart_paint.h"
#include "ui/charts/chart_table.h"
#include "ui/charts/chart_types.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

std::shared_ptr<views::Series> wave(int n) {
  auto s = std::make_shared<views::Series>();
  for (int i = 0; i < n; ++i) s->append(i, 2 + std::sin(i * 0.01));
  return s;
}

// Pixels of about this colour in an area of a picture.
int pixels_like(const QImage& image, const QRect& area, const QColor& color) {
  int count = 0;
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x) {
      const QColor c = image.pixelColor(x, y);
      count +=
          std::abs(c.red() - color.red()) + std::abs(c.green() - color.green()) + std::abs(c.blue() - color.blue()) <
          200;
    }
  return count;
}

}  // namespace

class ChartsTest : public QObject {
  Q_OBJECT
  test::WarningWatch warnings_;
  ChartLink link_;
  std::unique_ptr<Chart> chart_;

  void show(std::vector<ChartLine> lines, AxisRange data) {
    link_.reset();
    link_.set_data(data);
    chart_->set_lines(std::move(lines));
  }

 private slots:
  void init() {
    warnings_.start();
    apply(make_theme(Shade::light), *qApp);
    link_.set_x(u"step"_s, AxisQuantity::count);
    chart_ = std::make_unique<Chart>(ChartOptions{.title = u"Loss"_s, .empty = u"nothing yet"_s, .jump_to_now = true},
                                     link_);
    chart_->resize(600, 300);
    chart_->show();
    QVERIFY(QTest::qWaitForWindowExposed(chart_.get()));
  }
  void cleanup() {
    chart_.reset();
    QCOMPARE(warnings_.take().join(u"; "_s), QString());
  }

  void a_number_chooses_the_plural_form() {
    QCOMPARE(devices_text(1), u"1 device"_s);
    QCOMPARE(devices_text(2), u"2 devices"_s);
  }

  // In a small chart each line is in the legend, with its name where that has room, else by its mark alone.
  void no_line_is_left_out_of_a_narrow_legend() {
    chart_->resize(310, 195);
    for (const QString& name : {u"%1"_s, u"a run with a long name, number %1"_s}) {
      std::vector<ChartLine> lines;
      for (int i = 0; i < 5; ++i)
        lines.push_back(
            {.name = name.arg(1024 << i), .color = theme().series(i), .raw = wave(40), .marks = Marks::points});
      show(lines, {0, 40});
      QTest::qWait(60);
      QCOMPARE(chart_->legend().entries().size(), size_t{5});
    }
  }

  void a_legend_without_space_folds_and_says_what_it_folds() {
    std::vector<ChartLine> lines;
    for (int i = 0; i < 24; ++i)
      lines.push_back({.name = u"line %1"_s.arg(i), .color = theme().series(i), .raw = wave(40)});
    chart_->resize(310, 195);
    show(lines, {0, 40});
    QTest::qWait(60);
    const int shown = static_cast<int>(chart_->legend().entries().size());
    QVERIFY2(shown > 0 && shown < 24, qPrintable(QString::number(shown)));
    QVERIFY(!chart_->legend().folded_at().isEmpty() && chart_->legend().folded_at().right() < chart_->width());
    const QStringList folded = chart_->legend().folded().split(u'\n');
    QCOMPARE(folded.size(), 24 - shown);
    QVERIFY2(folded.front().startsWith(u"line %1 "_s.arg(shown)), qPrintable(folded.front()));
    chart_->resize(1500, 300);
    show({lines.begin(), lines.begin() + 3}, {0, 40});
    QTest::qWait(60);
    QVERIFY(chart_->legend().folded_at().isEmpty() && chart_->legend().folded().isEmpty());
  }

  void axis_titles_are_whole_in_every_chart_of_120_pixels() {
    test::Scratch scratch;
    for (const auto& [title, unit] :
         {std::pair{u"KV blocks in use"_s, u"% of all blocks"_s}, std::pair{u"Throughput"_s, u"output tokens/s"_s},
          std::pair{u"Forward memory"_s, QString()}})
      for (const int height : {120, 140, 180, 300}) {
        Chart chart({.title = title, .unit = unit}, link_);
        chart.resize(300, height);
        link_.reset();
        link_.set_data({0, 49});
        chart.set_lines({{.name = u"a"_s, .color = Qt::blue, .raw = wave(50)}});
        export_chart(chart, scratch.path() / "chart.svg");
        const std::string svg = read_file(scratch.path() / "chart.svg");
        QVERIFY2(svg.find("...") == std::string::npos, qPrintable(title));
        // The title is rotated: the only text with such a matrix.
        const auto turned = svg.find("matrix(0,-1,1,0");
        QVERIFY2(turned != std::string::npos, qPrintable(u"%1 at %2"_s.arg(title).arg(height)));
      }
  }

  void a_histogram_counts_each_bin_and_all_values() {
    const ChartStack stack = histogram_stack(
        {.width = 10,
         .layers = {{.name = u"short"_s, .color = Qt::blue, .counts = {1, 2, 0}}, {u"long"_s, Qt::red, {0, 1, 4}, 3}}});
    QCOMPARE(stack.at(15), (std::vector<double>{2, 1}));
    QCOMPARE(stack.at(1000), (std::vector<double>{0, 4}));
    QCOMPARE(stack.overall(), (std::vector<double>{3, 8}));
    QCOMPARE(stack.highest(0, 30), 4.0);
    QCOMPARE(stack.highest(0, 12), 3.0);
    const StackSamples seen = stack.sample(12, 100, 50);
    QCOMPARE(seen.x, (std::vector<double>{10, 20}));
    QCOMPARE(seen.values[1], (std::vector<double>{1, 4}));
    QVERIFY(!histogram_stack({}).sample);
  }

  void a_pareto_chart_shows_dominated_points_lighter() {
    const std::vector<views::Point> points{{3, 1}, {1, 3}, {2, 2}, {3, 3}, {2, 4}};
    const auto lines = pareto_lines({.name = u"plans"_s,
                                     .front_name = u"front"_s,
                                     .color = QColor(0xd00000),
                                     .points = points,
                                     .front = views::pareto_front(points)});
    QCOMPARE(lines.size(), size_t{2});
    QCOMPARE(lines[1].raw->size(), size_t{6});  // a gap after each of the three
    QCOMPARE((*lines[1].raw)[0].y, 3.0);
    QCOMPARE(lines[0].raw->size(), size_t{4});
    QVERIFY(lines[0].color.lightness() > lines[1].color.lightness());
    show(lines, {0, 4});
    const QImage image = chart_->grab().toImage();
    const QRectF a = chart_->area();
    const int px = static_cast<int>(a.left() + a.width() / 4);  // the point of the front at x = 1
    QVERIFY(pixels_like(image, QRect(px - 5, static_cast<int>(a.top()), 10, static_cast<int>(a.height())),
                        QColor(0xd00000)) >= 20);
  }

  void values_that_differ_by_their_rounding_are_one_line() {
    const double v = 2.5;  // a loss that stays, smoothed
    const AxisRange rounding{v - 4e-16, v + 4e-16};
    QVERIFY(rounding.size() > 0);
    const AxisRange seen = padded(rounding, Scale::linear);
    QVERIFY(seen.low < 2.4 && seen.high > 2.6);
    for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
      QVERIFY(ticks(rounding, 5, AxisQuantity::plain, scale).size() < 20);  // and it ends
      QVERIFY(ticks(padded(rounding, scale), 5, AxisQuantity::plain, scale).size() >= 2);
    }
  }

  void ticks_are_round_and_inside() {
    for (const AxisRange s : {AxisRange{0, 1}, AxisRange{0.0312, 0.0377}, AxisRange{-3, 1200}, AxisRange{1e-5, 2e-4},
                              AxisRange{0, 123456789}}) {
      const auto all = ticks(s, 5, AxisQuantity::plain, Scale::linear);
      QVERIFY(all.size() >= 2 && all.size() <= 12);
      for (const Tick& t : all) QVERIFY(t.value >= s.low - 1e-12 && t.value <= s.high * (1 + 1e-9));
      for (size_t i = 1; i < all.size(); ++i) QVERIFY2(all[i].label != all[i - 1].label, qPrintable(all[i].label));
    }
    for (const Tick& t : ticks({0, 3.2 * (1 << 30)}, 5, AxisQuantity::bytes, Scale::linear))
      QVERIFY2(t.value == 0 || t.label.endsWith(u" GiB"_s), qPrintable(t.label));
  }

  void an_axis_keeps_one_notation() {
    const auto labels = [](AxisRange span, int wanted, Scale scale) {
      QStringList all;
      for (const Tick& t : ticks(span, wanted, AxisQuantity::plain, scale)) all << t.label;
      return all.join(u' ');
    };
    QCOMPARE(labels({0, 2.12e-4}, 4, Scale::linear), u"0 0.5e-4 1.0e-4 1.5e-4 2.0e-4"_s);
    QCOMPARE(labels({0, 1.06e-3}, 2, Scale::linear), u"0 0.5e-3 1.0e-3"_s);
    QCOMPARE(labels({0, 5.3e-3}, 5, Scale::linear), u"0 1e-3 2e-3 3e-3 4e-3 5e-3"_s);
    QCOMPARE(labels({0, 0.032}, 3, Scale::linear), u"0 0.01 0.02 0.03"_s);
    QCOMPARE(labels({1e-3, 10}, 5, Scale::logarithmic), u"0.001 0.01 0.1 1 10"_s);
    QCOMPARE(labels({1e-6, 1e-2}, 5, Scale::logarithmic), u"1e-6 1e-5 1e-4 1e-3 1e-2"_s);
    QCOMPARE(value_text(2e-4, AxisQuantity::plain), u"2.00e-4"_s);
  }

  void log_ticks_are_powers_of_ten() {
    for (const Tick& t : ticks({1e-3, 1e3}, 6, AxisQuantity::plain, Scale::logarithmic)) {
      const double e = std::log10(t.value);
      QVERIFY(std::abs(e - std::round(e)) < 1e-9);
    }
  }

  void no_data_says_so() {
    QVERIFY(chart_->empty());
    QCOMPARE(chart_->summary(), u"nothing yet"_s);
    chart_->grab();
  }

  void measured_is_solid_and_predicted_is_dashed() {
    auto flat = std::make_shared<views::Series>();
    for (int i = 0; i < 10; ++i) flat->append(i, 1.0);
    const auto share = [&](LineOrigin origin) {
      show({{.name = u"a"_s, .color = QColor(0xd00000), .raw = flat, .origin = origin}}, {0, 9});
      const QRect area = chart_->area().toRect();
      return static_cast<double>(pixels_like(chart_->grab().toImage(), area, QColor(0xd00000))) / area.width();
    };
    const double solid = share(LineOrigin::measured), dashed = share(LineOrigin::predicted),
                 dotted = share(LineOrigin::imported);
    QVERIFY2(solid > dashed * 1.15 && dashed > dotted * 1.15,
             qPrintable(u"%1 %2 %3"_s.arg(solid).arg(dashed).arg(dotted)));
  }

  void a_spike_is_seen_among_a_million_points() {
    auto s = std::make_shared<views::Series>();
    for (int i = 0; i < 1000000; ++i) s->append(i, i == 654321 ? 50.0 : 1.0);
    QElapsedTimer clock;
    clock.start();
    show({{.name = u"a"_s, .color = Qt::red, .raw = s, .smooth = s}}, {0, 999999});
    QVERIFY(chart_->axes().y().high >= 0);
    chart_->grab();
    QVERIFY2(clock.elapsed() < 250, qPrintable(QString::number(clock.elapsed())));
    QVERIFY(chart_->axes().y().high > 50);
  }

  void marks_at_the_edges_are_drawn_whole() {
    auto s = std::make_shared<views::Series>();
    for (const double x : {0.0, 50.0, 100.0}) s->append(x, 1.0);
    auto other = std::make_shared<views::Series>();
    for (const double x : {0.0, 100.0}) other->append(x, x / 50);  // so that the marks do not lie on its ends
    const QColor red(0xd00000);
    show({{.name = u"eval"_s, .color = red, .raw = s, .marks = Marks::points},
          {.name = u"o"_s, .color = QColor(0x0000d0), .raw = other}},
         {0, 100});
    const QImage image = chart_->grab().toImage();
    const QRectF a = chart_->area();
    const AxisRange seen = chart_->axes().y();
    const int y = static_cast<int>(a.bottom() - (1 - seen.low) / seen.size() * a.height());
    const QRect left(static_cast<int>(a.left()) - 6, y - 6, 6, 12),
        right(static_cast<int>(a.right()) + 1, y - 6, 5, 12);
    QVERIFY(pixels_like(image, left, red) >= 4);
    QVERIFY(pixels_like(image, right, red) >= 2);
  }

  void many_points_without_a_line_keep_their_marks() {
    auto s = std::make_shared<views::Series>();
    for (int i = 0; i < 100; ++i) {
      s->append(i, std::nan(""));
      s->append(i, 1.0);
    }
    const QColor red(0xd00000);
    show({{.name = u"rows"_s, .color = red, .raw = s, .marks = Marks::squares}}, {0, 100});
    QVERIFY(pixels_like(chart_->grab().toImage(), chart_->area().toRect(), red) > 600);
  }

  void gaps_break_the_line_and_leave_the_axis_alone() {
    auto s = std::make_shared<views::Series>();
    for (int i = 0; i < 100; ++i) s->append(i, i > 40 && i < 60 ? std::nan("") : 1.0 + i);
    show({{.name = u"a"_s, .color = QColor(0xd00000), .raw = s}}, {0, 99});
    for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
      chart_->set_scale(scale);
      const QImage image = chart_->grab().toImage();
      const QRectF a = chart_->area();
      QRect hole(static_cast<int>(a.left() + a.width() * 0.411), static_cast<int>(a.top()),
                 static_cast<int>(a.width() * 0.178), static_cast<int>(a.height()));
      QCOMPARE(pixels_like(image, hole, QColor(0xd00000)), 0);
      QVERIFY(std::isfinite(chart_->axes().y().high));
    }
    chart_->set_scale(Scale::linear);
  }

  void readouts_follow_the_cursor_and_charts_share_it() {
    Chart other({.title = u"Rate"_s}, link_);
    auto line = std::make_shared<views::Series>();
    for (int i = 0; i <= 100; ++i) line->append(i, i * 2.0);
    show({{.name = u"train"_s, .color = Qt::blue, .raw = line}}, {0, 100});
    other.set_lines({{.name = u"x"_s, .color = Qt::blue, .raw = line}});
    QVERIFY(chart_->summary().contains(u"200.0"_s));  // the newest
    chart_->grab();                                   // lays the axes out
    const QRectF a = chart_->area();
    QTest::mouseMove(chart_.get(),
                     QPoint(static_cast<int>(a.left() + a.width() / 2), static_cast<int>(a.center().y())));
    QVERIFY(link_.cursor().has_value());
    QVERIFY(std::abs(*link_.cursor() - 50) < 1);
    QVERIFY2(other.summary().contains(u"100.0"_s) || other.summary().contains(u"102.0"_s), qPrintable(other.summary()));
  }

  void panning_ends_following_and_the_pill_brings_it_back() {
    show({{.name = u"a"_s, .color = Qt::blue, .raw = wave(1000)}}, {0, 999});
    QVERIFY(link_.is_following());
    link_.zoom(0.3, 500);
    QVERIFY(!link_.is_following());
    const AxisRange seen = link_.range();
    link_.set_data({0, 1500});  // the run goes on; the view stays where it was put
    QCOMPARE(link_.range(), seen);
    auto* pill = chart_->findChild<QPushButton*>(u"pill"_s);
    QVERIFY(pill->isVisible());
    QTest::mouseClick(pill, Qt::LeftButton);
    QVERIFY(link_.is_following());
    QCOMPARE(link_.range().high, 1500.0);
    QVERIFY(!pill->isVisible());
  }

  void range_of_growing_data_seldom_changes_and_fits_it_in_the_end() {
    ChartLink link;
    link.set_data({0, 100}, Growth::growing);
    const AxisRange seen = link.range();
    QVERIFY(seen.high > 104);
    link.set_data({0, 104}, Growth::growing);
    QCOMPARE(link.range(), seen);
    link.set_data({0, 200}, Growth::growing);
    QVERIFY(link.range().high > 200);
    link.set_data({0, 201});
    QCOMPARE(link.range().high, 201.0);
  }

  void charts_of_growing_data_draw_in_turns() {
    show({{.name = u"a"_s, .color = Qt::blue, .raw = wave(10)}}, {0, 9});
    QWidget other;
    other.show();
    link_.set_data({0, 10}, Growth::growing);
    bool had_turn = false;  // QTRY_VERIFY() evaluates its condition again when it holds
    QTRY_VERIFY(had_turn = had_turn || link_.take_turn(other));
    QVERIFY(!link_.take_turn(*chart_));
    had_turn = link_.take_turn(other);
    QVERIFY(!had_turn);  // it comes after the chart
    QTRY_VERIFY(had_turn = had_turn || link_.take_turn(other));
    link_.set_data({0, 10});
    QVERIFY(link_.take_turn(*chart_));
    QVERIFY(link_.take_turn(other));
  }

  void keys_move_the_playhead() {
    show({{.name = u"a"_s, .color = Qt::blue, .raw = wave(100)}}, {0, 99});
    chart_->setFocus();
    QTest::keyClick(chart_.get(), Qt::Key_Left);
    QTest::keyClick(chart_.get(), Qt::Key_Left, Qt::ShiftModifier);
    QCOMPARE(link_.playhead(), std::optional(88.0));
    QTest::keyClick(chart_.get(), Qt::Key_End);
    QVERIFY(!link_.playhead());
  }

  void log_scale_survives_zero_and_negative_values() {
    auto s = std::make_shared<views::Series>();
    for (int i = 0; i < 50; ++i) s->append(i, i < 3 ? 0.0 : std::exp(-i * 0.2));
    show({{.name = u"a"_s, .color = Qt::blue, .raw = s}}, {0, 49});
    chart_->set_scale(Scale::logarithmic);
    chart_->grab();
    QVERIFY(chart_->axes().y().low > 0);
    chart_->set_scale(Scale::linear);
  }

  void the_stack_fills_up_to_its_total_and_names_a_far_capacity() {
    ChartOptions o{.title = u"Memory"_s, .quantity = AxisQuantity::bytes, .from_zero = true};
    Chart memory(o, link_);
    memory.resize(500, 240);
    link_.reset();
    link_.set_data({0, 10});
    ChartStack stack;
    stack.layers = {{u"weights"_s, QColor(0x2040d0)}, {u"activations"_s, QColor(0x20c040)}};
    stack.sample = [](double, double, int) { return StackSamples{{0, 10}, {{3e6, 3e6}, {1e6, 1e6}}}; };
    stack.at = [](double) { return std::vector<double>{3e6, 1e6}; };
    stack.highest = [](double, double) { return 4e6; };
    memory.set_stack(stack);
    memory.set_levels({{u"capacity"_s, 8e9, Qt::red, LineOrigin::measured}});
    memory.grab();
    QVERIFY2(memory.axes().y().high < 5e6, "a capacity far away must not flatten the data");
    memory.set_levels({{u"capacity"_s, 6e6, Qt::red, LineOrigin::measured}});
    memory.grab();
    QVERIFY(memory.axes().y().high > 6e6);
    // Labels of levels lie neither on each other nor on another level's line, wherever these are.
    for (const double second : {5.9e6, 5.5e6, 5e6, 4.2e6, 1e6})
      for (const int height : {140, 180, 240}) {
        memory.resize(300, height);
        memory.set_levels({{u"capacity"_s, 6e6, Qt::red, LineOrigin::measured},
                           {u"predicted peak"_s, second, Qt::black, LineOrigin::predicted}});
        memory.grab();
        const QRectF area = memory.area();
        const auto labels = level_labels(memory.axes(), area);
        QCOMPARE(labels.size(), size_t{2});
        QVERIFY(!labels[0].intersects(labels[1]));
        for (const QRectF& label : labels) QVERIFY(area.contains(label));
        const auto line = [&](double value) { return area.bottom() - value / memory.axes().y().high * area.height(); };
        QVERIFY(line(second) < labels[0].top() || line(second) > labels[0].bottom());
        QVERIFY(line(6e6) < labels[1].top() || line(6e6) > labels[1].bottom());
      }
    memory.resize(500, 240);
    QCOMPARE(memory.summary(), u"Memory: total 3.81 MiB, activations 977 KiB, weights 2.86 MiB"_s);
  }

  void the_table_shows_the_same_data_and_grows_without_reset() {
    auto s = wave(50);
    show({{.name = u"train"_s, .color = Qt::blue, .raw = s}}, {0, 49});
    ChartTableModel model(nullptr);
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.load(*chart_);
    QCOMPARE(model.rowCount(), 50);
    QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
    for (int i = 50; i < 60; ++i) s->append(i, 1);
    link_.set_data({0, 59});
    model.load(*chart_);
    QCOMPARE(model.rowCount(), 60);
    QCOMPARE(resets.count(), 0);
    QVERIFY(model.csv().startsWith(u"step,train\r\n0,2\r\n"_s));
    chart_->show_table(true);
    QVERIFY(chart_->is_table_shown());
    QAbstractItemModel* shown = chart_->findChild<QTableView*>()->model();
    QCOMPARE(shown->rowCount(), 60);
    QSignalSpy inserted(shown, &QAbstractItemModel::rowsInserted);
    for (int i = 60; i < 80; ++i) {  // a frame each
      s->append(i, 1);
      link_.set_data({0, static_cast<double>(i)});
      chart_->refresh();
      QTest::qWait(5);
    }
    QTRY_COMPARE(shown->rowCount(), 80);
    QVERIFY2(inserted.count() <= 2, qPrintable(QString::number(inserted.count())));
    chart_->show_table(false);
  }

  void a_chart_is_exported_as_png_svg_and_csv() {
    test::Scratch scratch;
    show({{.name = u"train"_s, .color = Qt::blue, .raw = wave(50)}}, {0, 49});
    export_chart(*chart_, scratch.path() / "chart.png");
    QCOMPARE(QImage(qpath(scratch.path() / "chart.png")).size(), chart_->size() * 2);
    export_chart(*chart_, scratch.path() / "chart.svg");
    const std::string svg = read_file(scratch.path() / "chart.svg");
    QVERIFY(svg.find("<svg") != std::string::npos && svg.find("Step") != std::string::npos);
    export_chart(*chart_, scratch.path() / "chart.csv");
    QVERIFY(read_file(scratch.path() / "chart.csv").starts_with("step,train\r\n0,2\r\n"));
    QVERIFY_EXCEPTION_THROWN(export_chart(*chart_, scratch.path() / "chart.gif"), Error);
    QVERIFY_EXCEPTION_THROWN(export_chart(*chart_, scratch.path() / "chart.png" / "of-a-file.png"), Error);
  }

  // Batches of 1, 2, 8, the last one predicted.
  static ChartStack bars() {
    ChartStack stack;
    stack.layers = {{u"weights"_s, QColor(0x44, 0x63, 0x9f)}, {u"logits"_s, QColor(0xcc, 0x66, 0x77)}};
    stack.sample = [](double, double, int) { return StackSamples{{0, 1, 3}, {{10, 10, 10}, {1, 2, 80}}}; };
    stack.at = [](double x) { return std::vector<double>{10, x < 0.5 ? 1.0 : x < 2 ? 2.0 : 80.0}; };
    stack.highest = [](double, double) { return 20; };
    stack.shape = Shape::bars;
    stack.origin = [](double x) { return x < 2 ? LineOrigin::measured : LineOrigin::predicted; };
    return stack;
  }

  void a_cursor_goes_from_one_named_place_to_the_next() {
    link_.reset();
    link_.set_x(u"batch"_s, AxisQuantity::count);
    link_.set_stops({{0, u"1"_s}, {1, u"2"_s}, {3, u"8"_s}});
    link_.set_data({-0.5, 3.5});
    chart_->set_stack(bars());
    link_.set_cursor(1.8);
    QCOMPARE(*link_.cursor(), 1.0);
    QCOMPARE(link_.x_text(2.4), u"8"_s);
    link_.set_cursor(std::nullopt);
    QTest::keyClick(chart_.get(), Qt::Key_Left);
    QCOMPARE(*link_.playhead(), 3.0);  // the last one
    QTest::keyClick(chart_.get(), Qt::Key_Left);
    QCOMPARE(*link_.playhead(), 1.0);
    QTest::keyClick(chart_.get(), Qt::Key_Left, Qt::ShiftModifier);
    QCOMPARE(*link_.playhead(), 0.0);
    QTest::keyClick(chart_.get(), Qt::Key_Right);
    QCOMPARE(*link_.playhead(), 1.0);
    QVERIFY(chart_->summary().contains(u"total 12"_s));
  }

  static ChartBars two_rows() {
    ChartBars all{.layers = {{u"weights"_s, QColor(0x44, 0x63, 0x9f)}, {u"logits"_s, QColor(0xcc, 0x66, 0x77)}},
                  .text_title = u"Total"_s,
                  .least_end = 100};
    all.bars.push_back({.name = u"this"_s, .values = {60, 20}, .text = u"80"_s, .tip = u"about this"_s});
    all.bars.push_back(
        {.name = u"pinned"_s, .values = {0, 30}, .start = 40, .origin = LineOrigin::measured, .text = u"+30"_s});
    return all;
  }

  void rows_go_down_with_their_values_to_the_right() {
    ChartLink link;
    link.set_x(u"design"_s, AxisQuantity::count);
    Chart chart({.title = u"Memory"_s, .rows = true}, link);
    chart.resize(500, 200);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    chart.set_bars(two_rows());
    QImage image = chart.grab().toImage();
    const QRectF a = chart.area();
    QVERIFY(chart.axes().y().low == 0 && chart.axes().y().high >= 100);
    const auto x_of = [&](double value) {
      return static_cast<int>(a.left() + value / chart.axes().y().high * a.width());
    };
    const auto y_of = [&](double row) { return static_cast<int>(a.top() + (row + 0.5) / 2 * a.height()); };
    const auto is_filled = [&](double value, double row) {
      for (int dy = -3; dy <= 3; ++dy)
        if (image.pixelColor(x_of(value), y_of(row) + dy).hslSaturation() > 60) return true;
      return false;
    };
    QVERIFY(is_filled(30, 0) && is_filled(70, 0) && !is_filled(95, 0));
    QVERIFY(!is_filled(20, 1) && is_filled(55, 1) && !is_filled(80, 1));
    QCOMPARE(chart.summary(), u"Memory: this: weights 60.00, logits 20.00, 80; pinned: logits 30.00, +30"_s);
    // A hidden layer leaves its place to the next one.
    QTest::mouseClick(&chart, Qt::LeftButton, {}, chart.legend().entries()[0].at.center().toPoint());
    image = chart.grab().toImage();
    QVERIFY(is_filled(10, 0) && !is_filled(40, 0));
  }

  void a_row_is_read_by_mouse_and_keys() {
    ChartLink link;
    link.set_x(u"design"_s, AxisQuantity::count);
    Chart chart({.title = u"Memory"_s, .quantity = AxisQuantity::bytes, .rows = true}, link);
    chart.resize(500, 200);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    chart.set_bars(two_rows());
    chart.grab();
    QCOMPARE(chart.legend().texts().join(u", "_s), u"weights 60 B, logits 20 B"_s);
    const QRectF a = chart.area();
    const QPointF over(a.center().x(), a.bottom() - 8);
    QMouseEvent move(QEvent::MouseMove, over, chart.mapToGlobal(over), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&chart, &move);
    QCOMPARE(link.cursor(), std::optional(1.0));
    QCOMPARE(chart.legend().texts().join(u", "_s), u"weights 0 B, logits 30 B"_s);
    link.set_cursor(std::nullopt);
    chart.setFocus();
    QTest::keyClick(&chart, Qt::Key_Down);
    QCOMPARE(link.playhead(), std::optional(0.0));
    QTest::keyClick(&chart, Qt::Key_Down);
    QCOMPARE(link.playhead(), std::optional(1.0));
    QTest::keyClick(&chart, Qt::Key_Down);
    QCOMPARE(link.playhead(), std::optional(1.0));
    QTest::keyClick(&chart, Qt::Key_Escape);
    QVERIFY(!link.playhead());
    // Fewer rows: the place that was read is one of them.
    link.set_playhead(1);
    ChartBars one = two_rows();
    one.bars.pop_back();
    chart.set_bars(one);
    QCOMPARE(link.playhead(), std::optional(0.0));
    chart.set_bars({});
    QVERIFY(chart.empty());
    chart.grab();
  }

  void rows_are_a_table_and_are_exported() {
    test::Scratch scratch;
    ChartLink link;
    link.set_x(u"design"_s, AxisQuantity::count);
    Chart chart({.title = u"Memory"_s, .rows = true}, link);
    chart.resize(500, 200);
    chart.set_bars(two_rows());
    export_chart(chart, scratch.path() / "rows.csv");
    QCOMPARE(qs(read_file(scratch.path() / "rows.csv")),
             u"design,weights,logits,Total\r\nthis (predicted),60,20,80\r\npinned,0,30,+30\r\n"_s);
    export_chart(chart, scratch.path() / "rows.svg");
    const std::string svg = read_file(scratch.path() / "rows.svg");
    for (const char* text : {"pinned", "+30", "Design", "weights"}) QVERIFY2(svg.find(text) != std::string::npos, text);
    export_chart(chart, scratch.path() / "rows.png");
    QCOMPARE(QImage(qpath(scratch.path() / "rows.png")).size(), chart.size() * 2);
  }

  void the_same_bars_are_not_drawn_again() {
    ChartLink link;
    link.set_x(u"design"_s, AxisQuantity::count);
    Chart chart({.title = u"Memory"_s, .rows = true}, link);
    chart.resize(500, 200);
    chart.show();
    QVERIFY(QTest::qWaitForWindowExposed(&chart));
    chart.set_bars(two_rows());
    QTest::qWait(60);
    struct Paints : QObject {
      int count = 0;
      bool eventFilter(QObject*, QEvent* event) override {
        count += event->type() == QEvent::Paint;
        return false;
      }
    } paints;
    chart.installEventFilter(&paints);
    chart.set_bars(two_rows());
    chart.set_levels({});
    chart.set_notes({}, {});
    QTest::qWait(60);
    QCOMPARE(paints.count, 0);
    ChartBars other = two_rows();
    other.is_outdated = true;
    chart.set_bars(other);
    QTRY_VERIFY(paints.count > 0);
  }

  void what_is_predicted_is_hatched_named_so_and_cut_off_at_the_top() {
    link_.reset();
    link_.set_stops({{0, u"1"_s}, {1, u"2"_s}, {3, u"8"_s}});
    link_.set_data({-0.5, 3.5});
    chart_->set_stack(bars());
    chart_->set_notes({{3, theme().bad}}, u"Batch 8 does not fit"_s);
    QVERIFY2(chart_->summary().contains(u"predicted total 90"_s), qPrintable(chart_->summary()));
    QVERIFY(chart_->summary().contains(u"Batch 8 does not fit"_s));
    QVERIFY(chart_->axes().y().high < 40);  // the bar that does not fit does not press the others flat
    QTest::qWait(30);
    const QImage image = chart_->grab().toImage();
    const QRectF a = chart_->area();
    const auto colours = [&](double x) {
      std::set<QRgb> all;
      const int px = static_cast<int>(a.left() + (x + 0.5) / 4 * a.width());
      for (int y = static_cast<int>(a.bottom()) - 40; y < a.bottom() - 20; ++y)
        for (int dx = -4; dx <= 4; ++dx) all.insert(image.pixel(px + dx, y));
      return all.size();
    };
    QCOMPARE(colours(1), size_t{1});
    QVERIFY(colours(3) > 1);
    ChartTableModel table(nullptr);
    table.load(*chart_);
    QCOMPARE(table.index(1, 0).data().toString(), u"2"_s);
    QCOMPARE(table.index(2, 0).data().toString(), u"8 (predicted)"_s);
    QVERIFY(table.csv().contains(u"\r\n8 (predicted),10,80\r\n"_s));
    chart_->set_stack({});
    chart_->set_notes({}, {});
  }

  void series_colours_stay_apart_from_the_ground() {
    for (const Shade shade : {Shade::light, Shade::dark}) {
      const Theme t = make_theme(shade);
      const auto luminance = [](const QColor& c) {
        const auto part = [](double v) { return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
        return 0.2126 * part(c.redF()) + 0.7152 * part(c.greenF()) + 0.0722 * part(c.blueF());
      };
      const auto contrast = [&](const QColor& a, const QColor& b) {
        const double x = luminance(a), y = luminance(b);
        return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
      };
      for (int i = 0; i < 8; ++i) QVERIFY2(contrast(t.series(i), t.panel) >= 3, qPrintable(t.series(i).name()));
      for (const QColor& c : {t.text, t.muted, t.faint, t.good, t.warn, t.bad})
        QVERIFY2(contrast(c, t.panel) >= 4.5,
                 qPrintable(u"%1 on %2: %3"_s.arg(c.name(), t.panel.name()).arg(contrast(c, t.panel))));
      QVERIFY(contrast(t.accent_text, t.accent) >= 4.5);
    }
  }

  void colours_stay_apart_without_red_or_green_cones() {
    constexpr double kLeast = 10;  // about four just noticeable differences
    for (const Shade shade : {Shade::light, Shade::dark}) {
      const Theme t = make_theme(shade);
      std::vector<QColor> lines, areas;
      for (int i = 0; i < 8; ++i) lines.push_back(t.series(i));
      for (const MemoryCategory category : all_values<MemoryCategory>()) areas.push_back(t.memory(category));
      for (const auto vision :
           {test::ColorVision::normal, test::ColorVision::protanopia, test::ColorVision::deuteranopia})
        for (const std::vector<QColor>* set : {&lines, &areas})
          for (auto a = set->begin(); a != set->end(); ++a)
            for (auto b = std::next(a); b != set->end(); ++b)
              QVERIFY2(test::difference(*a, *b, vision) >= kLeast,
                       qPrintable(u"%1 and %2: %3"_s.arg(a->name(), b->name()).arg(test::difference(*a, *b, vision))));
    }
  }
};

}  // namespace mw::ui

QTEST_MAIN(mw::ui::ChartsTest)
#include "charts_test.moc"
