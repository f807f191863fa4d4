// SPDX-License-Identifier: Apache-2.0
// f32 products, for packed_build.cpp: the layouts of packed.h and gemm_kernels.h with an f32 in the place of a pair of
// bf16. Every output adds its products in order of depth, in runs of sizes::kF32Run from zero, and then the sums of the
// runs in order; the products of a low-rank summand are added to that one by one. All processors with FMA give the same
// bits, and a row's do not depend on the rows beside it.
#pragma once
#include <utility>

#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/packed_lanes.h"

namespace mw::engine {
namespace {
namespace f32 {

constexpr i64 kRun = sizes::kF32Run;  // 32 KiB of a panel, which stays near while rows multiply it
constexpr i64 kStreamed = 4096;       // prefetch distance where weights are read once, bytes

// A's values for a tile, in rows or in a group.
struct PlainRows {
  const float* at;
  i64 row;  // floats between rows
  [[gnu::always_inline]] const float* value(int r) const { return at + r * row; }
  [[gnu::always_inline]] void next() { ++at; }
  PlainRows from(i64 rows, i64 depth) const { return {at + rows * row + depth, row}; }
};
struct Groups {
  const float* at;
  i64 group;  // floats between groups
  [[gnu::always_inline]] const float* value(int r) const { return at + r; }
  [[gnu::always_inline]] void next() { at += kGroupRows; }
  Groups from(i64 rows, i64 depth) const {
    return {at + rows / kGroupRows * group + rows % kGroupRows + depth * kGroupRows, group};
  }
};

template <int R, int V, class A>
[[gnu::always_inline]] inline void add_depth(const A& a, const float* b, F (&acc)[R][V]) {
  F of[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) of[v] = read<F>(b + kWidth * v);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const F x = splat_value(a.value(r));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) add_f32_product(x, of[v], acc[r][v]);
  }
}

// Products along a depth for a tile, whose sums are in registers. `line` is prefetched, one line for every four of
// depth; Streams: the panel is read from memory, and both lines of each depth are prefetched.
template <int R, int V, bool Streams, class A>
[[gnu::always_inline]] inline void add_run(A a, const float* b, i64 depth, const char* line, F (&acc)[R][V]) {
  i64 k = 0;
#pragma GCC unroll 1
  for (; k + 4 <= depth; k += 4) {
    if constexpr (!Streams) fetch_line(line), line += 64;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, a.next(), b += kPanelRows) {
      if constexpr (Streams) fetch_line(line), fetch_line(line + 64), line += 128;
      add_depth<R, V>(a, b, acc);
    }
  }
#pragma GCC unroll 1
  for (; k < depth; ++k, a.next(), b += kPanelRows) add_depth<R, V>(a, b, acc);
}

template <class A>
struct Run {  // from a tile's first row and column on; depth 0: none
  A a;
  const float* b;
  i64 depth;
};

// One run of depth, and behind the last one the products of a low-rank summand, which extend the sum.
template <int R, int V, bool Streams, class A>
[[gnu::noinline]] void tile(const Run<A>& run, const Run<A>& low, const TileOutput& out, i64 left, const void* ahead) {
  F acc[R][V];
  const auto for_each_sum = [&](auto set) __attribute__((always_inline)) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) set(acc[r][v], out.c + r * out.stride + kWidth * v, left - kWidth * v);
  };
  const char* const line = static_cast<const char*>(ahead ? ahead : run.b);
  if (out.store == StoreMode::extend)
    for_each_sum([](F & sum, const float* c, i64 n) __attribute__((always_inline)) { sum = read_floats(c, n); });
  else
    for_each_sum([](F & sum, const float*, i64) __attribute__((always_inline)) { sum = F{}; });
  add_run<R, V, Streams>(run.a, run.b, run.depth, line, acc);
  if (out.store == StoreMode::accumulate)
    for_each_sum([](F & sum, const float* c, i64 n) __attribute__((always_inline)) { sum += read_floats(c, n); });
  if (low.depth > 0) add_run<R, V, false>(low.a, low.b, low.depth, line, acc);
  write_sums(acc, out, left);
}

// Tiles of one panel: of all its columns for few rows, of one register where no more columns are left, else of two.
enum class TileWidth { one, two, all };
template <class A, bool Streams>
using Tile = void (*)(const Run<A>&, const Run<A>&, const TileOutput&, i64, const void*);
template <class A, bool Streams, TileWidth width, class Heights>
struct TileTable;
template <class A, bool Streams, TileWidth width, int... R>
struct TileTable<A, Streams, width, std::integer_sequence<int, R...>> {
  static constexpr int kRegisters = width == TileWidth::all ? kAcross : width == TileWidth::two ? 2 : 1;
  static constexpr Tile<A, Streams> of[] = {tile<R + 1, kRegisters, Streams, A>...};  // rows - 1
};
template <class A, bool Streams, TileWidth width, int most_rows>
constexpr const auto& tiles() {
  return TileTable<A, Streams, width, std::make_integer_sequence<int, most_rows>>::of;
}

