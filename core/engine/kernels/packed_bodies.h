// SPDX-License-Identifier: Apache-2.0
// Bodies of packed.h and gemm_kernels.h for processors without vdpbf16ps, for packed_build.cpp. Pairs of bf16 are
// expanded to two f32 in registers by a shift and a mask, or multiplied whole (packed_lanes.h). Every output adds its
// products in order of depth, in a pair the odd one first: as vdpbf16ps does, which together with its treatment of
// denormals gives the same bits with every kernel of x86-64 that has FMA (but AMX).
#pragma once
#include <utility>

#include "core/engine/kernels/bf16x12.h"
#include "core/engine/kernels/gemm_kernels.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/kernels/packed_f32.h"
#include "core/engine/kernels/packed_int8.h"
#include "core/engine/kernels/packed_lanes.h"

namespace mw::engine {
namespace {

constexpr i64 kPairs = 2 * kPanelRows;               // elements of one pair of depth in a panel
constexpr i64 kSlots = 2 * kGroupRows;               // elements of one pair of depth in a group
constexpr i64 kExpandedSlots = kParts * kGroupRows;  // of one pair in a group that expand() wrote

// ---- tiles ----

// A's values for a tile: pairs of bf16 in its rows, or f32 that expand() wrote.
struct PairsOfRows {
  const std::uint16_t* at;
  i64 row;  // elements between rows
  template <int Part>
  [[gnu::always_inline]] F part(int r) const {
    return part_of<Part>(splat_pair(at + r * row));
  }
  [[gnu::always_inline]] void next() { at += 2; }
};
struct WidenedRows {  // f32
  const float* at;
  i64 row;
  template <int Part>
  [[gnu::always_inline]] F part(int r) const {
    return splat_value(at + r * row + Part);
  }
  [[gnu::always_inline]] void next() { at += 2; }
};
struct Expanded {
  const float* at;
  template <int Part>
  [[gnu::always_inline]] F part(int r) const {
    return splat_value(at + Part * kGroupRows + r);
  }
  [[gnu::always_inline]] void next() { at += kExpandedSlots; }
};

template <class A>
struct TileStrip {  // a strip from a tile's first row and column on
  A a;
  const std::uint16_t* b;
  i64 pairs;
};

// One product of a pair of depth, for a tile of R rows and V vectors of columns.
template <int Part, int R, int V, class A>
[[gnu::always_inline]] inline void add_part(const A& a, const std::uint16_t* b, F (&acc)[R][V]) {
  F of[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) of[v] = part_of<Part>(read<W>(b + 2 * kWidth * v));
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const F x = a.template part<Part>(r);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) add_product(x, of[v], acc[r][v]);
  }
}

// One strip for a tile. The registers hold the sums, one part of the columns' pairs and one value of A. `ahead`: one
// line of it is prefetched for every four pairs; null: none.
template <int R, int V, class A>
[[gnu::always_inline]] inline void add_strip(TileStrip<A> strip, const std::uint16_t* ahead, F (&acc)[R][V]) {
#pragma GCC unroll 1
  for (i64 k = 0; k < strip.pairs; ++k, strip.a.next(), strip.b += kPairs) {
    if (ahead && k % 4 == 0) fetch_line(ahead + k / 4 * 32);
    if constexpr (kParts == 2) add_part<1>(strip.a, strip.b, acc);
    add_part<0>(strip.a, strip.b, acc);
  }
}

// The C of a tile; `left`: columns there are.
template <int R, int V, class A>
[[gnu::noinline]] void tile(const TileStrip<A>& strip, const TileOutput& out, i64 left, const std::uint16_t* ahead) {
  F acc[R][V];
  read_sums(out, left, acc);
  add_strip<R, V, A>(strip, ahead, acc);
  write_sums(acc, out, left);
}

template <class A>
using Tile = void (*)(const TileStrip<A>&, const TileOutput&, i64, const std::uint16_t*);
template <class A, int R>
constexpr Tile<A> tile_of() {
  return R <= kWideTileRows ? tile<R, kAcross, A> : tile<R, 2, A>;
}
template <class A, class Rows>
struct TileTable;
template <class A, int... R>
struct TileTable<A, std::integer_sequence<int, R...>> {
  static constexpr Tile<A> of[] = {tile_of<A, R + 1>()...};  // rows - 1
};
template <class A>
using Tiles = TileTable<A, std::make_integer_sequence<int, kTall>>;

