// SPDX-License-Identifier: Apache-2.0
// Finds the settings in a Python script (config_settings.h): which names are bound once to a literal, which calls
// configure the training, and what they are given. Nothing is executed; branches are not told apart.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/formats/config/config_settings.h"
#include "core/formats/config/config_text.h"
#include "core/formats/config/python_literals.h"

namespace mw::formats {
namespace {

using Kind = PythonToken::Kind;
constexpr size_t kShownText = 60;

constexpr std::array<std::string_view, 14> kDatasetMethods{
    "map",  "filter",      "remove_columns", "rename_column",    "rename_columns", "select", "select_columns",
    "sort", "cast_column", "shuffle",        "train_test_split", "take",           "skip",   "with_format"};

// A statement: tokens without the newline at its end.
struct Statement {
  size_t begin = 0, end = 0;
};

class Script {
 public:
  Script(std::string_view text, const std::string& source) : source_(source), tokens_(python_tokens(text, source)) {
    split();
    for (const Statement& s : statements_) bind_names(s);
    for (const PythonToken& t : tokens_)
      if (t.kind == Kind::name) ++uses_[t.text];
    for (const Statement& s : statements_) find_objects(s);
  }

  std::vector<ConfigSetting> settings() {
    for (const Statement& s : statements_) {
      read_attribute(s);
      read_dataset_change(s);
      for (size_t i = s.begin; i < s.end; ++i)
        if (const std::string section = called_section(i); !section.empty()) read_arguments(section, i + 1);
    }
    return std::move(out_);
  }

 private:
  // Splits at ends of lines, and after the colon of `if x:` and the like.
  void split() {
    constexpr std::array<std::string_view, 12> kBlocks{"if",  "elif", "else",  "for",    "while",   "with",
                                                       "try", "def",  "class", "except", "finally", "async"};
    size_t begin = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool block = tokens_[i].is(":") && tokens_[i].depth == 0 && tokens_[begin].kind == Kind::name &&
                         is_listed(tokens_[begin].text, kBlocks);
      if (tokens_[i].kind != Kind::newline && !block) continue;
      if (i > begin) statements_.push_back({begin, i});
      begin = i + 1;
    }
  }

  const PythonToken& token(size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }

  void bind(size_t i) { ++bindings_[tokens_[i].text]; }
  void bind_all(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (tokens_[i].kind == Kind::name && (i == 0 || !tokens_[i - 1].is("."))) bind(i);
  }

  // The position of the last `=` of an assignment; `end` if the statement is none.
  size_t assignment(const Statement& s) const {
    size_t at = s.end;
    for (size_t i = s.begin; i < s.end; ++i)
      if (tokens_[i].depth == 0 && tokens_[i].is("=")) at = i;
    return at;
  }

  // Counts each way in which a name can get a value; too many count rather than too few.
  void bind_names(const Statement& s) {
    const PythonToken& first = tokens_[s.begin];
    if (first.is_name("import") || first.is_name("from") || first.is_name("global") || first.is_name("nonlocal") ||
        first.is_name("del"))
      return bind_all(s.begin + 1, s.end);
    if (first.is_name("def") || first.is_name("class") || first.is_name("async")) return bind_all(s.begin + 1, s.end);
    const size_t equals = assignment(s);
    if (equals < s.end) bind_targets(s, equals);
    for (size_t i = s.begin; i < s.end; ++i) {
      const PythonToken& t = tokens_[i];
      const bool augmented = t.kind == Kind::op && t.text.size() >= 2 && t.text.back() == '=' && t.depth == 0 &&
                             !is_listed(t.text, std::array<std::string_view, 5>{"==", "!=", "<=", ">=", ":="});
      if (augmented) bind_all(s.begin, i);
      if (t.is(":=") && i > s.begin) bind_all(i - 1, i);
      if (t.is_name("for")) bind_until(i + 1, s.end, "in");
      if (t.is_name("as")) bind_until(i + 1, s.end, ":");
      if (t.is_name("lambda")) bind_until(i + 1, s.end, ":");
    }
  }

