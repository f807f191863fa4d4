// SPDX-License-Identifier: Apache-2.0
// Content of the Design page: tensors of one kind as one row, figures of the plan with their sources, differences from
// another design. Thread-safe.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/designer/actions.h"
#include "core/mesh/collectives/collectives.h"
#include "core/mesh/layout/mesh.h"
#include "core/plan/experiment/experiment_plan.h"

namespace mw::views {

// The design of an experiment on its target: placement of tensors, collectives, memory, time, cost and problems. All
// values are predicted.
struct Design {
  experiment::Experiment experiment;  // input of the design
  plan::ExperimentPlan planned;
  mesh::Layout layout;
  mesh::Placement placement;                  // of every layer
  std::vector<mesh::Collective> collectives;  // of one step; on this machine, of device 0 at its largest micro-batches
  std::vector<plan::Estimate> seconds;        // of one call of each collective
  const plan::Request& request() const { return planned.request; }
  const plan::Plan& plan() const { return planned.plan; }
};
using DesignPtr = std::shared_ptr<const Design>;

// Throws Error for an unknown target, a mesh that does not match the chips, or a missing model.
Design design(const experiment::Experiment& experiment, const plan::PlanContext& context,
              plan::ReadData read_data = plan::ReadData::yes, const std::stop_token& stop = {});

// Positions of virtual devices on a plane, for drawing a run, derived from their mesh coordinates. Thread-safe.
struct GridDevice {
  int device = 0;  // row-major index in the mesh
  int column = 0, row = 0;
  std::string name;  // "fsdp 1, tp 0"; omits axes of size 1
};
struct DeviceEdge {  // neighbours along an axis
  int a = 0, b = 0;
  int axis = 0;  // of the mesh
};
struct DeviceGrid {
  int columns = 1, rows = 1;
  std::vector<GridDevice> devices;  // by device
  std::vector<DeviceEdge> edges;
};
// Places the last axis of more than one device horizontally and the one before it vertically; earlier axes alternate
// and repeat the blocks of the later ones.
DeviceGrid device_grid(const mesh::Mesh& mesh);

// Tensors that differ only by their layer.
struct ShardRow {
  std::string name;   // "layers.*.q_proj", "embed", "layers.*.q_proj.lora_a"
  std::string first;  // logical name of one of them, for the canvas
  int count = 1;
  std::string shape;  // "32 x 5376 x 256"
  mesh::PartitionSpec spec;
  std::string shard;   // "8 x 5376 x 256"
  Bytes per_device;    // of all layers, including tile padding
  double padding = 0;  // share added by tiles and uneven shards
  std::int64_t replicas = 1;
  std::string rule;  // sharding rule that defines the spec
  bool adapter = false;
};
std::vector<ShardRow> shard_rows(const Design& design);

// A figure of the plan.
struct PlanLine {
  enum class Tone { plain, good, warn, bad };
  std::string key;  // "memory", "step", "usd", "mfu.6N": the same in all designs, whatever the labels are
  std::string label, value;
  std::string detail{};  // "6.9 s compute + 1.2 s memory + 1.7 s collectives"
  std::optional<plan::Estimate> estimate{};
  std::optional<double> number{};  // compared by difference()
  Tone tone = Tone::plain;
  // Texts for the figures above the tabs: "Cost", "$51.49", "$16.80/h"; empty: the line is only in the table.
  std::string headline{}, short_value{}, note{};
};
std::vector<PlanLine> plan_lines(const Design& design);

// Traffic of one tensor in a step, including the reductions of its block; one entry per kind, axis and phase.
struct Traffic {
  std::string axis;
  std::string text;   // "all-gather over fsdp: 16 x 132 MiB, 0.37 ms each, forward (FSDP gather)"
  std::string label;  // on the first entry of an axis: bytes per device, "1.65 GiB a step"; else empty
};
std::vector<Traffic> traffic(const Design& design, const std::string& tensor);

// Returns the part of the document that the canvas shows and edits.
designer::MeshDesign choice_of(const Design& design);
// Applies the changes between the two choices to the document; sets only changed keys.
experiment::Experiment with_choice(experiment::Experiment experiment, const designer::MeshDesign& before,
                                   const designer::MeshDesign& after);

// Returns "-12 %", "x 3.1" or "same"; empty if one line has no number.
std::string difference(const PlanLine& baseline, const PlanLine& other);
// The bytes of a row compared with those of the pinned design, and its spec there if it was another; `baseline` is null
// if the pinned design has no such row: "+12 %, was (tp, -)", "new".
std::string difference(const ShardRow* baseline, const ShardRow& other);
// Compares the step time of two designs, or their memory if times are not predicted: "8.60 to 18.9 s (+120 %)". Adds a
// note if the second design does not fit.
std::string change_text(const Design& before, const Design& after);

// The two heading lines above the canvas: the choices of the design and its results. `changed` marks parts that differ
// from `other`, which may be null.
struct HeadingPart {
  std::string text;  // "v5p-8", "tp 4"; "9.8 s a step (+12 %)", "$56.90"
  bool changed = false;
};
struct Heading {
  std::vector<HeadingPart> what, comes_to;
};
Heading heading(const Design& design, const Design* other);

// Describes an estimate for a tooltip: range, origin, formula, inputs and source, one per line.
std::string provenance(const plan::Estimate& estimate);

}  // namespace mw::views
