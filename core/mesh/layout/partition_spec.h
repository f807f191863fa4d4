// SPDX-License-Identifier: Apache-2.0
// PartitionSpecs and their text form. Plain values; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::mesh {

// Per tensor dimension the mesh axes that split it, outermost first; empty: not split. May be shorter than the rank.
struct PartitionSpec {
  std::vector<std::vector<std::string>> dims;
  bool operator==(const PartitionSpec&) const = default;
};
std::string to_text(const PartitionSpec& spec);  // "(tp, fsdp, -)", "((data, fsdp), -)", "()"
// The same, and as JAX writes it: None for -, quotes, a P or PartitionSpec before it. Throws Error SPEC-SYNTAX.
PartitionSpec parse_spec(std::string_view text);

}  // namespace mw::mesh
