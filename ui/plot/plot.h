// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of lines or stacked areas over a shared x axis, with readouts in the legend, cursor, pan, zoom, log scale,
// table view and PNG export. Draws no more points than its pixels can show. GUI thread.
#pragma once
#include <QPixmap>
#include <QTimer>
#include <QWidget>
#include <set>

#include "ui/plot/link.h"
#include "ui/plot/plot_data.h"

class QPushButton;
class QTableView;
class QToolButton;
class QMenu;

namespace mw::ui {

class PlotTableModel;

struct PlotOptions {
  QString title{}, unit{};  // the unit is shown beside the title
  Quantity quantity = Quantity::plain;
  QString empty{};           // shown while there is no data
  bool jump_to_now = false;  // has the "Jump to Now" button
  bool from_zero = false;    // the y axis starts at zero
};

class Plot : public QWidget {
  Q_OBJECT
 public:
  Plot(PlotOptions options, PlotLink& link, QWidget* parent = nullptr);
  ~Plot() override;

  void set_lines(std::vector<PlotLine> lines);
  void set_stack(PlotStack stack);
  void set_levels(std::vector<LevelLine> levels);
  void set_limits(std::vector<LevelLine> limits);  // vertical lines
  void set_notes(std::vector<PlotNote> notes, const QString& caption);
  void set_empty_text(const QString& text);
  void set_unit(const QString& unit);
  void set_header_inset(int pixels);  // free space at the right of the header, for widgets of the owner
  void refresh();                     // call it when the data has grown
  void set_emphasis(int group);       // fades the other groups; -1: none
  int emphasis() const { return emphasis_; }

  const std::vector<PlotLine>& lines() const { return lines_; }
  const PlotStack& stack() const { return stack_; }
  const std::vector<LevelLine>& limits() const { return limits_; }
  const std::vector<PlotNote>& notes() const { return notes_; }
  const QString& caption() const { return caption_; }
  const PlotOptions& options() const { return options_; }
  const PlotLink& link() const { return link_; }
  bool empty() const;
  Span y_span() const { return y_; }
  Scale scale() const { return scale_; }
  void set_scale(Scale scale);
  bool is_table_shown() const;
  void show_table(bool on);
  bool export_png(const QString& file);
  void paint_whole(QPainter& painter);                         // as vector graphics, without interactive elements
  QRectF area() const;                                         // of the data, in widget coordinates
  std::vector<QRectF> level_labels(const QRectF& area) const;  // of set_levels(), in `area`
  QString summary() const;  // "Loss: train 0.512, eval 0.61", for screen readers and tests
  int legend_entries() const { return static_cast<int>(legend_.size()); }  // that fitted when it was last painted
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
  static constexpr double kCaption = 15;  // height of its row
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
  // Painting: plot_paint.cpp
  void paint_data(QPainter& painter, const QRectF& area) const;
  void paint_axes(QPainter& painter, const QRectF& area) const;
  void paint_line(QPainter& painter, const QRectF& area, const PlotLine& line) const;
  void paint_band(QPainter& painter, const QRectF& area, const PlotLine& line) const;
  void paint_marks(QPainter& painter, const QRectF& area, const PlotLine& line) const;
  void paint_interval(QPainter& painter, const QRectF& area, const PlotLine& line) const;
  void paint_flags(QPainter& painter, const QRectF& area, const PlotLine& line) const;
  void paint_stack(QPainter& painter, const QRectF& area) const;
  void paint_bars(QPainter& painter, const QRectF& area) const;
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
  void lay_out_legend();  // places the entries in one row, or two where a stack has many

  Span wanted_y() const;
  void update_y();
  void fit_margin();
  QColor color_of(const PlotLine& line) const;  // faded if another group is emphasised
  QMenu* make_menu();
  void place_children();
  double header_end() const;  // where the buttons begin
  double title_width() const;
  double x_at(double pixel) const;
  double to_x(const QRectF& area, double x) const;
  double to_y(const QRectF& area, double y) const;
  bool hidden(const QString& name) const { return hidden_.contains(name); }

  PlotOptions options_;
  PlotLink& link_;
  std::vector<PlotLine> lines_;
  PlotStack stack_;
  std::vector<LevelLine> levels_, limits_;
  std::vector<PlotNote> notes_;
  QString caption_;
  std::set<QString> hidden_;
  std::vector<LegendEntry> legend_;  // as last painted; used for clicks
  QStringList legend_names_;         // of all entries
  Span y_{0, 1};
  Scale scale_ = Scale::linear;
  double left_margin_ = 40;
  int legend_rows_ = 1, inset_ = 0, emphasis_ = -1, hovered_ = -1;
  QPixmap cache_;
  bool stale_ = true, dragging_ = false, moved_ = false;
  QPointF pressed_at_;
  Span pressed_range_;
  QToolButton *log_, *more_;
  QPushButton* jump_;
  QTableView* table_ = nullptr;
  PlotTableModel* table_model_ = nullptr;
  QTimer table_due_;  // limits table updates, because numbers that change every frame are unreadable
};

}  // namespace mw::ui
