// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/bpe_model.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_file.h"

namespace mw::data {
namespace {

std::string replace_all(std::string text, const Replacement& r) {
  size_t at = text.find(r.from);
  if (at == std::string::npos) return text;
  std::string out;
  size_t done = 0;
  for (; at != std::string::npos; at = text.find(r.from, done)) {
    out.append(text, done, at - done).append(r.to);
    done = at + r.from.size();
  }
  return out.append(text, done);
}

struct NamedSpecials {
  std::string bos, eos, pad;  // pieces, or empty
};

NamedSpecials read_tokenizer_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!path_exists(file)) return {};
  const TokenizerFile config = parse_tokenizer_file(read_text(file, kMaxTokenizerFile), file.string());
  const auto piece = [&](const char* key) -> std::string {
    const auto found = config.rest.find(key);
    if (found == config.rest.end() || found->is_null()) return {};
    if (found->is_string()) return found->get<std::string>();
    return string_member(*found, "content", file.string() + ", " + key);
  };
  return {piece("bos_token"), piece("eos_token"), piece("pad_token")};
}

class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(const std::filesystem::path& path) : source_(path.string()) {
    TokenizerFile file = parse_tokenizer_file(read_text(path, kMaxTokenizerFile), source_);
    model.pieces = std::move(file.pieces);
    make_room_for_added(get(file.rest, "added_tokens"));  // first, because the maps hold views into the pieces
    read_pipeline(file.rest);
    read_model(file);
    read_added(file.rest);
    for (const std::string& piece : model.pieces) add_decoded_piece(piece);
    choose_specials(read_tokenizer_config(path.parent_path()));
  }

  BpeModel model;

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& place, const std::string& found = {},
                         const std::string& expected = {}) const {
    fail_tokenizer(source_, message, place, found, expected);
  }
  [[noreturn]] void unsupported(const std::string& place, const std::string& found, const std::string& expected) const {
    unsupported_tokenizer(source_, place, found, expected);
  }

  // Lookups that accept any document.
  static const Json& get(const Json& object, const std::string& key) {
    static const Json null;
    if (!object.is_object()) return null;
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
  }
  static std::string text_of(const Json& v) { return v.is_string() ? v.get<std::string>() : std::string(); }
  bool flag(const Json& object, const std::string& key, const std::string& place) const {
    const Json& v = get(object, key);
    if (!v.is_null() && !v.is_boolean()) fail("wrong type", place + "." + key, json_excerpt(v), "true or false");
    return v.is_boolean() && v.get<bool>();
  }

  void read_pipeline(const Json& rest) {
    each_step(get(rest, "normalizer"), "normalizers", "normalizer", [&](const Json& step, const std::string& place) {
      if (text_of(get(step, "type")) != "Replace")
        unsupported(place, kind(step), "Replace of \" \" by U+2581, as in Gemma");
      model.normalizer.push_back(replacement(step, place));
    });
    each_step(get(rest, "pre_tokenizer"), "pretokenizers", "pre_tokenizer",
              [&](const Json& step, const std::string& place) {
                // Gemma's Split on " " has no effect, because the normalizer has replaced the spaces.
                if (text_of(get(step, "type")) != "Split" || text_of(get(get(step, "pattern"), "String")) != " " ||
                    replace_all(std::string(" "), model.normalizer).find(' ') != std::string::npos)
                  unsupported(place, kind(step), "none, or Gemma's Split on \" \"");
              });
    const Json& decoder = get(rest, "decoder");
    byte_fallback_decoder_ = decoder.is_null();
    if (decoder.is_null()) decoder_ = {{"\u2581", " "}};  // default: Gemma's
    each_step(decoder, "decoders", "decoder", [&](const Json& step, const std::string& place) {
      const std::string type = text_of(get(step, "type"));
      if (type == "Replace")
        decoder_.push_back(replacement(step, place));
      else if (type == "ByteFallback")
        byte_fallback_decoder_ = true;
      else if (type != "Fuse")
        unsupported(place, kind(step), "Replace, ByteFallback and Fuse, as in Gemma");
    });
  }
  static std::string kind(const Json& step) {
    return step.is_object() ? text_of(get(step, "type")) : json_excerpt(step);
  }
  template <class Step>
  void each_step(const Json& value, const std::string& list, const std::string& place, const Step& step) const {
    if (value.is_null()) return;
    if (!value.is_object()) fail("wrong type", place, json_excerpt(value), "an object or null");
    if (text_of(get(value, "type")) != "Sequence") return step(value, place);
    const Json& steps = get(value, list);
    if (!steps.is_array()) fail("wrong type", place + "." + list, json_excerpt(steps), "an array");
    for (size_t i = 0; i < steps.size(); ++i) step(steps[i], place + "." + list + "[" + std::to_string(i) + "]");
  }
  Replacement replacement(const Json& step, const std::string& place) const {
    const Json& pattern = get(get(step, "pattern"), "String");
    const Json& content = get(step, "content");
    if (!pattern.is_string() || pattern.get<std::string>().empty() || !content.is_string())
      unsupported(place, json_excerpt(step), "a Replace of one string by another");
    return {pattern.get<std::string>(), content.get<std::string>()};
  }

  void read_model(TokenizerFile& file) {
    const Json& json = get(file.rest, "model");
    if (!json.is_object()) fail("a required key is missing", "model", json_excerpt(json), "an object");
    const std::string type = text_of(get(json, "type"));
    if (!(type == "BPE" || (type.empty() && file.has_merges))) unsupported("model.type", type, "BPE");
    if (!file.has_vocabulary || model.pieces.empty())
      fail("the vocabulary is missing", "model.vocab", {}, "pieces with ids");
    if (!file.has_merges) fail("a required key is missing", "model.merges", {}, "an array");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(get(json, key)).empty()) unsupported(std::string("model.") + key, text_of(get(json, key)), "none");
    const Json& dropout = get(json, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0) unsupported("model.dropout", json_excerpt(dropout), "none");

    model.bpe.ids.reserve(file.used.size());
    for (size_t id = 0; id < file.used.size(); ++id)
      if (file.used[id] && !model.bpe.ids.insert(model.pieces[id], static_cast<int>(id)))
        fail("a piece has two ids", "model.vocab", model.pieces[id]);
    if (flag(json, "byte_fallback", "model")) find_bytes();
    if (const Json& unknown = get(json, "unk_token"); unknown.is_string()) {
      model.bpe.unknown = model.bpe.ids.find(unknown.get_ref<const std::string&>());
      if (model.bpe.unknown < 0)
        fail("the unknown token is not in the vocabulary", "model.unk_token", json_excerpt(unknown));
    }
    model.bpe.unknowns = flag(json, "fuse_unk", "model") ? Unknowns::fuse : Unknowns::keep_each;
    model.bpe.whole = flag(json, "ignore_merges", "model") ? WholeSegment::look_up_first : WholeSegment::merge;
    read_merges(file.merges);
  }
  void find_bytes() {
    for (int b = 0; b < 256; ++b) {
      const char* hex = "0123456789ABCDEF";
      const std::string piece = std::string("<0x") + hex[b >> 4] + hex[b & 15] + ">";
      model.bpe.byte_ids[static_cast<size_t>(b)] = model.bpe.ids.find(piece);
    }
  }
  void read_merges(const MergeList& merges) {
    model.bpe.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right, joined] = merges[i];
      const auto known = [&](std::string_view piece) {
        const int id = model.bpe.ids.find(piece);
        if (id < 0)
          fail("a merge names a piece that is not in the vocabulary", "model.merges[" + std::to_string(i) + "]",
               std::string(piece));
        return id;
      };
      model.bpe.merges.set(pair_key(known(left), known(right)), {static_cast<int>(i), known(joined)});
      if (!left.empty() && !right.empty()) model.bpe.junctions.add(left, right);
    }
    model.bpe.allow_cuts();
  }

  static int id_of(const Json& token) {
    const Json& id = get(token, "id");
    if (!id.is_number_integer()) return -1;
    const auto value = id.get<std::int64_t>();
    return value < 0 || value >= kMaxVocabulary ? -1 : static_cast<int>(value);
  }
  void make_room_for_added(const Json& tokens) {
    if (!tokens.is_array()) return;
    size_t count = model.pieces.size();
    for (const Json& token : tokens) count = std::max(count, static_cast<size_t>(id_of(token) + 1));
    if (count > largest_id(model.pieces.size() + tokens.size()))
      fail("an id far exceeds the number of pieces", "added_tokens", "id " + std::to_string(count - 1));
    model.pieces.resize(count);
  }
  void read_added(const Json& rest) {
    model.special.assign(model.pieces.size(), false);
    const Json& tokens = get(rest, "added_tokens");
    if (tokens.is_null()) return;
    if (!tokens.is_array()) fail("wrong type", "added_tokens", json_excerpt(tokens), "an array");
    for (size_t i = 0; i < tokens.size(); ++i) read_added_token(tokens[i], "added_tokens[" + std::to_string(i) + "]");
  }
  void read_added_token(const Json& token, const std::string& place) {
    const Json& content = get(token, "content");
    if (!content.is_string()) fail("wrong type", place + ".content", json_excerpt(content), "a string");
    const int id = id_of(token);
    if (id < 0)
      fail("the id is out of range", place + ".id", json_excerpt(get(token, "id")),
           "0 to " + std::to_string(kMaxVocabulary - 1));
    const std::string text = content.get<std::string>();
    if (text.empty()) return;
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (flag(token, key, place)) unsupported(place + "." + key, "true", "false");
    if (const int known = model.find(text); known >= 0) {
      if (known != id) fail("the id of an added token differs from its id in the vocabulary", place, text);
    } else {
      add_piece(text, id, place);
    }
    model.special[static_cast<size_t>(id)] = flag(token, "special", place);
    // Tokens with "normalized" are matched after the normalizer, in their normalised spelling.
    if (flag(token, "normalized", place)) {
      const std::string normal = replace_all(text, model.normalizer);
      if (!normal.empty()) model.normalized.add(normal, id);
    } else {
      model.raw.add(text, id);
    }
  }
  void add_piece(const std::string& text, int id, const std::string& place) {
    const auto at = static_cast<size_t>(id);
    if (!model.pieces[at].empty())
      fail("an added token has the id of another piece", place, model.pieces[at] + ", " + text);
    model.pieces[at] = text;
    model.added.emplace(text, id);
  }
  void add_decoded_piece(const std::string& piece) {
    BpeModel::DecodedPiece decoded{replace_all(piece, decoder_), -1};
    const std::string& t = decoded.text;
    const auto hex = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                    : -1;
    };
    if (byte_fallback_decoder_ && t.size() == 6 && t.starts_with("<0x") && t[5] == '>' && hex(t[3]) >= 0 &&
        hex(t[4]) >= 0)
      decoded.byte = hex(t[3]) * 16 + hex(t[4]);
    model.decoded.push_back(std::move(decoded));
  }

  void choose_specials(const NamedSpecials& named) {
    const auto choose = [&](const std::string& name, std::initializer_list<const char*> usual) {
      if (!name.empty()) {
        const int id = model.find(name);
        if (id < 0) fail("tokenizer_config.json names a token that is not in the vocabulary", name);
        return id;
      }
      for (const char* piece : usual)
        if (const int id = model.find(piece); id >= 0) return id;
      return -1;
    };
    model.bos = choose(named.bos, {"<bos>", "<s>"});
    model.eos = choose(named.eos, {"<eos>", "</s>"});
    model.pad = choose(named.pad, {"<pad>"});
    if (model.bos < 0) fail("the beginning-of-text token is missing", "added_tokens", {}, "<bos>");
    if (model.eos < 0) fail("the end-of-text token is missing", "added_tokens", {}, "<eos>");
    if (model.pad < 0) model.pad = model.eos;
  }

  std::string source_;
  std::vector<Replacement> decoder_;
  bool byte_fallback_decoder_ = false;
};

}  // namespace

std::string replace_all(std::string text, const std::vector<Replacement>& replacements) {
  for (const Replacement& r : replacements) text = replace_all(std::move(text), r);
  return text;
}

int BpeModel::find(std::string_view piece) const {
  if (const int id = bpe.ids.find(piece); id >= 0) return id;
  const auto found = added.find(std::string(piece));
  return found == added.end() ? -1 : found->second;
}

BpeModel read_bpe_model(const std::filesystem::path& file) {
  return std::move(TokenizerJsonReader(file).model);
}

}  // namespace mw::data
