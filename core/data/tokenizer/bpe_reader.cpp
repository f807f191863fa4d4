// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/bpe_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/input_file.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/utf8.h"

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
    parts.pieces = std::move(file.pieces);
    make_room_for_added(get(file.rest, "added_tokens"));  // first: the maps hold views into the pieces
    read_pipeline(file.rest);
    read_model(file);
    read_added(file.rest);
    for (const std::string& piece : parts.pieces) add_shown(piece);
    choose_specials(read_tokenizer_config(path.parent_path()));
  }

  BpeParts parts;

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& place, const std::string& found = {},
                         const std::string& expected = {}) const {
    throw Error({.id = "TOKENIZER",
                 .message = message,
                 .file = source_,
                 .place = place,
                 .found = excerpt(found),
                 .expected = expected});
  }
  [[noreturn]] void unsupported(const std::string& place, const std::string& found, const std::string& expected) const {
    throw Error({.id = "TOKENIZER",
                 .message = "this kind of tokenizer is not supported",
                 .file = source_,
                 .place = place,
                 .found = excerpt(found),
                 .expected = expected,
                 .fix = "use the tokenizer.json or tokenizer.model of a Gemma model"});
  }

  // Lookups that never throw anything but Error, whatever the document holds.
  static const Json& get(const Json& object, const std::string& key) {
    static const Json null;
    if (!object.is_object()) return null;
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
  }
  static std::string text_of(const Json& v) { return v.is_string() ? v.get<std::string>() : std::string(); }
  bool flag(const Json& object, const std::string& key, const std::string& place) const {
    const Json& v = get(object, key);
    if (!v.is_null() && !v.is_boolean()) fail("wrong type", place + "." + key, shorten(v), "true or false");
    return v.is_boolean() && v.get<bool>();
  }
  static std::string shorten(const Json& v) { return excerpt(v.dump(-1, ' ', false, Json::error_handler_t::replace)); }

  void read_pipeline(const Json& rest) {
    each_step(get(rest, "normalizer"), "normalizers", "normalizer", [&](const Json& step, const std::string& place) {
      if (text_of(get(step, "type")) != "Replace")
        unsupported(place, kind(step), "Replace of \" \" by U+2581, as Gemma has it");
      parts.normalizer.push_back(replacement(step, place));
    });
    each_step(get(rest, "pre_tokenizer"), "pretokenizers", "pre_tokenizer",
              [&](const Json& step, const std::string& place) {
                // Gemma's Split on " " finds nothing once the normalizer has replaced the spaces.
                if (text_of(get(step, "type")) != "Split" || text_of(get(get(step, "pattern"), "String")) != " " ||
                    replace_all(std::string(" "), parts.normalizer).find(' ') != std::string::npos)
                  unsupported(place, kind(step), "none, or Gemma's Split on \" \" after spaces were replaced");
              });
    const Json& decoder = get(rest, "decoder");
    byte_fallback_decoder_ = decoder.is_null();
    if (decoder.is_null()) decoder_ = {{"\u2581", " "}};  // none in the file: Gemma's
    each_step(decoder, "decoders", "decoder", [&](const Json& step, const std::string& place) {
      const std::string type = text_of(get(step, "type"));
      if (type == "Replace")
        decoder_.push_back(replacement(step, place));
      else if (type == "ByteFallback")
        byte_fallback_decoder_ = true;
      else if (type != "Fuse")
        unsupported(place, kind(step), "Replace, ByteFallback and Fuse, as Gemma has them");
    });
  }
  static std::string kind(const Json& step) { return step.is_object() ? text_of(get(step, "type")) : shorten(step); }
  template <class Step>
  void each_step(const Json& value, const std::string& list, const std::string& place, const Step& step) const {
    if (value.is_null()) return;
    if (!value.is_object()) fail("wrong type", place, shorten(value), "an object or null");
    if (text_of(get(value, "type")) != "Sequence") return step(value, place);
    const Json& steps = get(value, list);
    if (!steps.is_array()) fail("wrong type", place + "." + list, shorten(steps), "an array");
    for (size_t i = 0; i < steps.size(); ++i) step(steps[i], place + "." + list + "[" + std::to_string(i) + "]");
  }
  Replacement replacement(const Json& step, const std::string& place) const {
    const Json& pattern = get(get(step, "pattern"), "String");
    const Json& content = get(step, "content");
    if (!pattern.is_string() || pattern.get<std::string>().empty() || !content.is_string())
      unsupported(place, shorten(step), "a Replace of one string by another");
    return {pattern.get<std::string>(), content.get<std::string>()};
  }

  void read_model(TokenizerFile& file) {
    const Json& model = get(file.rest, "model");
    if (!model.is_object()) fail("a required key is missing", "model", shorten(model), "an object");
    const std::string type = text_of(get(model, "type"));
    if (!(type == "BPE" || (type.empty() && file.has_merges))) unsupported("model.type", type, "BPE");
    if (!file.has_vocabulary || parts.pieces.empty())
      fail("there is no vocabulary", "model.vocab", {}, "pieces with ids");
    if (!file.has_merges) fail("a required key is missing", "model.merges", {}, "an array");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_of(get(model, key)).empty()) unsupported(std::string("model.") + key, text_of(get(model, key)), "none");
    const Json& dropout = get(model, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0) unsupported("model.dropout", shorten(dropout), "none");

    parts.bpe.ids.reserve(file.used.size());
    for (size_t id = 0; id < file.used.size(); ++id)
      if (file.used[id] && !parts.bpe.ids.insert(parts.pieces[id], static_cast<int>(id)))
        fail("a piece has two ids", "model.vocab", parts.pieces[id]);
    if (flag(model, "byte_fallback", "model")) find_bytes();
    if (const Json& unknown = get(model, "unk_token"); unknown.is_string()) {
      parts.bpe.unknown = parts.bpe.ids.find(unknown.get_ref<const std::string&>());
      if (parts.bpe.unknown < 0)
        fail("the unknown token is not in the vocabulary", "model.unk_token", shorten(unknown));
    }
    parts.bpe.unknowns = flag(model, "fuse_unk", "model") ? Unknowns::fuse : Unknowns::keep_each;
    parts.bpe.whole = flag(model, "ignore_merges", "model") ? WholeSegment::look_up_first : WholeSegment::merge;
    read_merges(file.merges);
  }
  void find_bytes() {
    for (int b = 0; b < 256; ++b) {
      const char* hex = "0123456789ABCDEF";
      const std::string piece = std::string("<0x") + hex[b >> 4] + hex[b & 15] + ">";
      parts.bpe.byte_ids[static_cast<size_t>(b)] = parts.bpe.ids.find(piece);
    }
  }
  void read_merges(const MergeList& merges) {
    parts.bpe.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right, joined] = merges[i];
      const auto known = [&](std::string_view piece) {
        const int id = parts.bpe.ids.find(piece);
        if (id < 0)
          fail("a merge names a piece that is not in the vocabulary", "model.merges[" + std::to_string(i) + "]",
               std::string(piece));
        return id;
      };
      parts.bpe.merges.set(pair_key(known(left), known(right)), {static_cast<int>(i), known(joined)});
    }
  }

  static int id_of(const Json& token) {
    const Json& id = get(token, "id");
    if (!id.is_number_integer()) return -1;
    const auto value = id.get<std::int64_t>();
    return value < 0 || value >= kMaxVocabulary ? -1 : static_cast<int>(value);
  }
  void make_room_for_added(const Json& tokens) {
    if (!tokens.is_array()) return;
    size_t count = parts.pieces.size();
    for (const Json& token : tokens) count = std::max(count, static_cast<size_t>(id_of(token) + 1));
    if (count > largest_id(parts.pieces.size() + tokens.size()))
      fail("an id is far beyond the number of pieces", "added_tokens", "id " + std::to_string(count - 1));
    parts.pieces.resize(count);
  }
  void read_added(const Json& rest) {
    parts.special.assign(parts.pieces.size(), false);
    const Json& tokens = get(rest, "added_tokens");
    if (tokens.is_null()) return;
    if (!tokens.is_array()) fail("wrong type", "added_tokens", shorten(tokens), "an array");
    for (size_t i = 0; i < tokens.size(); ++i) read_added_token(tokens[i], "added_tokens[" + std::to_string(i) + "]");
  }
  void read_added_token(const Json& token, const std::string& place) {
    const Json& content = get(token, "content");
    if (!content.is_string()) fail("wrong type", place + ".content", shorten(content), "a string");
    const int id = id_of(token);
    if (id < 0)
      fail("the id is out of range", place + ".id", shorten(get(token, "id")),
           "0 to " + std::to_string(kMaxVocabulary - 1));
    const std::string text = content.get<std::string>();
    if (text.empty()) return;
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (flag(token, key, place)) unsupported(place + "." + key, "true", "false");
    if (const int known = parts.find(text); known >= 0) {
      if (known != id) fail("an added token has another id than the vocabulary gives it", place, text);
    } else {
      add_piece(text, id, place);
    }
    parts.special[static_cast<size_t>(id)] = flag(token, "special", place);
    // `normalized`: looked for after the normalizer, in its own normalised spelling.
    if (flag(token, "normalized", place)) {
      const std::string normal = replace_all(text, parts.normalizer);
      if (!normal.empty()) parts.normalized.add(normal, id);
    } else {
      parts.raw.add(text, id);
    }
  }
  void add_piece(const std::string& text, int id, const std::string& place) {
    const auto at = static_cast<size_t>(id);
    if (!parts.pieces[at].empty())
      fail("an added token takes the id of another piece", place, parts.pieces[at] + ", " + text);
    parts.pieces[at] = text;
    parts.added.emplace(text, id);
  }
  void add_shown(const std::string& piece) {
    BpeParts::Shown shown{replace_all(piece, decoder_), -1};
    const std::string& t = shown.text;
    const auto hex = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                    : -1;
    };
    if (byte_fallback_decoder_ && t.size() == 6 && t.starts_with("<0x") && t[5] == '>' && hex(t[3]) >= 0 &&
        hex(t[4]) >= 0)
      shown.byte = hex(t[3]) * 16 + hex(t[4]);
    parts.shown.push_back(std::move(shown));
  }

  void choose_specials(const NamedSpecials& named) {
    const auto choose = [&](const std::string& name, std::initializer_list<const char*> usual) {
      if (!name.empty()) {
        const int id = parts.find(name);
        if (id < 0) fail("tokenizer_config.json names a token that is not in the vocabulary", name);
        return id;
      }
      for (const char* piece : usual)
        if (const int id = parts.find(piece); id >= 0) return id;
      return -1;
    };
    parts.bos = choose(named.bos, {"<bos>", "<s>"});
    parts.eos = choose(named.eos, {"<eos>", "</s>"});
    parts.pad = choose(named.pad, {"<pad>"});
    if (parts.bos < 0) fail("there is no beginning-of-text token", "added_tokens", {}, "<bos>");
    if (parts.eos < 0) fail("there is no end-of-text token", "added_tokens", {}, "<eos>");
    if (parts.pad < 0) parts.pad = parts.eos;
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

int BpeParts::find(std::string_view piece) const {
  if (const int id = bpe.ids.find(piece); id >= 0) return id;
  const auto found = added.find(std::string(piece));
  return found == added.end() ? -1 : found->second;
}

BpeParts read_bpe_parts(const std::filesystem::path& file) {
  return std::move(TokenizerJsonReader(file).parts);
}

}  // namespace mw::data
