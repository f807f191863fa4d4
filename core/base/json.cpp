// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace mw {
namespace {

constexpr size_t kMaxDepth = 200;

std::string line_and_column(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = start == std::string_view::npos ? offset + 1 : offset - start;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Offset of the first token for which `matches(number of open brackets, token is a key)` holds. The document must be
// valid up to that token.
template <class Matches>
size_t find_token(std::string_view text, Matches matches) {
  std::string open;  // stack of open brackets
  char before = ' ';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) continue;
    if (c == '{' || c == '[') open += c;
    if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
    const size_t start = i;
    if (c == '"') i = end_of_string(text, i) - 1;
    const bool key = c == '"' && (before == '{' || (before == ',' && open.ends_with('{')));
    if (matches(open.size(), key)) return start;
    before = c;
  }
  return text.size();
}

// Offset of the `n`th key, counted from 1.
size_t offset_of_key(std::string_view text, size_t n) {
  return find_token(text, [&](size_t, bool key) { return key && --n == 0; });
}

// Offset of the first bracket at nesting level `depth`.
size_t offset_of_depth(std::string_view text, size_t depth) {
  return find_token(text, [&](size_t open, bool) { return open == depth; });
}

Error wrong_type(const std::string& key, const std::string& file, const Json& value, const std::string& expected) {
  return Error("JSON", "wrong type", {.file = file, .place = key, .found = json_excerpt(value), .expected = expected});
}

// SAX handler that builds the document and stops at the first fault. The DOM parser of nlohmann::json keeps the last
// of several equal keys and has no depth limit.
template <class AnyJson>
class Builder {
 public:
  enum class Fault { none, syntax, number, duplicate, depth };
  AnyJson root;
  Fault fault = Fault::none;
  size_t at = 0;           // byte offset for syntax and number, index of the key (from 1) for duplicate
  std::string token = {};  // text of the number or of the duplicate key