// A tile of up to kTall rows and one panel.
template <class A>
[[gnu::always_inline]] inline void panel_tile(i64 rows, TileStrip<A> strip, const TileOutput& out, i64 left,
                                              const std::uint16_t* ahead) {
  const int width = rows <= kWideTileRows ? static_cast<int>(kPanelRows) : 2 * kWidth;
  for (int column = 0; column < kPanelRows && column < left; column += width, strip.b += 2 * width)
    Tiles<A>::of[rows - 1](strip, {out.c + column, out.stride, out.store}, left - column,
                           column == 0 ? ahead : nullptr);
}

constexpr i64 kExpandedPairs = 128;  // 12 KiB of A beside 16 KiB of a panel in the L1 cache

// Groups of rows that multiply a panel while it is in the L1 cache: as f32 they take 60 KiB of the L2 cache.
constexpr i64 kGroupsAtOnce = kBytes < 64 ? 5 : 1, kRowsAtOnce = kGroupsAtOnce * kGroupRows;

// Rows of A: groups (gemm_kernels.h) or plain rows.
struct LeftRows {
  const std::uint16_t* at;
  i64 row, pair, group;  // elements between rows of a group, between pairs of depth and between groups
  LeftRows from(i64 groups, i64 pairs) const { return {at + groups * group + pairs * pair, row, pair, group}; }
};

// Pairs of up to kGroupRows rows, for each pair the first parts of all rows, then the second ones.
void expand(i64 rows, i64 pairs, const LeftRows& in, float* out) {
  const auto write_parts = [](float* to, auto both) __attribute__((always_inline)) {
    if (kParts == 1) return write(to, both);
    write(to, both << 16);
    write(to + kGroupRows, both & 0xffff0000u);
  };
  if (in.row == 2) {  // a group
    typedef std::uint32_t Eight __attribute__((vector_size(32)));
    for (i64 i = 0; i < pairs; ++i, out += kExpandedSlots)
      for (i64 r = 0; r <= kGroupRows - 8; r += kGroupRows - 8)  // overlapping
        write_parts(out + r, read<Eight>(in.at + i * in.pair + 2 * r));
    return;
  }
  for (i64 r = 0; r < rows; ++r)
    for (i64 i = 0; i < pairs; ++i)
      write_parts(out + i * kExpandedSlots + r, read<std::uint32_t>(in.at + r * in.row + i * in.pair));
}

struct RightPanels {
  const std::uint16_t* at;
  i64 stride;  // elements between panels
};

// Up to kRowsAtOnce rows against all panels, for at most kExpandedPairs pairs of depth.
void short_block(i64 rows, i64 columns, i64 pairs, const LeftRows& left, const RightPanels& right,
                 const TileOutput& out, const Prefetch& ahead) {
  alignas(64) float a[kGroupsAtOnce][kExpandedPairs * kExpandedSlots];
  for (i64 group = 0; group * kGroupRows < rows; ++group)
    expand(lesser(rows - group * kGroupRows, kGroupRows), pairs, left.from(group, 0), a[group]);
  const i64 panels = (columns + kPanelRows - 1) / kPanelRows;
  for (i64 panel = 0; panel < panels; ++panel)
    for (i64 row = 0; row < rows; row += kTall) {
      const i64 column = panel * kPanelRows, group = row / kGroupRows, in_group = row % kGroupRows;
      const i64 tile = group * panels + panel;
      const std::uint16_t* next = in_group == 0 && tile < ahead.left ? ahead.at + tile * ahead.stride : nullptr;
      panel_tile<Expanded>(lesser(rows - row, kTall), {{a[group] + in_group}, right.at + panel * right.stride, pairs},
                           {out.c + row * out.stride + column, out.stride, out.store}, columns - column, next);
    }
}

