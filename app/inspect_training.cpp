// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/inspect_kinds.h"
#include "core/formats/logs/run_log.h"
#include "core/formats/orbax/orbax.h"

namespace mw::app {
namespace fs = std::filesystem;
namespace {

Json array_json(const formats::ZarrArray& a, const std::string& item) {
  Json out{{"name", item.empty() ? a.name : item + "/" + a.name},
           {"dtype", a.dtype_name},
           {"shape", a.shape},
           {"bytes", a.elements() * static_cast<std::int64_t>(formats::size_of(a.dtype))},
           {"zarr", a.version},
           {"chunk", a.chunk}};
  if (a.sharded) out["inner_chunk"] = a.inner;
  out["packed"] = a.zstd ? "zstd" : "no";
  return out;
}

}  // namespace

Json inspect_orbax(const fs::path& folder) {
  const formats::OrbaxFolder found = formats::open_orbax(folder);
  Json steps = Json::array(), items = Json::array(), tensors = Json::array();
  for (const formats::OrbaxStep& step : found.steps) {
    Json names = Json::array();
    for (const formats::OrbaxItem& item : step.items) names.push_back(item.name);
    steps.push_back(
        {{"step", step.step < 0 ? Json() : Json(step.step)}, {"folder", step.folder.string()}, {"items", names}});
  }
  std::int64_t parameters = 0, bytes = 0;
  for (const formats::OrbaxItem& item : found.steps.back().items) {
    const formats::OrbaxTree tree(item.folder);
    items.push_back({{"name", item.name},
                     {"layout", tree.in_database() ? "OCDBT" : "a folder an array"},
                     {"arrays", tree.arrays().size()}});
    for (const formats::ZarrArray& a : tree.arrays()) {
      tensors.push_back(array_json(a, item.name));
      parameters += a.elements();
      bytes += tensors.back()["bytes"].get<std::int64_t>();
    }
  }
  const long step = found.steps.back().step;
  return {{"kind", "orbax"},
          {"path", folder.string()},
          {"step", step < 0 ? Json() : Json(step)},
          {"steps", steps},
          {"unfinished", found.unfinished},
          {"items", items},
          {"parameters", parameters},
          {"bytes", bytes},
          {"tensors", tensors}};
}

Json inspect_log(const fs::path& path) {
  const formats::RunLog log = formats::read_log(path);
  Json series = Json::array();
  long last_step = 0;
  for (const formats::LogSeries& s : formats::series_of(log)) {
    Json one{{"name", s.name}, {"points", s.points}, {"first_step", s.first_step}, {"last_step", s.last_step}};
    if (s.finite > 0) one.update({{"last", s.last}, {"least", s.least}, {"most", s.most}});
    series.push_back(one);
    last_step = std::max(last_step, s.last_step);
  }
  return {{"kind", "log"},
          {"path", path.string()},
          {"tool", log.tool},
          {"name", log.name},
          {"finished", log.finished},
          {"steps", last_step},
          {"steps_total", log.steps_total == 0 ? Json() : Json(log.steps_total)},
          {"seconds", log.seconds == 0 ? Json() : Json(log.seconds)},
          {"facts", log.facts},
          {"notes", log.notes},
          {"contents", log.contents},
          {"series", series}};
}

}  // namespace mw::app