// Up to kTall rows and one panel.
template <bool Streams, class A>
[[gnu::always_inline]] inline void panel_tile(i64 rows, Run<A> run, Run<A> low, const TileOutput& out, i64 left,
                                              const void* ahead) {
  if (left > kWidth && rows <= kWideTileRows)
    return tiles<A, Streams, TileWidth::all, kWideTileRows>()[rows - 1](run, low, out, left, ahead);
  for (int column = 0; column < kPanelRows && column < left; column += 2 * kWidth) {
    const Tile<A, Streams> tile = left - column > kWidth ? tiles<A, Streams, TileWidth::two, kTall>()[rows - 1]
                                                         : tiles<A, Streams, TileWidth::one, kTall>()[rows - 1];
    tile({run.a, run.b + column, run.depth}, {low.a, low.b + column, low.depth},
         {out.c + column, out.stride, out.store}, left - column, column == 0 ? ahead : nullptr);
  }
}

struct Panels {
  const float* at;
  i64 stride;  // floats between panels
  const float* from(i64 column, i64 depth) const { return at + column / kPanelRows * stride + depth * kPanelRows; }
};

const float* floats(const std::uint16_t* at) {
  return reinterpret_cast<const float*>(at);
}

template <class A>
struct Operands {
  A a;
  Panels b;
  i64 depth;
  Run<A> run(i64 row, i64 column, i64 first, i64 count) const {
    return {a.from(row, first), b.from(column, first), count};
  }
};

// All rows against all panels, run by run. The tiles of kGroupRows rows and a panel prefetch in turn.
template <class A>
void multiply(i64 rows, i64 columns, const Operands<A>& of, const Operands<A>& low, const TileOutput& out,
              const Prefetch& ahead) {
  const i64 groups = (rows + kGroupRows - 1) / kGroupRows;
  for (i64 first = 0; first < of.depth; first += kRun) {
    const i64 some = lesser(of.depth - first, kRun), low_depth = first + some == of.depth ? low.depth : 0;
    const StoreMode store = first > 0 ? StoreMode::accumulate : out.store;
    for (i64 column = 0; column < columns; column += kPanelRows)
      for (i64 row = 0; row < rows; row += kTall) {
        const i64 number = column / kPanelRows * groups + row / kGroupRows;
        const std::uint16_t* const next =
            row % kGroupRows == 0 && number < ahead.left ? ahead.at + number * ahead.stride + first / 4 * 32 : nullptr;
        panel_tile<false>(lesser(rows - row, kTall), of.run(row, column, first, some),
                          low.run(row, column, 0, low_depth), {out.c + row * out.stride + column, out.stride, store},
                          columns - column, next);
      }
  }
}

Operands<PlainRows> operands(const Strip& strip) {
  return {{floats(strip.a), strip.a_stride / 2}, {floats(strip.b), strip.b_stride / 2}, strip.steps};
}
Operands<Groups> operands(const GroupedStrip& strip) {
  return {{floats(strip.a), kGroupRows * strip.steps}, {floats(strip.b), strip.b_stride / 2}, strip.steps};
}

void block(i64 rows, i64 columns, const Strip* strips, int count, const TileOutput& out) {
  multiply(rows, columns, operands(strips[0]), count > 1 ? operands(strips[1]) : Operands<PlainRows>{}, out, {});
}

void grouped_block(i64 rows, i64 columns, const GroupedStrip* strips, int count, const TileOutput& out,
                   Prefetch* ahead) {
  multiply(rows, columns, operands(strips[0]), count > 1 ? operands(strips[1]) : Operands<Groups>{}, out,
           ahead ? *ahead : Prefetch{});
  if (!ahead) return;
  const i64 tiles = (columns + kPanelRows - 1) / kPanelRows * ((rows + kGroupRows - 1) / kGroupRows);
  const i64 used = lesser(ahead->left, tiles);
  ahead->at += used * ahead->stride;
  ahead->left -= used;
}

