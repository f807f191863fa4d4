// SPDX-License-Identifier: GPL-3.0-or-later
// Composition only: the command line of contract.md, Ctrl-C, and which room does what.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <tuple>

#include "app/commands.h"
#include "app/interrupt.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/store/store.h"
#ifdef MW_UI
#include "ui/shell/app.h"
#endif

namespace mw::app {
namespace fs = std::filesystem;

experiment::Experiment load_experiment(const Common& common) {
  experiment::Experiment experiment = experiment::Experiment::load(common.file);
  for (const std::string& note : experiment::apply_sets(experiment, common.sets))
    std::fprintf(stderr, "note: %s\n", note.c_str());
  return experiment;
}

namespace {

fs::path default_example() {
  return fs::path(MW_RESOURCES) / "examples" / "tiny-lora.json";
}

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    if (const char* value = std::getenv(name); value && *value) return true;
  return false;
}

struct Arguments {
  Common common;
  RunArgs run;
  PlanArgs plan;
  SearchArgs search;
  GenerateArgs generate;
  SizeArgs size;
  SweepArgs sweep;
  CalibrateArgs calibrate;
  ImportArgs import;
  AuditArgs audit;
  CompareArgs compare;
  ReplayArgs replay;
  ServeArgs serve;
  AdapterArgs adapter;
  ExportArgs exported;
  WatchArgs watch;
  LaunchArgs launch;
  bool json = false, start = false;
  fs::path out;
};

void add_runs_folder(CLI::App& command, Arguments& a) {
  command.add_option_function<std::string>(
      "--runs-dir",
      [&a](const std::string& folder) {
        if (folder.empty()) throw CLI::ValidationError("--runs-dir", "the name of the folder is empty");
        a.common.runs_folder = folder;
      },
      "Folder of the run store");
}

void add_common(CLI::App& command, Arguments& a, const char* file_help) {
  command.add_flag("--json", a.json, "JSON on standard output, nothing else");
  add_runs_folder(command, a);
  if (file_help) {
    command.add_option("file", a.common.file, file_help)->required();
    command.add_option("--set", a.common.sets, "key=value, overrides a key of the experiment (repeatable)")
        ->allow_extra_args(false);
  }
}

void add_replay(CLI::App& command, Arguments& a) {
  command.add_option("recording", a.replay.recording, "Run of the store, results with details, or a file of requests")
      ->required();
  add_common(command, a, "Experiment file: who serves, in place of the recording's own server");
  command.get_option("file")->required(false);
  command.add_option("--target", a.replay.target, "Chips that serve instead: v6e-8, 2xh100 ...");
  command.add_option("--kv-dtype", a.replay.kv_dtype, "Type of the KV cache instead");
  command.add_option("--prefix-cache", a.replay.prefix_cache, "Prefix cache instead")
      ->check(CLI::IsMember({"on", "off"}));
  command.add_option("--out", a.replay.out,
                     "File for what is predicted, with its requests (import and compare read it)");
}

void add_calibration(CLI::App& command, CalibrateArgs& args) {
  using Then = CalibrateArgs::Then;
  command.add_option("files", args.files, "Measurements in the form of resources/hardware/measurements.json");
  command.add_option("--run-id,--run", args.runs, "A finished training run of this machine (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--fit", args.names, "Efficiencies to fit: matmul (the default), memory, collectives, step_s ...")
      ->delimiter(',');
  auto* accept = command.add_flag_callback(
      "--accept", [&args] { args.then = Then::accept; }, "Keep what is proposed: plans use it from then on");
  command
      .add_flag_callback(
          "--remove", [&args] { args.then = Then::remove; }, "Remove your calibration: the shipped one is back")
      ->excludes(accept);
}

void add_launch(CLI::App& command, Arguments& a) {
  add_common(command, a, "Experiment file");
  command.get_option("file")->required(false);
  LaunchArgs& args = a.launch;
  command.add_option("--recipe", args.recipe, "tunix, torchax, trl-fsdp, vllm-tpu or vllm-gpu");
  command.add_option("--on", args.on,
                     "local, ssh:[USER@]HOST[:PORT], gcloud-tpu:name=N,zone=Z, kubectl:pod=P,namespace=N, or a command "
                     "of the local shell that runs {command} there (it is kept with the run: no secrets in it)");
  command.add_option("--command", args.command, "What is started in the folder there; else ./launch.sh");
  command.add_option("--dir", args.folder, "Folder there, from the home folder; else a new one in meshwright/");
  command.add_flag("--force", args.force, "Write into that folder though it is not empty: training goes on from it");
  command.add_option("--fetch", args.fetch, "What is fetched at the end, from the folder there (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--ssh-config", args.ssh_config, "ssh's configuration file, instead of ~/.ssh/config")
      ->check(CLI::ExistingFile);
  command.add_option("--patience", args.patience_s, "Seconds without a connection before it is given up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  auto* reattach = command.add_option("--reattach", args.reattach, "Go on with this run, where its record ends");
  auto* cancel = command.add_option("--cancel", args.cancel, "End this run's job there, and fetch what it left");
  command.add_option("--forget", args.forget, "End this run's record: its job will never be reached again")
      ->excludes(reattach)
      ->excludes(cancel);
  reattach->excludes(cancel);
}

void add_results(CLI::App& importing, CLI::App& audit, CLI::App& compare, Arguments& a) {
  constexpr const char* kColumn = "FIELD=COLUMN: which column of a CSV is vLLM's FIELD (repeatable)";
  add_common(importing, a, nullptr);
  importing.add_option("files", a.import.files, "Results: vLLM bench, GuideLLM, llama-bench, CSV, or this program's")
      ->required();
  importing.add_option("--column", a.import.columns, kColumn)->allow_extra_args(false);
  add_common(audit, a, nullptr);
  audit.add_option("file", a.common.file, "Results, as for import, or a sweep's id of the run store")->required();
  audit.add_option("--target", a.audit.target, "Chips that are said to have done it: v6e-8, 2xh100 ...");
  audit.add_option("--model", a.audit.model, "Model that is said to have run: gemma4-31b ...");
  audit.add_option("--column", a.audit.columns, kColumn)->allow_extra_args(false);
  add_common(compare, a, nullptr);
  compare.add_option("runs", a.compare.runs, "Runs of the store, or files of results")->required();
  compare.add_option("--baseline", a.compare.baseline, "Run or name of a column that the others are compared with");
  compare.add_option("--train-usd", a.compare.train_usd, "What training cost before each of them serves, in order")
      ->delimiter(',');
  compare.add_option("--out", a.compare.out, "File for the table: .csv, .md, .tex, .json, .pdf, .png or .svg");
}

void add_adapter(CLI::App& command, AdapterArgs& args) {
  command.add_option("--adapter", args.adapter, "PEFT folder, or an Orbax checkpoint that Tunix saved")->required();
  command.add_option("--out", args.out, "Folder to make; must not be there, or be empty")->required();
  command.add_option("--alpha", args.alpha, "Of the LoRA run: Orbax checkpoints do not say it")
      ->check(CLI::PositiveNumber);
}

int open_window(const Arguments& a, int& argc, char** argv) {
#ifdef MW_UI
  ui::WindowOptions options{
      .experiment = a.common.file, .runs_folder = a.common.runs_folder, .resources = MW_RESOURCES};
  // The very first start, without a file, shows what the program is for: the example's run, live.
  const bool first_start = a.common.file.empty() && !is_there(a.common.runs_folder);
  if (a.start || first_start) options.start = ui::Start::run;
  return ui::run_window(argc, argv, options);
#else
  (void)a, (void)argc, (void)argv;
  throw Error({.id = "NO-WINDOW", .message = "this build has no window", .fix = "configure with -DMW_UI=ON"});
#endif
}

#ifdef MW_UI
// A page shows real runs, so there must be one of its kind: the default example, with these changes.
void ensure_run(const Common& common, const std::string& kind, const std::vector<std::string>& sets) {
  for (const store::RunRow& row : store::Store(common.runs_folder).list())
    if (row.state == RunState::done &&
        (kind == "train" ? row.method != "size" && row.method != "sweep" : row.method == kind))
      return;
  Common run = common;
  run.output = Output::text;
  run.file = default_example();
  run.sets = sets;
  run.sets.push_back("kind=" + kind);
  run_command(run, {});
}

// The same of sweeps: the published servers, simulated.
void ensure_sweeps(const Common& common) {
  for (const store::RunRow& row : store::Store(common.runs_folder).list())
    if (row.state == RunState::done && row.method == "sweep") return;
  for (const char* name : {"paper-serve-v6e-8.json", "paper-serve-2xh100.json"}) {
    Common sweep = common;
    sweep.output = Output::text;
    sweep.file = fs::path(MW_RESOURCES) / "examples" / name;
    sweep.sets = {};
    sweep_command(sweep, {});
  }
}
#endif

int tour_command(Arguments& a, int& argc, char** argv) {
#ifdef MW_UI
  ensure_run(a.common, "train", {});
  // A small device, so that the largest batches do not fit and say so.
  ensure_run(a.common, "size",
             {"name=Small world, batch sizes", "size.batches=1,2,4,8,16,32,64", "size.prompt_len=96",
              "size.new_tokens=32", "target.memory_gib=0.0625"});
  ensure_sweeps(a.common);
  Json screens = Json::array();
  for (const fs::path& png :
       ui::take_tour(argc, argv, {.out = a.out, .runs_folder = a.common.runs_folder, .resources = MW_RESOURCES}))
    screens.push_back(png.string());
  if (a.json)
    print_json({{"screens", screens}});
  else
    for (const Json& png : screens) print_text("%s\n", png.get<std::string>().c_str());
  return 0;
#else
  return open_window(a, argc, argv);
#endif
}

// A first word that is neither a command nor a file was meant as a command.
void refuse_unknown_command(const CLI::App& cli, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word[0] == '-' || word.find_first_of("/.") != std::string::npos || is_there(word)) return;
  std::vector<std::string> names;
  for (const CLI::App* command : cli.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  throw Error({.id = "USAGE",
               .message = "unknown command '" + word + "'; did you mean '" + nearest(word, names, 1).at(0) + "'?"});
}

int run_main(int argc, char** argv) {
  survive_file_size_limit();
  Arguments a;
  a.common.runs_folder = store::default_folder();
  CLI::App cli{"Meshwright: design, run and compare Gemma fine-tune and serve experiments", "meshwright"};
  cli.set_version_flag("--version", MW_VERSION);
  cli.require_subcommand(0, 1);
  add_runs_folder(cli, a);
  cli.add_flag("--run", a.start, "Start the run when the window opens");
  cli.footer("Without a subcommand the window opens, with the experiment FILE if one is given.");

  auto* run = cli.add_subcommand("run", "Train in the engine on this machine");
  add_common(*run, a, "Experiment file");
  run->get_option("file")->required(false);
  run->add_option("--resume", a.run.resume, "Continue this run from its last checkpoint");
  run->add_flag("--prove", a.run.prove, "Compare the mesh's steps with one device's, tensor by tensor, instead");
  run->add_option("--prove-steps", a.run.prove_steps, "Steps that --prove compares")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  auto* plan = cli.add_subcommand("plan", "Predict memory, time and cost of an experiment on its target");
  add_common(*plan, a, "Experiment file");
  plan->add_option("--target", a.plan.target, "Plan for this target instead: v5p-8, v6e-8, 2xh100, cpu ...");
  plan->add_option("--against", a.plan.against, "Experiment whose plan is set beside this one's");
  auto* search = cli.add_subcommand("search", "Predict every legal mesh, batch, remat and loss chunk, ranked");
  add_common(*search, a, "Experiment file");
  search->add_option("--top", a.search.top, "How many to show; 0: all that fit")->capture_default_str();
  search->add_option("--by", a.search.by, "What comes first")
      ->check(CLI::IsMember({"time", "cost", "memory"}))
      ->capture_default_str();
  search->add_option("--targets", a.search.targets, "Further targets, compared with the experiment's own")
      ->delimiter(',');
  auto* size = cli.add_subcommand("size", "Measure how time and memory grow with the batch: rollout, forward, chunked");
  add_common(*size, a, "Experiment file");
  size->add_option("--adapter", a.size.adapter, "With this PEFT adapter attached");
  auto* sweep = cli.add_subcommand("sweep", "Latency sweep over request rates and input lengths");
  add_common(*sweep, a, "Experiment file");
  sweep->get_option("file")->required(false);
  sweep->add_option("--backend", a.sweep.backend, "Who serves, in place of sweep.backend")
      ->check(CLI::IsMember({"engine", "model", "http"}));
  sweep->add_option("--url", a.sweep.url,
                    "Server of --backend http, in place of sweep.url; a user and password in it are not recorded");
  sweep->add_option("--out", a.sweep.out, "Folder for one file per point, with vLLM bench's fields");
  sweep->add_option("--resume", a.sweep.resume, "Go on with this sweep: points that it has are kept");
  auto* generate = cli.add_subcommand("generate", "Sample from the base and the tuned model");
  add_common(*generate, a, "Experiment file");
  generate->add_option("--prompt", a.generate.prompts, "What to ask or to continue (repeatable: answered together)")
      ->required()
      ->allow_extra_args(false);
  for (const auto& [option, key, help] :
       {std::tuple("--temperature", "sample.temperature", "0 is greedy"),
        {"--top-k", "sample.top_k", "Sample among the k most likely tokens; 0 is off"},
        {"--top-p", "sample.top_p", "Sample among the most likely tokens whose probabilities sum to p; 1 is off"},
        {"--seed", "sample.seed", "Seed of sampled text"}})
    generate->add_option_function<std::string>(
        option, [&a, key = std::string(key)](const std::string& text) { a.common.sets.push_back(key + "=" + text); },
        help);
  generate->add_option("--run-id,--run", a.generate.run, "Tuned model: last checkpoint of this run, or latest");
  generate->add_option("--adapter", a.generate.adapter, "Tuned model: a PEFT adapter folder");
  generate->add_flag("--raw", a.generate.raw, "Continue the text, without the chat template");
  generate->add_option(
      "--logits", a.generate.logits,
      "Safetensors file for the (tuned) model's logits at every position of each prompt: N.ids, N.logits");
  auto* serve = cli.add_subcommand("serve", "Answer the OpenAI protocol over HTTP with the experiment's model");
  add_common(*serve, a, "Experiment file");
  serve->add_option("--port", a.serve.port, "Port; 0: one that is free, which is printed")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  serve->add_option("--host", a.serve.host, "Address to listen on")->capture_default_str();
  serve->add_option("--api-key", a.serve.api_key, "Key that clients must send (or MESHWRIGHT_API_KEY)");
  serve
      ->add_option(
          "--allow-host", a.serve.allow_hosts,
          "Name under which clients may reach the server besides localhost, 127.0.0.0/8 and [::1] (repeatable); "
          "a server on another address answers to every name unless this is given")
      ->allow_extra_args(false);
  serve
      ->add_option("--allow-origin", a.serve.allow_origins,
                   "Origin whose web pages may use the server, such as http://localhost:3000 (repeatable); others are "
                   "refused")
      ->allow_extra_args(false);
  auto* calibrate =
      cli.add_subcommand("calibrate", "Fit the planner to your own measurements, and see the error of rows held out");
  add_common(*calibrate, a, nullptr);
  add_calibration(*calibrate, a.calibrate);
  auto* importing =
      cli.add_subcommand("import", "Serving benchmarks and training logs of other tools into the run store");
  auto* audit = cli.add_subcommand("audit", "Hold measured results against physical floors and against themselves");
  auto* compare = cli.add_subcommand("compare", "What differs between runs, and whether they may be compared");
  add_results(*importing, *audit, *compare, a);
  auto* exporting = cli.add_subcommand("export", "A folder that runs the experiment elsewhere, with its own README");
  add_common(*exporting, a, "Experiment file");
  exporting->add_option("--recipe", a.exported.recipe, "tunix, torchax, trl-fsdp, vllm-tpu or vllm-gpu")->required();
  exporting->add_option("--out", a.exported.out, "Folder to make; must not be there, be empty, or be an export")
      ->required();
  exporting->add_flag("--force", a.exported.force, "Write again files of an export that have been changed since");
  auto* replay =
      cli.add_subcommand("replay", "Serve recorded requests on another target, mesh, KV type or cache policy");
  add_replay(*replay, a);
  auto* merge = cli.add_subcommand("merge", "Add an adapter into its base model: a Hugging Face folder");
  add_common(*merge, a, nullptr);
  add_adapter(*merge, a.adapter);
  merge->add_option("--base", a.adapter.base, "Folder of the base model")->required();
  auto* convert = cli.add_subcommand("convert", "Orbax LoRA of Tunix to a PEFT adapter");
  add_common(*convert, a, nullptr);
  add_adapter(*convert, a.adapter);
  std::string to = "peft";
  convert->add_option("--to", to, "What to make")->check(CLI::IsMember({"peft"}))->capture_default_str();
  convert->add_option("--base", a.adapter.base, "Folder of the base model");
  convert->add_option("--model", a.adapter.model, "Its catalogue id, where the folder is not here");
  auto* watch = cli.add_subcommand("watch", "Record another program's run, live: watch -- COMMAND...");
  add_common(*watch, a, nullptr);
  watch->add_option("--name", a.watch.name, "What the run is called");
  watch->add_option("command", a.watch.command, "The program that prints event lines, and its arguments")->required();
  watch->positionals_at_end();
  auto* launch = cli.add_subcommand("launch", "Start an exported recipe elsewhere, follow it, fetch what it makes");
  add_launch(*launch, a);
  auto* inspect = cli.add_subcommand(
      "inspect", "Say what is in a checkpoint (Orbax, too), adapter, dataset, tokenizer, result, log or experiment");
  add_common(*inspect, a, "File or folder");
  auto* runs = cli.add_subcommand("runs", "List the runs of the store");
  add_common(*runs, a, nullptr);
  auto* tour = cli.add_subcommand("tour", "Open every page and save a PNG of each (needs no display)");
  add_common(*tour, a, nullptr);
  tour->add_option("--out", a.out, "Folder for the PNGs")->required();
  // Last, so that subcommand names win: a bare FILE opens in the window.
  cli.add_option("file", a.common.file, "Experiment to open in the window");

  refuse_unknown_command(cli, argc, argv);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = cli.exit(error, out, err);
    print_text("%s", out.str().c_str());
    print_error("%s", err.str().c_str());
    return code == 0 ? 0 : 2;
  }
  a.common.output = a.json ? Output::json : Output::text;
  if (tour->parsed()) return tour_command(a, argc, argv);
  if (cli.get_subcommands().empty() && has_display()) return open_window(a, argc, argv);

  const Interrupt interrupt;
  a.common.stop = interrupt.token();
  if (plan->parsed()) return plan_command(a.common, a.plan);
  if (search->parsed()) return search_command(a.common, a.search);
  if (size->parsed()) return size_command(a.common, a.size);
  if (sweep->parsed()) return sweep_command(a.common, a.sweep);
  if (generate->parsed()) return generate_command(a.common, a.generate);
  if (serve->parsed()) return serve_command(a.common, a.serve);
  if (calibrate->parsed()) return calibrate_command(a.common, a.calibrate);
  if (importing->parsed()) return import_command(a.common, a.import);
  if (audit->parsed()) return audit_command(a.common, a.audit);
#ifdef MW_UI
  a.compare.picture = [&](const std::vector<compare::ComparedRun>& columns, const fs::path& file) {
    ui::export_comparison_file(argc, argv, columns, file);
  };
#endif
  if (compare->parsed()) return compare_command(a.common, a.compare);
  if (exporting->parsed()) return export_command(a.common, a.exported);
  if (replay->parsed()) return replay_command(a.common, a.replay);
  if (merge->parsed()) return merge_command(a.common, a.adapter);
  if (convert->parsed()) return convert_command(a.common, a.adapter);
  if (watch->parsed()) return watch_command(a.common, a.watch);
  if (launch->parsed()) return launch_command(a.common, a.launch);
  if (inspect->parsed()) return inspect_command(a.common);
  if (runs->parsed()) return runs_command(a.common);
  if (!run->parsed()) {
    print_error("No display: running %s instead of opening the window.\n",
                a.common.file.empty() ? "the default example" : a.common.file.c_str());
    if (a.common.file.empty()) a.common.file = default_example();
  }
  if (a.common.file.empty() && (a.run.resume.empty() || a.run.prove))
    throw Error({.id = "USAGE",
                 .message = "run needs an experiment file or --resume RUN",
                 .fix = "for example: meshwright run " + default_example().string()});
  return a.run.prove ? prove_command(a.common, a.run) : run_command(a.common, a.run);
}

int end_with(const Error& error) {
  print_error("meshwright: %s\n", error.what());
  if (error.kind() == Error::Kind::cancelled) return 130;
  return error.kind() == Error::Kind::bad_input ? 2 : 1;
}

}  // namespace
}  // namespace mw::app

int main(int argc, char** argv) {
  try {
    return mw::app::run_main(argc, argv);
  } catch (const mw::Error& error) {
    return mw::app::end_with(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return mw::app::end_with(mw::system_error("cannot go on with", error.path1().string(), error.code().value()));
  } catch (const std::bad_alloc&) {
    mw::app::print_error("meshwright: there is not enough memory for this\n");
  } catch (const std::exception& error) {
    mw::app::print_error("meshwright: unexpected failure: %s\n", error.what());
  }
  return 1;
}
