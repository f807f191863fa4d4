// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/audit/training_audit.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::audit {
namespace {

constexpr const char* kClaims = "training_claims";

struct NumberMember {
  std::string_view name;
  double TrainingClaim::*member;
  double factor = 1;  // of the unit in files
};
constexpr std::array kNumbers{
    NumberMember{"batch", &TrainingClaim::batch},
    NumberMember{"accumulation", &TrainingClaim::accumulation},
    NumberMember{"max_len", &TrainingClaim::max_len},
    NumberMember{"steps", &TrainingClaim::steps},
    NumberMember{"rows", &TrainingClaim::rows},
    NumberMember{"epochs", &TrainingClaim::epochs},
    NumberMember{"tokens", &TrainingClaim::tokens},
    NumberMember{"seconds_per_step", &TrainingClaim::seconds_per_step},
    NumberMember{"seconds", &TrainingClaim::seconds},
    NumberMember{"hours", &TrainingClaim::seconds, 3600},
    NumberMember{"tokens_per_second", &TrainingClaim::tokens_per_second},
    NumberMember{"padded_tokens_per_second", &TrainingClaim::padded_tokens_per_second},
    NumberMember{"mfu", &TrainingClaim::mfu},
    NumberMember{"peak_bytes", &TrainingClaim::peak_bytes},
    NumberMember{"peak_gib", &TrainingClaim::peak_bytes, 1073741824.0},
    NumberMember{"train_loss", &TrainingClaim::train_loss},
    NumberMember{"eval_loss", &TrainingClaim::eval_loss},
    NumberMember{"perplexity", &TrainingClaim::perplexity},
    NumberMember{"token_accuracy", &TrainingClaim::token_accuracy},
    NumberMember{"usd", &TrainingClaim::usd},
    NumberMember{"usd_per_hour", &TrainingClaim::usd_per_hour},
};
struct TextMember {
  std::string_view name;
  std::string TrainingClaim::*member;
};
constexpr std::array kTexts{
    TextMember{"name", &TrainingClaim::name},   TextMember{"source", &TrainingClaim::source},
    TextMember{"model", &TrainingClaim::model}, TextMember{"target", &TrainingClaim::target},
    TextMember{"dtype", &TrainingClaim::dtype}, TextMember{"mfu_formula", &TrainingClaim::mfu_formula}};

[[noreturn]] void refuse_claim(const std::filesystem::path& file, const std::string& message, const std::string& place,
                               const std::string& found, const std::string& expected) {
  throw Error("CLAIM", message, {.file = file.string(), .place = place, .found = found, .expected = expected});
}

TrainingClaim read_claim(const Json& json, const std::filesystem::path& file, const std::string& place) {
  if (!json.is_object()) refuse_claim(file, "a claim is not an object", place, json.type_name(), "{...}");
  TrainingClaim claim;
  for (const auto& [key, value] : json.items()) {
    const std::string at = place + "." + key;
    const auto text =
        std::find_if(kTexts.begin(), kTexts.end(), [&name = key](const auto& t) { return t.name == name; });
    const auto number =
        std::find_if(kNumbers.begin(), kNumbers.end(), [&name = key](const auto& n) { return n.name == name; });
    if (text != kTexts.end()) {
      if (!value.is_string()) refuse_claim(file, "the member is not a text", at, value.dump(), "a text");
      claim.*text->member = value.get<std::string>();
    } else if (number != kNumbers.end()) {
      if (!value.is_number()) refuse_claim(file, "the member is not a number", at, value.dump(), "a number");
      claim.*number->member = value.get<double>() * number->factor;
    } else if (key == "method") {
      claim.method = value.is_string() ? parse<model::TrainMethod>(value.get<std::string>()) : std::nullopt;
      if (!claim.method) refuse_claim(file, "unknown method", at, value.dump(), "lora or full");
    } else {
      refuse_claim(file, "unknown member", at, key,
                   joined(kTexts, ", ", [](const auto& t) { return std::string(t.name); }) + ", method, " +
                       joined(kNumbers, ", ", [](const auto& n) { return std::string(n.name); }));
    }
  }
  if (claim.name.empty()) claim.name = place;
  return claim;
}

}  // namespace

bool is_training_claims(const std::filesystem::path& file) try {
  if (file.extension() != ".json") return false;
  const Json json = read_json(file);
  return json.is_object() && json.contains(kClaims);
} catch (const Error&) {
  return false;  // reported by the reader of another format
}

std::vector<TrainingClaim> read_training_claims(const std::filesystem::path& file) {
  const Json json = read_json(file);
  if (!json.is_object() || !json.contains(kClaims) || !json[kClaims].is_array())
    refuse_claim(file, "the file has no claims about training", "", "", "{\"training_claims\": [{...}]}");
  std::vector<TrainingClaim> out;
  for (const Json& one : json[kClaims])
    out.push_back(read_claim(one, file, std::string(kClaims) + "[" + std::to_string(out.size()) + "]"));
  return out;
}

}  // namespace mw::audit
