// SPDX-License-Identifier: Apache-2.0
// PartitionSpecs, the rules that give one to each tensor, and what each device then holds. Plain values; any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/mesh/mesh.h"
#include "core/model/inventory.h"

namespace mw::mesh {

// Per tensor dimension the mesh axes that split it, outermost first; empty: not split.
struct PartitionSpec {
  std::vector<std::vector<std::string>> dims;
  bool operator==(const PartitionSpec&) const = default;
};
std::string to_text(const PartitionSpec& spec);          // "(tp, fsdp, -)", "((data, fsdp), -)"
PartitionSpec parse_spec(std::string_view text);         // the same; throws Error SPEC-SYNTAX

enum class Preset {
  tunix,     // gemma.md 4.1
  megatron,  // heads, mlp and vocab over tp; nothing over fsdp (vLLM)
  fsdp,      // PyTorch FSDP2: dimension 0 of every tensor over fsdp, tp ignored
  replicated
};

struct Rule {  // first match wins; before the preset
  std::string pattern;  // regex searched in the logical name and the Tunix path
  PartitionSpec spec;
};
struct Rules {
  Preset preset = Preset::tunix;
  std::vector<Rule> overrides{};
};

enum class Use { training, sampling };

// One tensor on the mesh.
struct Placed {
  std::string name;                      // logical; "layers.3.q_proj.lora_a" for adapters
  model::Role role;
  int layer = -1;
  std::vector<model::Dim> dims;
  PartitionSpec spec;
  std::string rule;                      // where the spec comes from: "tunix", "override: <pattern>", "from layers.3.q_proj"
  std::vector<std::int64_t> shard;       // shape on each device, rounded up where uneven
  std::int64_t shards = 1;               // distinct pieces
  std::int64_t replicas = 1;             // devices that hold the same piece
  std::int64_t elements() const;         // of a shard
};

struct TileRule {  // how memory pads the last two dimensions; 1: not at all
  std::int64_t rows = 1, columns = 1;
};
TileRule tile_of(const hardware::Chip& chip, int bytes_per_element);
std::int64_t padded_bytes(const std::vector<std::int64_t>& shape, int bytes_per_element, const TileRule& tile);

struct AdapterShape {  // one adapted projection
  model::Role role;
  int layer = 0, rank = 0;
};

struct Placement {
  std::vector<Placed> tensors;   // in inventory order
  std::vector<Placed> adapters;  // A then B of each, specs derived from the base's (gemma.md 4.3)
  std::vector<Problem> problems; // SPEC-AXIS, SPEC-TWICE, SPEC-RANK, TP-1, FSDP-1 ...: place names tensor and dimension
};
// Every tensor gets its spec; what is not possible is a problem and that dimension is left unsplit, so that the page goes on.
Placement place(const model::TensorInventory& inventory, const Mesh& mesh, const Rules& rules,
                const std::vector<AdapterShape>& adapters, Use use);

}  // namespace mw::mesh
