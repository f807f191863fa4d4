// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/tokenizer.h"

#include <sentencepiece_processor.h>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/protobuf.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/data/tokenizer/bpe_model.h"
#include "core/data/tokenizer/tokenizer_file.h"

namespace mw::data {
namespace {

class SentencePieceChecker {
 public:
  explicit SentencePieceChecker(const std::string& file) : file_(file) {}

  void check(std::string_view content) {
    each(content, "model", [&](const ProtoField& f) {
      if (f.number == 1 && f.wire == 2) piece(f.bytes);
      if (f.number == 2 && f.wire == 2) trainer(f.bytes);
      if (f.number == 3 && f.wire == 2) normalizer(f.bytes);
      if (f.number == 5 && f.wire == 2) denormalizer(f.bytes);
    });
    if (pieces_ == 0) malformed("pieces", "no pieces");
    if (!has_normalizer_) malformed("normalizer_spec", "nothing");
  }

 private:
  template <class F>
  void each(std::string_view message, const std::string& place, const F& use) {
    ProtoReader fields(message);
    while (const auto field = fields.next()) use(*field);
    if (fields.damaged()) malformed(place, "a malformed field");
  }
  void piece(std::string_view message) {
    const std::string place = "piece " + std::to_string(pieces_);
    if (++pieces_ > kMaxVocabulary) malformed("pieces", "more than " + std::to_string(kMaxVocabulary));
    each(message, place, [&](const ProtoField& f) {
      if (f.number == 2 && f.wire == 5 && !std::isfinite(f.as_float())) malformed(place, "a score that is not finite");
    });
  }
  void trainer(std::string_view message) {
    each(message, "trainer_spec", [&](const ProtoField& f) {
      if (f.number == 3 && f.varint() != 1 && f.varint() != 2)
        unsupported("trainer_spec.model_type", std::to_string(f.varint()), "BPE (2) or Unigram (1)");
    });
  }
  void normalizer(std::string_view message) {
    has_normalizer_ = true;
    bool dummy_prefix = true, removes_spaces = true, escapes = true;  // defaults of the format
    each(message, "normalizer_spec", [&](const ProtoField& f) {
      if (f.number == 2 && !f.bytes.empty())
        unsupported("normalizer_spec.precompiled_charsmap", "a normalization table", "none (identity)");
      if (f.number == 3) dummy_prefix = f.varint() != 0;
      if (f.number == 4) removes_spaces = f.varint() != 0;
      if (f.number == 5) escapes = f.varint() != 0;
    });
    if (dummy_prefix) unsupported("normalizer_spec.add_dummy_prefix", "true", "false");
    if (removes_spaces) unsupported("normalizer_spec.remove_extra_whitespaces", "true", "false");
    if (!escapes) unsupported("normalizer_spec.escape_whitespaces", "false", "true");
  }
  void denormalizer(std::string_view message) {
    each(message, "denormalizer_spec", [&](const ProtoField& f) {
      if (f.number == 2 && !f.bytes.empty())
        unsupported("denormalizer_spec.precompiled_charsmap", "a normalization table", "none (identity)");
    });
  }

  [[noreturn]] void malformed(const std::string& place, const std::string& found) const {
    throw Error("TOKENIZER", "invalid SentencePiece model", {.file = file_, .place = place, .found = found});
  }
  [[noreturn]] void unsupported(const std::string& place, const std::string& found, const std::string& expected) const {
    unsupported_tokenizer(file_, place, found, expected);
  }

  const std::string& file_;
  int pieces_ = 0;
  bool has_normalizer_ = false;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::filesystem::path& file) : source_(file.string()) {
    const std::string content = read_file(file, 256u << 20);
    check_sentencepiece_model(content, source_);
    check(model_.LoadFromSerializedProto(content), "invalid SentencePiece model");
    bos_ = model_.bos_id();
    eos_ = model_.eos_id();
    pad_ = model_.pad_id() >= 0 ? model_.pad_id() : eos_;
    if (bos_ < 0 || eos_ < 0)
      throw Error("TOKENIZER", "the beginning-of-text or end-of-text piece is missing",
                  {.file = source_, .expected = "<bos> and <eos>"});
  }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<int> ids;
    check(model_.Encode({text.data(), text.size()}, &ids), "the text cannot be encoded");
    return ids;
  }
  std::string decode(std::span<const int> ids, Specials specials) const override {
    std::string text;
    std::vector<int> run;
    const auto flush = [&] {
      std::string part;
      if (!run.empty()) check(model_.Decode(run, &part), "the ids cannot be decoded");
      text += part;
      run.clear();
    };
    for (const int id : ids) {
      if (id < 0 || id >= size()) continue;
      if (specials == Specials::drop || !model_.IsControl(id)) {  // the library drops control pieces
        run.push_back(id);
      } else {
        flush();
        text += model_.IdToPiece(id);
      }
    }
    flush();
    return text;
  }
  int size() const override { return model_.GetPieceSize(); }
  std::string piece(int id) const override { return id < 0 || id >= size() ? "" : model_.IdToPiece(id); }
  int find(std::string_view piece) const override {
    const int id = model_.PieceToId({piece.data(), piece.size()});
    return id >= 0 && id < size() && model_.IdToPiece(id) == piece
               ? id
               : -1;  // PieceToId returns the id of <unk> for unknown pieces
  }

 private:
  void check(const sentencepiece::util::Status& status, const std::string& message) const {
    if (!status.ok()) throw Error("TOKENIZER", message, {.file = source_, .found = status.error_message()});
  }

  std::string source_;
  sentencepiece::SentencePieceProcessor model_;
};

}  // namespace

void check_sentencepiece_model(std::string_view content, const std::string& file) {
  SentencePieceChecker(file).check(content);
}

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

// tokenizer_config.json may name the special tokens.
std::string fingerprint_of(const std::filesystem::path& file) {
  const std::filesystem::path config = file.parent_path() / "tokenizer_config.json";
  Sha256 sum;
  sum.add_field(file.extension().string()).add_field(hex(sha256_of_file(file).sha256));
  if (path_exists(config)) sum.add_field(hex(sha256_of_file(config).sha256));
  return hex(sum.finish());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  if (is_folder(path)) {
    file = path / "tokenizer.json";
    if (!path_exists(file)) file = path / "tokenizer.model";
    if (!path_exists(file))
      throw Error("TOKENIZER", "the folder contains no tokenizer",
                  {.file = path.string(), .expected = "tokenizer.json or tokenizer.model"});
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (file.extension() == ".model")
    tokenizer = std::make_unique<SentencePieceTokenizer>(file);
  else
    tokenizer = std::make_unique<BpeTokenizer>(read_bpe_model(file));
  tokenizer->fingerprint_ = fingerprint_of(file);
  return tokenizer;
}

}  // namespace mw::data
