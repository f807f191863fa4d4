// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw {
namespace {

constexpr int kMaxDepth = 200;

std::string line_and_column(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = start == std::string_view::npos ? offset + 1 : offset - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

struct Key {
  size_t offset;
  std::string name;
};

// The first repeated key of a valid document. The DOM parser would let the last one win silently, and its callback
// form, which could tell, takes quadratic time over many objects in one list.
std::optional<Key> duplicate_key(std::string_view text) {
  std::vector<std::set<std::string>> open;  // keys so far of each open object or array
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') open.emplace_back();
    if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
    if (c != '"') continue;
    const size_t start = i++;
    bool escaped = false;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\') continue;
      escaped = true;
      ++i;
    }
    const size_t after = text.find_first_not_of(" \t\r\n", i + 1);
    if (open.empty() || after == std::string_view::npos || text[after] != ':') continue;  // a value
    std::string name = escaped ? Json::parse(text.substr(start, i + 1 - start)).get<std::string>()
                               : std::string(text.substr(start + 1, i - start - 1));
    if (!open.back().insert(name).second) return Key{start, std::move(name)};
  }
  return std::nullopt;
}

// Bytes of the valid UTF-8 sequence at the front (RFC 3629: no overlong forms, no surrogates), 0 when there is none.
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0) == 0xE0 ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return n;
}

Error wrong_type(const std::string& key, const std::string& file, const Json& value, const std::string& expected) {
  std::string found = value.dump();
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  return Error(
      {.id = "JSON", .message = "wrong type", .file = file, .place = key, .found = found, .expected = expected});
}

template <class AnyJson>
AnyJson parse_strictly(std::string_view text, const std::string& source) {
  // nlohmann's parser is iterative, but a document this deep cannot be walked or destroyed recursively.
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"')
      in_string = true;
    else if (c == '{' || c == '[')
      deepest = std::max(deepest, ++depth);
    else if (c == '}' || c == ']')
      --depth;
  }
  if (deepest > kMaxDepth)
    throw Error({.id = "JSON",
                 .message = "nesting deeper than " + std::to_string(kMaxDepth),
                 .file = source,
                 .found = std::to_string(deepest) + " levels"});
  try {
    AnyJson value = AnyJson::parse(text);
    if (const auto key = duplicate_key(text))
      throw Error({.id = "JSON",
                   .message = "duplicate key \"" + key->name + "\"",
                   .file = source,
                   .place = line_and_column(text, key->offset),
                   .expected = "each key once",
                   .fix = "remove one of them"});
    return value;
  } catch (const typename AnyJson::parse_error& e) {
    throw Error({.id = "JSON",
                 .message = "not valid JSON",
                 .file = source,
                 .place = line_and_column(text, e.byte ? e.byte - 1 : 0),
                 .found = valid_utf8(text.substr(std::min(text.size(), e.byte ? e.byte - 1 : 0), 20))});
  } catch (const typename AnyJson::exception& e) {
    throw Error({.id = "JSON", .message = std::string("not usable JSON: ") + e.what(), .file = source});
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  return parse_strictly<Json>(text, source);
}

SortedJson parse_sorted_json(std::string_view text, const std::string& source) {
  return parse_strictly<SortedJson>(text, source);
}

Json read_json(const std::filesystem::path& file) {
  return parse_json(read_file(file), file.string());
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (const size_t n = sequence_length(text.substr(i)); n > 0) {
      out.append(text, i, n);
      i += n;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

const Json& member(const Json& object, const std::string& key, const std::string& file) {
  if (!object.is_object() || !object.contains(key))
    throw Error({.id = "JSON",
                 .message = "a required key is missing",
                 .file = file,
                 .place = key,
                 .expected = "\"" + key + "\""});
  return object.at(key);
}

long long int_member(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = member(object, key, file);
  if (!value.is_number_integer()) throw wrong_type(key, file, value, "a whole number");
  return value.get<long long>();
}

double number_member(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = member(object, key, file);
  if (!value.is_number()) throw wrong_type(key, file, value, "a number");
  return value.get<double>();
}

std::string string_member(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = member(object, key, file);
  if (!value.is_string()) throw wrong_type(key, file, value, "a string");
  return value.get<std::string>();
}

}  // namespace mw
