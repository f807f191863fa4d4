// SPDX-License-Identifier: Apache-2.0
// How a mesh lies on several TPU slices or GPU nodes: which axes the network between them splits, as dcn_mesh_shape of
// jax.experimental.mesh_utils.create_hybrid_device_mesh. Plain values; any thread.
#pragma once
#include "core/mesh/layout/layout.h"

namespace mw::mesh {

std::string to_text(const RequestedPlacement& place);  // "tp = 0, 1", as in sharding.places

// Whether the target has several slices or nodes.
bool has_network(const hardware::Target& target);

// The axes that cross the network, each with its number of slices or nodes; their product is that of the target.
std::vector<MeshAxis> network_split(const Layout& layout);

// The placements of a mesh on a target with a network, one for each split that placements can express: `own` first,
// then the one that lay_out() chooses freely, then those that keep some of the axes within a slice or node. `own` alone
// on other targets, and for a mesh that does not match the target.
std::vector<std::vector<RequestedPlacement>> network_placements(const Mesh& mesh, const hardware::Target& target,
                                                                const std::vector<RequestedPlacement>& own);

}  // namespace mw::mesh
