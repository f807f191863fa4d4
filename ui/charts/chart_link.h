// SPDX-License-Identifier: GPL-3.0-or-later
// State shared by the charts of one page: x axis, visible range, following new data, cursor, playhead. GUI thread.
#pragma once
#include <QObject>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <deque>
#include <optional>

#include "ui/charts/ticks.h"

namespace mw::ui {

// While data grows, the followed range ends beyond it and seldom changes: every change lays out the axes of all charts.
enum class Growth { complete, growing };

class ChartLink : public QObject {
  Q_OBJECT
 public:
  explicit ChartLink(QObject* parent = nullptr);

  AxisRange range() const { return range_; }  // visible
  AxisRange data() const { return data_; }    // of all data
  bool is_following() const { return following_; }
  std::optional<double> cursor() const { return cursor_; }      // under the mouse
  std::optional<double> playhead() const { return playhead_; }  // pinned
  // Where values are read: cursor, otherwise playhead, otherwise none (the newest values).
  std::optional<double> reading() const { return cursor_ ? cursor_ : playhead_; }
  AxisQuantity x_quantity() const { return x_quantity_; }
  QString x_name() const { return x_name_; }  // "step", "time"

  // An x axis with named, ascending positions: only these have ticks, and cursor and playhead move between them. Empty:
  // a plain axis.
  const std::vector<Tick>& stops() const { return stops_; }
  void set_stops(std::vector<Tick> stops);
  QString x_text(double x) const;           // as shown in readouts
  double x_beside(double x, int by) const;  // position after a key press; negative `by`: to the left

  void set_data(AxisRange data, Growth growth = Growth::complete);  // the view moves along while following
  void set_x(const QString& name, AxisQuantity quantity);
  void set_cursor(std::optional<double> x);
  void set_playhead(std::optional<double> x);
  void set_following(bool on);       // on: shows everything up to the newest data
  void show_range(AxisRange range);  // by the user; stops following
  void zoom(double factor, double around);
  void pan(double share);  // of the visible width
  void reset();            // for another run

  // Whether a chart that is being painted may draw its picture anew. Charts that follow growing data do so one after
  // the other, so that a frame waits for one of them. False: the chart shows the picture that it has, and is painted
  // again when its turn comes.
  bool take_turn(QWidget& chart);

 signals:
  void range_changed();
  void cursor_changed();  // cursor or playhead
  void following_changed(bool on);

 private:
  void set_range(AxisRange range);
  void give_turn();
  AxisRange followed_range() const;
  std::optional<double> snapped(std::optional<double> x) const;
  AxisRange range_{0, 1}, data_{0, 1};
  Growth growth_ = Growth::complete;
  bool following_ = true;
  std::optional<double> cursor_, playhead_;
  AxisQuantity x_quantity_ = AxisQuantity::count;
  QString x_name_;
  std::vector<Tick> stops_;
  std::deque<QPointer<QWidget>> waiting_;  // for their turn
  QPointer<QWidget> next_;                 // whose turn it is
  QTimer turn_;                            // active: a turn was given
};

}  // namespace mw::ui
