// SPDX-License-Identifier: GPL-3.0-or-later
// The subcommands of contract.md. Each returns the process's exit code and throws mw::Error for what main() reports.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/output.h"
#include "core/compare/comparison.h"
#include "core/experiment/experiment.h"
#include "core/hardware/catalogue.h"

namespace mw::app {

enum class Output { text, json };

struct Common {  // what every subcommand shares
  Output output = Output::text;
  std::vector<std::string> sets;
  std::filesystem::path runs_folder;
  std::filesystem::path file;  // EXP or PATH
  std::stop_token stop;        // Ctrl-C
};

experiment::Experiment load_experiment(const Common& common);  // the file with its --set overrides
// The shipped hardware with the user's own of ~/.config/meshwright/hardware; bad rows of the latter go to standard
// error.
hardware::Catalogue load_catalogue();
std::filesystem::path own_hardware_folder();  // ~/.config/meshwright/hardware; empty where there is no home

struct RunArgs {
  std::string resume;  // run id, or empty
  bool prove = false;  // compare steps on the mesh with one device's instead of training
  long prove_steps = 3;
};
int run_command(const Common& common, const RunArgs& args);
int prove_command(const Common& common, const RunArgs& args);

struct PlanArgs {
  std::string target;             // id in place of the file's, or empty
  std::filesystem::path against;  // another experiment, whose plan is set beside this one's
};
int plan_command(const Common& common, const PlanArgs& args);

struct SearchArgs {
  size_t top = 10;                     // 0: all
  std::string by = "time";             // time, cost, memory
  std::vector<std::string> targets{};  // besides the experiment's own
};
int search_command(const Common& common, const SearchArgs& args);

struct SizeArgs {
  std::filesystem::path adapter;  // PEFT folder, in place of lora.adapter
};
int size_command(const Common& common, const SizeArgs& args);

struct SweepArgs {
  std::string backend, url;   // in place of the file's, or empty
  std::filesystem::path out;  // folder for a vLLM-bench-compatible file per point
  std::string resume;         // run id, or empty
};
int sweep_command(const Common& common, const SweepArgs& args);

struct GenerateArgs {
  std::vector<std::string> prompts;
  std::string run;                // id or "latest", whose last checkpoint is the tuned model
  std::filesystem::path adapter;  // PEFT folder
  bool raw = false;               // continue the text instead of asking through the chat template
  std::filesystem::path logits;   // file for the prompts' logits, or empty
};
int generate_command(const Common& common, const GenerateArgs& args);

struct ServeArgs {
  int port = 8000;  // 0: one that is free, printed
  std::string host = "127.0.0.1", api_key;
  std::vector<std::string> allow_hosts, allow_origins;
};
int serve_command(const Common& common, const ServeArgs& args);

struct CalibrateArgs {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> runs, names;
  enum class Then { look, accept, remove } then = Then::look;
};
int calibrate_command(const Common& common, const CalibrateArgs& args);

struct AdapterArgs {
  std::filesystem::path base, adapter, out;
  std::string model;           // catalogue id, where convert has no --base
  std::optional<float> alpha;  // of an Orbax checkpoint
};
int merge_command(const Common& common, const AdapterArgs& args);
int convert_command(const Common& common, const AdapterArgs& args);

struct ExportArgs {
  std::string recipe;  // tunix, torchax, trl-fsdp, vllm-tpu, vllm-gpu
  std::filesystem::path out;
  bool force = false;  // write again what has been changed since
};
int export_command(const Common& common, const ExportArgs& args);

struct WatchArgs {
  std::vector<std::string> command;
  std::string name;
};
int watch_command(const Common& common, const WatchArgs& args);

struct LaunchArgs {
  std::string recipe, on, command, folder;
  std::vector<std::string> fetch;
  std::filesystem::path ssh_config;
  bool force = false;                    // into a folder that is not empty
  std::string reattach, cancel, forget;  // run ids: of these at most one, and then nothing else
  double patience_s = 1800;              // without a connection
};
int launch_command(const Common& common, const LaunchArgs& args);

struct ImportArgs {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> columns;  // FIELD=COLUMN of a CSV
};
int import_command(const Common& common, const ImportArgs& args);

struct AuditArgs {
  std::string target, model;         // ids, in place of what the results say
  std::vector<std::string> columns;  // FIELD=COLUMN of a CSV
};
int audit_command(const Common& common, const AuditArgs& args);

struct CompareArgs {
  std::vector<std::string> runs;  // ids, or files of results
  std::string baseline;           // one of them; empty: the first
  std::vector<double> train_usd;  // by column: what training cost before
  std::filesystem::path out;      // .csv, .md, .tex, .json; with a window .pdf, .png, .svg
  // Paints the comparison; empty where there is no window.
  std::function<void(const std::vector<compare::ComparedRun>&, const std::filesystem::path&)> picture{};
};
int compare_command(const Common& common, const CompareArgs& args);

struct ReplayArgs {
  std::string recording;                       // run id, or file
  std::string target, kv_dtype, prefix_cache;  // in place of the recording's, or empty; the last: on, off
  std::filesystem::path out;                   // the predicted set as a file
};
int replay_command(const Common& common, const ReplayArgs& args);

int inspect_command(const Common& common);
int runs_command(const Common& common);

}  // namespace mw::app
