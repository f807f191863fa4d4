// SPDX-License-Identifier: Apache-2.0
// Verifies a merge by comparing logits.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/rng.h"
#include "core/train/merge.h"
#include "core/train/sliced_model.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

constexpr int kRows = 2, kLen = 24;
constexpr double kExact = 1e-3, kShare = 0.05, kLeast = 1.0 / 64, kLost = 0.5;

struct Text {
  std::vector<int> ids, targets, positions, segments;
  engine::TokenBatch batch() const { return {kRows, kLen, ids, targets, positions, segments}; }
};

// Fixed tokens that cover the vocabulary.
Text fixed_text(int vocab) {
  Text t;
  Rng rng{0x706172697479};
  for (int i = 0; i < kRows * kLen; ++i) {
    t.ids.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab))));
    t.targets.push_back(-1);
    t.positions.push_back(i % kLen);
    t.segments.push_back(0);
  }
  return t;
}

std::vector<float> logits_of(const fs::path& folder, const formats::Adapter* adapter, ModelSettings settings,
                             const Text& text, const Progress& progress) {
  if (const model::Config config = formats::read_config(folder); SlicedModel::possible(config))
    return SlicedModel(folder, adapter, settings.threads).logits(text.batch(), progress);
  settings.path = folder;
  settings.weights = model::WeightType::f32;
  settings.use = engine::NetworkUse::inference;
  settings.init = Init::load;
  LoadedModel model = load_weights(settings, formats::read_config(folder));
  if (adapter) attach_adapter(*adapter, settings.seed, *model.cluster);
  engine::Network& network = model.cluster->network(0);
  std::vector<float> logits(static_cast<size_t>(kRows * kLen) * static_cast<size_t>(network.config().vocab));
  network.logits(text.batch(), logits);
  if (progress) progress(1, 1);
  return logits;
}

Bytes memory_of(const model::Config& config) {
  const std::int64_t parameters = model::TensorInventory(config).parameters();
  return SlicedModel::possible(config) ? SlicedModel::memory(config) : Bytes(parameters * 4 + parameters / 4);
}

double rms_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

void compare(const std::vector<float>& wanted, const std::vector<float>& got, Parity& p) {
  const size_t vocab = wanted.size() / (kRows * kLen);
  long same = 0;
  p.positions = kRows * kLen;
  for (size_t row = 0; row < kRows * kLen; ++row) {
    const auto a = std::span(wanted).subspan(row * vocab, vocab), b = std::span(got).subspan(row * vocab, vocab);
    same += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
    for (size_t i = 0; i < vocab; ++i) p.largest = std::max(p.largest, std::abs(double{a[i]} - b[i]));
  }
  p.same_first = static_cast<double>(same) / static_cast<double>(p.positions);
  p.rms = rms_of(wanted, got);
}

bool is_f32(const fs::path& folder) {
  for (const fs::path& path : formats::weight_files(folder)) {
    const formats::SafetensorsFile file(path);
    for (const formats::TensorInfo& t : file.tensors())
      if (t.dtype != formats::DType::f32) return false;
  }
  return true;
}

}  // namespace

std::string_view to_string(Parity::Verdict verdict) {
  constexpr std::string_view kNames[] = {"passed", "failed", "not run"};
  return kNames[static_cast<size_t>(verdict)];
}

Parity check_parity(const fs::path& base, const formats::Adapter& adapter, const fs::path& merged,
                    const ModelSettings& settings, const Progress& progress) {
  Parity p;
  const model::Config config = formats::read_config(merged);
  const Bytes capacity = settings.capacity.value > 0 ? settings.capacity : machine_memory();
  const Bytes need = memory_of(config);
  if (need > capacity) {
    p.reason = "checking in f32 needs about " + to_text(need) + ", but only " + to_text(capacity) + " are available";
    return p;
  }
  const Text text = fixed_text(config.vocab);
  const auto third = [&](long of_three) -> Progress {
    if (!progress) return {};
    return [&progress, of_three](long done, long of) { progress(of_three * of + done, 3 * of); };
  };
  const std::vector<float> plain = logits_of(base, nullptr, settings, text, third(0)),
                           wanted = logits_of(base, &adapter, settings, text, third(1)),
                           got = logits_of(merged, nullptr, settings, text, third(2));
  p.effect = rms_of(plain, wanted);
  compare(wanted, got, p);
  const bool exact = is_f32(merged);
  // A difference as large as the effect of the adapter means that the adapter was lost.
  const double allowed = exact ? kExact : std::min(std::max(kShare * p.effect, kLeast), kLost * p.effect);
  const double found = exact ? p.largest : p.rms;
  const bool good = std::isfinite(found) && found <= allowed;
  p.verdict = good ? Parity::Verdict::passed : Parity::Verdict::failed;
  if (!good)
    p.reason = std::string(exact ? "largest" : "rms") + " difference of logits " + number_text(found) + ", allowed " +
               number_text(allowed);
  if (!good && !exact && found > kLost * p.effect && found <= kLeast)
    p.reason += ": rounding to the type of the file erases an adapter this small; merge into f32 weights";
  return p;
}

Json to_json(const Parity& p) {
  return {{"verdict", to_string(p.verdict)},
          {"positions", p.positions},
          {"largest_difference", p.largest},
          {"rms_difference", p.rms},
          {"adapter_effect_rms", p.effect},
          {"same_likeliest", p.same_first},
          {"reason", p.reason}};
}

}  // namespace mw::train
