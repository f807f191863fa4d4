// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of lines or stacked areas over a shared x axis, with readouts in the legend, cursor, pan, zoom, log scale,
// table view and PNG export. Draws no more points than its pixels can show. GUI thread.
#pragma once
#include <QPixmap>
#include <QTimer>
#include <QWidget>
#include <filesystem>
#include <set>

#include "ui/charts/chart_link.h"
#include "ui/charts/chart_scene.h"

class QPushButton;
class QTableView;
class QToolButton;
class QMenu;

namespace mw::ui {

class ChartTableModel;

struct ChartOptions {
  QString title{}, unit{};  // the unit is shown beside the title
  Quantity quantity = Quantity::plain;
  QString empty{};           // shown while there is no data
  bool jump_to_now = false;  // has the "Jump to Now" button
  bool from_zero = false;    // the y axis starts at zero
  bool rows = false;         // horizontal bars: set_bars() is its data, and the link belongs to this chart alone
};

class Chart : public QWidget {
  Q_OBJECT
 public:
  Chart(ChartOptions options, ChartLink& link, QWidget* parent = nullptr);
  ~Chart() override;

  void set_lines(std::vector<ChartLine> lines);
  void set_stack(ChartStack stack);
  void set_bars(ChartBars bars);                   // of a chart of rows; cheap if they are the same
  void set_levels(std::vector<LevelLine> levels);  // across the values
  void set_limits(std::vector<LevelLine> limits);  // vertical lines
  void set_notes(std::vector<ChartNote> notes, const QString& caption);
  void set_empty_text(const QString& text);
  void set_title(const QString& title);
  void set_unit(const QString& unit);
  void set_header_inset(int pixels);  // free space at the right of the header, for widgets of the owner
  void refresh();                     // call it when the data has grown
  void set_emphasis(int group);       // fades the other groups; -1: none
  int emphasis() const { return emphasis_; }

  const std::vector<ChartLine>& lines() const { return lines_; }
  const ChartStack& stack() const { return stack_; }
  const ChartBars& bars() const { return bars_; }
  const std::vector<LevelLine>& limits() const { return limits_; }
  const std::vector<ChartNote>& notes() const { return notes_; }
  const QString& caption() const { return caption_; }
  const ChartOptions& options() const { return options_; }
  const ChartLink& link() const { return link_; }
  bool empty() const;
  Span y_span() const { return y_; }
  Scale scale() const { return scale_; }
  void set_scale(Scale scale);
  bool is_table_shown() const;
  void show_table(bool on);
  void paint_whole(QPainter& painter);                         // as vector graphics, without interactive elements
  QRectF area() const;                                         // of the data, in widget coordinates
  std::vector<QRectF> level_labels(const QRectF& area) const;  // of set_levels(), in `area`
  QString summary() const;  // "Loss: train 0.512, eval 0.61", for screen readers and tests
  int legend_entries() const { return static_cast<int>(legend_.size()); }  // that fitted when it was last painted
  QString folded_legend() const;                                           // the others, one per line
  QStringList legend_texts() const;                                        // "weights 16.9 GiB" of all
  QRectF legend_place(int entry) const { return legend_[static_cast<size_t>(entry)].at; }
  QRectF folded_at() const { return folded_at_; }
  int group_at(QPointF at) const;  // group of the line or legend entry at a position; -1: none

  QSize sizeHint() const override { return {320, 160}; }
  QSize minimumSizeHint() const override { return {160, 84}; }

