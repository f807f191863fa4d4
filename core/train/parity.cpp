// SPDX-License-Identifier: Apache-2.0
#include "core/train/parity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/counted.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/engine/distributed/cluster.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/sliced_model.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

using model::to_string;
constexpr int kFixedPrompts = 2, kFixedTokens = 24;
constexpr double kExact = 1e-3, kShare = 0.05, kLeast = 1.0 / 64, kLost = 0.5, kServedFactor = 2;
constexpr long kPartSteps = 10'000;  // of the progress of each model that is run, whatever its own steps
constexpr double kVisible = 0.01;    // relative difference of hidden states that a message names

// The prompts as one batch: shorter rows end with tokens that no earlier position sees.
struct PromptBatch {
  int rows = 0, len = 0;
  std::vector<int> ids{}, targets{}, positions{}, segments{};
  std::vector<size_t> cells{};  // of the positions that count, in order of the prompts
  engine::TokenBatch batch() const { return {rows, len, ids, targets, positions, segments}; }
};

std::vector<ParityPrompt> all_prompts(int vocab, const std::vector<ParityPrompt>& more) {
  std::vector<ParityPrompt> out(kFixedPrompts);
  Rng rng{0x706172697479};
  for (ParityPrompt& p : out)
    for (int i = 0; i < kFixedTokens; ++i)
      p.ids.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab))));
  for (const ParityPrompt& p : more) {
    if (out.size() == kMostPrompts || p.ids.empty()) continue;
    out.push_back(p);
    out.back().ids.resize(std::min(p.ids.size(), kMostPromptTokens));
  }
  return out;
}

PromptBatch batch_of(const std::vector<ParityPrompt>& prompts) {
  PromptBatch b{.rows = static_cast<int>(prompts.size()), .len = 0};
  for (const ParityPrompt& p : prompts) b.len = std::max(b.len, static_cast<int>(p.ids.size()));
  for (const ParityPrompt& p : prompts)
    for (int i = 0; i < b.len; ++i) {
      const bool counts = i < static_cast<int>(p.ids.size());
      if (counts) b.cells.push_back(b.ids.size());
      b.ids.push_back(counts ? p.ids[static_cast<size_t>(i)] : 0);
      b.targets.push_back(-1);
      b.positions.push_back(i);
      b.segments.push_back(0);
    }
  return b;
}

// Logits and hidden states of one form; rows of the positions that count.
struct ModelOutput {
  std::vector<float> logits;
  std::vector<std::vector<float>> hidden;  // by layer; empty if the model is not run layer by layer
};

std::vector<float> rows_of(const std::vector<float>& all, const PromptBatch& batch) {
  const size_t width = all.size() / batch.ids.size();
  std::vector<float> out(batch.cells.size() * width);
  for (size_t i = 0; i < batch.cells.size(); ++i)
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(batch.cells[i] * width), width,
                out.begin() + static_cast<std::ptrdiff_t>(i * width));
  return out;
}

ModelOutput run_whole(const fs::path& folder, const formats::PeftAdapter* adapter, ModelSettings settings,
                      const PromptBatch& batch, const CountProgress& progress) {
  settings.path = folder;
  settings.weights = model::WeightType::f32;
  settings.use = engine::NetworkUse::inference;
  settings.init = options::Init::load;
  LoadedModel model = load_weights(settings, formats::read_config(folder));
  if (adapter) attach_adapter(*adapter, settings.seed, *model.cluster);
  engine::Network& network = model.cluster->network(0);
  std::vector<float> logits(batch.ids.size() * static_cast<size_t>(network.config().vocab));
  network.logits(batch.batch(), logits);
  if (progress) progress(1, 1);
  return {rows_of(logits, batch), {}};
}

// Layer by layer, each read once for all uses.
std::vector<ModelOutput> run_sliced(const SlicedModel& model, std::span<const AdapterUse> uses,
                                    const PromptBatch& batch, const CountProgress& progress) {
  std::vector<ModelOutput> out(uses.size());
  std::vector<std::vector<float>> logits =
      model.logits(batch.batch(), uses, progress,
                   [&](size_t use, const std::vector<float>& x) { out[use].hidden.push_back(rows_of(x, batch)); });
  for (size_t use = 0; use < uses.size(); ++use) out[use].logits = rows_of(std::exchange(logits[use], {}), batch);
  return out;
}

