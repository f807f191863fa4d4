// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh on its target: chips and links, draggable axes, the shards of the selected tensor and the traffic on links.
// Shows the given design and computes previews of actions with core/designer; does not change the design itself. GUI
// thread.
#pragma once
#include <QLineF>
#include <QPixmap>
#include <QTimer>
#include <QVector>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "core/designer/actions.h"
#include "core/designer/canvas.h"
#include "ui/pages/design/axis_chip.h"

class QPushButton;
class QToolButton;

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

class MeshCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit MeshCanvas(Editing editing = Editing::allowed, QWidget* parent = nullptr);
  ~MeshCanvas() override;

  void set_design(CanvasDesign design);  // ends a preview
  void set_tensor(const std::string& name);
  // Used share of the capacity by device; one value: the same for all; empty: unknown.
  void set_memory(std::vector<double> shares);
  void set_traffic(std::vector<CanvasTraffic> traffic);
  // The effect of the previewed action, "8.60 to 18.9 s (+120 %)"; removed when the preview changes or ends.
  void set_preview_text(const QString& text);
  void select_device(int device);  // emits no signal; status() reports a device that does not exist; -1: none

  const std::string& tensor() const { return tensor_; }
  bool has_tensor() const { return shown_.tensor != nullptr; }
  int selected_device() const { return selected_; }
  int devices() const { return static_cast<int>(shown_.picture.devices.size()); }
  const designer::MeshDesign& shown() const { return shown_.choice; }  // previewed or given
  const designer::MeshDesign& given() const { return given_.choice; }  // actions start from it
  bool is_editing() const { return edit_mode_ != EditMode::none; }
  bool is_previewing() const { return outcome_ && outcome_->accepted; }
  QString callout() const;  // the text below the axes: a refusal, or the previewed action and what it changes
  QRectF callout_area() const { return callout_area_; }
  QString message() const { return message_; }  // why an action was refused or nothing can be drawn
  QString summary() const;                      // for screen readers
  QString status() const;                       // of the hovered, otherwise the selected device
  AxisChip* chip(const QString& axis) const;
  QRectF device_at(int device) const;
  QRectF side_at(int dimension) const;          // drop area of a grid side, which places the axis on it
  QRectF tensor_dimension_at(int index) const;  // drop area that shards this dimension

  QSize sizeHint() const override { return {640, 380}; }
  QSize minimumSizeHint() const override { return {240, 200}; }

 signals:
  // While an axis is dragged, resized or moved to a valid place; followed by one of the next two signals.
  void previewed(const mw::designer::MeshDesign& choice, const QString& text);
  void preview_ended();
  void dropped(const mw::designer::MeshDesign& choice, const QString& text);
  void refused(const QString& reason);
  void device_selected(int device);  // by mouse or keys; -1: none

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  enum class EditMode { none, mouse, keys, moving, wheel };
  struct Scene {  // a design ready to draw
    designer::MeshDesign choice;
    std::shared_ptr<const mesh::Placement> placement;
    mesh::Layout layout;
    designer::CanvasPicture picture;
    const mesh::PlacedTensor* tensor = nullptr;
    std::vector<designer::PieceArea> pieces;
    std::vector<std::vector<designer::CanvasEdge>> edges;  // of each traffic entry
  };

  bool build(Scene& scene, const designer::MeshDesign& choice, std::shared_ptr<const mesh::Placement> placement);
  void select_tensor(Scene& scene) const;
  void show_given();
  void show_scene();
  void show_tensor();
  void show_chips();
  void place_all();
  bool shows_tensor_beside() const;  // whether the tensor is beside the grid or below it
  double tensor_height() const;
  bool lacks_height() const;  // only the name of the tensor fits
  void redraw();

  // Editing axes
  void connect_chip(AxisChip* chip);
  void begin_edit(const QString& axis, EditMode mode);
  void begin_drag(const QString& axis, QPoint at);
  void drag(QPoint at);
  void step(const QString& axis, int by, EditMode mode);
  void begin_move(const QString& axis);
  void step_place(int by);
  void remove(const QString& axis);
  void add_axis();
  void attempt(const designer::Action& action);
  const designer::ActionResult& outcome_of(const designer::Action& action);
  void commit();
  void cancel();
  void leave_preview();
  void offer_values();
  void use_value(const QString& axis, int size);
  void place_values();
  void remove_values();
  std::optional<designer::Action> action_at(QPoint at) const;
  std::vector<designer::Action> places_for(const QString& axis) const;

  // Painting: mesh_canvas_paint.cpp
  void paint_still(QPainter& painter) const;
  QRectF to_pixels(const designer::Box& box) const;
  QPointF center_of(int device) const;
  void paint_sides(QPainter& painter) const;
  void paint_network(QPainter& painter) const;
  void paint_links(QPainter& painter) const;
  void paint_chips(QPainter& painter) const;
  void paint_device(QPainter& painter, int device) const;
  void paint_edges(QPainter& painter) const;
  void draw_edge(QPainter& painter, const designer::CanvasEdge& edge, QVector<QLineF>& lines) const;
  void paint_labels(QPainter& painter) const;
  void paint_tensor(QPainter& painter) const;
  void paint_dimensions(QPainter& painter) const;
  void paint_selection(QPainter& painter) const;
  void paint_callout(QPainter& painter) const;
  void move_selection(int dx, int dy);
  int device_under(QPointF at) const;

  const Editing editing_;
  CanvasDesign design_;
  Scene given_, shown_;
  std::string tensor_;
  std::vector<double> memory_;
  std::vector<CanvasTraffic> traffic_;
  std::vector<AxisChip*> chips_;
  QToolButton* add_;
  std::vector<QPushButton*> values_;  // sizes to use instead of a refused one
  QTimer wheel_done_;
  // Geometry, in pixels
  QRectF callout_area_, grid_area_, tensor_area_;
  QPointF origin_;
  double pitch_ = 40;
  // Edit in progress
  EditMode edit_mode_ = EditMode::none;
  QString edited_axis_;
  QPoint drag_start_;
  std::optional<designer::Action> action_;
  std::optional<designer::ActionResult> outcome_;
  std::vector<std::pair<designer::Action, designer::ActionResult>>
      cached_results_;  // cached results for the given design, as a drag repeats actions
  int place_index_ = -1;
  QString message_, preview_text_;
  bool drawable_ = false;
  QPixmap still_;  // cached picture without hover and selection
  bool stale_ = true;
  int selected_ = -1, hovered_ = -1;
};

}  // namespace mw::ui
