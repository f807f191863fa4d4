// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/sweep_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/url_secrets.h"

namespace mw::experiment {
namespace {

constexpr double kMostRate = 1e6;
constexpr int kMostTokens = 1 << 20;

int whole(const Experiment& e, std::string_view key) {
  return static_cast<int>(e.integer(key));
}

[[noreturn]] void refuse(const char* key, const std::string& found, const char* expected) {
  throw Error(
      {.id = "SWEEP", .message = "invalid value in the sweep", .place = key, .found = found, .expected = expected});
}

template <class T>
T parsed_number(const char* key, const std::string& text, T least, T most, const char* expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) || !(value <= most))
    refuse(key, text, expected);
  return value;
}

// Returns the values in ascending order without duplicates.
template <class T, class Read>
std::vector<T> numbers(const Experiment& e, const char* key, Read read) {
  std::vector<T> all;
  for (const std::string& text : e.list(key)) all.push_back(read(text));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.empty()) refuse(key, "an empty list", "at least one");
  return all;
}

double rate_of(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  return parsed_number("sweep.request_rates", text, 1e-6, kMostRate, "requests per second above 0, or inf");
}

template <class T, size_t N>
T enum_choice(const Experiment& e, const char* key, const std::array<std::string_view, N>& names) {
  const std::string name = e.string(key);
  return static_cast<T>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string on_off(bool on) {
  return on ? "on" : "off";
}

std::string mesh_text(const Experiment& e) {
  std::string text;
  for (const auto& [axis, size] : e.mesh()) text += (text.empty() ? "" : ", ") + axis + " " + std::to_string(size);
  return text;
}

// Records the configuration of the server. Not called for an HTTP server, whose configuration is unknown.
void add_server(const Experiment& e, formats::BenchSet& set) {
  auto& c = set.conditions;
  c["kv_dtype"] = e.string("serve.kv_dtype");
  c["weight_dtype"] = e.string("train.dtype");
  c["prefix_cache"] = on_off(e.flag("serve.prefix_cache"));
  c["chunked_prefill"] = on_off(e.flag("serve.chunked_prefill"));
  c["sliding_window_kv"] = on_off(e.flag("serve.sliding_window_kv"));
  c["async_scheduling"] = on_off(e.flag("serve.async_scheduling"));
  c["block_size"] = std::to_string(e.integer("serve.block_size"));
  c["max_num_seqs"] = std::to_string(e.integer("serve.max_num_seqs"));
  c["max_num_batched_tokens"] = std::to_string(e.integer("serve.max_num_batched_tokens"));
  c["max_model_len"] = std::to_string(e.integer("serve.max_model_len"));
  if (const std::string mesh = mesh_text(e); !mesh.empty()) c["mesh"] = mesh;
  for (const auto& [axis, size] : e.mesh())
    if (axis == "tp") c["tp"] = std::to_string(size);
}

void add_load(const Experiment& e, formats::BenchSet& set) {
  auto& c = set.conditions;
  c["arrival"] = e.string("sweep.arrival");
  if (const double b = e.number("sweep.burstiness"); b != 1) c["burstiness"] = number_text(b);
  if (const auto n = e.integer("sweep.concurrency"); n > 0) c["concurrency"] = std::to_string(n);
  c["lengths"] = e.string("sweep.lengths");
  c["prompts"] = e.string("sweep.prompts");
  c["num_prompts"] = std::to_string(e.integer("sweep.num_prompts"));
  c["output_len"] = std::to_string(e.integer("sweep.output_len"));
  c["seed"] = std::to_string(e.integer("sweep.seed"));
}

}  // namespace

std::string_view to_string(SweepBackend backend) {
  constexpr std::string_view kNames[] = {"engine", "model", "http"};
  return kNames[static_cast<size_t>(backend)];
}

SweepBackend sweep_backend(const Experiment& e) {
  const std::string name = e.string("sweep.backend");
  for (const auto b : {SweepBackend::engine, SweepBackend::model, SweepBackend::http})
    if (name == to_string(b)) return b;
  return e.string("target.id") == "cpu" ? SweepBackend::engine : SweepBackend::model;
}

