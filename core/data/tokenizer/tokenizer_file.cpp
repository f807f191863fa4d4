// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::data {

void fail_tokenizer(const std::string& source, const std::string& message, const std::string& place,
                    const std::string& found, const std::string& expected) {
  throw Error("TOKENIZER", message, {.file = source, .place = place, .found = excerpt(found), .expected = expected});
}

void unsupported_tokenizer(const std::string& source, const std::string& place, const std::string& found,
                           const std::string& expected) {
  throw Error("TOKENIZER", "this tokenizer is not supported",
              {.file = source,
               .place = place,
               .found = excerpt(found),
               .expected = expected,
               .fix = "use the tokenizer.json or tokenizer.model of a Gemma model"});
}

namespace {

constexpr size_t kMaxDepth = 100;

// SAX handler of nlohmann::json. A frame is an open object or array; its `node` is null within vocabulary and merges.
class TokenizerFileHandler : public nlohmann::json_sax<Json> {
 public:
  TokenizerFileHandler(std::string_view text, const std::string& source) : text_(text), source_(source) {}
  TokenizerFile file;

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return value(v); }
  bool number_unsigned(number_unsigned_t v) override { return value(v); }
  bool number_float(number_float_t v, const string_t&) override { return value(v); }
  bool string(string_t& v) override { return value(std::move(v)); }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    if (at_model_member("vocab")) {
      file.has_vocabulary = true;
      frames_.push_back({Kind::vocabulary, nullptr, {}, {}});
      return true;
    }
    return open(Json::object(), Kind::object);
  }
  bool key(string_t& v) override {
    Frame& frame = frames_.back();
    if (frame.kind == Kind::object && !frame.keys.insert(v).second) fail("duplicate key \"" + v + "\"", path());
    frame.key = std::move(v);
    return true;
  }
  bool end_object() override {
    if (frames_.back().kind == Kind::vocabulary) index_pieces();
    return close();
  }
  bool start_array(size_t) override {
    if (at_model_member("merges")) {
      file.has_merges = true;
      frames_.push_back({Kind::merges, nullptr, {}, {}});
      return true;
    }
    if (!frames_.empty() && frames_.back().kind == Kind::merges) {
      halves_ = 0;
      frames_.push_back({Kind::merge, nullptr, {}, {}});
      return true;
    }
    return open(Json::array(), Kind::array);
  }
  bool end_array() override {
    if (frames_.back().kind == Kind::merge) {
      if (halves_ != 2) fail("a merge is not a pair", merge_place(), std::to_string(halves_) + " strings");
      file.merges.add(pair_[0], pair_[1]);
    }
    return close();
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    const size_t offset = std::min(position ? position - 1 : 0, text_.size());
    const std::string_view before = text_.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n');
    const size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
    fail("not valid JSON", "line " + std::to_string(line) + ", column " + std::to_string(column), excerpt(token, 40));
    return false;
  }

 private:
  enum class Kind { object, array, vocabulary, merges, merge };
  struct Frame {
    Kind kind;
    Json* node;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void fail(const std::string& message, const std::string& place, const std::string& found = {},
                         const std::string& expected = {}) const {
    fail_tokenizer(source_, message, place, found, expected);
  }
  std::string path() const {
    std::string text;
    for (const Frame& f : frames_)
      if (!f.key.empty()) text += (text.empty() ? "" : ".") + f.key;
    return excerpt(text, 200);
  }
  std::string merge_place() const { return "model.merges[" + std::to_string(file.merges.size()) + "]"; }
  bool at_model_member(std::string_view key) const {
    return frames_.size() == 2 && frames_[0].key == "model" && frames_[1].kind == Kind::object && frames_[1].key == key;
  }

  Json* put(Json v) {
    if (frames_.empty()) {
      file.rest = std::move(v);
      return &file.rest;
    }
    Frame& f = frames_.back();
    if (f.kind == Kind::array) {
      f.node->push_back(std::move(v));
      return &f.node->back();
    }
    auto& members = f.node->get_ref<Json::object_t&>();  // key() rejected duplicates, so no linear search is needed
    members.push_back({f.key, std::move(v)});
    return &members.back().second;
  }
  bool open(Json v, Kind kind) {
    if (frames_.size() >= kMaxDepth)
      fail("nesting exceeds the limit of " + std::to_string(kMaxDepth) + " levels", path());
    if (!frames_.empty()) refuse_inside_arrays();
    Json* node = put(std::move(v));
    frames_.push_back({kind, node, {}, {}});
    return true;
  }
  void refuse_inside_arrays() const {
    const Kind kind = frames_.back().kind;
    if (kind == Kind::vocabulary) fail("an id is not a whole number", path());
    if (kind == Kind::merges || kind == Kind::merge) fail("a merge is not a string or a pair", merge_place());
  }
  bool close() {
    frames_.pop_back();
    return true;
  }
  template <class V>
  bool value(V&& v) {
    if (frames_.empty() || frames_.back().kind == Kind::object || frames_.back().kind == Kind::array) {
      put(Json(std::forward<V>(v)));
      return true;
    }
    if (frames_.back().kind == Kind::vocabulary) {
      if constexpr (std::is_integral_v<std::decay_t<V>> && !std::is_same_v<std::decay_t<V>, bool>) {
        add_piece(std::cmp_less(v, 0) || std::cmp_greater_equal(v, kMaxVocabulary) ? -1 : static_cast<int>(v));
        return true;
      }
    } else if constexpr (std::is_same_v<std::decay_t<V>, std::string>) {
      add_merge(v);
      return true;
    }
    refuse_inside_arrays();
    return false;
  }
  void add_piece(int id) {
    std::string& piece = frames_.back().key;
    const std::string place = "model.vocab";
    if (id < 0)
      fail("the id of piece \"" + piece + "\" is out of range", place, {},
           "0 to " + std::to_string(kMaxVocabulary - 1));
    vocabulary_.emplace_back(id, std::move(piece));
    piece.clear();
  }
  void index_pieces() {
    size_t count = 0;
    for (const auto& entry : vocabulary_) count = std::max(count, static_cast<size_t>(entry.first) + 1);
    if (count > largest_id(vocabulary_.size()))
      fail("the largest id far exceeds the number of pieces", "model.vocab",
           "id " + std::to_string(count - 1) + " among " + counted(vocabulary_.size(), "piece"));
    file.pieces.resize(count);
    file.used.resize(count);
    for (auto& [id, piece] : vocabulary_) {
      const auto at = static_cast<size_t>(id);
      if (file.used[at])
        fail("two pieces have the id " + std::to_string(id), "model.vocab", file.pieces[at] + ", " + piece);
      file.used[at] = true;
      file.pieces[at] = std::move(piece);
    }
    vocabulary_.clear();
  }
  void add_merge(const std::string& v) {
    if (frames_.back().kind == Kind::merge) {
      if (halves_ < 2) pair_[halves_] = v;
      ++halves_;
      return;
    }
    const size_t space = v.find(' ');  // tokenizers < 0.20 writes "left right"
    if (space == std::string::npos || v.find(' ', space + 1) != std::string::npos)
      fail("a merge is not two pieces separated by a space", merge_place(), excerpt(v));
    const std::string_view pair = v;
    file.merges.add(pair.substr(0, space), pair.substr(space + 1));
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<Frame> frames_;
  std::array<std::string, 2> pair_;
  size_t halves_ = 0;
  std::vector<std::pair<int, std::string>> vocabulary_;
};

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source) {
  TokenizerFileHandler reader(text, source);
  Json::sax_parse(text, &reader);
  if (!reader.file.rest.is_object())
    throw Error("TOKENIZER", "the file is not a JSON object", {.file = source, .expected = "a tokenizer.json"});
  return std::move(reader.file);
}

}  // namespace mw::data
