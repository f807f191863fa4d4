// SPDX-License-Identifier: Apache-2.0
// Rules about meshes: TP, FSDP, MESH, SHARD-1, BATCH, RANK, WRAP, NET.
#include <algorithm>
#include <map>

#include "core/base/counted.h"
#include "core/lint/lora_modules.h"
#include "core/lint/rules.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/mesh/layout/sharding_options.h"

namespace mw::lint {

using mesh::AxisPlacement;
using mesh::kMostVirtualDevices;
using mesh::Mesh;
using mesh::MeshAxis;
using mesh::SizeConstraint;

namespace {

using model::Role;

bool one_machine(const CheckInput& input) {
  return input.target && input.target->chip.vendor == hardware::Vendor::cpu;
}

int devices_of(const CheckInput& input) {
  return input.target && !one_machine(input) ? input.target->devices() : input.mesh.devices();
}

// Rows over all devices in one micro-batch.
std::int64_t batch_of(const CheckInput& input) {
  return input.purpose == Purpose::train ? input.batch : 0;
}

// A batch that all batch axes divide, with accumulation changed to keep the rows per step about constant.
Fix even_batch(const CheckInput& input, int over) {
  const std::int64_t rows = std::int64_t{input.batch} * input.accumulation;
  const std::int64_t batch = std::int64_t{over} * std::max<std::int64_t>(1, (input.batch + over / 2) / over);
  const std::int64_t accumulation = std::max<std::int64_t>(1, (rows + batch / 2) / batch);
  const std::string cost = batch * accumulation == rows ? std::string()
                                                        : "a step sees " + counted(batch * accumulation, "row") +
                                                              " instead of " + std::to_string(rows);
  Fix fix{"Set batch to " + std::to_string(batch), cost, {{"train.batch", batch}}};
  if (accumulation != input.accumulation) fix.edits.push_back({"train.accumulation", accumulation});
  return fix;
}

std::vector<Fix> mesh_fixes(const CheckInput& input, const std::vector<SizeConstraint>& all) {
  const Mesh next =
      nearest_legal(all, input.mesh, devices_of(input), batch_of(input), splitting_axes(input.rules, use_of(input)));
  if (next.axes.empty()) return {};
  const bool more_fsdp = next.size("fsdp") > input.mesh.size("fsdp");
  Fix fix{"Use the mesh " + to_text(next), more_fsdp ? "weights are gathered layer by layer over fsdp" : "",
          mesh_edits(input.mesh, next)};
  if (!input.asked.empty()) fix.edits.push_back({"sharding.places", nullptr});  // of the old mesh
  if (const int over = batch_devices(next); batch_of(input) % over != 0) {
    Fix batch = even_batch(input, over);
    fix.label += ", batch " + batch.edits.front().value.dump();
    if (!batch.cost.empty()) fix.cost += (fix.cost.empty() ? "" : "; ") + batch.cost;
    fix.edits.insert(fix.edits.end(), batch.edits.begin(), batch.edits.end());
  }
  return {std::move(fix)};
}

std::string dim_text(const SizeConstraint& need) {
  using model::Axis;
  static const std::map<Axis, const char*> kTexts{{Axis::kv_heads, "KV heads"},
                                                  {Axis::heads, "heads"},
                                                  {Axis::mlp, "MLP columns"},
                                                  {Axis::vocab, "rows of the vocabulary"},
                                                  {Axis::embed, "values of the model's width"},
                                                  {Axis::head_dim, "values of a head"},
                                                  {Axis::experts, "experts"},
                                                  {Axis::ple, "columns of the per-layer embedding"},
                                                  {Axis::rank, "rows of the rank"}};
  const auto known = kTexts.find(need.dim);
  return known == kTexts.end() ? "elements" : known->second;
}

std::string axes_text(const CheckInput& input, const SizeConstraint& need) {
  std::string text;
  for (const std::string& axis : need.axes)
    text += (text.empty() ? "" : " x ") + axis + " " + std::to_string(input.mesh.size(axis));
  return text;
}

// The sizes of the axis that satisfy the constraints, as text: "1, 2, 4".
std::string legal_text(const std::vector<SizeConstraint>& all, std::string_view axis, int most) {
  std::string text;
  for (int size = 1; size <= most; size *= 2) {
    const Mesh alone{{{std::string(axis), size}}};
    if (is_legal(all, alone)) text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return text;
}

bool global_kv(const CheckInput& input, const SizeConstraint& need) {
  return need.role == Role::k_proj && need.dim == model::Axis::kv_heads && need.layer >= 0 &&
         key_equals_value(input.config.layers[static_cast<size_t>(need.layer)]);
}

enum class Axes { model, batch };  // tp and what splits heads and columns; fsdp
bool is_over(const SizeConstraint& need, Axes axes) {
  const bool only_batch =
      std::all_of(need.axes.begin(), need.axes.end(), [](const std::string& a) { return a == "fsdp" || a == "data"; });
  return only_batch == (axes == Axes::batch);
}

Finding not_divided(const CheckInput& input, const std::vector<SizeConstraint>& all, const SizeConstraint& need,
                    const std::string& what) {
  return {.message = std::to_string(need.size) + " " + what + " cannot be split over " + axes_text(input, need),
          .place = "mesh." + need.axes.back(),
          .found = axes_text(input, need),
          .expected = need.axes.back() + " of " + legal_text(all, need.axes.back(), 1024),
          .fixes = mesh_fixes(input, all)};
}

void tp_1(const CheckInput& input, const RuleReport& report) {
  const auto all = needs_of(input);
  for (const SizeConstraint& need : all) {
    if (is_satisfied(need, input.mesh) || !is_over(need, Axes::model) || need.dim == model::Axis::rank) continue;
    if (input.stack == model::Stack::tunix && global_kv(input, need)) continue;  // TP-2
    report.add(not_divided(input, all, need, dim_text(need) + " of " + need.tensor));
    return;  // one finding: its fix satisfies all constraints
  }
}

void tp_2(const CheckInput& input, const RuleReport& report) {
  const auto all = needs_of(input);
  for (const SizeConstraint& need : all) {
    if (!global_kv(input, need) || is_satisfied(need, input.mesh)) continue;
    report.add(
        not_divided(input, all, need,
                    "KV heads of the global layers (k_einsum, first in layer " + std::to_string(need.layer) + ")"));
    return;
  }
}

void fsdp_1(const CheckInput& input, const RuleReport& report) {
  const auto all = needs_of(input);
  for (const SizeConstraint& need : all) {
    if (is_satisfied(need, input.mesh) || !is_over(need, Axes::batch) || need.dim == model::Axis::rank) continue;
    report.add(not_divided(input, all, need, dim_text(need) + " of " + need.tensor));
    break;
  }
}

// The consequence of an uneven batch: Tunix replicates it, Meshwright's engine leaves devices idle.
std::string uneven_text(const CheckInput& input, int over) {
  if (input.stack == model::Stack::tunix)
    return "the batch does not divide over fsdp: Tunix gives every device all rows, and each computes the whole batch";
  std::string plain = "the batch does not divide over the devices that split it";
  if (input.stack != model::Stack::engine) return plain;
  const int each = (input.batch + over - 1) / over, idle = over - (input.batch + each - 1) / each;
  return plain + (idle > 0 ? ": " + std::to_string(idle) + " of " + std::to_string(over) + " have no rows"
                           : ": the last has fewer rows and waits for the others");
}

void batch_1(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train) return;
  const int over = batch_devices(input.mesh);
  if (input.batch % over == 0) return;
  const bool runs = input.stack == model::Stack::tunix || input.stack == model::Stack::engine;
  report.add({.message = uneven_text(input, over),
              .place = "train.batch",
              .found = counted(input.batch, "row") + " over " + std::to_string(over),
              .expected = "a multiple of " + std::to_string(over),
              .fixes = {even_batch(input, over)}},
             runs ? Severity::warning : Severity::error);
}

// Axes that split nothing are MESH-2's.
void mesh_1(const CheckInput& input, const RuleReport& report) {
  Mesh next;
  std::string other;
  int fsdp = 1, tp = 1;
  const std::vector<std::string> splitting = splitting_axes(input.rules, use_of(input));
  for (const MeshAxis& axis : input.mesh.axes) {
    const bool known = axis.name == "fsdp" || axis.name == "tp";
    const bool splits = std::find(splitting.begin(), splitting.end(), axis.name) != splitting.end();
    if (!known && splits && axis.size > 1) other += (other.empty() ? "" : ", ") + axis.name;
    const bool model = axis.name == "tp" || axis.name == "model" || axis.name == "mp" || axis.name == "tensor";
    (model ? tp : fsdp) *= std::max(1, axis.size);
  }
  if (other.empty()) return;
  next.axes = {{"fsdp", fsdp}, {"tp", tp}};
  report.add({.message = "Tunix's Gemma specs use the axes fsdp and tp only; other axes are not found",
              .place = "mesh." + other.substr(0, other.find(',')),
              .found = other,
              .expected = "fsdp, tp",
              .fixes = {{"Use the mesh " + to_text(next), "", mesh_edits(input.mesh, next)}}});
}

// The engine runs such a mesh with repeated work; other stacks do not have the axis, or need one that splits nothing in
// the planner's placement.
void mesh_2(const CheckInput& input, const RuleReport& report) {
  for (const Problem& p : find_unused_axes(input.mesh, input.rules, use_of(input))) {
    const std::string meant = mesh::intended_axis(p.found);
    Finding finding{.message = p.message, .place = p.place, .found = p.found, .expected = p.expected};
    Mesh next = input.mesh;
    std::erase_if(next.axes, [&](const MeshAxis& a) { return a.name == p.found || a.name == meant; });
    if (!meant.empty()) {
      next.axes.push_back({meant, input.mesh.size(p.found) * input.mesh.size(meant)});
      finding.fixes = {{"Rename the axis to " + meant, "", mesh_edits(input.mesh, next)}};
    } else if (one_machine(input)) {
      finding.fixes = {{"Remove the axis " + p.found, "fewer devices", mesh_edits(input.mesh, next)}};
    } else {
      finding.fixes = mesh_fixes(input, needs_of(input));
    }
    report.add(std::move(finding), input.stack == model::Stack::engine ? p.severity : Severity::error);
  }
}

void mesh_size(const CheckInput& input, const RuleReport& report) {
  if (!input.target) return;
  if (one_machine(input)) {
    if (input.mesh.devices() <= kMostVirtualDevices) return;
    Mesh next = input.mesh;
    for (MeshAxis& axis : next.axes)
      while (next.devices() > kMostVirtualDevices && axis.size > 1) axis.size /= 2;
    report.add({.message = "too many virtual devices for one machine",
                .place = "mesh." + input.mesh.axes.back().name,
                .found = std::to_string(input.mesh.devices()),
                .expected = "at most " + std::to_string(kMostVirtualDevices),
                .fixes = {{"Use the mesh " + to_text(next), "", mesh_edits(input.mesh, next)}}});
    return;
  }
  const int devices = input.target->devices();
  for (const Problem& p : check_mesh(input.mesh, devices)) {
    if (p.id != "MESH-SIZE") continue;
    report.add({.message = p.message + " (" + input.target->id + ")",
                .place = p.place,
                .found = p.found,
                .expected = p.expected,
                .fixes = mesh_fixes(input, needs_of(input))});
    return;
  }
}

void shard_1(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train || !input.lora || input.mesh.devices() == 1) return;
  if (!is_older(input, {"qwix", "0.1.6", "whether adapters get their bases' specs"}, report)) return;
  report.add({.message = "this version of qwix gives adapters the unchanged spec of their base, which has another rank",
              .place = "stack.versions",
              .found = "qwix " + input.versions.at("qwix"),
              .expected = "0.1.6 or newer",
              .fixes = {{"Use qwix 0.1.8", "", {set_version(input, "qwix", "0.1.8")}}}});
}

void rank_1(const CheckInput& input, const RuleReport& report) {
  if (!input.lora || input.purpose != Purpose::train) return;
  if (input.lora->options.rank % input.mesh.devices() == 0) return;  // divides over any of its axes
  const auto placement = placement_of(input);
  for (const mesh::PlacedTensor& a : placement->adapters) {
    for (size_t d = 0; d < a.dims.size() && d < a.spec.dims.size(); ++d) {
      if (a.dims[d].axis != model::Axis::rank) continue;
      std::int64_t over = 1;
      for (const std::string& axis : a.spec.dims[d]) over *= input.mesh.size(axis);
      const int rank = input.lora->options.rank;
      if (rank % over == 0) continue;
      const std::int64_t next = (rank + over - 1) / over * over;
      const double alpha = input.lora->options.alpha / rank * static_cast<double>(next);
      report.add({.message = "the adapters' rank does not divide over " + counted(over, "device") +
                             ": some hold more rows than others, or padding",
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

const AxisPlacement* open_axis(const mesh::Layout& layout) {
  for (const AxisPlacement& a : layout.axes)
    if (a.size > 2 && a.medium == mesh::Medium::link && !a.ring) return &a;
  return nullptr;
}

std::optional<mesh::Layout> laid_out(const CheckInput& input, const Mesh& mesh,
                                     const std::vector<mesh::RequestedPlacement>& asked) {
  try {
    return lay_out(mesh, *input.target, asked);
  } catch (const Error&) {
    return std::nullopt;  // MESH-SIZE and MESH-PLACE are reported by others
  }
}

// Fixes for open rings: another placement of the axes, or another mesh.
std::vector<Fix> ring_fixes(const CheckInput& input) {
  if (!input.asked.empty()) {
    const auto free = laid_out(input, input.mesh, {});
    if (free && !open_axis(*free))
      return {{"Lay the axes where their rings close", "", {{"sharding.places", nullptr}}}};
  }
  std::vector<std::string> names;
  for (const MeshAxis& axis : input.mesh.axes) names.push_back(axis.name);
  const auto all = needs_of(input);
  for (const Mesh& mesh : mesh::factorisations(names, input.target->devices())) {
    if (!is_legal(all, mesh) || (batch_of(input) > 0 && batch_of(input) % batch_devices(mesh) != 0)) continue;
    const auto layout = laid_out(input, mesh, {});
    if (!layout || open_axis(*layout)) continue;
    std::vector<Edit> edits = mesh_edits(input.mesh, mesh);
    if (!input.asked.empty()) edits.push_back({"sharding.places", nullptr});
    return {{"Use the mesh " + to_text(mesh), "the plan's times change with it", std::move(edits)}};
  }
  return {};
}

void wrap_1(const CheckInput& input, const RuleReport& report) {
  if (!input.target) return report.unchecked("the target's topology (target.id)");
  if (input.target->chip.vendor != hardware::Vendor::tpu) return;
  const auto layout = laid_out(input, input.mesh, input.asked);
  if (!layout) return;
  const AxisPlacement* open = open_axis(*layout);
  if (!open) return;
  report.add({.message = open->axis + "=" + std::to_string(open->size) +
                         " lies on a line: the link from its last chip to its first is missing",
              .place = "mesh." + open->axis,
              .found = "a line of " + counted(open->size, "chip"),
              .expected = "a ring: twice the bandwidth for collectives",
              .fixes = ring_fixes(input)});
}

// --- the network between slices and nodes ---

// The first axis other than the batch axes that crosses the network: its devices exchange values in every layer.
const AxisPlacement* axis_over_network(const mesh::Layout& layout) {
  for (const AxisPlacement& a : layout.axes)
    if (a.size > 1 && a.medium == mesh::Medium::network && a.axis != "data" && a.axis != "fsdp") return &a;
  return nullptr;
}

// Another placement of the axes, else the legal mesh whose axes stay within a slice or node at the largest sizes.
std::vector<Fix> network_fixes(const CheckInput& input) {
  const auto stays = [&](const Mesh& mesh) {
    const auto layout = laid_out(input, mesh, {});
    return layout && !axis_over_network(*layout);
  };
  if (!input.asked.empty() && stays(input.mesh))
    return {{"Lay the axes so that the network carries only fsdp and data", "", {{"sharding.places", nullptr}}}};
  std::vector<std::string> names;
  for (const MeshAxis& axis : input.mesh.axes) names.push_back(axis.name);
  if (!input.mesh.has("fsdp") && !input.mesh.has("data")) names.insert(names.begin(), "fsdp");
  const auto all = needs_of(input);
  std::optional<Mesh> best;
  int least = 0;
  for (const Mesh& mesh : mesh::factorisations(names, input.target->devices())) {
    if (!is_legal(all, mesh) || (batch_of(input) > 0 && batch_of(input) % batch_devices(mesh) != 0)) continue;
    const int over = batch_devices(mesh);
    if ((best && over >= least) || !stays(mesh)) continue;
    best = mesh;
    least = over;
  }
  if (!best) return {};
  std::vector<Edit> edits = mesh_edits(input.mesh, *best);
  if (!input.asked.empty()) edits.push_back({"sharding.places", nullptr});
  return {{"Use the mesh " + to_text(*best), "", std::move(edits)}};
}

void net_1(const CheckInput& input, const RuleReport& report) {
  if (!input.target) return report.unchecked("the target's topology (target.id)");
  const auto layout = laid_out(input, input.mesh, input.asked);
  const AxisPlacement* over = layout ? axis_over_network(*layout) : nullptr;
  if (!over) return;
  const bool slices = input.target->chip.vendor == hardware::Vendor::tpu;
  const std::string each = slices ? "slice" : "node";
  const int inside = input.target->devices() / (layout->grid[0].size);
  report.add({.message = over->axis + "=" + std::to_string(over->size) + " crosses the network between " + each +
                         "s: its sums in every layer wait for it",
              .place = "mesh." + over->axis,
              .found = over->axis + " over " + std::to_string(layout->grid[0].size) + " " + each + "s of " +
                       counted(inside, "device"),
              .expected = over->axis + " within a " + each + ", fsdp or data over the network",
              .fixes = network_fixes(input)});
}

}  // namespace

std::vector<CheckRule> mesh_rules() {
  const std::vector<model::Stack> tunix{model::Stack::tunix},
      trains{model::Stack::engine, model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp};
  return {
      {"MESH-SIZE", Severity::error, kAllStacks, "The mesh's product is not the device count",
       "jax.make_mesh and torchrun refuse it.", "jax.make_mesh; tunix.utils.mesh.create_mesh", mesh_size,
       RuleEffect::refuses_split},
      {"TP-2", Severity::error, tunix, "tp on the global key-value heads of Gemma 4 12B, 26B and 31B",
       "k_einsum takes the spec of q over its 1, 2 or 4 heads, without the exception that kv_einsum has for one head: "
       "tp is at most 1, 2 and 4.",
       "tunix ShardingConfig.get_default_sharding (gemma4); same in keras-team/keras-hub#1613, "
       "pytorch/torchtitan#2577, "
       "vllm-project/tpu-inference#1429",
       tp_2, RuleEffect::refuses_split},
      {"TP-1", Severity::error, kAllStacks, "A dimension cannot be split over tp",
       "device_put with a NamedSharding rejects dimensions that do not divide; vLLM asks that one of KV heads and tp "
       "divides the other.",
       "tunix/models/safetensors_loader.py; vllm model_executor/layers/linear.py", tp_1, RuleEffect::refuses_split},
      {"FSDP-1", Severity::error, kAllStacks, "The width or the experts cannot be split over fsdp",
       "fsdp splits the model's width, and the experts of a mixture.", "tunix ShardingConfig.get_default_sharding",
       fsdp_1, RuleEffect::refuses_split},
      {"BATCH-1", Severity::error, kAllStacks, "The batch does not divide over the axes that split it",
       "Tunix's shard_input replicates such a batch without a warning, so that more devices have no effect; elsewhere "
       "ranks get different numbers of rows.",
       "tunix/sft/sharding_utils.py, shard_input", batch_1, RuleEffect::refuses},
      {"MESH-1", Severity::error, tunix, "Axes other than fsdp and tp",
       "Gemma's specs name fsdp even when sampling; a mesh of dp and tp failed in Tunix's own rollout.",
       "tunix 252fdef6 (2026-08-20)", mesh_1},
      {"MESH-2", Severity::error, kAllStacks, "A mesh axis that splits no tensor",
       "Its devices hold the same pieces and compute the same rows: the name is mistyped, or the stack does not have "
       "this kind of parallelism here.",
       "presets and batches name fsdp, tp and data (core/mesh/layout/presets.cpp)", mesh_2, RuleEffect::refuses},
      {"SHARD-1", Severity::error, tunix, "Adapters without a right sharding",
       "Before 0.1.6 qwix permuted only lists and tuples and ignored flax's out_sharding, so adapters inherit a spec "
       "of the wrong rank.",
       "qwix 9e88701, 704a40a (first in 0.1.6); tunix d92dd152", shard_1},
      {"RANK-1", Severity::warning, trains, "The rank does not divide over the axis that splits it",
       "PyTorch FSDP2 splits dimension 0 of every tensor, which is the rank of A; uneven shards are padded.",
       "torch.distributed.fsdp.fully_shard", rank_1},
      {"WRAP-1", Severity::warning, kAllStacks, "An axis over a missing wraparound link",
       "Without the link that closes the ring a collective has one direction only: half the bandwidth.",
       "Google Cloud TPU topologies; wrap rules of resources/hardware/slices.json", wrap_1},
      {"NET-1", Severity::warning, kAllStacks, "An axis with sums in every layer over the network",
       "Between slices and nodes a chip has a small part of the bandwidth of its links, and nothing hides the sums of "
       "tp. Copies (data) and gathers that overlap (fsdp) belong there.",
       "jax.experimental.mesh_utils.create_hybrid_device_mesh (dcn_mesh_shape); MaxText dcn_data_parallelism, "
       "dcn_fsdp_parallelism",
       net_1},
  };
}

}  // namespace mw::lint
