// SPDX-License-Identifier: GPL-3.0-or-later
// The content of the mesh canvas and its positions. Plain values. GUI thread.
#pragma once
#include <QPointF>
#include <QRectF>
#include <QString>
#include <memory>
#include <vector>

#include "core/designer/actions.h"
#include "core/designer/canvas.h"

namespace mw::ui {

struct CanvasDesign {
  designer::MeshDesign choice{};
  hardware::Target target{};
  std::shared_ptr<const model::TensorInventory> inventory{};
  std::shared_ptr<const mesh::Placement> placement{};  // of `choice`
  std::vector<mesh::AdapterShape> adapters{};
  mesh::ShardingUse use = mesh::ShardingUse::training;
  QString caption{};  // "v5p-8, 2x2x1, links 90 GB/s"
};
struct CanvasTraffic {  // a collective of the selected tensor, in words; its links are drawn
  QString axis, text;   // "all-reduce over tp, 66 MB, 0.37 ms"
  QString label{};      // at the link: "66 MB"
  bool operator==(const CanvasTraffic&) const = default;
};

// A design ready to draw.
struct MeshScene {
  designer::MeshDesign choice;
  std::shared_ptr<const mesh::Placement> placement;
  mesh::Layout layout;
  designer::CanvasPicture picture;
  const mesh::PlacedTensor* tensor = nullptr;
  std::vector<designer::PieceArea> pieces;
  std::vector<std::vector<designer::CanvasEdge>> edges;  // of each traffic entry
};

struct CanvasState {
  CanvasDesign design;
  MeshScene given, shown;  // shown: given, or previewed
  std::string tensor;
  std::vector<double> memory;
  std::vector<CanvasTraffic> traffic;
  QString message;  // why an action was refused or nothing can be drawn
  bool drawable = false;
  int selected = -1, hovered = -1;  // devices
  int devices() const { return static_cast<int>(shown.picture.devices.size()); }
  // Throws Error if the mesh does not fit the target.
  MeshScene scene(const designer::MeshDesign& choice, std::shared_ptr<const mesh::Placement> placement) const;
  void select_tensor(MeshScene& scene) const;
  QString summary() const;  // for screen readers
  QString status() const;   // of the hovered, otherwise the selected device
};

// Where the parts of the shown scene are, in pixels of the canvas.
class CanvasGeometry {
 public:
  static constexpr int kMargin = 8;
  explicit CanvasGeometry(const CanvasState& state) : state_(state) {}
  void fit(QSizeF size, double row_bottom);  // of the row of the axes
  const QRectF& callout() const { return callout_; }
  const QRectF& tensor() const { return tensor_; }
  double pitch() const { return pitch_; }                           // between devices
  bool shows_tensor_beside() const { return size_.width() > 520; }  // else below the grid
  bool lacks_height() const;                                        // only the name of the tensor fits
  QRectF to_pixels(const designer::Box& box) const;
  QRectF device_at(int device) const;
  QPointF center_of(int device) const { return device_at(device).center(); }
  QRectF side_at(int dimension) const;                  // drop area of a grid side, which places the axis on it
  QRectF tensor_dimension_at(int index) const;          // drop area that shards this dimension
  int device_under(QPointF at) const;                   // -1: none
  int device_beside(int device, int dx, int dy) const;  // the nearest in that direction

 private:
  double tensor_height() const;
  const CanvasState& state_;
  QSizeF size_;
  QRectF callout_, tensor_;
  QPointF origin_;
  double pitch_ = 40;
};

}  // namespace mw::ui
