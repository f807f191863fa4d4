// SPDX-License-Identifier: GPL-3.0-or-later
// Measures dragging an axis over a mesh: milliseconds of a repaint, and of a frame with a new drop target (placement of
// all tensors, layout, repaint). Prints JSON.
//   mw_canvas_bench [SLICES [LAYERS]]     slices of 16 x 16 x LAYERS chips; without: one of 16 x 16
#include <QApplication>
#include <QElapsedTimer>
#include <QImage>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/json.h"
#include "core/model/catalogue.h"
#include "core/model/config.h"
#include "ui/pages/design/mesh_canvas.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

struct Size {
  int slices = 1, layers = 1;
  int chips() const { return slices * layers * 256; }
};

hardware::Target target_of(const Size& size) {
  hardware::Target t;
  t.chip.vendor = hardware::Vendor::tpu;
  t.slices = size.slices;
  if (size.slices > 1) t.shape.push_back(size.slices);
  t.shape.insert(t.shape.end(), {16, 16});
  if (size.layers > 1) t.shape.push_back(size.layers);
  t.wrap.assign(t.shape.size(), true);
  return t;
}

CanvasDesign design_of(const Size& size) {
  CanvasDesign d;
  d.choice.mesh = {{{"fsdp", 64}, {"tp", 4}}};
  if (size.chips() > 256) d.choice.mesh.axes.insert(d.choice.mesh.axes.begin(), {"data", size.chips() / 256});
  d.target = target_of(size);
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

Json run(const Size& size) {
  const CanvasDesign design = design_of(size);
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
  return {{"chips", size.chips()}, {"slices", size.slices}, {"repaint", repaint}, {"attempt_and_repaint", attempt}};
}

}  // namespace
}  // namespace mw::ui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM") && !qEnvironmentVariableIsSet("DISPLAY"))
    qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  mw::ui::apply(mw::ui::make_theme(mw::ui::Shade::light), application);
  const auto argument = [&](int i) { return i < argc ? std::max(1, std::atoi(argv[i])) : 1; };
  std::printf("%s\n", mw::ui::run({argument(1), argument(2)}).dump(2).c_str());
  return 0;
}
