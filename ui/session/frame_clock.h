// SPDX-License-Identifier: GPL-3.0-or-later
// Timer of the window: every 33 ms drains the mailboxes, then redraws the visible views. GUI thread.
#pragma once
#include <QObject>
#include <QTimer>

namespace mw::ui {

class FrameClock : public QObject {
  Q_OBJECT
 public:
  explicit FrameClock(QObject* parent = nullptr) : QObject(parent) {
    timer_.setTimerType(Qt::PreciseTimer);
    timer_.setInterval(kFrameMs);
    connect(&timer_, &QTimer::timeout, this, [this] {
      emit drain();
      emit show();
    });
    timer_.start();
  }
  static constexpr int kFrameMs = 33;

 signals:
  void drain();  // take the messages of other threads
  void show();   // emitted after drain(): redraw what changed

 private:
  QTimer timer_;
};

}  // namespace mw::ui
