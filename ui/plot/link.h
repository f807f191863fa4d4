// SPDX-License-Identifier: GPL-3.0-or-later
// What the charts of one page share: the x axis, its visible range, following the newest data, the cursor. GUI thread.
#pragma once
#include <QObject>
#include <optional>
#include <vector>

#include "ui/plot/ticks.h"

namespace mw::ui {

class PlotLink : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  Span range() const { return range_; }  // visible now
  Span data() const { return data_; }    // everything there is
  bool following() const { return follow_; }
  std::optional<double> cursor() const { return cursor_; }      // under the mouse
  std::optional<double> playhead() const { return playhead_; }  // pinned
  // Where values are read: cursor, else playhead, else nothing (the newest).
  std::optional<double> reading() const { return cursor_ ? cursor_ : playhead_; }
  Quantity x_quantity() const { return x_quantity_; }
  QString x_name() const { return x_name_; }  // "step", "time"

  // An x axis of named places, ascending: ticks stand there and nowhere else, cursor and playhead go from one to the
  // next. Empty: a plain axis.
  const std::vector<Tick>& stops() const { return stops_; }
  void set_stops(std::vector<Tick> stops);
  QString x_text(double x) const;           // as a readout shows it
  double x_beside(double x, int by) const;  // a key press away; `by` is negative to the left

  void set_data(Span data);  // grows while a run goes; a followed view goes along
  void set_x(const QString& name, Quantity quantity);
  void set_cursor(std::optional<double> x);
  void set_playhead(std::optional<double> x);
  void set_following(bool on);  // on: everything in view, up to the newest
  void show_range(Span range);  // by the user: following ends
  void zoom(double factor, double around);
  void pan(double share);  // of the visible width
  void reset();            // for another run

 signals:
  void range_changed();
  void cursor_changed();  // cursor or playhead
  void following_changed(bool on);

 private:
  void become(Span range);
  std::optional<double> placed(std::optional<double> x) const;
  Span range_{0, 1}, data_{0, 1};
  bool follow_ = true;
  std::optional<double> cursor_, playhead_;
  Quantity x_quantity_ = Quantity::count;
  QString x_name_;
  std::vector<Tick> stops_;
};

}  // namespace mw::ui