// The base model, with the adapter beside it and, if it is run layer by layer, with the adapter folded in.
std::vector<ModelOutput> run_base(const fs::path& base, const formats::PeftAdapter& adapter,
                                  const ModelSettings& settings, const PromptBatch& batch,
                                  const std::function<CountProgress()>& next_part) {
  if (SlicedModel::possible(formats::read_config(base)))
    return run_sliced(SlicedModel(base, &adapter, settings.threads),
                      std::array{AdapterUse::none, AdapterUse::beside, AdapterUse::folded}, batch, next_part());
  std::vector<ModelOutput> out;
  for (const formats::PeftAdapter* with : {static_cast<const formats::PeftAdapter*>(nullptr), &adapter})
    out.push_back(run_whole(base, with, settings, batch, next_part()));
  return out;
}

ModelOutput run_merged(const fs::path& merged, const ModelSettings& settings, const PromptBatch& batch,
                       const CountProgress& progress) {
  if (!SlicedModel::possible(formats::read_config(merged)))
    return run_whole(merged, nullptr, settings, batch, progress);
  return std::move(
      run_sliced(SlicedModel(merged, nullptr, settings.threads), std::array{AdapterUse::none}, batch, progress)
          .front());
}

Bytes memory_of(const model::Config& config) {
  const std::int64_t parameters = model::TensorInventory(config).parameters();
  return SlicedModel::possible(config) ? SlicedModel::memory(config) : Bytes(parameters * 4 + parameters / 4);
}

double rms_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, a.size())));
}

void compare_logits(const std::vector<ParityPrompt>& prompts, const std::vector<float>& wanted,
                    const std::vector<float>& got, FormParity& out) {
  size_t positions = 0, row = 0;
  for (const ParityPrompt& p : prompts) positions += p.ids.size();
  const size_t vocab = wanted.size() / positions;
  long same = 0;
  double sum = 0;
  for (size_t prompt = 0; prompt < prompts.size(); ++prompt)
    for (size_t i = 0; i < prompts[prompt].ids.size(); ++i, ++row) {
      const auto a = std::span(wanted).subspan(row * vocab, vocab), b = std::span(got).subspan(row * vocab, vocab);
      PositionDivergence d{.prompt = static_cast<int>(prompt), .position = static_cast<int>(i)};
      for (size_t v = 0; v < vocab; ++v) {
        const double off = std::abs(double{a[v]} - b[v]);
        d.largest = std::isnan(off) ? off : std::max(d.largest, off);  // NaN stays
        d.mean += off / static_cast<double>(vocab);
        if (std::isnan(d.largest)) break;
      }
      d.same_likeliest =
          std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
      same += d.same_likeliest;
      sum += d.mean;
      out.largest = std::isnan(d.largest) || std::isnan(out.largest) ? std::nan("") : std::max(out.largest, d.largest);
      out.positions.push_back(d);
    }
  out.mean = sum / static_cast<double>(positions);
  out.same_first = static_cast<double>(same) / static_cast<double>(positions);
  out.rms = rms_of(wanted, got);
}

void compare_layers(const ModelOutput& wanted, const ModelOutput& got, FormParity& out) {
  for (size_t layer = 0; layer < std::min(wanted.hidden.size(), got.hidden.size()); ++layer) {
    const std::vector<float>& a = wanted.hidden[layer];
    const double off = rms_of(a, got.hidden[layer]), size = rms_of(a, std::vector<float>(a.size()));
    out.layers.push_back({static_cast<int>(layer), off, size > 0 ? off / size : off});
  }
}

bool is_f32(const fs::path& folder) {
  for (const fs::path& path : formats::weight_files(folder)) {
    const formats::SafetensorsFile file(path);
    for (const formats::TensorInfo& t : file.tensors())
      if (t.dtype != formats::TensorDType::f32) return false;
  }
  return true;
}

void set_tolerance(bool f32, double effect, FormParity& out) {
  const double rounding = std::max(kShare * effect, kLeast);
  if (f32 || out.form == ParityForm::folded) {
    out.measure = ParityMeasure::largest;
    out.allowed = kExact;
    out.tolerance_reason = "the same f32 sums in another order";
  } else if (out.form == ParityForm::reread) {
    out.allowed = std::min(rounding, kLost * effect);  // beyond half of the effect, the adapter was lost
    out.tolerance_reason = "every merged weight is rounded once to 8 bits of mantissa";
  } else {
    out.allowed = kServedFactor * rounding;
    out.tolerance_reason = "weights are rounded once, and activations in the products, too";
  }
}

std::string form_name(ParityForm form) {
  return form == ParityForm::folded   ? "merged weights"
         : form == ParityForm::reread ? "folder read again"
                                      : "served folder";
}

