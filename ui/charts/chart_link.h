// SPDX-License-Identifier: GPL-3.0-or-later
// State shared by the charts of one page: x axis, visible range, following new data, cursor, playhead. GUI thread.
#pragma once
#include <QObject>
#include <optional>
#include <vector>

#include "ui/charts/ticks.h"

namespace mw::ui {

class ChartLink : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  Span range() const { return range_; }  // visible
  Span data() const { return data_; }    // of all data
  bool is_following() const { return following_; }
  std::optional<double> cursor() const { return cursor_; }      // under the mouse
  std::optional<double> playhead() const { return playhead_; }  // pinned
  // Where values are read: cursor, otherwise playhead, otherwise none (the newest values).
  std::optional<double> reading() const { return cursor_ ? cursor_ : playhead_; }
  Quantity x_quantity() const { return x_quantity_; }
  QString x_name() const { return x_name_; }  // "step", "time"

  // An x axis with named, ascending positions: only these have ticks, and cursor and playhead move between them. Empty:
  // a plain axis.
  const std::vector<Tick>& stops() const { return stops_; }
  void set_stops(std::vector<Tick> stops);
  QString x_text(double x) const;           // as shown in readouts
  double x_beside(double x, int by) const;  // position after a key press; negative `by`: to the left

  void set_data(Span data);  // grows during a run; the view moves along while following
  void set_x(const QString& name, Quantity quantity);
  void set_cursor(std::optional<double> x);
  void set_playhead(std::optional<double> x);
  void set_following(bool on);  // on: shows everything up to the newest data
  void show_range(Span range);  // by the user; stops following
  void zoom(double factor, double around);
  void pan(double share);  // of the visible width
  void reset();            // for another run

 signals:
  void range_changed();
  void cursor_changed();  // cursor or playhead
  void following_changed(bool on);

 private:
  void set_range(Span range);
  std::optional<double> snapped(std::optional<double> x) const;
  Span range_{0, 1}, data_{0, 1};
  bool following_ = true;
  std::optional<double> cursor_, playhead_;
  Quantity x_quantity_ = Quantity::count;
  QString x_name_;
  std::vector<Tick> stops_;
};

}  // namespace mw::ui
