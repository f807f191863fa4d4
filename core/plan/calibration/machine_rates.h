// SPDX-License-Identifier: Apache-2.0
// How fast the engine is on a processor, as `bench` and finished runs measured it: the basis of every predicted time
// for the target cpu. Those of this machine are a file of the user's hardware folder, those of whole classes of
// processors are shipped. Plain values; any thread.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/plan/request/request.h"

namespace mw::plan {

inline constexpr int kBenchmarkRank = 16;           // of the benchmark's LoRA step, on all projections
enum class MachineWork { train, prefill, decode };  // train: that step

// The second model of a benchmark, of 3.5M parameters: its weights stay in the processor's caches.
inline constexpr const char* kSmallModel = "small";
model::Config benchmark_model(const std::string& id);  // kSmallModel, or of the catalogue; throws for an unknown one

struct MachineFigure {
  MachineWork work = MachineWork::train;
  model::DType weights = model::DType::bf16;
  int rows = 1, len = 512;  // len: tokens of a row; of decode: cached tokens of a sequence, in the mean
  double seconds = 0;       // of a step, a prompt or a decode step
  std::string model{};      // empty: that of the rates
  double kv_seconds = 0;    // of a decode step, in attention to cached tokens; 0: not measured
};

struct MachineRates {
  std::string processor{};     // engine::processor_model()
  std::string instructions{};  // to_string(engine::Cpu)
  std::string model{};         // of the catalogue
  int threads = 1;
  std::string date{}, source{};                          // "2026-11-29", "run-12"
  double f32_flops = 0, bf16_flops = 0, read_bytes = 0;  // per second, of all threads; bf16_flops 0: only f32
  double spread = 0;                                     // the largest spread_of() the rounds of a figure; 0: not known
  std::vector<MachineFigure> figures{};
};

// The processor for which a plan needs rates.
struct Processor {
  std::string model, instructions;
  int threads = 1;  // of the run, all devices together
  bool operator==(const Processor&) const = default;
};

// A finished run beside its plan with the rates in force, by which later plans of the same kind are corrected.
struct MeasuredRun {
  Processor processor{};
  int devices = 1;
  Work work = Work::train;
  model::DType weights = model::DType::bf16;
  double factor = 1;                   // measured seconds of its steps over those planned with `basis`
  double spread = 0;                   // spread_of() its steps, or what other programs took; 0: not known
  std::string basis{}, date{}, run{};  // basis_of() the rates; "2026-11-29", "run-12"
};

inline constexpr const char* kMachineRatesFile = "machine.json";  // in the user's hardware folder
// Throws Error HARDWARE-ROW or HARDWARE-FILE with file, row and key.
std::vector<MachineRates> read_machine_rates(const std::filesystem::path& file);
Json to_json(const MachineRates& rates);
// The user's file; empty without one. Throws as read_machine_rates().
struct MeasuredMachine {
  std::vector<MachineRates> rates{};
  std::vector<MeasuredRun> runs{};
};
MeasuredMachine own_measurements(const std::filesystem::path& user_folder);
// How far measured times with their weights lie from `middle`, robustly: 0.12 if a tenth of them takes 12 % longer or
// more, or a tenth so much less. 0 without times.
double spread_of(std::vector<std::pair<double, double>> times, double middle);

// Replace those of the same processor, instructions and threads in the user's file (of a run: the same work, weights
// and devices, too), and keep the others; new rates end the corrections by earlier runs. A measurement whose spread
// exceeds 15 % and the interval of what plans use without it is not kept, unless it is faster beyond both: other
// programs make steps slower and uneven, never faster. Return why it is not kept, else nothing. Throw if the file
// cannot be read: read it before a measurement, whose time would be lost.
std::string save_machine_rates(const std::filesystem::path& user_folder, const MachineRates& rates);
std::string save_measured_run(const std::filesystem::path& user_folder, const MeasuredRun& run);
std::string basis_of(const MachineRates& rates);
// Read from the shipped file of classes.
EngineCosts read_engine_costs(const std::filesystem::path& file);

// The rates to predict with: measured on this processor, of the nearest number of threads; else those of `shipped` for
// its instructions or the nearest lower ones, else the lowest. Null: there are none.
const MachineRates* rates_of(const std::vector<MachineRates>& own, const std::vector<MachineRates>& shipped,
                             const Processor& processor);

// Seconds that the planner gives a figure's work: of training the step, of serving the server's step.
double planned_seconds(const MachineFigure& figure, Request request);

enum class RatesOrigin { measured, shipped };
// The rates that plans use for a processor.
struct RatesInForce {
  const MachineRates* rates = nullptr;  // null: there are none
  RatesOrigin origin = RatesOrigin::shipped;
  EngineCosts costs{};
  const MeasuredRun* run = nullptr;  // newer than `rates`, of the same work, weights, threads and devices
};
// Sets peaks, bandwidth and efficiencies of a request for the engine, so that the plan of each measured figure takes
// the seconds that were measured (models between the two of a benchmark by the logarithm of their parameters), and that
// of a finished run its own; but many rows that decode on int8 weights, whose products are faster than those of bf16 by
// which prefill is planned, may take up to half as long again. Intervals: measured 15 % or their spread, shipped a
// factor of two and a half. `threads`: of a device; virtual devices share those of the machine, and may have a part of
// one.
void apply(const RatesInForce& found, double threads, Request& request);

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::plan::MachineWork>{"train", "prefill", "decode"};