void skinny_rows(const GemmShape& shape, const std::uint16_t* a, const std::uint16_t* w, const TileOutput& out) {
  const i64 tiles = (shape.m + kTall - 1) / kTall;
  const Operands<PlainRows> of{{floats(a), shape.k}, {floats(w), shape.k * kPanelRows}, shape.k};
  for (i64 column = 0; column < shape.n; column += kPanelRows)
    for (i64 first = 0; first < shape.k; first += kRun)
      for (i64 t = 0; t < tiles; ++t) {
        const i64 row = shape.m * t / tiles, rows = shape.m * (t + 1) / tiles - row;
        const Run<PlainRows> run = of.run(row, column, first, lesser(shape.k - first, kRun));
        const TileOutput to{out.c + row * out.stride + column, out.stride,
                            first > 0 ? StoreMode::accumulate : out.store};
        if (t == 0)
          panel_tile<true>(rows, run, {}, to, shape.n - column, reinterpret_cast<const char*>(run.b) + kStreamed);
        else
          panel_tile<false>(rows, run, {}, to, shape.n - column, nullptr);
      }
}

// ---- layouts ----

typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

// Values [0, n) of two rows, those of `low` first; rows that are not there are null.
[[gnu::always_inline]] inline Eight two_rows(const float* low, const float* high, i64 n) {
  const auto four = [&](const float* row) __attribute__((always_inline)) {
    return !row || n <= 0 ? Four{} : n >= 4 ? read<Four>(row) : read_part<Four>(row, n);
  };
  return __builtin_shufflevector(four(low), four(high), 0, 1, 2, 3, 4, 5, 6, 7);
}

// Rows and columns of either half are exchanged.
[[gnu::always_inline]] inline void transpose_halves(Eight (&v)[4]) {
  const Eight a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13),
              b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15),
              c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13),
              d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

// Up to 8 x 8 values: out[j * out_stride + i] = scale * in[i * in_stride + j], zeros in rows and columns that are not
// there; `written`: columns of `in` that become rows of `out`.
[[gnu::always_inline]] inline void transpose_block(const float* in, i64 in_stride, i64 rows, i64 columns, float scale,
                                                   float* out, i64 out_stride, i64 written) {
#pragma GCC unroll 2
  for (int half = 0; half < 8; half += 4) {
    Eight v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      v[i] = two_rows(i < rows ? in + i * in_stride + half : nullptr,
                      i + 4 < rows ? in + (i + 4) * in_stride + half : nullptr, columns - half);
    transpose_halves(v);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      if (half + j < written) write(out + (half + j) * out_stride, v[j] * scale);
  }
}

void lay_out_rows(i64 rows, i64 k, float scale, MatrixView x, LaidOutRows out) {
  for (i64 r = 0; r < rows; ++r) {
    auto* const to = reinterpret_cast<float*>(out.data) + r * (out.stride / 2);
    for (i64 i = 0; i < k; i += kWidth)
      write_floats(to + i, read_floats(x.data + r * x.stride + i, k - i) * scale, k - i);
  }
}

void lay_out_columns(i64 rows, i64 columns, float scale, MatrixView x, LaidOutRows out) {
  auto* const to = reinterpret_cast<float*>(out.data);
  const i64 stride = out.stride / 2;
  for (i64 r = 0; r < rows; r += 8)
    for (i64 c = 0; c < columns; c += 8) {
      const float* const from = x.data + r * x.stride + c;
      if (rows - r >= 8) {
        transpose_block(from, x.stride, 8, columns - c, scale, to + c * stride + r, stride, columns - c);
        continue;
      }
      for (i64 j = 0; j < lesser(columns - c, 8); ++j)
        for (i64 i = 0; i < rows - r; ++i) to[(c + j) * stride + r + i] = from[i * x.stride + j] * scale;
    }
}

void pack_rows(i64 columns, i64 k, const float* b, i64 b_stride, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows) {
    float* const panel = reinterpret_cast<float*>(out) + n * k;
    for (i64 i = 0; i < k; i += 8)
      for (i64 eight = 0; eight < kPanelRows; eight += 8) {
        const float* const from = b + (n + eight) * b_stride + i;
        float* const to = panel + i * kPanelRows + eight;
        if (columns - n >= kPanelRows && k - i >= 8)
          transpose_block(from, b_stride, 8, 8, 1.0f, to, kPanelRows, 8);
        else
          transpose_block(from, b_stride, columns - n - eight, k - i, 1.0f, to, kPanelRows, k - i);
      }
  }
}

[[gnu::always_inline]] inline F activation(const Activations& x, const float* at, i64 column, float inv, i64 n) {
  const F v = read_floats(at + column, n);
  if (!x.inv) return v;
  return v * (F{} + inv) * (read_floats(x.gain.w + column, n) + x.gain.offset);
}

