// SPDX-License-Identifier: Apache-2.0
// The part of the model that one device computes with: heads, columns of the MLP and the experts, per-layer gates and
// vocabulary. Plain values; any thread.
#pragma once
#include <cstdint>
#include <vector>

#include "core/mesh/collectives/compute_sharding.h"

namespace mw::mesh {

struct LocalLayer {
  IndexInterval heads, kv_heads,
      mlp;        // of the whole layer's; kv_heads: those that its query heads read, a donor's for borrowers
  int group = 1;  // query heads per KV head
  // The local index of the KV head that the local query head `head` reads.
  int kv_of(int head) const { return static_cast<int>((heads.begin + head) / group - kv_heads.begin); }
  bool operator==(const LocalLayer&) const = default;
};

struct LocalConfig {
  // heads, kv_heads, mlp_dim, expert_dim and vocab are local; vocab includes the padding of uneven parts. All other
  // sizes are those of the whole model, including dim and ple_dim.
  model::Config config;
  std::vector<LocalLayer> layers;
  IndexInterval experts, ple;       // columns of every expert; the part of ple_dim that the device's gates compute
  IndexInterval vocab, ple_vocab;   // rows of the embedding and of the per-layer embedding, without padding
  std::int64_t ple_vocab_rows = 0;  // rows of ple_vocab with padding
  std::int64_t vocab_parts = 1;     // devices that share the embedding
};
// Throws Error ARCH if the engine cannot compute with this sharding: a size that does not divide, layers that share
// keys but split their heads differently, experts that are split differently in different layers.
LocalConfig local_config(const model::Config& whole, const ComputeSharding& form, const Placement& placement,
                         const Mesh& mesh, int device);

// The inventory of the device's tensors, in the order of the whole model's inventory.
model::TensorInventory local_inventory(const LocalConfig& local);

// The range of each dimension of a weight or adapter that the device computes with.
std::vector<IndexInterval> working_piece(const LocalConfig& local, const PlacedTensor& tensor);

}  // namespace mw::mesh