// Up to kRowsAtOnce rows of one strip against all panels.
void strip_block(i64 rows, i64 columns, i64 pairs, const LeftRows& left, const RightPanels& right,
                 const TileOutput& out, Prefetch ahead) {
  StoreMode store = out.store;
  for (i64 first = 0; first < pairs; first += kExpandedPairs) {
    short_block(rows, columns, lesser(pairs - first, kExpandedPairs), left.from(0, first),
                {right.at + first * kPairs, right.stride}, {out.c, out.stride, store}, ahead);
    if (ahead.at) ahead.at += kExpandedPairs / 4 * 32;
    store = StoreMode::accumulate;
  }
}

void block(i64 rows, i64 columns, const Strip* strips, int count, const TileOutput& out) {
  const DenormalsAreZeros as_vdpbf16ps;
  for (i64 row = 0; row < rows; row += kRowsAtOnce)
    for (int s = 0; s < count; ++s)
      strip_block(lesser(rows - row, kRowsAtOnce), columns, strips[s].steps,
                  {strips[s].a + row * strips[s].a_stride, strips[s].a_stride, 2, kGroupRows * strips[s].a_stride},
                  {strips[s].b, strips[s].b_stride},
                  {out.c + row * out.stride, out.stride, s == 0 ? out.store : StoreMode::accumulate}, {});
}

void grouped_block(i64 rows, i64 columns, const GroupedStrip* strips, int count, const TileOutput& out,
                   Prefetch* ahead) {
  const DenormalsAreZeros as_vdpbf16ps;
  const i64 panels = (columns + kPanelRows - 1) / kPanelRows;
  for (i64 row = 0; row < rows; row += kRowsAtOnce) {
    const i64 some = lesser(rows - row, kRowsAtOnce);
    for (int s = 0; s < count; ++s)
      strip_block(some, columns, strips[s].steps,
                  {strips[s].a + row * 2 * strips[s].steps, 2, kSlots, kSlots * strips[s].steps},
                  {strips[s].b, strips[s].b_stride},
                  {out.c + row * out.stride, out.stride, s == 0 ? out.store : StoreMode::accumulate},
                  ahead && s == 0 ? *ahead : Prefetch{});
    if (!ahead) continue;
    const i64 used = lesser(ahead->left, panels * ((some + kGroupRows - 1) / kGroupRows));
    ahead->at += used * ahead->stride;
    ahead->left -= used;
  }
}

// ---- few rows: the work of decoding, bound by reading the weights ----

constexpr i64 kBlock = kBf16x12Depth / 2;  // pairs of depth: 8 KiB of a panel, which all rows use from the L1 cache

// Up to this number of rows multiply weights of 12 bits in the registers where they are unpacked, so that reading never
// pauses. The sums of more rows leave no registers for that.
constexpr int kUnpackedRows = kTall * 2 / 3 < kAcross ? 1 : kTall * 2 / 3 / kAcross * 2;

// With AVX2 and NEON more rows are widened before they meet the weights: to expand their pairs again for every panel
// takes more than half as many instructions as the products. A slab of the depth of all rows takes 65 KiB.
constexpr bool kWidensRows = kBytes < 64 && kParts == 2;
constexpr i64 kSlab = 512;  // pairs of depth
struct WidenedSlab {
  static constexpr i64 kRow = 2 * kSlab + 16;  // floats between rows: they share no set of the L1 cache
  alignas(64) float at[kMaxSkinnyRows * kRow];
  WidenedSlab(i64 rows, i64 pairs, const std::uint16_t* a, i64 stride) {
    for (i64 r = 0; r < rows; ++r)
      for (i64 i = 0; i < 2 * pairs; ++i) {
        const std::uint32_t bits = static_cast<std::uint32_t>(a[r * stride + i]) << 16;
        memcpy(at + r * kRow + i, &bits, sizeof bits);
      }
  }
};

