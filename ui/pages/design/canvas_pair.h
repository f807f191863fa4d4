// SPDX-License-Identifier: GPL-3.0-or-later
// Shows one mesh or two: the pinned one (read-only) on the left, the editable one on the right, with the same selected
// tensor and device. Stacks them if the width is too small. GUI thread.
#pragma once
#include <QStackedWidget>

#include "core/views/design_view.h"
#include "ui/pages/design/mesh_canvas.h"
#include "ui/run_views/measured_mesh.h"

namespace mw::ui {

enum class Meshes { one, both };

class CanvasPair : public QSplitter {
  Q_OBJECT
 public:
  explicit CanvasPair(QWidget* parent = nullptr);
  MeshCanvas& live() { return *live_.canvas; }
  MeshCanvas& pinned() { return *pinned_.canvas; }

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

// Switches between the planned mesh and the measured mesh of the displayed run at the playhead.
class MeasuredSwitch : public QStackedWidget {
  Q_OBJECT
 public:
  explicit MeasuredSwitch(QWidget* planned, QWidget* parent = nullptr);
  // `run`: that of the Train page. If it is null or has one device, only the plan is available.
  void show_snapshot(const RunPtr& run, const views::StepSnapshot& snapshot, MeasuredMesh::PlayheadMode mode);
  void show_measured(bool on);  // does nothing without a measured mesh
  bool is_measured_shown() const { return currentIndex() == 1; }
  MeasuredMesh& measured() { return *measured_; }
  QPushButton& button() { return *button_; }  // placed in the header of the page

 private:
  MeasuredMesh* measured_;
  QPushButton* button_;
  bool offered_ = false;
  QString run_name_;
};

}  // namespace mw::ui