// Sets verdict and reason from the figures.
void judge(double effect, FormParity& out) {
  const double found = out.measure == ParityMeasure::largest ? out.largest : out.rms;
  const bool close = std::isfinite(found) && found <= out.allowed;
  const auto text =
      std::find_if(out.texts.begin(), out.texts.end(), [](const GreedyText& t) { return !t.is_explained; });
  out.verdict = close && text == out.texts.end() ? ParityVerdict::passed : ParityVerdict::failed;
  if (!close) {
    out.reason = form_name(out.form) + ": " + std::string(to_string(out.measure)) + " difference of logits " +
                 number_text(found) + ", allowed " + number_text(out.allowed);
    const auto layer = std::find_if(out.layers.begin(), out.layers.end(),
                                    [](const LayerDivergence& l) { return !(l.relative <= kVisible); });
    if (layer != out.layers.end())
      out.reason += "; hidden states differ from layer " + std::to_string(layer->layer) + " on";
    const bool erased = out.measure == ParityMeasure::rms && found > kLost * effect && found <= kLeast;
    if (erased) out.reason += ": rounding to the type of the file erases an adapter this small; merge into f32 weights";
  } else if (text != out.texts.end()) {
    out.reason = form_name(out.form) + ": greedy text of prompt " + std::to_string(text->prompt + 1) +
                 " differs from token " + std::to_string(*text->first_difference + 1) +
                 " on, where the adapter prefers "
                 "its token by " +
                 number_text(text->margin);
  }
}

// A token can only change if the two logits are closer than the errors of both.
void explain_texts(FormParity& out) {
  for (GreedyText& t : out.texts)
    t.is_explained = !t.first_difference || t.margin <= 2 * std::max(out.largest, out.allowed);
}

void conclude(Parity& p) {
  const auto failed = std::find_if(p.forms.begin(), p.forms.end(),
                                   [](const FormParity& f) { return f.verdict == ParityVerdict::failed; });
  for (const FormParity& f : p.forms) {
    if (f.form != ParityForm::reread) continue;
    p.positions = static_cast<long>(f.positions.size());
    p.largest = f.largest, p.mean = f.mean, p.rms = f.rms, p.same_first = f.same_first;
    p.verdict = f.verdict;
    p.reason = f.reason;
  }
  if (failed != p.forms.end()) {
    p.verdict = ParityVerdict::failed;
    p.reason = failed->reason;
  }
}

Json form_json(const FormParity& f) {
  Json positions = Json::array(), layers = Json::array(), texts = Json::array();
  for (const PositionDivergence& d : f.positions)
    positions.push_back({{"prompt", d.prompt},
                         {"position", d.position},
                         {"largest", d.largest},
                         {"mean", d.mean},
                         {"same_likeliest", d.same_likeliest}});
  for (const LayerDivergence& l : f.layers)
    layers.push_back({{"layer", l.layer}, {"rms", l.rms}, {"relative", l.relative}});
  for (const GreedyText& t : f.texts) {
    Json text{{"prompt", t.prompt}, {"adapter_tokens", t.with_adapter}, {"merged_tokens", t.merged}};
    text["first_difference"] = t.first_difference ? Json(*t.first_difference) : Json();
    if (t.first_difference) text.update(Json{{"margin", t.margin}, {"explained", t.is_explained}});
    texts.push_back(std::move(text));
  }
  return {{"form", to_string(f.form)},
          {"verdict", to_string(f.verdict)},
          {"reason", f.reason},
          {"largest_difference", f.largest},
          {"mean_difference", f.mean},
          {"rms_difference", f.rms},
          {"same_likeliest", f.same_first},
          {"measure", to_string(f.measure)},
          {"allowed", f.allowed},
          {"tolerance_reason", f.tolerance_reason},
          {"positions", positions},
          {"layers", layers},
          {"texts", texts}};
}

}  // namespace

