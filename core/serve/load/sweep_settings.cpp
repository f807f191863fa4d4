// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/sweep_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/base/url_secrets.h"

namespace mw::serve {
namespace {

constexpr double kMostRate = 1e6;
constexpr int kMostTokens = 1 << 20;

[[noreturn]] void refuse(const char* key, const std::string& found, const char* expected) {
  throw Error("SWEEP", "invalid value in the sweep", {.place = key, .found = found, .expected = expected});
}

template <class T>
T parsed_number(const char* key, const std::string& text, T least, T most, const char* expected) {
  const auto value = parse_number<T>(text);
  if (!value || !(*value >= least) || !(*value <= most)) refuse(key, text, expected);
  return *value;
}

// Returns the values in their order, without those that an earlier one equals.
template <class T, class Read>
std::vector<T> numbers(const std::vector<std::string>& texts, const char* key, Read read) {
  std::vector<T> all;
  for (const std::string& text : texts)
    if (const T value = read(text); std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  if (all.empty()) refuse(key, "an empty list", "at least one");
  return all;
}

double rate_of(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  return parsed_number("sweep.request_rates", text, 1e-6, kMostRate, "requests per second above 0, or inf");
}

// "15360:6": input length and requests.
std::pair<int, int> num_prompts_at(const std::string& text) {
  constexpr const char* kKey = "sweep.num_prompts_at";
  constexpr const char* kExpected = "an input length and a number of requests, such as 15360:6";
  const size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(kKey, text, kExpected);
  return {parsed_number(kKey, text.substr(0, colon), 1, kMostTokens, kExpected),
          parsed_number(kKey, text.substr(colon + 1), 1, 10'000'000, kExpected)};
}

std::string on_off(bool on) {
  return on ? "on" : "off";
}

std::string mesh_text(const mesh::Mesh& mesh) {
  return joined(mesh.axes, ", ",
                [](const mesh::MeshAxis& axis) { return axis.name + " " + std::to_string(axis.size); });
}

// Records the configuration of the server. Not called for an HTTP server, whose configuration is unknown.
void add_server(const experiment::BoundExperiment& config, formats::BenchSet& set) {
  auto& c = set.conditions;
  const options::Serving& serve = config.serve;
  c["kv_dtype"] = to_string(serve.kv_dtype);
  c["weight_dtype"] = serve.weight_dtype ? to_string(*serve.weight_dtype) : to_string(config.train.dtype);
  if (serve.products != model::DType::bf16) c["products"] = to_string(serve.products);
  c["prefix_cache"] = on_off(serve.prefix_cache);
  c["chunked_prefill"] = on_off(serve.chunked_prefill);
  c["sliding_window_kv"] = on_off(serve.sliding_window_kv);
  c["async_scheduling"] = on_off(serve.async_scheduling);
  if (serve.sampling != options::Sampling::greedy) c["sampling"] = to_string(serve.sampling);
  c["block_size"] = std::to_string(serve.block_size);
  c["max_num_seqs"] = std::to_string(serve.max_num_seqs);
  c["max_num_batched_tokens"] = std::to_string(serve.max_num_batched_tokens);
  c["max_model_len"] = std::to_string(serve.max_model_len);
  if (const std::string mesh = mesh_text(config.mesh); !mesh.empty()) c["mesh"] = mesh;
  for (const mesh::MeshAxis& axis : config.mesh.axes)
    if (axis.name == "tp") c["tp"] = std::to_string(axis.size);
}

void add_load(const options::Sweep& sweep, formats::BenchSet& set) {
  auto& c = set.conditions;
  c["arrival"] = to_string(sweep.arrival);
  if (sweep.burstiness != 1) c["burstiness"] = number_text(sweep.burstiness);
  if (sweep.concurrency > 0) c["concurrency"] = std::to_string(sweep.concurrency);
  c["lengths"] = to_string(sweep.lengths);
  c["prompts"] = to_string(sweep.prompts);
  if (sweep.shared_prefixes > 1) c["shared_prefixes"] = std::to_string(sweep.shared_prefixes);
  c["num_prompts"] = std::to_string(sweep.num_prompts);
  for (const std::string& text : sweep.num_prompts_at) c["num_prompts"] += ", " + text;
  c["output_len"] = std::to_string(sweep.output_len);
  c["seed"] = std::to_string(sweep.seed);
}

}  // namespace

options::SweepBackend sweep_backend(const experiment::BoundExperiment& config) {
  return config.sweep.backend.value_or(config.target.id == "cpu" ? options::SweepBackend::engine
                                                                 : options::SweepBackend::model);
}

SweepSettings sweep_settings(const experiment::BoundExperiment& config) {
  SweepSettings s;
  s.request_rates = numbers<double>(config.sweep.request_rates, "sweep.request_rates", rate_of);
  s.input_lens = numbers<int>(config.sweep.input_lens, "sweep.input_lens", [](const std::string& text) {
    return parsed_number("sweep.input_lens", text, 1, kMostTokens, "whole numbers of tokens from 1");
  });
  for (const std::string& text : config.sweep.num_prompts_at) s.num_prompts_at.push_back(num_prompts_at(text));
  s.load = config.sweep;
  s.repeats = config.sweep.repeats;
  s.slo = config.sweep.slo;
  if (s.load.arrival == options::Arrival::closed && s.load.concurrency < 1)
    refuse("sweep.concurrency", std::to_string(s.load.concurrency), "users of the closed loop, from 1");
  if (s.load.lengths == options::LengthDistribution::recorded && s.load.workload.empty())
    refuse("sweep.workload", "nothing", "the file of recorded requests");
  if (config.sweep.replicas > 1 && sweep_backend(config) != options::SweepBackend::model)
    refuse("sweep.replicas",
           std::to_string(config.sweep.replicas) + " with the backend " + std::string(to_string(sweep_backend(config))),
           "1: only the backend model simulates several servers");
  const int longest = *std::max_element(s.input_lens.begin(), s.input_lens.end()) + s.load.output_len;
  if (longest > config.serve.max_model_len)
    refuse("serve.max_model_len", std::to_string(config.serve.max_model_len) + " tokens",
           ("at least " + std::to_string(longest) + ": the longest prompt and its answer").c_str());
  const double spread = s.load.lengths == options::LengthDistribution::uniform ? s.load.spread : 0;
  const int prompt =
      static_cast<int>(std::ceil(*std::max_element(s.input_lens.begin(), s.input_lens.end()) * (1 + spread)));
  if (!config.serve.chunked_prefill && prompt > config.serve.max_num_batched_tokens)
    refuse(
        "serve.max_num_batched_tokens", std::to_string(config.serve.max_num_batched_tokens) + " tokens",
        ("at least " + std::to_string(prompt) + ": without serve.chunked_prefill a step must hold the longest prompt")
            .c_str());
  return s;
}

SchedulerSettings scheduler_settings(const options::Serving& serve) {
  return {.max_num_seqs = serve.max_num_seqs,
          .max_num_batched_tokens = serve.max_num_batched_tokens,
          .max_model_len = serve.max_model_len,
          .chunked_prefill = serve.chunked_prefill ? ChunkedPrefill::on : ChunkedPrefill::off,
          .prefix_cache = serve.prefix_cache ? PrefixCache::on : PrefixCache::off,
          .policy = serve.policy,
          .kv = {.block_size = serve.block_size, .groups = {}, .capacity = {}}};
}

formats::BenchSet sweep_facts(const experiment::BoundExperiment& config, const hardware::Catalogue& catalogue) {
  const options::SweepBackend backend = sweep_backend(config);
  formats::BenchSet set;
  set.name = config.name;
  set.provenance = backend == options::SweepBackend::model ? formats::ResultProvenance::predicted
                                                           : formats::ResultProvenance::measured;
  set.tool = std::string("meshwright ") + MW_VERSION + ", " + std::string(to_string(backend));
  set.model = config.model.id.empty() ? config.model.path.filename().string() : config.model.id;
  if (backend == options::SweepBackend::http) {
    set.source = without_url_secrets(config.sweep.url);
    if (!config.sweep.model.empty()) set.model = config.sweep.model;
  } else {
    set.target = config.target.id;
    const hardware::Target target = catalogue.target(set.target);
    set.chips = target.chips() * config.sweep.replicas;
    double each = config.price.usd_per_chip_hour;
    if (const auto* price = catalogue.price(target.chip.id, config.price.region, config.price.price_class);
        each == 0 && price)
      each = price->usd_per_chip_hour;
    if (each > 0) set.usd_per_hour = each * set.chips;
    add_server(config, set);
    if (config.sweep.replicas > 1) {
      set.conditions["replicas"] = std::to_string(config.sweep.replicas);
      set.conditions["routing"] = to_string(config.sweep.routing);
    }
  }
  add_load(config.sweep, set);
  return set;
}

}  // namespace mw::serve