// Calls multiply(begin, end, rows_at) for ranges of the pairs of depth; rows_at(row, pair) returns the rows of A from
// there on.
template <class F_>
[[gnu::always_inline]] inline void for_each_slab(const GemmShape& shape, const std::uint16_t* a, F_ multiply) {
  const i64 pairs = shape.k / 2;
  if (!kWidensRows || shape.m <= kUnpackedRows)
    return multiply(
        0, pairs, [&](i64 row, i64 pair) __attribute__((always_inline)) {
          return PairsOfRows{a + row * shape.k + 2 * pair, shape.k};
        });
  if constexpr (kWidensRows)
    for (i64 begin = 0; begin < pairs; begin += kSlab) {
      const i64 end = lesser(pairs, begin + kSlab);
      const WidenedSlab slab(shape.m, end - begin, a + 2 * begin, shape.k);
      multiply(
          begin, end, [&](i64 row, i64 pair) __attribute__((always_inline)) {
            return WidenedRows{slab.at + row * WidenedSlab::kRow + 2 * (pair - begin), WidenedSlab::kRow};
          });
    }
}

// Rows of A against one block of a panel; a(row) returns the rows of A from `row` on.
template <class A>
[[gnu::always_inline]] inline void skinny_block(i64 m, A a, const std::uint16_t* b, i64 pairs, const TileOutput& out,
                                                i64 left) {
  const i64 tiles = (m + kTall - 1) / kTall;
  for (i64 t = 0; t < tiles; ++t) {
    const i64 row = m * t / tiles, rows = m * (t + 1) / tiles - row;
    panel_tile<decltype(a(row))>(rows, {a(row), b, pairs}, {out.c + row * out.stride, out.stride, out.store}, left,
                                 nullptr);
  }
}

struct PairRange {
  i64 begin, end;
};

// Visits the blocks of every panel in order: take(column, first pair, pairs, output).
template <class F_>
[[gnu::always_inline]] inline void panel_by_panel(const GemmShape& shape, PairRange depth, const TileOutput& out,
                                                  F_ take) {
  for (i64 column = 0; column < shape.n; column += kPanelRows)
    for (i64 pair = depth.begin; pair < depth.end; pair += kBlock)
      take(column, pair, lesser(depth.end - pair, kBlock),
           TileOutput{out.c + column, out.stride, pair > 0 ? StoreMode::accumulate : out.store});
}

void fetch(const void* at, i64 bytes) {
  for (i64 line = 0; line < bytes; line += 64) fetch_line(static_cast<const char*>(at) + line);
}

void skinny_rows(const GemmShape& shape, const std::uint16_t* a, const std::uint16_t* w, const TileOutput& out) {
  const DenormalsAreZeros as_vdpbf16ps;
  for_each_slab(
      shape, a, [&](i64 begin, i64 end, auto rows_at) __attribute__((always_inline)) {
        panel_by_panel(
            shape, {begin, end},
            out, [&](i64 column, i64 pair, i64 pairs, const TileOutput& to) __attribute__((always_inline)) {
              const std::uint16_t* b = w + column * shape.k + pair * kPairs;
              fetch(b + kBlock * kPairs, pairs * kPairs * 2);
              skinny_block(
                  shape.m, [&](i64 row) __attribute__((always_inline)) { return rows_at(row, pair); }, b, pairs, to,
                  shape.n - column);
            });
      });
}

constexpr i64 kLineBytes = 64, kTwoPairsBytes = 3 * kLineBytes;  // of a line; of two pairs of depth in 12 bits
// Prefetch distance: the next block, line by line, because a core follows few lines at once and would wait for a burst.
constexpr i64 kBlockBytes = sizes::bf16x12_bytes(kPanelRows, kBf16x12Depth);
// Prefetch distance, bytes, where weights are unpacked in registers. These lines go into L1: with L2 decoding is about
// 15 % slower on two cores of a Zen 4 (one row with AVX2, four with AVX-512).
constexpr i64 kUnpackedAhead = 4096;

// A register of each of the four vectors that two pairs of depth have; `at`: in the first of them.
[[gnu::always_inline]] inline void unpack_bf16x12(const std::byte* at, Words base, Words (&out)[4]) {
  const Words a = read<Words>(at), b = read<Words>(at + kLineBytes), c = read<Words>(at + 2 * kLineBytes);
  const Words fourth = (a >> 11 & 0x000f) | (b >> 7 & 0x00f0) | (c >> 3 & 0x0700) | (c << 1 & 0x8000);
  out[0] = (a & 0x87ff) + base;
  out[1] = (b & 0x87ff) + base;
  out[2] = (c & 0x87ff) + base;
  out[3] = fourth + base;
}