Parity check_parity(const fs::path& base, const formats::PeftAdapter& adapter, const fs::path& merged,
                    const ModelSettings& settings, const CountProgress& progress, const ParityOptions& options) {
  Parity p;
  const model::Config config = formats::read_config(merged);
  const Bytes capacity = settings.capacity.value > 0 ? settings.capacity : machine_memory();
  const Bytes need = memory_of(config);
  if (need > capacity) {
    p.reason = "checking in f32 needs about " + to_text(need) + ", but only " + to_text(capacity) + " are available";
    return p;
  }
  p.prompts = all_prompts(config.vocab, options.prompts);
  const PromptBatch batch = batch_of(p.prompts);
  const bool sliced = SlicedModel::possible(formats::read_config(base)), f32 = is_f32(merged);
  p.weights = f32 ? "f32" : "bf16";
  const long parts = (sliced ? 2 : 3) + (options.serve ? 1 : 0);
  const auto part = [&](long index) -> CountProgress {
    if (!progress) return {};
    return [&progress, index, parts](long done, long of) {
      progress(index * kPartSteps + kPartSteps * done / std::max(1L, of), parts * kPartSteps);
    };
  };
  long index = 0;
  std::vector<ModelOutput> outputs = run_base(base, adapter, settings, batch, [&] { return part(index++); });
  p.effect = rms_of(outputs[0].logits, outputs[1].logits);
  outputs[0] = {};
  const ModelOutput& wanted = outputs[1];
  const auto add = [&](ParityForm form, const ModelOutput& got) {
    FormParity f{.form = form};
    compare_logits(p.prompts, wanted.logits, got.logits, f);
    compare_layers(wanted, got, f);
    set_tolerance(f32, p.effect, f);
    judge(p.effect, f);
    p.forms.push_back(std::move(f));
  };
  if (sliced)
    add(ParityForm::folded, outputs[2]);
  else
    p.forms.push_back({.form = ParityForm::folded, .reason = "this model is not run layer by layer"});
  if (sliced) outputs[2] = {};
  add(ParityForm::reread, run_merged(merged, settings, batch, part(index++)));
  if (options.serve) {
    FormParity f{.form = ParityForm::served};
    ServedRun served = options.serve(p.prompts, f32 ? model::WeightType::f32 : model::WeightType::bf16, part(index++));
    f.reason = std::move(served.not_run);
    set_tolerance(f32, p.effect, f);
    if (f.reason.empty()) {
      compare_logits(p.prompts, wanted.logits, served.logits, f);
      f.texts = std::move(served.texts);
      explain_texts(f);
      judge(p.effect, f);
    }
    p.forms.push_back(std::move(f));
  }
  conclude(p);
  return p;
}

Json to_json(const Parity& p) {
  Json forms = Json::array(), prompts = Json::array();
  for (const FormParity& f : p.forms) forms.push_back(form_json(f));
  for (const ParityPrompt& prompt : p.prompts) prompts.push_back({{"text", prompt.text}, {"tokens", prompt.ids}});
  return {{"verdict", to_string(p.verdict)},
          {"positions", p.positions},
          {"largest_difference", p.largest},
          {"mean_difference", p.mean},
          {"rms_difference", p.rms},
          {"adapter_effect_rms", p.effect},
          {"same_likeliest", p.same_first},
          {"reason", p.reason},
          {"weights", p.weights},
          {"prompts", prompts},
          {"forms", forms}};
}

std::string parity_text(const Parity& p) {
  std::string out = "parity " + std::string(to_string(p.verdict)) + (p.reason.empty() ? "" : ": " + p.reason) + "\n";
  if (p.forms.empty()) return out;
  out += "  effect of the adapter on the logits: rms " + number_text(p.effect) + "; files of type " + p.weights + "\n";
  for (const FormParity& f : p.forms) {
    out += "  " + form_name(f.form) + ": " + std::string(to_string(f.verdict));
    if (f.positions.empty()) {
      out += f.reason.empty() ? "\n" : ", " + f.reason + "\n";
      continue;
    }
    out += ", largest " + number_text(f.largest) + ", mean " + number_text(f.mean) + ", rms " + number_text(f.rms) +
           " over " + counted(f.positions.size(), "position") + "; allowed " + std::string(to_string(f.measure)) + " " +
           number_text(f.allowed) + " (" + f.tolerance_reason + ")\n";
    for (const GreedyText& t : f.texts)
      if (t.first_difference)
        out += "    prompt " + std::to_string(t.prompt + 1) + ": greedy text differs from token " +
               std::to_string(*t.first_difference + 1) + " on, margin " + number_text(t.margin) +
               (t.is_explained ? ", explained by rounding\n" : "\n");
    const auto equal =
        std::count_if(f.texts.begin(), f.texts.end(), [](const GreedyText& t) { return !t.first_difference; });
    if (!f.texts.empty())
      out +=
          "    greedy text equal for " + std::to_string(equal) + " of " + std::to_string(f.texts.size()) + " prompts\n";
  }
  return out;
}

}  // namespace mw::train
