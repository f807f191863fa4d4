// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/base/text.h"
#include "core/experiment/experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {
namespace {

Json number_schema(const Parameter& p, const char* type) {
  Json schema{{"type", type}};
  if (p.min) schema["minimum"] = p.type == ParamType::integer ? Json(static_cast<std::int64_t>(*p.min)) : Json(*p.min);
  if (p.max) schema["maximum"] = p.type == ParamType::integer ? Json(static_cast<std::int64_t>(*p.max)) : Json(*p.max);
  return schema;
}

Json type_schema(const Parameter& p) {
  switch (p.type) {
    case ParamType::integer:
      return number_schema(p, "integer");
    case ParamType::number:
      return number_schema(p, "number");
    case ParamType::text:
    case ParamType::path:
      return {{"type", "string"}};
    case ParamType::choice:
      return {{"enum", p.choices}};
    case ParamType::flag:
      return {{"type", "boolean"}};
    case ParamType::list:
      return {{"type", "array"},
              {"items", p.choices.empty() ? Json{{"type", {"string", "number"}}} : Json{{"enum", p.choices}}}};
    case ParamType::map:
      return {{"type", "object"}, {"additionalProperties", {{"type", p.unit == kFolders ? "string" : "number"}}}};
  }
  return {};
}

Json value_schema(const Parameter& p) {
  Json schema = type_schema(p);
  schema["title"] = p.label + (p.unit.empty() || p.unit == kFolders ? "" : " (" + p.unit + ")");
  schema["description"] = p.help;
  if (!p.key.ends_with(".*")) schema["default"] = p.fallback;
  return schema;
}

// The object that holds the last name of a dotted key, made where it is missing.
Json& section_of(Json& schema, const std::string& key, std::string& name) {
  Json* section = &schema;
  size_t from = 0;
  for (size_t dot; (dot = key.find('.', from)) != std::string::npos; from = dot + 1) {
    Json& inner = (*section)["properties"][key.substr(from, dot - from)];
    if (inner.is_null()) inner = {{"type", "object"}};
    section = &inner;
  }
  name = key.substr(from);
  return *section;
}

struct Container {
  bool is_object = true;
  std::string key{};      // of an object: the member that is read
  bool in_value = false;  // of an object: behind the colon
  std::set<std::string> keys{};
};

struct Token {
  size_t begin = 0, end = 0;
  bool is_string = false;
};

// Reads the text up to the cursor, and the rest of the object around it for its other keys.
class CursorReader {
 public:
  CursorReader(std::string_view text, size_t cursor) : text_(text), cursor_(std::min(cursor, text.size())) {
    while (at_ < text_.size() && !(is_found_ && open_.size() < place_.size())) step();
    find(at_, {cursor_, cursor_, false});
    if (place_.size() <= open_.size() && !place_.empty()) place_.back().keys = open_[place_.size() - 1].keys;
  }
  const std::vector<Container>& place() const { return place_; }  // containers around the cursor, the innermost last
  const Token& token() const { return token_; }                   // at the cursor
  bool is_in_key() const { return !place_.empty() && place_.back().is_object && !place_.back().in_value; }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' || c == '+';
  }
  bool expects_key() const { return !open_.empty() && open_.back().is_object && !open_.back().in_value; }
  // `from`: the end of what has been read before the token.
  void find(size_t from, const Token& token) {
    if (is_found_ || cursor_ > std::max(from, token.end)) return;
    is_found_ = true;
    place_ = open_;
    token_ = token;
  }
  void step() {
    const size_t begin = at_;
    const char c = text_[begin];
    if (!is_found_ && cursor_ <= begin) find(begin, {cursor_, cursor_, false});
    if (c == '"') return read_string();
    if (is_word(c)) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      if (cursor_ > begin) find(begin, {begin, at_, false});
      return;
    }
    ++at_;
    read_mark(c);
  }
  void read_string() {
    const size_t begin = at_, line = std::min(text_.find('\n', begin), text_.size());
    at_ = std::min(end_of_string(text_, begin), line);
    const bool is_closed = at_ > begin + 1 && text_[at_ - 1] == '"';
    if (!is_closed)  // not typed to its end: it ends where the name does
      for (at_ = begin + 1; at_ < line && is_word(text_[at_]);) ++at_;
    if (cursor_ > begin && (cursor_ < at_ || !is_closed)) find(begin, {begin, at_, true});
    const std::string content(text_.substr(begin + 1, at_ - begin - 1 - (is_closed ? 1 : 0)));
    const bool at_cursor = is_found_ && token_.is_string && token_.begin == begin;
    if (!expects_key() || at_cursor) return;
    open_.back().key = content;
    open_.back().keys.insert(content);
  }
  void read_mark(char c) {
    if (c == '{' || c == '[') open_.push_back({.is_object = c == '{'});
    if (open_.empty()) return;
    if (c == '}' || c == ']') {
      if (is_found_ && open_.size() == place_.size()) place_.back().keys = open_.back().keys;
      open_.pop_back();
    }
    if (c == ':') open_.back().in_value = true;
    if (c == ',') open_.back().in_value = false;
  }

  std::string_view text_;
  size_t cursor_, at_ = 0;
  std::vector<Container> open_, place_;
  Token token_;
  bool is_found_ = false;
};