 signals:
  void group_hovered(int group);  // -1: left

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  static constexpr double kRight = 14, kCaption = 15;  // the caption: height of its row
  static constexpr double kTickOverhang = 5;  // of the highest tick label, below a caption or a second legend row
  static constexpr double kAir = 5;           // pixels beside the data in which marks at its edges are whole
  struct LegendEntry {
    QString name;
    QColor color;  // invalid: a sum without a mark
    Origin origin = Origin::measured;
    QString value;
    Marks marks = Marks::none;
    QRectF at{};
    bool named = true;  // the name fits
    bool shown = true;  // the legend shows the value; stacks show theirs at the cursor
    int group = -1;
  };
  // Drawn by Qt Charts: chart_items.cpp
  SceneItems items(const QRectF& area) const;
  void add_axes(const QRectF& area, SceneItems& out) const;
  void add_raw(const QRectF& area, const ChartLine& line, SceneItems& out) const;
  void add_interval(const ChartLine& line, SceneItems& out) const;
  void add_line(const QRectF& area, const ChartLine& line, SceneItems& out) const;
  void add_marks(const QRectF& area, const ChartLine& line, SceneItems& out) const;
  void add_stack(const QRectF& area, SceneItems& out) const;
  void add_bars(const QRectF& area, SceneItems& out) const;
  Span bar_span(double x, double pixel) const;
  // Charts of rows: chart_rows.cpp
  void add_row_axes(const QRectF& area, SceneItems& out) const;
  void fit_row_margins();
  double row_y(const QRectF& area, double row) const;
  double value_x(const QRectF& area, double value) const;
  void paint_rows(QPainter& painter, const QRectF& area) const;
  void paint_row_name(QPainter& painter, const QRectF& room, const ChartBar& bar) const;
  void paint_row_cursor(QPainter& painter, const QRectF& area) const;
  QString row_tip(QPointF at) const;
  void press_row_key(QKeyEvent* event);
  QStringList row_summaries() const;
  std::vector<Tick> y_ticks(const QRectF& area) const;
  QString y_title(double room) const;  // pixels
  double axis_y(double y) const;       // on the axis of Qt Charts, which is linear
  void map_y(QList<QPointF>& points) const;
  // Painted over the picture of Qt Charts: chart_paint.cpp
  void paint_annotations(QPainter& painter, const QRectF& area) const;
  void paint_flags(QPainter& painter, const QRectF& area, const ChartLine& line) const;
  void paint_cut_bars(QPainter& painter, const QRectF& area) const;
  void paint_notes(QPainter& painter, const QRectF& area) const;
  void paint_header(QPainter& painter) const;
  void paint_levels(QPainter& painter, const QRectF& area) const;
  QString level_text(const LevelLine& level) const;
  void paint_limits(QPainter& painter, const QRectF& area) const;
  void paint_cursor(QPainter& painter, const QRectF& area) const;
  void paint_split(QPainter& painter, const QRectF& area, double x) const;
  std::vector<LegendEntry> legend() const;
  enum class Names { where_they_fit, none };
  bool place_legend(std::vector<LegendEntry>& entries, int most, Names names, int& row) const;
  void fold_legend(int all);  // replaces the last entries by their number
  double legend_limit(int row) const;
  void lay_out_legend();  // places the entries in one row, or two where a stack has many

  void redraw();  // after the user changed something
  Span wanted_y() const;
  void update_y();
  void fit_margin();
  QColor color_of(const ChartLine& line) const;  // faded if another group is emphasised
  QMenu* make_menu();
  void export_to(const std::filesystem::path& file);  // shows errors
  void place_children();
  double header_end() const;  // where the buttons begin
  double title_width() const;
  double x_at(QPointF at) const;
  double to_x(const QRectF& area, double x) const;
  double to_y(const QRectF& area, double y) const;
  bool is_logarithmic() const { return scale_ == Scale::logarithmic && y_.low > 0; }
  void draw(QPainter& painter);  // data, axes and annotations; an empty chart says why
  bool hidden(const QString& name) const { return hidden_.contains(name); }

  ChartOptions options_;
  ChartLink& link_;
  std::vector<ChartLine> lines_;
  ChartStack stack_;
  ChartBars bars_;
  std::vector<LevelLine> levels_, limits_;
  std::vector<ChartNote> notes_;
  QString caption_;
  std::set<QString> hidden_;
  std::vector<LegendEntry> legend_;  // as last painted; used for clicks
  QStringList legend_names_;         // of all entries
  QRectF folded_at_;                 // of "+3" behind the last entry; empty: all fitted
  std::vector<double> cut_bars_;     // of the picture
  Span y_{0, 1};
  Scale scale_ = Scale::linear;
  double left_margin_ = 40, right_margin_ = kRight;
  int legend_rows_ = 1, inset_ = 0, emphasis_ = -1, hovered_ = -1;
  ChartScene scene_;
  QPixmap cache_;
  bool stale_ = true, dragging_ = false, moved_ = false;
  QPointF pressed_at_;
  Span pressed_range_;
  QToolButton *log_, *more_;
  QPushButton* jump_;
  QTableView* table_ = nullptr;
  ChartTableModel* table_model_ = nullptr;
  QTimer table_due_;  // limits table updates, because numbers that change every frame are unreadable
};

}  // namespace mw::ui