  void bind_until(size_t begin, size_t end, std::string_view word) {
    size_t stop = begin;
    while (stop < end && tokens_[stop].text != word) ++stop;
    bind_all(begin, stop);
  }

  void bind_targets(const Statement& s, size_t equals) {
    const bool attribute = equals == s.begin + 3 && token(s.begin + 1).is(".");  // changes an object, not a name
    if (attribute) return;
    bind_all(s.begin, equals);
    const bool plain = equals == s.begin + 1;
    const bool annotated = token(s.begin + 1).is(":") && tokens_[s.begin].kind == Kind::name;
    if (annotated)  // the names of the annotation are not bound
      for (size_t i = s.begin + 2; i < equals; ++i)
        if (tokens_[i].kind == Kind::name && !tokens_[i - 1].is(".")) --bindings_[tokens_[i].text];
    if (plain || annotated) values_[tokens_[s.begin].text] = {equals + 1, s.end};
  }

  // A literal of a name that is bound once. Lists and dictionaries can be changed by any other use of the name.
  const Json* constant(std::string_view name) {
    const auto known = constants_.find(name);
    if (known != constants_.end()) return known->second ? &*known->second : nullptr;
    constants_[name] = std::nullopt;  // also ends circles
    const auto value = values_.find(name);
    if (value == values_.end() || bindings_[name] != 1) return nullptr;
    PythonValue read = python_value(tokens_, value->second.begin, value->second.end,
                                    [this](std::string_view other) { return constant(other); });
    if (!read.value || (read.value->is_structured() && uses_[name] > 2)) return nullptr;
    auto& kept = constants_[name];
    kept = std::move(read.value);
    return &*kept;
  }

  // Remembers which names hold the result of a call that is read, and which hold datasets.
  void find_objects(const Statement& s) {
    const size_t equals = assignment(s);
    if (equals >= s.end || (equals != s.begin + 1 && !token(s.begin + 1).is(":"))) return;
    const std::string_view name = tokens_[s.begin].text;
    const auto starts_with_dataset = [&] {
      return tokens_[equals + 1].kind == Kind::name && datasets_.contains(tokens_[equals + 1].text);
    };
    for (size_t i = equals + 1; i < s.end; ++i) {
      const std::string section = called_section(i);
      if (section.empty() || tokens_[i].depth > 0) continue;
      if (section.starts_with("load_"))
        datasets_.insert(name);
      else
        objects_[name] = section;
      return;
    }
    if (equals + 1 < s.end && starts_with_dataset()) datasets_.insert(name);
  }

  // The section of the call whose last name is token `i`; empty: another call or none.
  std::string called_section(size_t i) const {
    const PythonToken& t = tokens_[i];
    if (t.kind != Kind::name || !token(i + 1).is("(")) return {};
    if (i > 0 && (tokens_[i - 1].is_name("def") || tokens_[i - 1].is_name("class"))) return {};
    const std::string_view name = t.text;
    if (name.ends_with("Config") || name.ends_with("Arguments") || name.ends_with("Trainer") ||
        name == "load_dataset" || name == "load_from_disk" || name == "get_peft_model")
      return std::string(name);
    if (name != "from_pretrained") return {};
    const bool owned = i >= 2 && tokens_[i - 1].is(".") && tokens_[i - 2].kind == Kind::name;
    return owned ? std::string(tokens_[i - 2].text) + ".from_pretrained" : std::string(name);
  }

  std::string shown(size_t begin, size_t end) const {
    if (begin >= end) return {};
    const char* const from = tokens_[begin].text.data();
    const std::string_view last = tokens_[end - 1].text;
    std::string text(from, static_cast<size_t>(last.data() + last.size() - from));
    for (char& c : text)
      if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    return excerpt(text, kShownText);
  }

  struct Argument {
    std::string section, name;
    size_t begin = 0, end = 0;  // of the value
    int line = 0;
  };