  bool null() { return put(nullptr) != nullptr; }
  bool boolean(bool value) { return put(value) != nullptr; }
  bool number_integer(std::int64_t value) { return put(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) { return put(value) != nullptr; }
  bool number_float(double value, const std::string&) { return put(value) != nullptr; }
  bool string(std::string& value) { return put(std::move(value)) != nullptr; }
  bool binary(typename AnyJson::binary_t& value) { return put(std::move(value)) != nullptr; }
  bool start_object(size_t) { return open(AnyJson::value_t::object); }
  bool start_array(size_t) { return open(AnyJson::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& members = open_.back()->template get_ref<typename AnyJson::object_t&>();
    const size_t before = members.size();
    member_ = &members[name];
    ++keys_;
    return members.size() > before || fail(Fault::duplicate, keys_, name);
  }

  bool parse_error(size_t end, const std::string& last_token, const typename AnyJson::exception& e) {
    constexpr int kOutOfRange = 406;
    if (e.id == kOutOfRange) return fail(Fault::number, end - std::min(end, last_token.size()), last_token);
    return fail(Fault::syntax, end > 0 ? end - 1 : 0, {});
  }

 private:
  template <class Value>
  AnyJson* put(Value&& value) {
    if (open_.empty()) return &(root = std::forward<Value>(value));
    if (!open_.back()->is_array()) return &(*member_ = std::forward<Value>(value));
    auto& list = open_.back()->template get_ref<typename AnyJson::array_t&>();
    return &list.emplace_back(std::forward<Value>(value));
  }
  bool open(typename AnyJson::value_t kind) {
    // Recursive functions on deeper documents, including the destructor, could overflow the stack.
    if (open_.size() == kMaxDepth) return fail(Fault::depth, 0, {});
    open_.push_back(put(kind));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool fail(Fault what, size_t place, std::string text) {
    fault = what;
    at = place;
    token = std::move(text);
    return false;
  }

  std::vector<AnyJson*> open_;  // stack of open containers; only the innermost grows, so the pointers stay valid
  size_t keys_ = 0;
  AnyJson* member_ = nullptr;  // member of the innermost object whose value comes next
};

template <class AnyJson>
AnyJson parse_strictly(std::string_view text, const std::string& source) {
  text = without_byte_order_mark(text, source);
  using Fault = typename Builder<AnyJson>::Fault;
  Builder<AnyJson> builder;
  AnyJson::sax_parse(text, &builder);
  switch (builder.fault) {
    case Fault::none:
      return std::move(builder.root);
    case Fault::depth:
      throw Error("JSON", "nesting exceeds the limit of " + std::to_string(kMaxDepth) + " levels",
                  {.file = source,
                   .place = line_and_column(text, offset_of_depth(text, kMaxDepth + 1)),
                   .found = "more than " + std::to_string(kMaxDepth) + " levels",
                   .expected = "at most " + std::to_string(kMaxDepth)});
    case Fault::duplicate:
      throw Error("JSON", "duplicate key \"" + builder.token + "\"",
                  {.file = source,
                   .place = line_and_column(text, offset_of_key(text, builder.at)),
                   .expected = "each key once",
                   .fix = "remove one of them"});
    case Fault::number:
      throw Error("JSON", "the number does not fit into a double",
                  {.file = source,
                   .place = line_and_column(text, builder.at),
                   .found = text_excerpt(builder.token),
                   .expected = "an absolute value of at most 1.79e308"});
    case Fault::syntax:
      break;
  }
  throw Error("JSON", "not valid JSON",
              {.file = source,
               .place = line_and_column(text, builder.at),
               .found = valid_utf8(text.substr(std::min(text.size(), builder.at), 20))});
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  return parse_strictly<Json>(text, source);
}

SortedJson parse_sorted_json(std::string_view text, const std::string& source) {
  return parse_strictly<SortedJson>(text, source);
}

Json read_json(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxJsonFile);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw Error("JSON", "the file is empty", {.file = file.string(), .expected = "a JSON document"});
  return parse_json(text, file.string());
}

size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

std::string without_python_numbers(std::string_view text, const PythonNumbers& replacements) {
  const std::pair<std::string_view, std::string_view> words[]{
      {"NaN", replacements.nan}, {"-Infinity", replacements.minus_infinity}, {"Infinity", replacements.infinity}};
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const size_t end = end_of_string(text, i);
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    const auto* word = std::find_if(std::begin(words), std::end(words),
                                    [&](const auto& w) { return text.substr(i, w.first.size()) == w.first; });
    const bool found = word != std::end(words);
    out += found ? word->second : text.substr(i, 1);
    i += found ? word->first.size() : 1;
  }
  return out;
}

std::string text_excerpt(const std::string& text) {
  return text.size() > 60 ? valid_utf8(text.substr(0, 57)) + "..." : valid_utf8(text);
}

std::string json_excerpt(const Json& value) {
  return text_excerpt(dump_utf8(value));
}

std::string dump_utf8(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_utf8(value);
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (const size_t n = character_length(text.substr(i)); n > 0) {
      out.append(text, i, n);
      i += n;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

const Json* find_member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json& member(const Json& object, const std::string& key, const std::string& file) {
  if (!object.is_object() || !object.contains(key))
    throw Error("JSON", "a required key is missing", {.file = file, .place = key, .expected = "\"" + key + "\""});
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

const Json& list_member(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = member(object, key, file);
  if (!value.is_array()) throw wrong_type(key, file, value, "a list");
  return value;
}

std::string string_member(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = member(object, key, file);
  if (!value.is_string()) throw wrong_type(key, file, value, "a string");
  return value.get<std::string>();
}

Sources read_sources(const Json& document, const std::string& file) {
  Sources sources;
  if (!document.is_object() || !document.contains("sources")) return sources;
  const Json& list = document.at("sources");
  const JsonRow row(list, {sources, file, "sources", "SOURCES"});
  for (const auto& [key, value] : list.items()) sources[key] = row.as_text(value, key);
  return sources;
}

JsonRow::JsonRow(const Json& json, RowLocation at) : json_(json), at_(std::move(at)) {
  if (!json.is_object()) bad("", "the row is not an object", json_excerpt(json), "{\"id\": ...}");
}

void JsonRow::bad(const std::string& key, const std::string& message, const std::string& found,
                  const std::string& expected) const {
  throw Error(at_.id, message,
              {.file = at_.file,
               .place = at_.row + (key.empty() ? "" : "." + key),
               .found = found,
               .expected = expected,
               .fix = "correct the row or remove it"});
}

RowLocation JsonRow::inside(const std::string& key) const {
  return {at_.sources, at_.file, at_.row + "." + key, at_.id};
}

void JsonRow::finish() const {
  for (const auto& [key, value] : json_.items())
    if (!read_.contains(key)) bad(key, "unknown key", key, nearest_names_text(key, {read_.begin(), read_.end()}));
}

const Json* JsonRow::optional(const std::string& key) {
  read_.insert(key);
  return json_.contains(key) ? &json_.at(key) : nullptr;
}

const Json& JsonRow::required(const std::string& key) {
  const Json* value = optional(key);
  if (!value) bad(key, "a required key is missing", "", "\"" + key + "\"");
  return *value;
}

const Json& JsonRow::list(const std::string& key) {
  const Json& value = required(key);
  if (!value.is_array() || value.empty()) bad(key, "wrong type", json_excerpt(value), "a non-empty list");
  return value;
}

std::string JsonRow::text_or(const std::string& key, const std::string& otherwise) {
  const Json* value = optional(key);
  return value ? as_text(*value, key) : otherwise;
}
double JsonRow::number_or(const std::string& key, double otherwise) {
  const Json* value = optional(key);
  return value ? as_number(*value, key) : otherwise;
}
bool JsonRow::flag(const std::string& key, bool otherwise) {
  const Json* value = optional(key);
  if (value && !value->is_boolean()) bad(key, "wrong type", json_excerpt(*value), "true or false");
  return value ? value->get<bool>() : otherwise;
}
std::string JsonRow::source() {
  return as_source(required("source"), "source");
}

std::string JsonRow::as_text(const Json& value, const std::string& key) const {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    bad(key, "wrong type", json_excerpt(value), "a non-empty string");
  std::string text;  // control characters are escaped: a line end would forge a line of terminal output
  for (const char c : value.get_ref<const std::string&>())
    text += static_cast<unsigned char>(c) < ' ' ? formatted("\\x%02x", static_cast<unsigned>(c)) : std::string(1, c);
  return text;
}

double JsonRow::as_number(const Json& value, const std::string& key) const {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value <= 0)
    bad(key, "wrong type", json_excerpt(value), "a positive number");
  return value.get<double>();
}

std::string JsonRow::as_source(const Json& value, const std::string& key) const {
  std::string joined;
  for (const Json& part : value.is_array() ? value : Json::array({value})) {
    const std::string name = as_text(part, key);
    const auto known = at_.sources.find(name);
    joined += (joined.empty() ? "" : "; ") + (known == at_.sources.end() ? name : known->second);
  }
  if (joined.empty()) bad(key, "the source is missing", json_excerpt(value), "where the figures come from");
  return joined;
}

void remove_url_secrets(Json& value) {
  if (value.is_string()) {
    std::string& text = value.get_ref<std::string&>();
    if (text.find("://") != std::string::npos) text = without_url_secrets(text);
  } else if (value.is_structured()) {
    for (Json& member : value) remove_url_secrets(member);
  }
}

}  // namespace mw