void widen_block(i64 depth, const std::byte* block, std::uint16_t* out) {
  const auto& header = *reinterpret_cast<const Bf16x12Header*>(block);
  const i64 count = depth * kPanelRows;
  const std::byte* at = block + sizes::kBf16x12HeaderBytes;
  if (header.overflow) {
    for (i64 i = 0; i < count; i += 2 * kPairs, at += kTwoPairsBytes) {
      fetch(at + kBlockBytes, kTwoPairsBytes);
      memcpy(out + i, at, kTwoPairsBytes);
      memcpy(out + i + 96, header.overflow + i / 4, kLineBytes);
    }
    return;
  }
  const Words base = Words{} + header.base;
  for (i64 i = 0; i < count; i += 2 * kPairs, at += kTwoPairsBytes) {
    fetch(at + kBlockBytes, kTwoPairsBytes);
    for (int part = 0; part < kLineBytes; part += kBytes) {
      Words of[4];
      unpack_bf16x12(at + part, base, of);
      for (int v = 0; v < 4; ++v) write(out + i + kPairs / 2 * v + part / 2, of[v]);
    }
  }
  for (int i = 0; i < header.exception_count; ++i) out[header.exceptions[i].at] = header.exceptions[i].bits;
}

template <int Part, int R>
[[gnu::always_inline]] inline void add_unpacked(const PairsOfRows& a, W low, W high, F (&acc)[R][kAcross], int at) {
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    const F x = a.part<Part>(r);
    add_product(x, part_of<Part>(low), acc[r][at]);
    add_product(x, part_of<Part>(high), acc[r][kAcross / 2 + at]);
  }
}

// The sums of R rows with one block without exceptions.
template <int R>
[[gnu::noinline]] void bf16x12_tile(PairsOfRows a, i64 pairs, const std::byte* at, Words base, const TileOutput& out,
                                    i64 left) {
  constexpr int kHalf = kAcross / 2;  // registers of a line
  F acc[R][kAcross];
  read_sums(out, left, acc);
#pragma GCC unroll 1
  for (i64 i = 0; i < pairs; i += 2, at += kTwoPairsBytes) {
    for (int line = 0; line < 3; ++line) fetch_line_to_l1(at + kUnpackedAhead + kLineBytes * line);
    const PairsOfRows first = a;
#pragma GCC unroll 4
    for (int line = 0; line < kHalf; ++line) {
      Words of[4];
      unpack_bf16x12(at + kBytes * line, base, of);
      a = first;
#pragma GCC unroll 2
      for (int pair = 0; pair < 2; ++pair, a.next()) {
        const W low = (W)of[2 * pair], high = (W)of[2 * pair + 1];
        if constexpr (kParts == 2) add_unpacked<1>(a, low, high, acc, line);
        add_unpacked<0>(a, low, high, acc, line);
      }
    }
  }
  write_sums(acc, out, left);
}

using Bf16x12Tile = void (*)(PairsOfRows, i64, const std::byte*, Words, const TileOutput&, i64);
template <class Rows>
struct Bf16x12Tiles;
template <int... R>
struct Bf16x12Tiles<std::integer_sequence<int, R...>> {
  static constexpr Bf16x12Tile of[] = {bf16x12_tile<R + 1>...};  // rows - 1
};