void panels(i64 depth, i64 columns, const Activations& x, std::uint16_t* out) {
  for (i64 d = 0; d < depth; ++d) {
    const float* const row = x.x + d * x.stride;
    const float inv = x.inv ? x.inv[d] : 1.0f;
    for (i64 column = 0; column < columns; column += kPanelRows) {
      float* const to = reinterpret_cast<float*>(out) + column * depth + d * kPanelRows;
#pragma GCC unroll 8
      for (int v = 0; v < kAcross; ++v)
        write(to + kWidth * v, activation(x, row, column + kWidth * v, inv, columns - column - kWidth * v));
    }
  }
}

void pack_columns(i64 depth, i64 columns, const float* b, i64 b_stride, std::uint16_t* out) {
  panels(depth, columns, {b, b_stride}, out);
}

void transpose_panels(const std::uint16_t* w, i64 k_total, const PanelBlock& part, std::uint16_t* out) {
  for (i64 n = 0, some; n < part.depth; n += some) {
    const i64 row = part.begin + n;
    some = lesser(part.depth - n, kPanelRows - row % kPanelRows);
    const float* const panel = floats(w) + row / kPanelRows * kPanelRows * k_total + row % kPanelRows;
    for (i64 k = 0; k < part.columns; k += kPanelRows) {
      float* const to = reinterpret_cast<float*>(out) + k * part.depth + n * kPanelRows;
      const bool whole = some == kPanelRows && part.columns - k >= kPanelRows;
      for (i64 i = 0; i < kPanelRows; i += 8) {
        const float* const from = panel + (part.first_column + k + i) * kPanelRows;
        for (i64 line = 0; line < 8 * kPanelRows; line += 16) fetch_line(from + 2 * kPanelRows * k_total + line);
        for (i64 j = 0; j < some; j += 8)
          if (whole)
            transpose_block(from + j, kPanelRows, 8, 8, 1.0f, to + j * kPanelRows + i, kPanelRows, 8);
          else
            transpose_block(from + j, kPanelRows, part.columns - k - i, some - j, 1.0f, to + j * kPanelRows + i,
                            kPanelRows, some - j);
      }
    }
  }
}

void groups(i64 rows, i64 k, const Activations& x, float scale, std::uint16_t* out) {
  constexpr i64 kChunk = 64;
  alignas(64) float chunk[kGroupRows][kChunk];
  auto* to = reinterpret_cast<float*>(out);
  for (i64 row = 0; row < rows; row += kGroupRows)
    for (i64 first = 0; first < k; first += kChunk) {
      const i64 some = lesser(k - first, kChunk);
      if (!x.inv && scale == 1.0f && rows - row >= kGroupRows) {
        const float* const from = x.x + row * x.stride + first;
        for (i64 i = 0; i < some; i += 8, to += lesser(some - i + 8, 8) * kGroupRows)
          for (i64 r = 0; r <= kGroupRows - 8; r += kGroupRows - 8)  // overlapping
            transpose_block(from + r * x.stride + i, x.stride, 8, some - i, 1.0f, to + r, kGroupRows, some - i);
        continue;
      }
      for (i64 r = 0; r < kGroupRows; ++r) {
        if (row + r >= rows) {
          memset(chunk[r], 0, sizeof chunk[r]);
          continue;
        }
        const float* const at = x.x + (row + r) * x.stride;
        const float inv = x.inv ? x.inv[row + r] : 1.0f;
        for (i64 i = 0; i < some; i += kWidth) write(chunk[r] + i, activation(x, at, first + i, inv, some - i) * scale);
      }
      for (i64 i = 0; i < some; i += 8, to += lesser(some - i + 8, 8) * kGroupRows)
        for (i64 r = 0; r <= kGroupRows - 8; r += kGroupRows - 8)  // overlapping
          transpose_block(&chunk[r][i], kChunk, 8, some - i, 1.0f, to + r, kGroupRows, some - i);
    }
}

constexpr ProductKernels kProducts{
    .instructions = kFmaName,
    .unit = Unit::f32,
    .packed = {.block = block,
               .skinny_rows = skinny_rows,
               .lay_out_rows = lay_out_rows,
               .lay_out_columns = lay_out_columns,
               .pack_rows = pack_rows,
               .pack_columns = pack_columns,
               .transpose_panels = transpose_panels},
    .gemm = {.most_depth = 1024, .most_fused_depth = 4096, .block = grouped_block, .groups = groups, .panels = panels}};

}  // namespace f32
}  // namespace
}  // namespace mw::engine
