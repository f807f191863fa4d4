// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of lines or stacked areas over a shared x axis, with readouts in the legend, cursor, pan, zoom, log scale,
// table view and PNG export. Draws no more points than its pixels can show. GUI thread.
#pragma once
#include <filesystem>

#include "ui/charts/chart_gestures.h"
#include "ui/charts/chart_legend.h"
#include "ui/charts/chart_scene.h"
#include "ui/theme/widgets.h"

class QMenu;

namespace mw::ui {

class ChartTable;

class Chart : public QWidget {
  Q_OBJECT
 public:
  Chart(ChartOptions options, ChartLink& link, QWidget* parent = nullptr);
  ~Chart() override;

  void set_lines(std::vector<ChartLine> lines);
  void set_stack(ChartStack stack);
  void set_bars(ChartBars bars);  // of a chart of rows; cheap if they are the same
  void set_levels(std::vector<LevelLine> levels);
  void set_limits(std::vector<LevelLine> limits);
  void set_notes(std::vector<ChartNote> notes, const QString& caption);
  void set_empty_text(const QString& text);
  void set_title(const QString& title);
  void set_unit(const QString& unit);
  void set_header_inset(int pixels);  // free space at the right of the header, for widgets of the owner
  void set_emphasis(int group);       // fades the other groups; -1: none
  void set_scale(Scale scale);
  void show_table(bool on);
  void refresh();  // call it when the data has grown

  const ChartContent& content() const { return content_; }
  const ChartAxes& axes() const { return axes_; }
  const ChartLegend& legend() const { return legend_; }
  const ChartLink& link() const { return link_; }
  const ChartOptions& options() const { return content_.options; }
  const std::vector<ChartLine>& lines() const { return content_.lines; }
  const ChartBars& bars() const { return content_.bars; }
  bool empty() const { return content_.empty(); }
  QRectF area() const { return axes_.area(); }  // of the data, in widget coordinates
  QString summary() const;                      // "Loss: train 0.512, eval 0.61", for screen readers and tests
  bool is_table_shown() const;
  void paint_whole(QPainter& painter);  // as vector graphics, without interactive elements

  QSize sizeHint() const override { return {320, 160}; }
  QSize minimumSizeHint() const override { return {160, 84}; }

 signals:
  void group_hovered(int group);  // -1: left

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  template <class Value>
  void set(Value& member, Value value);  // nothing if they are equal
  void redraw();                         // after the user changed something
  void draw(QPainter& painter);          // data, axes and annotations; an empty chart says why
  void lay_out_legend();
  void place_children();
  double header_end() const;  // where the buttons begin
  QMenu* make_menu();
  void export_to(const std::filesystem::path& file);  // shows errors
  bool show_tip(const class QHelpEvent& help);
  void hover(QPointF at);
  bool toggle(QPointF at);  // an entry of the legend; false: there is none
  int group_at(QPointF at) const;

  ChartContent content_;
  ChartLink& link_;
  ChartAxes axes_;
  ChartLegend legend_;
  ChartGestures gestures_;
  ChartScene scene_;
  std::vector<double> cut_bars_;  // of the picture
  QPixmap picture_;
  bool stale_ = true;
  int inset_ = 0, hovered_ = -1;
  QToolButton *log_, *more_;
  QPushButton* jump_;
  std::unique_ptr<ChartTable> table_;  // created on first use
};

}  // namespace mw::ui