void skinny_bf16x12(const GemmShape& shape, const std::uint16_t* a, const std::byte* w, const TileOutput& out) {
  static_assert(kBf16x12Depth == 2 * kBlock && kSlab % kBlock == 0);
  const DenormalsAreZeros as_vdpbf16ps;
  alignas(64) std::uint16_t block[kBlock * kPairs];
  for_each_slab(
      shape, a, [&](i64 begin, i64 end, auto rows_at) __attribute__((always_inline)) {
        panel_by_panel(
            shape, {begin, end},
            out, [&](i64 column, i64 pair, i64 pairs, const TileOutput& to) __attribute__((always_inline)) {
              const std::byte* const at =
                  w + sizes::bf16x12_bytes(column, shape.k) + sizes::bf16x12_bytes(kPanelRows, 2 * pair);
              const auto& header = *reinterpret_cast<const Bf16x12Header*>(at);
              if (shape.m <= kUnpackedRows && !header.overflow && header.exception_count == 0)
                return Bf16x12Tiles<std::make_integer_sequence<int, kUnpackedRows>>::of[shape.m - 1](
                    {a + 2 * pair, shape.k}, pairs, at + sizes::kBf16x12HeaderBytes, Words{} + header.base, to,
                    shape.n - column);
              widen_block(2 * pairs, at, block);
              skinny_block(
                  shape.m, [&](i64 row) __attribute__((always_inline)) { return rows_at(row, pair); }, block, pairs, to,
                  shape.n - column);
            });
      });
}

void widen_bf16x12(i64 columns, i64 k, i64 begin, i64 depth, const std::byte* w, std::uint16_t* out) {
  for (i64 n = 0; n < columns; n += kPanelRows)
    for (i64 d = begin; d < begin + depth; d += kBf16x12Depth)
      widen_block(begin + depth - d < kBf16x12Depth ? begin + depth - d : kBf16x12Depth,
                  w + sizes::bf16x12_bytes(n, k) + sizes::bf16x12_bytes(kPanelRows, d),
                  out + n * depth + (d - begin) * kPanelRows);
}

// ---- layouts ----

// out[0, n) = bf16 of vectors that at(i, left) returns, with a zero behind an odd n.
template <class Vector>
[[gnu::always_inline]] inline void narrow_run(i64 n, std::uint16_t* out, Vector at) {
  i64 i = 0;
  for (; i + kWidth <= n; i += kWidth) write(out + i, __builtin_convertvector(narrow(at(i, n - i)), Halves));
  if (i == n) return;
  const auto last = __builtin_convertvector(narrow(at(i, n - i)), Halves);
  memcpy(out + i, &last, static_cast<size_t>((n - i + 1) / 2 * 2) * sizeof(std::uint16_t));
}

void lay_out_rows(i64 rows, i64 k, float scale, MatrixView x, LaidOutRows out) {
  for (i64 r = 0; r < rows; ++r) {
    const float* in = x.data + r * x.stride;
    narrow_run(
        k, out.data + r * out.stride, [&](i64 i, i64 left) __attribute__((always_inline)) {
          return read_floats(in + i, left) * scale;
        });
  }
}

constexpr i64 kRun = 128;  // values of a row that are rounded before their pairs are distributed

// Rounds a row of k values and writes its pairs `stride` elements apart.
template <class Vector>
[[gnu::always_inline]] inline void distribute_pairs(i64 k, std::uint16_t* out, i64 stride, Vector at) {
  std::uint16_t run[kRun];
  for (i64 first = 0; first < k; first += kRun) {
    const i64 n = k - first < kRun ? k - first : kRun;
    narrow_run(
        n, run, [&](i64 i, i64 left) __attribute__((always_inline)) { return at(first + i, left); });
    for (i64 i = 0; i < n; i += 2, out += stride) write(out, read<std::uint32_t>(run + i));
  }
}
void distribute_zeros(i64 pairs, std::uint16_t* out, i64 stride) {
  for (i64 i = 0; i < pairs; ++i) write(out + i * stride, std::uint32_t{0});
}

void lay_out_columns(i64 rows, i64 columns, float scale, MatrixView x, LaidOutRows out) {
  for (i64 r = 0; r < rows; r += 2)
    for (i64 c = 0; c < columns; ++c) {
      const float* at = x.data + r * x.stride + c;
      const std::uint32_t pair =
          pair_of(narrow_one(at[0] * scale), r + 1 < rows ? narrow_one(at[x.stride] * scale) : std::uint16_t{0});
      memcpy(out.data + c * out.stride + r, &pair, sizeof pair);
    }
}

