// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/bpe_tokenizer.h"

#include "core/base/utf8.h"
#include "core/data/tokenizer/bpe_model.h"

namespace mw::data {
namespace {

class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeModel model) : model_(std::move(model)) {
    bos_ = model_.bos;
    eos_ = model_.eos;
    pad_ = model_.pad;
  }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> ids;
    ids.reserve(text.size() / 3 + 8);
    split(model_.raw, text, ids, [&](std::string_view segment) {
      const std::string normal = replace_all(std::string(segment), model_.normalizer);
      split(model_.normalized, normal, ids, [&](std::string_view part) { model_.bpe.encode(part, ids); });
    });
    return ids;
  }

  std::string decode(std::span<const int> ids, Specials specials) const override {
    std::string text, bytes;
    const auto flush =
        [&] {  // as in the tokenizers library: a run of byte pieces is valid UTF-8 as a whole, or replaced
          if (first_invalid_utf8(bytes) != std::string::npos)
            for (size_t i = 0; i < bytes.size(); ++i) text += "\uFFFD";
          else
            text += bytes;
          bytes.clear();
        };
    for (const int id : ids) {
      if (id < 0 || id >= size()) continue;
      const BpeModel::DecodedPiece& decoded = model_.decoded[static_cast<size_t>(id)];
      if (specials == Specials::drop && model_.special[static_cast<size_t>(id)]) continue;
      if (decoded.byte >= 0) {
        bytes.push_back(static_cast<char>(decoded.byte));
        continue;
      }
      if (!bytes.empty()) flush();
      text += decoded.text;
    }
    if (!bytes.empty()) flush();
    return text;
  }

  int size() const override { return static_cast<int>(model_.pieces.size()); }
  std::string piece(int id) const override {
    return id < 0 || id >= size() ? "" : model_.pieces[static_cast<size_t>(id)];
  }
  int find(std::string_view piece) const override { return model_.find(piece); }

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

  BpeModel model_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_bpe_tokenizer(const std::filesystem::path& file) {
  return std::make_unique<BpeTokenizer>(read_bpe_model(file));
}

}  // namespace mw::data
