// SPDX-License-Identifier: Apache-2.0
// What the Design page lists of a design, in words and numbers: tensors of one kind as one row, the plan's figures with
// what they rest on, what changed against another design. Plain values; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/designer/actions.h"
#include "core/views/design.h"

namespace mw::views {

// Tensors that differ by their layer only.
struct ShardRow {
  std::string name;   // "layers.*.q_proj", "embed", "layers.*.q_proj.lora_a"
  std::string first;  // logical name of one of them, for the canvas
  int count = 1;
  std::string shape;  // "32 x 5376 x 256"
  mesh::PartitionSpec spec;
  std::string shard;   // "8 x 5376 x 256"
  Bytes per_device;    // all of them, tiles included
  double padding = 0;  // share that tiles and uneven pieces add
  std::int64_t replicas = 1;
  std::string rule;  // where the spec comes from
  bool adapter = false;
};
std::vector<ShardRow> shard_rows(const Design& design);

// A figure of the plan.
struct PlanLine {
  enum class Tone { plain, good, warn, bad };
  std::string label, value;
  std::string detail{};  // "6.9 s compute + 1.2 s memory + 1.7 s collectives"
  std::optional<plan::Estimate> estimate{};
  std::optional<double> number{};  // for the difference between two designs
  Tone tone = Tone::plain;
};
std::vector<PlanLine> plan_lines(const Design& design);

// What moves for one tensor in a step, its block's sums included: calls of one kind, axis and phase as one.
struct Traffic {
  std::string axis;
  std::string text;   // "all-gather over fsdp: 16 x 132 MiB, 0.37 ms each, forward (FSDP gather)"
  std::string label;  // of an axis' first: "1.65 GiB a step", what a device sends over it; else empty
};
std::vector<Traffic> traffic(const Design& design, const std::string& tensor);

// What the canvas shows and changes of the document.
designer::MeshDesign choice_of(const Design& design);
// The document with that choice; keys that stay as they are stay unset.
experiment::Experiment with_choice(experiment::Experiment experiment, const designer::MeshDesign& before,
                                   const designer::MeshDesign& after);

// "-12 %", "x 3.1", "same"; empty where one has no number.
std::string difference(const PlanLine& baseline, const PlanLine& other);

// A design in two lines above its canvas: what it is, what it comes to. Marked: unlike `other`, which may be null.
struct HeadingPart {
  std::string text;  // "v5p-8", "tp 4"; "9.8 s a step (+12 %)", "$56.90"
  bool changed = false;
};
struct Heading {
  std::vector<HeadingPart> what, comes_to;
};
Heading heading(const Design& design, const Design* other);

// What an estimate rests on, for a tooltip: range, origin, formula, inputs, source; a line each.
std::string provenance(const plan::Estimate& estimate);

}  // namespace mw::views
