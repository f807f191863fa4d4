// SPDX-License-Identifier: GPL-3.0-or-later
// The one clock of the window: every 33 ms mailboxes are drained and visible views follow. GUI thread.
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
  void drain();  // take what other threads left
  void show();   // then redraw what changed

 private:
  QTimer timer_;
};

}  // namespace mw::ui
