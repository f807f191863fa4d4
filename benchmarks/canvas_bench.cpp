// SPDX-License-Identifier: GPL-3.0-or-later
// Measures dragging an axis over a 256-chip mesh: milliseconds of a repaint, and of a frame with a new drop target
// (placement of all tensors, layout, repaint). Prints JSON.
#include <QApplication>
#include <QElapsedTimer>
#include <QImage>
#include <algorithm>
#include <cstdio>

#include "core/base/json.h"
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

hardware::Target slice_of_256() {
  hardware::Target t;
  t.chip.vendor = hardware::Vendor::tpu;
  t.shape = {16, 16};
  t.wrap = {true, true};
  return t;
}

CanvasDesign design_of(mesh::Mesh mesh) {
  CanvasDesign d;
  d.choice.mesh = std::move(mesh);
  d.target = slice_of_256();
  d.inventory = std::make_shared<model::TensorInventory>(model::catalogue_config("gemma4-31b"));
  for (const model::LoraTarget& t : d.inventory->lora_targets()) d.adapters.push_back({t.role, t.layer, 64});
  d.placement = std::make_shared<mesh::Placement>(
      mesh::place(*d.inventory, d.choice.mesh, d.choice.rules, d.adapters, mesh::ShardingUse::training));
  return d;
}

template <class Work>
Json timed(int rounds, const Work& work) {
  std::vector<double> ms;
  for (int i = 0; i < rounds; ++i) {
    QElapsedTimer clock;
    clock.start();
    work(i);
    ms.push_back(static_cast<double>(clock.nsecsElapsed()) * 1e-6);
  }
  std::sort(ms.begin(), ms.end());
  return {{"median_ms", ms[ms.size() / 2]}, {"p99_ms", ms[ms.size() * 99 / 100]}, {"max_ms", ms.back()}};
}

Json run() {
  const CanvasDesign design = design_of({{{"fsdp", 64}, {"tp", 4}}});
  MeshCanvas canvas;
  canvas.resize(900, 640);
  canvas.set_design(design);
  canvas.set_tensor("layers.5.q_proj");
  canvas.set_memory({0.4});
  canvas.set_traffic({{u"tp"_s, u"all-reduce"_s, {}}, {u"fsdp"_s, u"all-gather"_s, {}}});
  QImage frame(canvas.size(), QImage::Format_ARGB32_Premultiplied);
  const Json repaint = timed(200, [&](int) { canvas.render(&frame); });
  const designer::DesignContext subject{design.inventory.get(), &design.target, design.adapters, design.use};
  const Json attempt = timed(100, [&](int i) {
    designer::ActionResult o = designer::try_action(subject, design.choice, *design.placement,
                                                    {designer::Action::Kind::resize, "tp", i % 2 == 0 ? 2 : 8});
    CanvasDesign next = design;
    if (o.accepted) {
      next.choice = o.choice;
      next.placement = o.placement;
    }
    canvas.set_design(std::move(next));
    canvas.render(&frame);
  });
  return {{"chips", 256}, {"repaint", repaint}, {"attempt_and_repaint", attempt}};
}

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM") && !qEnvironmentVariableIsSet("DISPLAY"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  mw::ui::apply(mw::ui::make_theme(mw::ui::Shade::light), application);
  std::printf("%s\n", mw::ui::run().dump(2).c_str());
  return 0;
}
