// SPDX-License-Identifier: Apache-2.0
// What one device of a mesh computes with, in the working form of collectives.h: its part of the heads, of the MLP's
// and experts' columns, of the per-layer gates and of the vocabulary. Plain values; any thread.
#pragma once
#include <cstdint>
#include <vector>

#include "core/mesh/collectives/compute_sharding.h"

namespace mw::mesh {

struct LocalLayer {
  Range heads, kv_heads,
      mlp;        // of the whole layer's; kv_heads: those that its query heads read, a donor's for borrowers
  int group = 1;  // query heads of one KV head
  // The device's KV head that its query head `head` reads.
  int kv_of(int head) const { return static_cast<int>((heads.begin + head) / group - kv_heads.begin); }
};

struct LocalConfig {
  // Heads, kv_heads, mlp_dim, expert_dim and vocab are the device's own, vocab with the padding of uneven parts; all
  // else is whole, the stream's width and ple_dim, too.
  model::Config config;
  std::vector<LocalLayer> layers;
  Range experts, ple;               // columns of every expert; of ple_dim, what the layers gate
  Range vocab, ple_vocab;           // rows of the embedding and of the per-layer embedding, without padding
  std::int64_t ple_vocab_rows = 0;  // of the latter with padding
};
// Throws Error ARCH for parts that the step cannot be computed in: parts that do not divide, layers that share keys but
// not their split, experts split differently from layer to layer.
LocalConfig local_config(const model::Config& whole, const ComputeSharding& form, const Placement& placement,
                         const Mesh& mesh, int device);

// The device's tensors, in the order of the whole inventory.
model::TensorInventory local_inventory(const LocalConfig& local);

// The same by the tensor's own dimensions: what the device computes with of each. Of a weight or an adapter.
std::vector<Range> working_piece(const LocalConfig& local, const PlacedTensor& tensor);

// A tensor of the files, [blocks * block_rows, columns], and what a device holds of it: of every block these rows, then
// padding up to local_rows, and of every row these columns.
struct LocalSlice {
  std::int64_t blocks = 1, block_rows = 0, columns = 0;
  Range rows, cols;
  std::int64_t local_rows = 0;
  std::int64_t local_columns() const { return cols.end - cols.begin; }
  std::int64_t elements() const { return blocks * local_rows * local_columns(); }
  bool whole() const { return local_rows == block_rows && local_columns() == columns; }
};
LocalSlice local_slice(const LocalConfig& local, const model::Tensor& whole);
// Of an adapter of a projection: A [rank, in] and B [out, rank].
LocalSlice local_slice(const LocalConfig& local, const model::LoraTarget& whole, model::Role part, int rank);

}  // namespace mw::mesh
