// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/bpe_tokenizer.h"

#include "core/data/tokenizer/bpe_reader.h"
#include "core/data/tokenizer/utf8.h"

namespace mw::data {
namespace {

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts) : p_(std::move(parts)) {
    bos_ = p_.bos;
    eos_ = p_.eos;
    pad_ = p_.pad;
  }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> ids;
    ids.reserve(text.size() / 3 + 8);
    split(p_.raw, text, ids, [&](std::string_view segment) {
      const std::string normal = replace_all(std::string(segment), p_.normalizer);
      split(p_.normalized, normal, ids, [&](std::string_view part) { p_.bpe.encode(part, ids); });
    });
    return ids;
  }

  std::string decode(std::span<const int> ids, Specials specials) const override {
    std::string text, bytes;
    const auto flush = [&] {  // as the reference decoder: a run of bytes is text as a whole or not at all
      if (first_invalid_utf8(bytes) != std::string::npos)
        for (size_t i = 0; i < bytes.size(); ++i) text += "\uFFFD";
      else
        text += bytes;
      bytes.clear();
    };
    for (const int id : ids) {
      if (id < 0 || id >= size()) continue;
      const BpeParts::Shown& shown = p_.shown[static_cast<size_t>(id)];
      if (specials == Specials::drop && p_.special[static_cast<size_t>(id)]) continue;
      if (shown.byte >= 0) {
        bytes.push_back(static_cast<char>(shown.byte));
        continue;
      }
      if (!bytes.empty()) flush();
      text += shown.text;
    }
    if (!bytes.empty()) flush();
    return text;
  }

  int size() const override { return static_cast<int>(p_.pieces.size()); }
  std::string piece(int id) const override { return id < 0 || id >= size() ? "" : p_.pieces[static_cast<size_t>(id)]; }
  int find(std::string_view piece) const override { return p_.find(piece); }

 private:
  template <class Between>
  static void split(const TokenMatcher& matcher, std::string_view text, std::vector<int>& ids, const Between& between) {
    if (matcher.empty()) return between(text);
    for (size_t at = 0; at < text.size();) {
      const TokenMatcher::Match match = matcher.next(text, at);
      if (match.begin > at) between(text.substr(at, match.begin - at));
      if (match.id >= 0) ids.push_back(match.id);
      at = match.end;
    }
  }

  BpeParts p_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_bpe_tokenizer(const std::filesystem::path& file) {
  return std::make_unique<BpeTokenizer>(read_bpe_parts(file));
}

}  // namespace mw::data
