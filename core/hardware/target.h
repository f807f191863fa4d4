// SPDX-License-Identifier: Apache-2.0
// What a plan is made for: so many chips of a kind in a topology. Plain values from resources/hardware; any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/hardware/figure.h"

namespace mw::hardware {

enum class Vendor { tpu, gpu, cpu };

// Time to move `bytes` between two neighbours or around a group: points of a measured curve (payload bytes, bytes/s).
struct BandwidthCurve {
  std::vector<std::pair<double, double>> points{};  // payload ascending; empty: latency + bytes / peak
  int chips = 0;                                    // the size of the group it was measured on
  std::string source{};
};

struct Chip {
  std::string id;    // "v5p", "h100"
  std::string name;  // "TPU v5p", "NVIDIA H100 SXM 80 GB"
  Vendor vendor = Vendor::tpu;
  int devices_per_chip = 1;  // what JAX or CUDA counts
  // Peaks per chip, dense, FLOP/s and bytes/s.
  Figure bf16_flops, fp8_flops, int8_ops, memory_bandwidth;
  // Shares of the peaks reached by a large matmul and a large copy.
  Figure matmul_efficiency, memory_efficiency;
  Figure fp8_efficiency;  // of fp8_flops; not measured: as matmul_efficiency
  Figure memory;  // bytes that a program may use, per device: what the runtime reports, not what is sold
  std::int64_t marketed_memory = 0;  // per chip
  // Interconnect between chips of one target. TPU: bytes/s of one link one way, links per chip. GPU: bytes/s one way
  // per GPU into the switch (or PCIe), links = 1.
  Figure link_bandwidth, link_latency;  // latency in s per hop or per call
  int links = 0;
  // Bus bandwidth by payload, where measured: all-reduce in a node, between two chips, across nodes; all-gather.
  BandwidthCurve all_reduce, all_reduce_pair, all_reduce_nodes, all_gather;
  Figure host_link, egress;  // PCIe per chip; between hosts or slices per chip, bytes/s
  int chips_per_host = 0;    // of a target of several hosts
  int chips_one_host = 0;    // largest target on one host (v6e: 8, although larger slices have hosts of 4)
  int max_chips = 0;         // of one target; 0: not known
  int matrix_unit = 128;     // rows and columns a matmul rounds up to (TPU); 1 where that does not matter
  std::int64_t tile_rows_f32 = 1, tile_rows_bf16 = 1, tile_rows_8bit = 1,
               tile_columns = 1;  // memory tiles; 1: no padding
  struct Fact {
    std::string name;
    std::string text;  // with its unit
    std::string source;
  };
  std::vector<Fact> facts;  // what no formula uses: cores, VMEM, power, pod totals
};

struct Price {
  std::string chip;  // chip id
  double usd_per_chip_hour = 0;
  std::string region, price_class;  // "us-east5"; "on demand", "spot", "flex", "1y", "3y", "calendar"
  std::string machine;              // "a3-highgpu-2g" where the price is of a machine
  std::string date, source;
  bool verified = true;
};

struct Target {
  std::string id;  // "v5p-8", "2xh100", "cpu"
  Chip chip;
  std::vector<int> shape;  // chips per physical dimension: {2, 2, 1}; GPUs: {n} in a node, {nodes, 8} beyond
  std::vector<bool> wrap;  // per dimension: the ring closes (torus link); GPU switch: true
  std::string note;        // what the name means: "v5p-8: the suffix counts TensorCores, 2 per chip; 4 chips, 2x2x1"
  int chips() const;
  int devices() const;  // chips * devices_per_chip: what the mesh has to cover
  int hosts() const;
};

}  // namespace mw::hardware