const Json* member_schema(const Json& schema, const std::string& key) {
  if (const Json* properties = find_member(schema, "properties"))
    if (const Json* found = find_member(*properties, key)) return found;
  const Json* others = find_member(schema, "additionalProperties");
  return others && others->is_object() ? others : nullptr;
}

std::string help_of(const Json& schema) {
  const Json* text = find_member(schema, "description");
  return text && text->is_string() ? text->get<std::string>() : std::string();
}

// The schema of the innermost container, or of its member at the cursor; null: none.
const Json* schema_at(const Json& schema, const std::vector<Container>& place, bool is_in_key) {
  const Json* at = &schema;
  for (size_t i = 0; i < place.size() && at; ++i) {
    if (i + 1 == place.size() && is_in_key) break;
    at = place[i].is_object ? member_schema(*at, place[i].key) : find_member(*at, "items");
  }
  return at;
}

std::vector<JsonSuggestion> keys_of(const Json& schema, const std::set<std::string>& used) {
  std::vector<JsonSuggestion> out;
  if (const Json* properties = find_member(schema, "properties"))
    for (const auto& member : properties->items())
      if (!used.contains(member.key())) out.push_back({Json(member.key()).dump(), help_of(member.value())});
  return out;
}

std::vector<JsonSuggestion> values_of(const Json& schema) {
  std::vector<JsonSuggestion> out;
  const Json* standard = find_member(schema, "default");
  const auto add = [&](const Json& value) {
    out.push_back({value.dump(), standard && *standard == value ? "default" : ""});
  };
  if (const Json* choices = find_member(schema, "enum")) {
    for (const Json& choice : *choices) add(choice);
  } else if (const Json* type = find_member(schema, "type"); type && *type == "boolean") {
    add(true);
    add(false);
  } else if (const Json* only = find_member(schema, "const")) {
    add(*only);
  } else if (standard && *standard != "") {
    add(*standard);
  }
  return out;
}

// Keeps those that contain what is typed, and puts those first that begin with it.
void keep_matching(std::vector<JsonSuggestion>& suggestions, std::string_view typed) {
  const auto place_in = [&](const JsonSuggestion& s) {
    std::string_view text = s.text;
    if (text.starts_with('"')) text.remove_prefix(1);
    return text.find(typed);
  };
  std::erase_if(suggestions, [&](const JsonSuggestion& s) { return place_in(s) == std::string_view::npos; });
  std::stable_partition(suggestions.begin(), suggestions.end(),
                        [&](const JsonSuggestion& s) { return place_in(s) == 0; });
}

}  // namespace

Json experiment_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Meshwright experiment"},
              {"type", "object"},
              {"properties", {{"schema", {{"const", kSchema}, {"description", "Version of the format"}}}}}};
  for (const Parameter& p : parameters()) {
    std::string name;
    Json& section = section_of(schema, p.key, name);
    if (name == "*")
      section["additionalProperties"] = value_schema(p);
    else
      section["properties"][name] = value_schema(p);
  }
  return schema;
}

std::string JsonCompletion::replacement(size_t suggestion) const {
  return suggestions.at(suggestion).text + (is_key && !has_colon ? ": " : "");
}

JsonCompletion complete_json(const Json& schema, std::string_view text, size_t cursor) {
  const CursorReader reader(text, cursor);
  JsonCompletion out{.begin = reader.token().begin, .end = reader.token().end, .is_key = reader.is_in_key()};
  if (reader.place().empty()) return out;
  const Json* found = schema_at(schema, reader.place(), out.is_key);
  if (!found) return out;
  out.suggestions = out.is_key ? keys_of(*found, reader.place().back().keys) : values_of(*found);
  const size_t inside = out.begin + (reader.token().is_string ? 1 : 0);
  keep_matching(out.suggestions, text.substr(inside, std::max(cursor, inside) - inside));
  out.has_colon = trim(text.substr(out.end)).starts_with(':');
  return out;
}

}  // namespace mw::experiment
