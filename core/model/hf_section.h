// SPDX-License-Identifier: Apache-2.0
// Typed and bounded access to one object of a config.json; errors name the file and the key. Private to core/model.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/model/config.h"

namespace mw::model {

// Bounds keep every product of sizes below 2^63 and refuse nonsense before memory is asked for.
inline constexpr long long kMaxVocab = 1 << 24, kMaxDim = 1 << 18, kMaxMlp = 1 << 20, kMaxLayers = 1024,
                           kMaxHeads = 4096, kMaxHeadDim = 8192, kMaxPositions = 1ll << 30, kMaxExperts = 4096;

// Null counts as absent, as in transformers.
class Section {
 public:
  Section(const Json& json, std::string file, std::string prefix)
      : json_(json), file_(std::move(file)), prefix_(std::move(prefix)) {
    if (!json_.is_object()) fail("", "not a JSON object", json_excerpt(json_), "an object");
  }

  const Json* get(const std::string& key) const {
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  int size(const std::string& key, std::optional<long long> fallback, long long max, long long min = 1) const {
    const Json* value = get(key);
    if (!value && !fallback) fail(key, "a required key is missing", "nothing", "\"" + key + "\"");
    if (!value) return static_cast<int>(*fallback);
    const std::string range = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    if (!value->is_number_integer()) fail(key, "wrong type", json_excerpt(*value), range);
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(max);
    if (huge || value->get<long long>() < min || value->get<long long>() > max)
      fail(key, "out of range", json_excerpt(*value), range);
    return static_cast<int>(value->get<long long>());
  }
  // Positive and finite, also after rounding to float.
  double positive(const std::string& key, std::optional<double> fallback) const {
    const Json* value = get(key);
    if (!value && !fallback) fail(key, "a required key is missing", "nothing", "\"" + key + "\"");
    if (!value) return *fallback;
    if (!value->is_number()) fail(key, "wrong type", json_excerpt(*value), "a number");
    const double v = value->get<double>();
    if (!(v > 1e-30 && v < 1e30)) fail(key, "out of range", json_excerpt(*value), "a positive number");
    return v;
  }
  bool flag(const std::string& key, bool fallback) const {
    const Json* value = get(key);
    if (!value) return fallback;
    if (!value->is_boolean()) fail(key, "wrong type", json_excerpt(*value), "true or false");
    return value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* value = get(key);
    if (!value) return fallback;
    if (!value->is_string()) fail(key, "wrong type", json_excerpt(*value), "a string");
    return value->get<std::string>();
  }
  Section object(const std::string& key) const {
    const Json* value = get(key);
    if (!value) fail(key, "a required key is missing", "nothing", "an object");
    return Section(*value, file_, prefix_ + key + ".");
  }
  [[noreturn]] void fail(const std::string& key, const std::string& message, const std::string& found,
                         const std::string& expected, const std::string& fix = "") const {
    throw Error({.id = "CONFIG",
                 .message = message,
                 .file = file_,
                 .place = key.empty() ? prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1) : prefix_ + key,
                 .found = valid_utf8(found),
                 .expected = expected,
                 .fix = fix});
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string file_, prefix_;
};

// Throws Error for heads that no attention has.
void check_heads(const Section& section, const std::vector<Layer>& layers);

// Fills in what is read from the config.json of a Llama or a Qwen3: sizes, layers, the output head.
void read_llama(const Section& section, Config& config);

}  // namespace mw::model