  void add(const Argument& a) {
    PythonValue read = python_value(tokens_, a.begin, a.end, [this](std::string_view name) { return constant(name); });
    out_.push_back({a.section,
                    a.name,
                    std::move(read.value),
                    shown(a.begin, a.end),
                    std::move(read.reason),
                    {source_, a.line, 0}});
  }

  // `open`: the bracket of the call.
  void read_arguments(const std::string& section, size_t open) {
    const size_t close = tokens_[open].match;
    int position = 0;
    for (size_t i = open + 1; i < close;) {
      const size_t stop = end_of_item(tokens_, i, close, ",");
      const bool keyword = tokens_[i].kind == Kind::name && token(i + 1).is("=") && i + 1 < stop;
      const bool unpacked = tokens_[i].is("*") || tokens_[i].is("**");
      const size_t value = keyword ? i + 2 : i;
      const std::string name = keyword    ? std::string(tokens_[i].text)
                               : unpacked ? std::string(tokens_[i].text)
                                          : "#" + std::to_string(++position);
      if (unpacked)
        out_.push_back(
            {section, name, std::nullopt, shown(i, stop), "unpacked arguments", {source_, tokens_[i].line, 0}});
      else if (!is_object(value, stop))
        add({section, name, value, stop, tokens_[i].line});
      i = stop + 1;
    }
  }

  // The expression is a call that is read itself, or a name of its result, or a dataset as it was loaded.
  bool is_object(size_t begin, size_t end) {
    if (end - begin == 1 && tokens_[begin].kind == Kind::name) {
      const std::string_view name = tokens_[begin].text;
      return objects_.contains(name) || (datasets_.contains(name) && bindings_[name] == 1);
    }
    for (size_t i = begin; i + 1 < end; ++i)
      if (!called_section(i).empty() && tokens_[i + 1].match + 1 == end) return true;
    return false;
  }

  // config.learning_rate = 1e-4
  void read_attribute(const Statement& s) {
    if (s.begin + 4 > s.end || !tokens_[s.begin + 1].is(".") || !tokens_[s.begin + 3].is("=")) return;
    const auto object = objects_.find(tokens_[s.begin].text);
    const bool config =
        object != objects_.end() && (object->second.ends_with("Config") || object->second.ends_with("Arguments"));
    if (config)
      add({object->second, std::string(tokens_[s.begin + 2].text), s.begin + 4, s.end, tokens_[s.begin].line});
  }

  // train = train.map(f): the rows that training sees are made by code.
  void read_dataset_change(const Statement& s) {
    for (size_t i = s.begin + 2; i < s.end; ++i) {
      const bool method = tokens_[i].kind == Kind::name && tokens_[i - 1].is(".") && token(i + 1).is("(") &&
                          is_listed(tokens_[i].text, kDatasetMethods);
      if (!method || !belongs_to_dataset(s, i)) continue;
      out_.push_back({"dataset",
                      std::string(tokens_[i].text),
                      std::nullopt,
                      shown(s.begin, s.end),
                      "code that changes the dataset",
                      {source_, tokens_[i].line, 0}});
      return;
    }
  }
  bool belongs_to_dataset(const Statement& s, size_t method) const {
    for (size_t i = s.begin; i < method; ++i)
      if (tokens_[i].kind == Kind::name &&
          (datasets_.contains(tokens_[i].text) || called_section(i).starts_with("load_")))
        return true;
    return false;
  }

  const std::string& source_;
  std::vector<PythonToken> tokens_;
  std::vector<Statement> statements_;
  std::map<std::string_view, int> bindings_, uses_;
  std::map<std::string_view, Statement> values_;  // the tokens of a literal or another expression
  std::map<std::string_view, std::optional<Json>> constants_;
  std::map<std::string_view, std::string> objects_;  // name to the section of the call that made it
  std::set<std::string_view> datasets_;
  std::vector<ConfigSetting> out_;
};

}  // namespace

std::vector<ConfigSetting> read_python_settings(std::string_view text, const std::string& source) {
  require_text(text, source);
  return Script(text, source).settings();
}

}  // namespace mw::formats
