// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/sentencepiece_check.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer_file.h"

namespace mw::data {
namespace {

// One field of a protocol buffer message.
struct Field {
  std::uint64_t number = 0, wire = 0, varint = 0;
  std::string_view bytes;  // of a fixed or length-delimited field
};

class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}
  // False at the end, or where the message is malformed: then ok() is false.
  bool next(Field& f) {
    if (left_.empty()) return false;
    std::uint64_t key = 0, length = 0;
    if (!varint(key)) return false;
    f = {key >> 3, key & 7, 0, {}};
    switch (f.wire) {
      case 0:
        return varint(f.varint);
      case 1:
        return take(8, f.bytes);
      case 2:
        return varint(length) && take(length, f.bytes);
      case 5:
        return take(4, f.bytes);
      default:
        return ok_ = false;
    }
  }
  bool ok() const { return ok_; }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return ok_ = false;
  }
  bool take(std::uint64_t n, std::string_view& bytes) {
    if (n > left_.size()) return ok_ = false;
    bytes = left_.substr(0, n);
    left_.remove_prefix(n);
    return true;
  }

  std::string_view left_;
  bool ok_ = true;
};

class Check {
 public:
  explicit Check(const std::string& file) : file_(file) {}

  void model(std::string_view content) {
    each(content, "model", [&](const Field& f) {
      if (f.number == 1 && f.wire == 2) piece(f.bytes);
      if (f.number == 2 && f.wire == 2) trainer(f.bytes);
      if (f.number == 3 && f.wire == 2) normalizer(f.bytes);
      if (f.number == 5 && f.wire == 2) denormalizer(f.bytes);
    });
    if (pieces_ == 0) malformed("pieces", "none");
    if (!has_normalizer_) malformed("normalizer_spec", "none");
  }

 private:
  template <class F>
  void each(std::string_view message, const std::string& place, const F& use) {
    Fields fields(message);
    for (Field f; fields.next(f);) use(f);
    if (!fields.ok()) malformed(place, "a broken field");
  }
  void piece(std::string_view message) {
    const std::string place = "piece " + std::to_string(pieces_);
    if (++pieces_ > kMaxVocabulary) malformed("pieces", "more than " + std::to_string(kMaxVocabulary));
    each(message, place, [&](const Field& f) {
      float score = 0;
      if (f.number == 2 && f.wire == 5) std::memcpy(&score, f.bytes.data(), sizeof score);
      if (!std::isfinite(score)) malformed(place, "a score that is not a number");
    });
  }
  void trainer(std::string_view message) {
    each(message, "trainer_spec", [&](const Field& f) {
      if (f.number == 3 && f.varint != 1 && f.varint != 2)
        unsupported("trainer_spec.model_type", std::to_string(f.varint), "BPE (2) or Unigram (1)");
    });
  }
  void normalizer(std::string_view message) {
    has_normalizer_ = true;
    bool dummy_prefix = true, removes_spaces = true, escapes = true;  // the format's defaults
    each(message, "normalizer_spec", [&](const Field& f) {
      if (f.number == 2 && !f.bytes.empty())
        unsupported("normalizer_spec.precompiled_charsmap", "a table of normalisations", "none (identity)");
      if (f.number == 3) dummy_prefix = f.varint != 0;
      if (f.number == 4) removes_spaces = f.varint != 0;
      if (f.number == 5) escapes = f.varint != 0;
    });
    if (dummy_prefix) unsupported("normalizer_spec.add_dummy_prefix", "true", "false");
    if (removes_spaces) unsupported("normalizer_spec.remove_extra_whitespaces", "true", "false");
    if (!escapes) unsupported("normalizer_spec.escape_whitespaces", "false", "true");
  }
  void denormalizer(std::string_view message) {
    each(message, "denormalizer_spec", [&](const Field& f) {
      if (f.number == 2 && !f.bytes.empty())
        unsupported("denormalizer_spec.precompiled_charsmap", "a table of normalisations", "none (identity)");
    });
  }

  [[noreturn]] void malformed(const std::string& place, const std::string& found) const {
    throw Error({.id = "TOKENIZER",
                 .message = "not a usable SentencePiece model",
                 .file = file_,
                 .place = place,
                 .found = found});
  }
  [[noreturn]] void unsupported(const std::string& place, const std::string& found, const std::string& expected) const {
    throw Error({.id = "TOKENIZER",
                 .message = "this kind of tokenizer is not supported",
                 .file = file_,
                 .place = place,
                 .found = found,
                 .expected = expected,
                 .fix = "use the tokenizer.json or tokenizer.model of a Gemma model"});
  }

  const std::string& file_;
  int pieces_ = 0;
  bool has_normalizer_ = false;
};

}  // namespace

void check_sentencepiece_model(std::string_view content, const std::string& file) {
  Check(file).model(content);
}

}  // namespace mw::data
