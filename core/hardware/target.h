// SPDX-License-Identifier: Apache-2.0
// The hardware that a plan is made for: a number of chips of one type in a topology. Plain values.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"

namespace mw::hardware {

enum class Vendor { tpu, gpu, cpu };
enum class Provenance { measured, published, derived, unverified };

// A number with its source.
struct Figure {
  double value = 0;
  double low = 0, high = 0;  // equal to `value` if no range is known
  Provenance kind = Provenance::published;
  std::string source{};  // "Google Cloud TPU v6e page", with date where known
  explicit operator bool() const { return value > 0; }
};

// Measured bandwidth of a collective by payload: points (payload bytes, bytes/s).
struct BandwidthCurve {
  std::vector<std::pair<double, double>> points{};  // ascending payload; if empty, the time is latency + bytes / peak
  int chips = 0;                                    // size of the group in the measurement
  std::string source{};
};

struct Chip {
  std::string id;    // "v5p", "h100"
  std::string name;  // "TPU v5p", "NVIDIA H100 SXM 80 GB"
  Vendor vendor = Vendor::tpu;
  std::string maker{};       // "NVIDIA", "AMD", "Google"; empty: not stated
  int devices_per_chip = 1;  // as counted by JAX or CUDA
  // Dense peaks per chip, in FLOP/s and bytes/s; a plan for a type whose peak is unknown (0) is refused.
  Figure bf16_flops, f32_flops, fp8_flops, int8_ops, memory_bandwidth;
  // Fractions of the peaks that a large matmul and a large copy reach.
  Figure matmul_efficiency, memory_efficiency;
  Figure fp8_efficiency;        // fraction of fp8_flops; matmul_efficiency applies if it is not measured
  Figure vector_ops;            // operations on 32-bit numbers per second of a TPU's vector units; 0: unknown
  Figure attention_efficiency;  // fraction of bf16_flops in PyTorch's own fused attention; 0: no figure of the chip
  Figure memory;                // bytes available to a program, per device, as the runtime reports them
  std::int64_t marketed_memory = 0;  // bytes per chip in the data sheet
  Figure on_chip_memory;             // bytes per chip of VMEM or CMEM, where XLA keeps what fits; 0: unknown or none
  // Interconnect between chips of one target, bytes/s in one direction. TPU: per link. GPU: per GPU into the switch (or
  // PCIe), links = 1.
  Figure link_bandwidth, link_latency;  // latency in s per hop or per call
  int links = 0;                        // per chip
  // Measured bus bandwidth: all-reduce within a node, between two chips, across nodes; all-gather.
  BandwidthCurve all_reduce, all_reduce_pair, all_reduce_nodes, all_gather;
  Figure host_link, egress;  // bytes/s per chip: PCIe to the host; network between hosts or slices
  int chips_per_host = 0;    // in targets with several hosts
  int chips_one_host = 0;    // largest target on one host (v6e: 8, although larger slices have hosts of 4)
  int max_chips = 0;         // largest target; 0: unknown
  int matrix_unit = 128;     // a matmul rounds rows and columns up to multiples of this (TPU); 1: no rounding
  std::int64_t tile_rows_f32 = 1, tile_rows_bf16 = 1, tile_rows_8bit = 1,
               tile_columns = 1;  // memory tiles; 1: no padding
  struct Fact {
    std::string name;
    std::string text;  // value with its unit
    std::string source;
  };
  std::vector<std::string> same_die;  // ids of chips with the same die and peaks, of which efficiencies may be used
  std::vector<Fact> facts;            // for display only: cores, VMEM, power, pod totals
};

struct Price {
  std::string chip;                 // chip id
  double usd_per_chip_hour = 0;     // 0: no price was found on `date`
  std::string region, price_class;  // "us-east5"; "on demand", "spot", "flex", "1y", "3y", "calendar"
  std::string machine;              // "a3-highgpu-2g" if the price is derived from a machine type
  std::string date, source;
  bool verified = true;
};
inline constexpr int kPriceDays = 90;  // after which a plan warns of a price
// The first day that the date of a price may mean: "2026-05" is 1 May 2026. Empty if there is no year.
std::optional<std::chrono::sys_days> first_day(const Price& price);
// Days since the first day of the price, at least 0; empty without a date.
std::optional<int> age_days(const Price& price, std::chrono::sys_days today);

struct Target {
  std::string id;  // "v5p-8", "2xh100", "cpu"
  Chip chip;
  std::vector<int> shape;  // chips per physical dimension: {2, 2, 1}; GPUs: {n} in one node, else {nodes, 8}; several
                           // slices: {slices, 2, 2, 1}
  std::vector<bool> wrap;  // per dimension: has wraparound links; GPU switch: true
  int slices = 1;          // TPU slices that the data-centre network connects
  std::string note;        // explains the name: "v5p-8: the suffix counts TensorCores, 2 per chip; 4 chips, 2x2x1"
  int chips() const;
  int devices() const { return chips() * chip.devices_per_chip; }  // in the mesh
  int hosts() const;
};

}  // namespace mw::hardware
