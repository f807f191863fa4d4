// SPDX-License-Identifier: Apache-2.0
// A logical mesh of devices and the sharding of tensors over it. Plain values; any thread. What computes with a mesh is
// in core/mesh.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::mesh {

struct MeshAxis {
  std::string name;  // "fsdp", "tp", "data" or any other
  int size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;             // outermost first, as in jax.make_mesh
  int devices() const;                    // the product of the sizes, at most 2^30; sizes below 1 count as 1
  int size(std::string_view axis) const;  // 1 if the mesh has no such axis
  bool has(std::string_view axis) const;
  bool operator==(const Mesh&) const = default;
};

enum class Preset {
  tunix,     // Tunix: ShardingConfig.get_default_sharding
  megatron,  // vLLM: heads, MLP and vocabulary over tp; KV heads are repeated if tp is larger; fsdp is unused
  fsdp,      // PyTorch FSDP2: the first dimension of every tensor over fsdp, padded; tp is unused
  replicated
};

}  // namespace mw::mesh

namespace mw::options {

struct Sharding {
  std::optional<mesh::Preset> preset;          // none: that of the software stack
  std::vector<std::string> overrides, places;  // see mesh::sharding_rules() and mesh::axis_places()
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::mesh::Preset>{"tunix", "megatron", "fsdp", "replicated"};
