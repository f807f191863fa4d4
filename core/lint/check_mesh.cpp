// SPDX-License-Identifier: Apache-2.0
// Rules of meshes: TP, FSDP, MESH, SHARD, and ours of batches, ranks and rings.
#include <algorithm>
#include <cmath>

#include "core/lint/check_table.h"
#include "core/lint/lora_modules.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/layout/axis_names.h"

namespace mw::lint {

using mesh::AskedPlace;
using mesh::AxisPlace;
using mesh::factorisations;
using mesh::kMostVirtualDevices;
using mesh::Layout;
using mesh::meant_axis;
using mesh::Medium;
using mesh::Mesh;
using mesh::MeshAxis;
using mesh::Need;
using mesh::Placed;
using mesh::Placement;

namespace {

using model::Role;

std::vector<Need> needs_of(const CheckFacts& facts) {
  return needs(facts.inventory, facts.mesh, facts.rules, adapter_shapes(facts), use_of(facts));
}

bool one_machine(const CheckFacts& facts) {
  return facts.target && facts.target->chip.vendor == hardware::Vendor::cpu;
}

int devices_of(const CheckFacts& facts) {
  return facts.target && !one_machine(facts) ? facts.target->devices() : facts.mesh.devices();
}

// Rows over all devices in one micro-batch.
std::int64_t batch_of(const CheckFacts& facts) {
  return facts.purpose == Purpose::train ? facts.batch : 0;
}

// Edits that turn the facts' mesh into `next`; axes that are not in it go.
std::vector<Edit> mesh_edits(const CheckFacts& facts, const Mesh& next) {
  std::vector<Edit> edits;
  for (const MeshAxis& axis : facts.mesh.axes)
    if (!next.has(axis.name)) edits.push_back({"mesh." + axis.name, nullptr});
  for (const MeshAxis& axis : next.axes)
    if (!facts.mesh.has(axis.name) || facts.mesh.size(axis.name) != axis.size)
      edits.push_back({"mesh." + axis.name, axis.size});
  return edits;
}

std::vector<Fix> mesh_fixes(const CheckFacts& facts, const std::vector<Need>& all) {
  const Mesh next = nearest_legal(all, facts.mesh, devices_of(facts), batch_of(facts));
  if (next.axes.empty()) return {};
  const bool more_fsdp = next.size("fsdp") > facts.mesh.size("fsdp");
  return {{"Use the mesh " + to_text(next), more_fsdp ? "weights are gathered layer by layer over fsdp" : "",
           mesh_edits(facts, next)}};
}

std::string dim_text(const Need& need) {
  switch (need.dim) {
    case model::Axis::kv_heads:
      return "key-value heads";
    case model::Axis::heads:
      return "heads";
    case model::Axis::mlp:
      return "MLP columns";
    case model::Axis::vocab:
      return "rows of the vocabulary";
    case model::Axis::embed:
      return "of the model's width";
    case model::Axis::head_dim:
      return "of a head";
    case model::Axis::experts:
      return "experts";
    case model::Axis::ple:
      return "columns of the per-layer embedding";
    case model::Axis::rank:
      return "of the rank";
    default:
      return "elements";
  }
}

std::string axes_text(const CheckFacts& facts, const Need& need) {
  std::string text;
  for (const std::string& axis : need.axes)
    text += (text.empty() ? "" : " x ") + axis + "=" + std::to_string(facts.mesh.size(axis));
  return text;
}

// Sizes of the axis that the needs allow by themselves, as text: "1, 2, 4".
std::string legal_text(const std::vector<Need>& all, std::string_view axis, int most) {
  std::string text;
  for (int size = 1; size <= most; size *= 2) {
    const Mesh alone{{{std::string(axis), size}}};
    if (legal(all, alone)) text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return text;
}

bool global_kv(const CheckFacts& facts, const Need& need) {
  return need.role == Role::k_proj && need.dim == model::Axis::kv_heads && need.layer >= 0 &&
         key_equals_value(facts.config.layers[static_cast<size_t>(need.layer)]);
}

enum class Axes { model, batch };  // tp and what splits heads and columns; fsdp
bool is_over(const Need& need, Axes axes) {
  const bool only_batch =
      std::all_of(need.axes.begin(), need.axes.end(), [](const std::string& a) { return a == "fsdp" || a == "data"; });
  return only_batch == (axes == Axes::batch);
}

Finding not_divided(const char* id, const CheckFacts& facts, const std::vector<Need>& all, const Need& need,
                    const std::string& what) {
  return {.id = id,
          .message = axes_text(facts, need) + " does not divide the " + std::to_string(need.size) + " " + what,
          .place = "mesh." + need.axes.back(),
          .found = axes_text(facts, need),
          .expected = need.axes.back() + " of " + legal_text(all, need.axes.back(), 1024),
          .fixes = mesh_fixes(facts, all)};
}

void tp_1(const CheckFacts& facts, Report& report) {
  const auto all = needs_of(facts);
  for (const Need& need : all) {
    if (holds(need, facts.mesh) || !is_over(need, Axes::model) || need.dim == model::Axis::rank) continue;
    if (facts.stack == Stack::tunix && global_kv(facts, need)) continue;  // TP-2
    report.findings.push_back(not_divided("TP-1", facts, all, need, dim_text(need) + " of " + need.tensor));
    return;  // the first blocker says it; the fix holds for all
  }
}

void tp_2(const CheckFacts& facts, Report& report) {
  const auto all = needs_of(facts);
  for (const Need& need : all) {
    if (!global_kv(facts, need) || holds(need, facts.mesh)) continue;
    report.findings.push_back(not_divided(
        "TP-2", facts, all, need,
        "key-value heads of the global layers (k_einsum, first in layer " + std::to_string(need.layer) + ")"));
    return;
  }
}

void fsdp_1(const CheckFacts& facts, Report& report) {
  const auto all = needs_of(facts);
  for (const Need& need : all) {
    if (holds(need, facts.mesh) || !is_over(need, Axes::batch) || need.dim == model::Axis::rank) continue;
    report.findings.push_back(not_divided("FSDP-1", facts, all, need, dim_text(need) + " of " + need.tensor));
    break;
  }
}

// A batch that all batch axes divide, with accumulation changed so that a step sees about as many rows.
Fix even_batch(const CheckFacts& facts, int over) {
  const std::int64_t rows = std::int64_t{facts.batch} * facts.accumulation;
  const std::int64_t batch = std::int64_t{over} * std::max<std::int64_t>(1, (facts.batch + over / 2) / over);
  const std::int64_t accumulation = std::max<std::int64_t>(1, (rows + batch / 2) / batch);
  const std::string cost = batch * accumulation == rows ? std::string()
                                                        : "a step sees " + std::to_string(batch * accumulation) +
                                                              " rows instead of " + std::to_string(rows);
  Fix fix{"Set batch to " + std::to_string(batch), cost, {{"train.batch", batch}}};
  if (accumulation != facts.accumulation) fix.edits.push_back({"train.accumulation", accumulation});
  return fix;
}

// What a batch of other than so many equal runs means: Tunix replicates, our engine runs it with idle devices.
std::string uneven_text(const CheckFacts& facts, int over) {
  if (facts.stack == Stack::tunix)
    return "the batch does not divide over fsdp: Tunix gives every device all rows, and each computes the whole batch";
  const std::string plain = "the batch does not divide over the devices that split it";
  if (facts.stack != Stack::engine) return plain;
  const int each = (facts.batch + over - 1) / over, idle = over - (facts.batch + each - 1) / each;
  return plain + (idle > 0 ? ": " + std::to_string(idle) + " of " + std::to_string(over) + " have no rows"
                           : ": the last has fewer rows and waits for the others");
}

void batch_1(const CheckFacts& facts, Report& report) {
  if (facts.purpose != Purpose::train) return;
  const int over = batch_devices(facts.mesh);
  if (facts.batch % over == 0) return;
  const bool runs = facts.stack == Stack::tunix || facts.stack == Stack::engine;
  report.findings.push_back({.id = "BATCH-1",
                             .severity = runs ? Severity::warning : Severity::error,
                             .message = uneven_text(facts, over),
                             .place = "train.batch",
                             .found = std::to_string(facts.batch) + " rows over " + std::to_string(over),
                             .expected = "a multiple of " + std::to_string(over),
                             .fixes = {even_batch(facts, over)}});
}

void mesh_1(const CheckFacts& facts, Report& report) {
  Mesh next;
  std::string other;
  int fsdp = 1, tp = 1;
  for (const MeshAxis& axis : facts.mesh.axes) {
    const bool known = axis.name == "fsdp" || axis.name == "tp";
    if (!known && axis.size > 1) other += (other.empty() ? "" : ", ") + axis.name;
    const bool model = axis.name == "tp" || axis.name == "model" || axis.name == "mp" || axis.name == "tensor";
    (model ? tp : fsdp) *= std::max(1, axis.size);
  }
  if (other.empty()) return;
  next.axes = {{"fsdp", fsdp}, {"tp", tp}};
  report.findings.push_back({.id = "MESH-1",
                             .message = "Tunix's Gemma specs name fsdp and tp; other axes are not found",
                             .place = "mesh." + other.substr(0, other.find(',')),
                             .found = other,
                             .expected = "fsdp, tp",
                             .fixes = {{"Use the mesh " + to_text(next), "", mesh_edits(facts, next)}}});
}

// MESH-1 reports unknown axes for Tunix; a mistyped name is reported for every stack.
void mesh_2(const CheckFacts& facts, Report& report) {
  for (const Problem& p : unused_axes(facts.mesh, facts.rules)) {
    const std::string meant = meant_axis(p.found);
    if (meant.empty() && facts.stack == Stack::tunix) continue;
    Finding finding{.id = p.id,
                    .severity = p.severity,
                    .message = p.message,
                    .place = p.place,
                    .found = p.found,
                    .expected = p.expected};
    Mesh next = facts.mesh;
    std::erase_if(next.axes, [&](const MeshAxis& a) { return a.name == p.found; });
    if (meant.empty()) {
      finding.fixes = {{"Remove the axis " + p.found, "fewer devices", mesh_edits(facts, next)}};
    } else {
      const int size = facts.mesh.size(p.found) * facts.mesh.size(meant);
      std::erase_if(next.axes, [&](const MeshAxis& a) { return a.name == meant; });
      next.axes.push_back({meant, size});
      finding.fixes = {{"Rename the axis to " + meant, "", mesh_edits(facts, next)}};
    }
    report.findings.push_back(std::move(finding));
  }
}

void mesh_size(const CheckFacts& facts, Report& report) {
  if (!facts.target) return;
  if (one_machine(facts)) {
    if (facts.mesh.devices() <= kMostVirtualDevices) return;
    Mesh next = facts.mesh;
    for (MeshAxis& axis : next.axes)
      while (next.devices() > kMostVirtualDevices && axis.size > 1) axis.size /= 2;
    report.findings.push_back({.id = "MESH-SIZE",
                               .message = "too many virtual devices for one machine",
                               .place = "mesh." + facts.mesh.axes.back().name,
                               .found = std::to_string(facts.mesh.devices()),
                               .expected = "at most " + std::to_string(kMostVirtualDevices),
                               .fixes = {{"Use the mesh " + to_text(next), "", mesh_edits(facts, next)}}});
    return;
  }
  const int devices = facts.target->devices();
  for (const Problem& p : check(facts.mesh, devices)) {
    if (p.id != "MESH-SIZE") continue;
    report.findings.push_back({.id = p.id,
                               .message = p.message + " " + facts.target->id,
                               .place = p.place,
                               .found = p.found,
                               .expected = p.expected,
                               .fixes = mesh_fixes(facts, needs_of(facts))});
    return;
  }
}

void shard_1(const CheckFacts& facts, Report& report) {
  if (facts.purpose != Purpose::train || !facts.lora || facts.mesh.devices() == 1) return;
  const auto old = older(facts, "qwix", "0.1.6");
  if (!old) {
    report.unchecked.push_back({"SHARD-1", needs_version("qwix") + ", whether adapters get their bases' specs"});
    return;
  }
  if (!*old) return;
  report.findings.push_back({.id = "SHARD-1",
                             .message = "this qwix gives adapters the spec of their base as it is, with a wrong rank",
                             .place = "stack.versions",
                             .found = "qwix " + facts.versions.at("qwix"),
                             .expected = "0.1.6 or newer",
                             .fixes = {{"Use qwix 0.1.8", "", {set_version(facts, "qwix", "0.1.8")}}}});
}

void rank_1(const CheckFacts& facts, Report& report) {
  if (!facts.lora || facts.purpose != Purpose::train) return;
  const Placement placement = place(facts.inventory, facts.mesh, facts.rules, adapter_shapes(facts), use_of(facts));
  for (const Placed& a : placement.adapters) {
    for (size_t d = 0; d < a.dims.size() && d < a.spec.dims.size(); ++d) {
      if (a.dims[d].axis != model::Axis::rank) continue;
      std::int64_t over = 1;
      for (const std::string& axis : a.spec.dims[d]) over *= facts.mesh.size(axis);
      const int rank = facts.lora->rank;
      if (rank % over == 0) continue;
      const std::int64_t next = (rank + over - 1) / over * over;
      const double alpha = facts.lora->alpha / rank * static_cast<double>(next);
      report.findings.push_back({.id = "RANK-1",
                                 .severity = Severity::warning,
                                 .message = "the adapters' rank does not divide over " + std::to_string(over) +
                                            " devices: some hold more rows than others, or padding",
                                 .place = "lora.rank",
                                 .found = std::to_string(rank),
                                 .expected = "a multiple of " + std::to_string(over),
                                 .fixes = {{"Set rank to " + std::to_string(next) + " at the same scale",
                                            "larger adapters",
                                            {{"lora.rank", next}, {"lora.alpha", alpha}}}}});
      return;
    }
  }
}

// --- rings ---

const AxisPlace* open_axis(const Layout& layout) {
  for (const AxisPlace& a : layout.axes)
    if (a.size > 2 && a.medium == Medium::link && !a.ring) return &a;
  return nullptr;
}

std::optional<Layout> laid_out(const CheckFacts& facts, const Mesh& mesh, const std::vector<AskedPlace>& asked) {
  try {
    return lay_out(mesh, *facts.target, asked);
  } catch (const Error&) {
    return std::nullopt;  // MESH-SIZE and MESH-PLACE are said elsewhere
  }
}

// Another place for the axes, then another mesh, whose rings close.
std::vector<Fix> ring_fixes(const CheckFacts& facts) {
  if (!facts.asked.empty()) {
    const auto free = laid_out(facts, facts.mesh, {});
    if (free && !open_axis(*free))
      return {{"Lay the axes where their rings close", "", {{"sharding.places", nullptr}}}};
  }
  std::vector<std::string> names;
  for (const MeshAxis& axis : facts.mesh.axes) names.push_back(axis.name);
  const auto all = needs_of(facts);
  for (const Mesh& mesh : factorisations(names, facts.target->devices())) {
    if (!legal(all, mesh) || (batch_of(facts) > 0 && batch_of(facts) % batch_devices(mesh) != 0)) continue;
    const auto layout = laid_out(facts, mesh, {});
    if (!layout || open_axis(*layout)) continue;
    std::vector<Edit> edits = mesh_edits(facts, mesh);
    if (!facts.asked.empty()) edits.push_back({"sharding.places", nullptr});
    return {{"Use the mesh " + to_text(mesh), "the plan's times change with it", std::move(edits)}};
  }
  return {};
}

void wrap_1(const CheckFacts& facts, Report& report) {
  if (!facts.target) {
    report.unchecked.push_back({"WRAP-1", "the target's topology (target.id)"});
    return;
  }
  if (facts.target->chip.vendor != hardware::Vendor::tpu) return;
  const auto layout = laid_out(facts, facts.mesh, facts.asked);
  if (!layout) return;
  const AxisPlace* open = open_axis(*layout);
  if (!open) return;
  report.findings.push_back({.id = "WRAP-1",
                             .severity = Severity::warning,
                             .message = open->axis + "=" + std::to_string(open->size) +
                                        " lies on a line: the link from its last chip to its first is missing",
                             .place = "mesh." + open->axis,
                             .found = "a line of " + std::to_string(open->size) + " chips",
                             .expected = "a ring: twice the bandwidth for collectives",
                             .fixes = ring_fixes(facts)});
}

}  // namespace

std::vector<CheckRule> mesh_rules() {
  const std::vector<Stack> tunix{Stack::tunix}, sharded{Stack::engine, Stack::tunix, Stack::vllm_tpu, Stack::vllm_gpu},
      trains{Stack::engine, Stack::tunix, Stack::torchax, Stack::trl_fsdp};
  return {
      {"MESH-SIZE",
       Severity::error,
       {},
       "The mesh's product is not the device count",
       "jax.make_mesh and torchrun refuse it.",
       "jax.make_mesh; tunix.utils.mesh.create_mesh",
       mesh_size},
      {"TP-2", Severity::error, tunix, "tp on the global key-value heads of Gemma 4 12B, 26B and 31B",
       "k_einsum takes the spec of q over its 1, 2 or 4 heads, without the exception that kv_einsum has for one head: "
       "tp is at most 1, 2 and 4.",
       "tunix ShardingConfig.get_default_sharding (gemma4); same in keras-team/keras-hub#1613, "
       "pytorch/torchtitan#2577, "
       "vllm-project/tpu-inference#1429",
       tp_2},
      {"TP-1", Severity::error, sharded, "tp does not divide a dimension it splits",
       "device_put with a NamedSharding rejects dimensions that do not divide; vLLM asks that one of KV heads and tp "
       "divides the other.",
       "tunix/models/safetensors_loader.py; vllm model_executor/layers/linear.py", tp_1},
      {"FSDP-1", Severity::error, sharded, "fsdp does not divide the width or the experts",
       "fsdp splits the model's width, and the experts of a mixture.", "tunix ShardingConfig.get_default_sharding",
       fsdp_1},
      {"BATCH-1", Severity::error, trains, "The batch does not divide over the axes that split it",
       "Tunix's shard_input replicates such a batch without a word, so that more devices bring nothing; elsewhere "
       "ranks "
       "get different numbers of rows.",
       "tunix/sft/sharding_utils.py, shard_input", batch_1},
      {"MESH-1", Severity::error, tunix, "Axes other than fsdp and tp",
       "Gemma's specs name fsdp even when sampling; a mesh of dp and tp failed in Tunix's own rollout.",
       "tunix 252fdef6 (2026-08-20)", mesh_1},
      {"MESH-2",
       Severity::warning,
       {},
       "An axis that nothing is split over",
       "Its devices hold the same pieces and compute the same rows; most often the name is mistyped.",
       "presets and batches name fsdp, tp and data (core/mesh/layout/presets.cpp)",
       mesh_2},
      {"SHARD-1", Severity::error, tunix, "Adapters without a right sharding",
       "Before 0.1.6 qwix permuted only lists and tuples and ignored flax's out_sharding, so adapters inherit a spec "
       "of "
       "the wrong rank.",
       "qwix 9e88701, 704a40a (first in 0.1.6); tunix d92dd152", shard_1},
      {"RANK-1", Severity::warning, trains, "The rank does not divide over the axis that splits it",
       "PyTorch FSDP2 splits dimension 0 of every tensor, which is the rank of A; uneven shards are padded.",
       "torch.distributed.fsdp.fully_shard", rank_1},
      {"WRAP-1",
       Severity::warning,
       {},
       "An axis over a missing wraparound link",
       "Without the link that closes the ring a collective has one direction only: half the bandwidth.",
       "Google Cloud TPU topologies; wrap rules of resources/hardware/slices.json",
       wrap_1},
  };
}

}  // namespace mw::lint
