// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/word_prompts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "core/base/rng.h"

namespace mw::serve {
namespace {

constexpr std::array<std::string_view, 96> kWords = {
    "time",    "year",    "people", "way",     "day",     "man",     "thing",    "woman",    "life",   "child",
    "world",   "school",  "state",  "family",  "student", "group",   "country",  "problem",  "hand",   "part",
    "place",   "case",    "week",   "company", "system",  "program", "question", "work",     "number", "night",
    "point",   "home",    "water",  "room",    "mother",  "area",    "money",    "story",    "fact",   "month",
    "lot",     "right",   "study",  "book",    "eye",     "job",     "word",     "business", "issue",  "side",
    "kind",    "head",    "house",  "service", "friend",  "father",  "power",    "hour",     "game",   "line",
    "end",     "member",  "law",    "car",     "city",    "name",    "team",     "minute",   "idea",   "body",
    "back",    "parent",  "face",   "level",   "office",  "door",    "health",   "person",   "art",    "war",
    "history", "party",   "result", "change",  "morning", "reason",  "research", "girl",     "guy",    "moment",
    "air",     "teacher", "force",  "food",    "door",    "field"};

std::string sentence(std::uint64_t seed, std::uint64_t from, std::uint64_t count) {
  const Rng rng{seed, 0x776f726473};  // "words"
  std::string out;
  for (std::uint64_t i = from; i < from + count; ++i) {
    if (i > from) out += ' ';
    out += kWords[rng.at(i) % kWords.size()];
  }
  return out;
}

}  // namespace

WordPrompts::WordPrompts(const std::function<int(const std::string&)>& count) {
  constexpr int few = 32, many = 160;
  const int a = count(sentence(1, 0, few)), b = count(sentence(1, 0, many));
  if (b <= a || a < 1)
    throw Error({.id = "SERVER",
                 .message = "the server does not count prompt tokens",
                 .found = std::to_string(a) + " for " + std::to_string(few) + " words, " + std::to_string(b) + " for " +
                          std::to_string(many),
                 .expected = "usage.prompt_tokens that grows with the prompt",
                 .fix = "set the model of the experiment, so that prompts can be sent as token ids"});
  per_word_ = static_cast<double>(b - a) / (many - few);
  fixed_ = a - per_word_ * few;
}

double WordPrompts::words(int tokens) const {
  return std::max(1.0, std::round((tokens - fixed_) / per_word_));
}

std::string WordPrompts::text(const TimedRequest& request) const {
  const auto all = static_cast<std::uint64_t>(words(request.prompt_len));
  const auto shared =
      std::min(all, static_cast<std::uint64_t>(request.shared > 0 ? std::floor(request.shared / per_word_) : 0));
  std::string out = sentence(request.shared_seed, 0, shared);
  if (shared > 0 && shared < all) out += ' ';
  return out + sentence(request.prompt_seed, shared, all - shared);
}

}  // namespace mw::serve