void pack_rows(i64 columns, i64 k, const float* b, i64 b_stride, std::uint16_t* out) {
  const i64 pairs = (k + 1) / 2, padded = (columns + kPanelRows - 1) / kPanelRows * kPanelRows;
  for (i64 n = 0; n < padded; ++n) {
    std::uint16_t* to = out + n / kPanelRows * pairs * kPairs + n % kPanelRows * 2;
    if (n < columns)
      distribute_pairs(
          k, to, kPairs, [&](i64 i, i64 left) __attribute__((always_inline)) {
            return read_floats(b + n * b_stride + i, left);
          });
    else
      distribute_zeros(pairs, to, kPairs);
  }
}

[[gnu::always_inline]] inline F activation(const Activations& x, const float* at, i64 column, float inv, i64 n) {
  const F v = read_floats(at + column, n);
  if (!x.inv) return v;
  return v * (F{} + inv) * (read_floats(x.gain.w + column, n) + x.gain.offset);
}

// Panels along the columns of x; reads along its rows.
void panels(i64 depth, i64 columns, const Activations& x, std::uint16_t* out) {
  const i64 pairs = (depth + 1) / 2, padded = (columns + kPanelRows - 1) / kPanelRows * kPanelRows;
  for (i64 pair = 0; pair < pairs; ++pair) {
    const float* row = x.x + 2 * pair * x.stride;
    const bool whole = 2 * pair + 1 < depth;
    const float even_inv = x.inv ? x.inv[2 * pair] : 1.0f, odd_inv = x.inv && whole ? x.inv[2 * pair + 1] : 1.0f;
    for (i64 column = 0; column < padded; column += kWidth) {
      const F even = activation(x, row, column, even_inv, columns - column);
      const F odd = whole ? activation(x, row + x.stride, column, odd_inv, columns - column) : F{};
      write(out + column / kPanelRows * kPairs * pairs + pair * kPairs + column % kPanelRows * 2, paired(even, odd));
    }
  }
}

void pack_columns(i64 depth, i64 columns, const float* b, i64 b_stride, std::uint16_t* out) {
  panels(depth, columns, {b, b_stride}, out);
}

// 32 bytes: four blocks of two rows and one pair of depth.
typedef std::uint64_t FourBlocks __attribute__((vector_size(32)));

// (n, k), (n, k + 1), (n + 1, k), (n + 1, k + 1) become (n, k), (n + 1, k), (n, k + 1), (n + 1, k + 1) in every block.
[[gnu::always_inline]] inline FourBlocks transposed_blocks(FourBlocks x) {
  typedef std::uint16_t Elements __attribute__((vector_size(32)));
  const auto e = (Elements)x;
  return (FourBlocks)__builtin_shufflevector(e, e, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
}

// Four vectors of four blocks: rows become columns.
[[gnu::always_inline]] inline void transpose_blocks(FourBlocks (&v)[4]) {
  const FourBlocks a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6),
                   b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7),
                   c = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6),
                   d = __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

void transpose_panels(const std::uint16_t* w, i64 k_total, const PanelBlock& part, std::uint16_t* out) {
  constexpr i64 kRowsOfBlocks = 8, kPairsAtOnce = 4;
  const i64 first = part.first_column, columns = part.columns;
  for (i64 n = 0; n < part.depth; n += kRowsOfBlocks) {
    const std::uint16_t* panel = w + packed_index(k_total, part.begin + n, first);
    for (i64 k = 0; k < columns; k += kPanelRows) {
      const i64 there = columns - k < kPanelRows ? (columns - k) / 2 : kPanelRows / 2;  // K is even
      std::uint16_t* to = out + k * part.depth + n * kPanelRows;
      for (i64 pair = 0; pair < kPanelRows / 2; pair += kPairsAtOnce) {
        FourBlocks v[kPairsAtOnce];
        for (i64 i = 0; i < kPairsAtOnce; ++i)
          v[i] = pair + i < there ? transposed_blocks(read<FourBlocks>(panel + (k / 2 + pair + i) * kPairs))
                                  : FourBlocks{};
        transpose_blocks(v);
        for (i64 i = 0; i < kPairsAtOnce; ++i) write(to + i * kPairs + 4 * pair, v[i]);
      }
    }
  }
}

