// SPDX-License-Identifier: GPL-3.0-or-later
// One mesh, or two side by side: the pinned one left, to look at, the live one right, to edit; the same tensor and the
// same device in both. One above the other where there is no width for two. GUI thread.
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

  // `pinned` may be null. What a hand does on the live canvas is left alone.
  void show_designs(const views::DesignPtr& live, const views::DesignPtr& pinned, bool stale);
  void show_nothing();  // no design; the tensor stays chosen
  void set_tensor(const std::string& name);
  void set_wanted(Meshes meshes);  // both: where one is pinned
  Meshes wanted() const { return wanted_; }
  Meshes shown() const;
  // The design on the live canvas as the document has it.
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
  double share_ = 0.5;  // of the pinned one
};

}  // namespace mw::ui