serve::SweepSettings sweep_settings(const Experiment& e) {
  for (const Problem& p : e.validate())
    if (p.severity == Severity::error) throw Error(p);
  serve::SweepSettings s;
  s.request_rates = numbers<double>(e, "sweep.request_rates", rate_of);
  s.input_lens = numbers<int>(e, "sweep.input_lens", [](const std::string& text) {
    return parsed_number("sweep.input_lens", text, 1, kMostTokens, "whole numbers of tokens from 1");
  });
  serve::LoadSettings& l = s.load;
  l.arrival = enum_choice<serve::Arrival>(e, "sweep.arrival",
                                          std::array<std::string_view, 4>{"poisson", "constant", "burst", "closed"});
  l.burstiness = e.number("sweep.burstiness");
  l.concurrency = whole(e, "sweep.concurrency");
  l.output_len = whole(e, "sweep.output_len");
  l.lengths = enum_choice<serve::LengthDistribution>(e, "sweep.lengths",
                                                     std::array<std::string_view, 3>{"fixed", "uniform", "recorded"});
  l.spread = e.number("sweep.spread");
  l.workload = e.path("sweep.workload");
  l.shared_prefix = whole(e, "sweep.shared_prefix");
  l.prompts = enum_choice<serve::PromptMode>(e, "sweep.prompts", std::array<std::string_view, 2>{"salted", "replayed"});
  l.num_prompts = whole(e, "sweep.num_prompts");
  l.warmups = whole(e, "sweep.warmups");
  l.seed = static_cast<std::uint64_t>(e.integer("sweep.seed"));
  s.repeats = whole(e, "sweep.repeats");
  s.slo = {.ttft_ms = e.number("sweep.slo_ttft_ms"),
           .tpot_ms = e.number("sweep.slo_tpot_ms"),
           .e2e_ms = e.number("sweep.slo_e2e_ms")};
  if (l.arrival == serve::Arrival::closed && l.concurrency < 1)
    refuse("sweep.concurrency", std::to_string(l.concurrency), "users of the closed loop, from 1");
  if (l.lengths == serve::LengthDistribution::recorded && l.workload.empty())
    refuse("sweep.workload", "nothing", "the file of recorded requests");
  const int longest = *std::max_element(s.input_lens.begin(), s.input_lens.end()) + l.output_len;
  if (longest > whole(e, "serve.max_model_len"))
    refuse("serve.max_model_len", std::to_string(whole(e, "serve.max_model_len")) + " tokens",
           ("at least " + std::to_string(longest) + ": the longest prompt and its answer").c_str());
  return s;
}

serve::SchedulerSettings scheduler_settings(const Experiment& e) {
  return {.max_num_seqs = whole(e, "serve.max_num_seqs"),
          .max_num_batched_tokens = whole(e, "serve.max_num_batched_tokens"),
          .max_model_len = whole(e, "serve.max_model_len"),
          .chunked_prefill = e.flag("serve.chunked_prefill") ? serve::ChunkedPrefill::on : serve::ChunkedPrefill::off,
          .prefix_cache = e.flag("serve.prefix_cache") ? serve::PrefixCache::on : serve::PrefixCache::off,
          .policy = e.string("serve.policy") == "priority" ? serve::SchedulingPolicy::priority
                                                           : serve::SchedulingPolicy::fcfs,
          .kv = {.block_size = whole(e, "serve.block_size"), .groups = {}, .capacity = {}}};
}

formats::BenchSet sweep_facts(const Experiment& e, const hardware::Catalogue& catalogue) {
  const SweepBackend backend = sweep_backend(e);
  formats::BenchSet set;
  set.name = e.string("name");
  set.provenance = backend == SweepBackend::model ? formats::Provenance::predicted : formats::Provenance::measured;
  set.tool = std::string("meshwright ") + MW_VERSION + ", " + std::string(to_string(backend));
  set.model = e.string("model.id").empty() ? e.path("model.path").filename().string() : e.string("model.id");
  if (backend == SweepBackend::http) {
    set.source = without_url_secrets(e.string("sweep.url"));
    if (const std::string served = e.string("sweep.model"); !served.empty()) set.model = served;
  } else {
    set.target = e.string("target.id");
    const hardware::Target target = catalogue.target(set.target);
    set.chips = target.chips();
    double each = e.number("price.usd_per_chip_hour");
    if (const auto* price = catalogue.price(target.chip.id, e.string("price.region"), e.string("price.class"));
        each == 0 && price)
      each = price->usd_per_chip_hour;
    if (each > 0) set.usd_per_hour = each * set.chips;
    add_server(e, set);
  }
  add_load(e, set);
  return set;
}

}  // namespace mw::experiment
