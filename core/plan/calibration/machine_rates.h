// SPDX-License-Identifier: Apache-2.0
// How fast the engine is on a processor, as `bench` measured it: the basis of every predicted time for the target cpu.
// Those of this machine are a file of the user's hardware folder, those of whole classes of processors are shipped.
// Plain values; any thread.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/plan/request/request.h"

namespace mw::plan {

inline constexpr int kBenchmarkRank = 16;           // of the benchmark's LoRA step, on all projections
enum class MachineWork { train, prefill, decode };  // train: that step

struct MachineFigure {
  MachineWork work = MachineWork::train;
  model::DType weights = model::DType::bf16;
  int rows = 1, len = 512;  // len: tokens of a row; of decode: cached tokens of a sequence, in the mean
  double seconds = 0;       // of a step, a prompt or a decode step
};

struct MachineRates {
  std::string processor{};     // engine::processor_model()
  std::string instructions{};  // to_string(engine::Cpu)
  std::string model{};         // of the catalogue
  int threads = 1;
  std::string date{}, source{};                          // "2026-11-29", "run-12"
  double f32_flops = 0, bf16_flops = 0, read_bytes = 0;  // per second, of all threads; bf16_flops 0: only f32
  std::vector<MachineFigure> figures{};
};

// The processor for which a plan needs rates.
struct Processor {
  std::string model, instructions;
  int threads = 1;
};

inline constexpr const char* kMachineRatesFile = "machine.json";  // in the user's hardware folder
// Throws Error HARDWARE-ROW or HARDWARE-FILE with file, row and key.
std::vector<MachineRates> read_machine_rates(const std::filesystem::path& file);
std::vector<MachineRates> own_machine_rates(const std::filesystem::path& user_folder);  // none without the file
Json to_json(const MachineRates& rates);
// Replaces the rates of the same processor, instructions and threads in the user's file, and keeps the others. Throws
// if the file cannot be read: read it before a measurement, whose time would be lost.
void save_machine_rates(const std::filesystem::path& user_folder, const MachineRates& rates);

// The rates to predict with: measured on this processor, of the nearest number of threads; else those of `shipped` for
// its instructions or the nearest lower ones, else the lowest. Null: there are none.
const MachineRates* rates_of(const std::vector<MachineRates>& own, const std::vector<MachineRates>& shipped,
                             const Processor& processor);

// Seconds that the planner gives a figure's work: of training the step, of serving the server's step.
double planned_seconds(const MachineFigure& figure, Request request);

enum class RatesOrigin { measured, shipped };
// Sets peaks, bandwidth and efficiencies of a request for the engine, so that the plan of each measured figure takes
// the seconds that were measured; but many rows that decode on int8 weights, whose products are faster than those of
// bf16 by which prefill is planned, may take up to half as long again. Intervals: measured 15 %, shipped a factor of
// two and a half.
// `threads`: of a device; virtual devices share those of the machine, and may have a part of one.
void apply(const MachineRates& rates, RatesOrigin origin, double threads, Request& request);

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::plan::MachineWork>{"train", "prefill", "decode"};
