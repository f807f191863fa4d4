// SPDX-License-Identifier: GPL-3.0-or-later
// Shows one mesh or two: the pinned one (read-only) on the left, the editable one on the right, with the same selected
// tensor and device. Stacks them if the width is too small. GUI thread.
#pragma once
#include <QSplitter>

#include "core/views/design_view.h"
#include "ui/pages/design/mesh_canvas.h"

class QLabel;

namespace mw::ui {

enum class Meshes { one, both };

class CanvasPair : public QSplitter {
  Q_OBJECT
 public:
  explicit CanvasPair(QWidget* parent = nullptr);
  MeshCanvas& live() { return *live_.canvas; }
  MeshCanvas& pinned() { return *pinned_.canvas; }
  QString live_heading() const;
  QString pinned_heading() const;

  // `pinned` may be null. Does not disturb an edit in progress on the live canvas.
  void show_designs(const views::DesignPtr& live, const views::DesignPtr& pinned, bool stale);
  void show_nothing();  // keeps the selected tensor
  void set_tensor(const std::string& name);
  void set_wanted(Meshes meshes);  // both: if a design is pinned
  Meshes wanted() const { return wanted_; }
  Meshes shown() const;
  // The design on the live canvas without the preview.
  const designer::MeshDesign& given() const { return live_.canvas->given(); }

  QByteArray save_layout() const;
  void restore_layout(const QByteArray& state);
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Pane {
    QWidget* frame = nullptr;
    QLabel* heading = nullptr;
    MeshCanvas* canvas = nullptr;
    views::DesignPtr shown{}, on_canvas{};
    std::shared_ptr<const model::TensorInventory> inventory{};  // of on_canvas
  };
  Pane pane(Editing editing);
  void show(Pane& pane, const views::Design* other, bool stale);
  void show_traffic(Pane& pane);
  void arrange();

  Pane pinned_, live_;
  Meshes wanted_ = Meshes::both;
  double share_ = 0.5;  // width of the pinned canvas, relative
};

}  // namespace mw::ui
