// SPDX-License-Identifier: GPL-3.0-or-later
// One answer to a held-out prompt in full: prompt, expected, answer and their difference. GUI thread.
#pragma once
#include <QTextEdit>

#include "core/views/run_view.h"

namespace mw::ui {

class SampleDetail : public QTextEdit {
  Q_OBJECT
 public:
  explicit SampleDetail(QWidget* parent = nullptr);
  void show_sample(const views::SampleShown& sample);

 protected:
  void keyPressEvent(QKeyEvent* event) override;  // Escape closes it
};

}  // namespace mw::ui
