// SPDX-License-Identifier: Apache-2.0
// The part of the model on one device: kinds of layers with their matrix products and shards, computed once per kind.
// Predictions of memory and time are based on it. Plain values; any thread.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/mesh/collectives/collectives.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/plan/request/request.h"

namespace mw::plan {

struct Product {  // a matrix product for one token on a device: in * out multiply-adds
  double in = 0, out = 0;
  model::Role role = model::Role::q_proj;
};
struct LayerKind {
  std::string name;  // "sliding layers", "global layers", "layers"
  int layer = 0;     // representative layer in LocalModel::config
  int count = 1;
  model::Layer shape;
  double heads = 0, kv_heads = 0, mlp = 0;  // on a device
  std::vector<Product> products;
  std::vector<Product> lora_a, lora_b;             // Tunix has one A for K and V
  std::vector<Product> dora;                       // adapted projections with magnitudes
  double gathered = 0;                             // elements gathered along batch axes before the layer; 0: none
  const Product* product(model::Role role) const;  // null if the layer has none
  double q() const { return heads * shape.head_dim; }
  double kv() const { return kv_heads * shape.head_dim; }
};

struct TensorBytes {               // memory of a group of tensors on one device
  double bytes = 0, unpadded = 0;  // with and without padding of tiles
  double elements = 0;             // on this device
  double total = 0;                // of the model
};

// Valid for every request that differs from `request` in its workload, or in the attention, adapter and gradient types
// of its profile: a search makes one for all plans of a mesh.
struct LocalModel {
  const Request* request = nullptr;
  model::Config config;                 // the model, or one layer of each kind if no rule names layers by number
  std::vector<int> layers_represented;  // by layer of config: how many layers of the model it represents
  std::optional<std::vector<std::vector<model::Role>>> adapted{};  // Request::adapted of those layers
  mesh::Placement placement;
  mesh::Layout layout;
  std::vector<LayerKind> kinds;
  int batch_ways = 1;  // devices over which rows are split
  double attention_ways = 1, mlp_ways = 1, vocab_ways = 1;
  double width = 0;          // of the residual stream on this device
  double vocab = 0;          // rows of the output matrix on this device
  double head_gathered = 0;  // elements of embedding and output matrix gathered along batch axes
  std::int64_t parameters = 0;
  std::array<TensorBytes, 4> weights_of, adapters_of;  // by DType

  const TensorBytes& weights(model::DType type) const { return weights_of[static_cast<size_t>(type)]; }
  const TensorBytes& adapters(model::DType type) const { return adapters_of[static_cast<size_t>(type)]; }
  int layers() const;
  int head_bytes() const;  // of an element of the output matrix
};

// Throws the first problem of mesh::check_mesh, such as MESH-SIZE if the mesh does not cover the target.
LocalModel local_model(const Request& request, mesh::ShardingUse use);

std::vector<std::string> batch_axes(const Request& request);
// The axes in the order in which predictions place them, whatever their order in the document: data outermost, fsdp,
// the others by name, tp innermost.
mesh::Mesh canonical_order(mesh::Mesh mesh);

// mesh::size_constraints() of the request's model, computed from one layer of each kind: quicker, but the layers and
// tensors that they name are those of LocalModel::config.
std::vector<mesh::SizeConstraint> size_constraints(const Request& request, mesh::ShardingUse use);
// The projections that the request adapts.
std::vector<mesh::AdapterShape> adapter_shapes(const Request& request, const model::TensorInventory& inventory);

}  // namespace mw::plan
