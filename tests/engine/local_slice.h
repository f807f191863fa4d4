// SPDX-License-Identifier: GPL-3.0-or-later
// The part of a tensor that a device of a mesh computes with, by rows and columns of the checkpoint: an independent
// statement of what mesh::working_piece() says by dimensions.
#pragma once
#include "core/mesh/collectives/local_config.h"

namespace mw::engine::test {

using mesh::IndexInterval;
using mesh::LocalConfig;
using mesh::LocalLayer;

// The part of a tensor [blocks * block_rows, columns] that a device holds: of every block the rows `rows`, padded to
// local_rows, and of every row the columns `cols`.
struct LocalSlice {
  std::int64_t blocks = 1, block_rows = 0, columns = 0;
  IndexInterval rows, cols;
  std::int64_t local_rows = 0;
  std::int64_t local_columns() const { return cols.end - cols.begin; }
  std::int64_t elements() const { return blocks * local_rows * local_columns(); }
  bool whole() const { return local_rows == block_rows && local_columns() == columns; }
};

inline IndexInterval times(const IndexInterval& r, std::int64_t by) {
  return {r.begin * by, r.end * by};
}
inline std::int64_t size_of(const IndexInterval& r) {
  return r.end - r.begin;
}

// The rows and columns of a projection's matrix on a device.
struct Split {
  IndexInterval rows, cols;
};

inline Split split_of(const LocalConfig& local, model::Role role, int layer, std::int64_t rows, std::int64_t cols) {
  Split s{{0, rows}, {0, cols}};
  if (layer < 0) {
    if (role == model::Role::embed) s.rows = local.vocab;
    if (role == model::Role::ple_embed) s.rows = local.ple_vocab;
    return s;
  }
  const LocalLayer& l = local.layers[static_cast<size_t>(layer)];
  const std::int64_t head_dim = local.config.layers[static_cast<size_t>(layer)].head_dim;
  switch (role) {
    case model::Role::q_proj:
      return {times(l.heads, head_dim), s.cols};
    case model::Role::k_proj:
    case model::Role::v_proj:
      return {times(l.kv_heads, head_dim), s.cols};
    case model::Role::o_proj:
      return {s.rows, times(l.heads, head_dim)};
    case model::Role::gate_proj:
    case model::Role::up_proj:
      return {l.mlp, s.cols};
    case model::Role::down_proj:
      return {s.rows, l.mlp};
    case model::Role::experts_gate_up:
      return {local.experts, s.cols};
    case model::Role::experts_down:
      return {s.rows, local.experts};
    case model::Role::ple_gate:
      return {local.ple, s.cols};
    case model::Role::ple_proj:
      return {s.rows, local.ple};
    default:
      return s;
  }
}

inline LocalSlice local_slice(const LocalConfig& local, const model::Tensor& whole) {
  LocalSlice s;
  s.columns = whole.hf_shape.back();
  s.blocks = whole.role == model::Role::experts_gate_up ? 2 * whole.hf_shape[0] : 1;  // gate, then up of every expert
  s.block_rows = whole.elements() / s.columns / s.blocks;
  const Split split = split_of(local, whole.role, whole.layer, s.block_rows, s.columns);
  s.rows = split.rows, s.cols = split.cols;
  s.local_rows = whole.role == model::Role::embed       ? local.config.vocab
                 : whole.role == model::Role::ple_embed ? local.ple_vocab_rows
                                                        : size_of(s.rows);
  return s;
}

// The same for an adapter: A [rank, in] or B [out, rank].
inline LocalSlice local_slice(const LocalConfig& local, const model::LoraTarget& whole, model::Role part, int rank) {
  const Split split = split_of(local, whole.role, whole.layer, whole.out, whole.in);
  const bool a = part == model::Role::lora_a;
  LocalSlice s;
  s.block_rows = a ? rank : whole.out;
  s.columns = a ? whole.in : rank;
  s.rows = a ? IndexInterval{0, rank} : split.rows;
  s.cols = a ? split.cols : IndexInterval{0, rank};
  s.local_rows = size_of(s.rows);
  return s;
}

}  // namespace mw::engine::test