// Lays out rows in groups; at(row, column, left) returns a vector of x.
template <class Vector>
[[gnu::always_inline]] inline void write_groups(i64 rows, i64 k, std::uint16_t* out, Vector at) {
  const i64 pairs = (k + 1) / 2, padded = (rows + kGroupRows - 1) / kGroupRows * kGroupRows;
  for (i64 row = 0; row < padded; ++row) {
    std::uint16_t* to = out + row / kGroupRows * pairs * kSlots + row % kGroupRows * 2;
    if (row < rows)
      distribute_pairs(
          k, to, kSlots, [&](i64 i, i64 left) __attribute__((always_inline)) { return at(row, i, left); });
    else
      distribute_zeros(pairs, to, kSlots);
  }
}

void groups(i64 rows, i64 k, const Activations& x, float scale, std::uint16_t* out) {
  write_groups(
      rows, k, out, [&](i64 row, i64 i, i64 left) __attribute__((always_inline)) {
        return activation(x, x.x + row * x.stride, i, x.inv ? x.inv[row] : 1.0f, left) * scale;
      });
}

// ---- logits ----

void logit_tile(i64 n, float cap, float* x, std::uint16_t* out, float* max, float* sum_so_far) {
  constexpr float kLog2E = 1.44269504f;
  V top = splat(*max);
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        V v = splat(*max);  // unused lanes
        memcpy(&v, x + i, static_cast<size_t>(c) * sizeof(float));
        if (cap > 0) {
          v = tanh(v / cap) * cap;
          store_n(x + i, v, c);
        }
        V valid = splat(*max);
        memcpy(&valid, &v, static_cast<size_t>(c) * sizeof(float));
        top = larger(top, valid);
      });
  const float highest_now = highest(top), shift = -kLog2E * highest_now;
  V total{};
  for_vectors(
      n, [&](i64 i, i64 c) __attribute__((always_inline)) {
        const V v = load_n(x + i, c);
        V e = power_of_two(v * kLog2E + shift), counted{};
        memcpy(&counted, &e, static_cast<size_t>(c) * sizeof(float));
        total += counted;
        if (cap > 0) e *= 1.0f - (v / cap) * (v / cap);
        float values[16];
        memcpy(values, &e, sizeof values);
        std::uint16_t half[16];
        write_f16(half, values);
        write_f16(half + 8, values + 8);
        memcpy(out + i, half, static_cast<size_t>(c) * sizeof(std::uint16_t));
      });
  *sum_so_far = *sum_so_far * expf(*max - highest_now) + sum(total);
  *max = highest_now;
}

void scaled_groups(i64 rows, i64 n, const float* factor, const std::uint16_t* x, i64 stride, std::uint16_t* out) {
  write_groups(
      rows, n, out, [&](i64 row, i64 i, i64 left) __attribute__((always_inline)) {
        std::uint16_t half[kWidth] = {};
        memcpy(half, x + row * stride + i, static_cast<size_t>(left < kWidth ? left : kWidth) * sizeof *half);
        return read_f16(half) * factor[row];
      });
}

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
constexpr const char* kBf16Name = "bfdot";
#else
constexpr const char* kBf16Name = kFmaName;
#endif

constexpr CpuKernels kKernels{.bf16 = {.instructions = kBf16Name,
                                       .packed = {.block = block,
                                                  .skinny_rows = skinny_rows,
                                                  .lay_out_rows = lay_out_rows,
                                                  .lay_out_columns = lay_out_columns,
                                                  .pack_rows = pack_rows,
                                                  .pack_columns = pack_columns,
                                                  .transpose_panels = transpose_panels,
                                                  .skinny_bf16x12 = skinny_bf16x12,
                                                  .quantise_rows = quantise_rows,
                                                  .int8_rows = int8_rows,
                                                  .widen_int8 = widen_int8,
                                                  .widen_bf16x12 = widen_bf16x12},
                                       .gemm = {.tile_rows = kRowsAtOnce,
                                                .block = grouped_block,
                                                .groups = groups,
                                                .panels = panels,
                                                .logit_tile = logit_tile,
                                                .scaled_groups = scaled_groups}},
                              .f32 = f32::kProducts,
                              .int8_instructions = kInt8Name};

}  // namespace
}  // namespace mw::engine
