// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh on its target: chips and links, draggable axes, the shards of the selected tensor and the traffic on links.
// Shows the given design and computes previews of actions with core/designer; does not change the design itself. GUI
// thread.
#pragma once
#include "ui/pages/design/mesh_painter.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

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

  const std::string& tensor() const { return state_.tensor; }
  bool has_tensor() const { return state_.shown.tensor != nullptr; }
  int selected_device() const { return state_.selected; }
  int devices() const { return state_.devices(); }
  const designer::MeshDesign& shown() const { return state_.shown.choice; }  // previewed or given
  const designer::MeshDesign& given() const { return state_.given.choice; }  // actions start from it
  bool is_editing() const { return edit_.mode() != AxisEdit::Mode::none; }
  bool is_previewing() const { return edit_.is_accepted(); }
  QString callout() const;  // the text below the axes: a refusal, or the previewed action and what it changes
  const QString& message() const { return state_.message; }
  QString summary() const { return state_.summary(); }
  QString status() const { return state_.status(); }
  AxisChip* chip(const QString& axis) const;
  const CanvasGeometry& places() const { return geometry_; }

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
  bool make_scene(const designer::MeshDesign& choice, std::shared_ptr<const mesh::Placement> placement,
                  MeshScene& scene);
  void show_given();
  void show_scene();
  void show_tensor();
  void show_chips();
  void place_all();
  void redraw();
  void choose(int device);
  void connect_chip(AxisChip* chip);
  void connect_edit();
  void show_attempt();
  void end_preview();
  void keep(const designer::ActionResult& done);
  void offer_values();
  void remove_values();
  QRectF caption_room() const;

  const Editing editing_;
  CanvasState state_;
  CanvasGeometry geometry_{state_};
  AxisEdit edit_{state_, geometry_};
  MeshPainter painter_{*this, state_, geometry_, edit_};
  std::vector<AxisChip*> chips_;
  QToolButton* add_;
  std::vector<QPushButton*> values_;  // sizes to use instead of a refused one
  QString preview_text_;
  QPixmap still_;  // cached picture without hover and selection
  bool stale_ = true;
};

}  // namespace mw::ui
