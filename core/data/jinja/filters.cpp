// SPDX-License-Identifier: Apache-2.0
// The filters and tests of Jinja that chat templates use. tojson is that of transformers: json.dumps() without escapes
// for HTML.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/base/text.h"
#include "core/data/jinja/characters.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {
namespace {

struct FilterCall {
  Interpreter& in;
  const std::string& name;
  const Value& subject;
  const Arguments& arguments;

  std::vector<const Value*> bound(const std::vector<std::string>& parameters) const {
    return in.bound(name, arguments, parameters);
  }
};

bool given_true(const Value* value) {
  return value && is_true(*value);
}

// "a.b.0" of an item, or its item at an index.
Value path_of(Interpreter& in, const Value& start, const Value& path) {
  if (!path.text()) return in.item(start, path);
  Value out = start;
  std::string_view rest = *path.text();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const auto index = parse_number<std::int64_t>(part);
    out = in.item(out, index ? Value(*index) : Value(part));
    if (dot == rest.npos) return out;
    rest.remove_prefix(dot + 1);
  }
}

// The item, or what is at its `attribute` if that is given.
Value item_or_attribute(Interpreter& in, const Value& one, const Value* attribute) {
  return attribute && !attribute->is_none() ? path_of(in, one, *attribute) : one;
}

std::string indented(const std::string& text, const std::string& by, bool first, bool blank) {
  std::string out, rest = text;
  bool is_first = true;
  std::string_view left = text;
  while (true) {
    const size_t end = left.find('\n');
    const std::string_view line = left.substr(0, end);
    if (is_first ? first : blank || !line.empty()) out += by;
    out += line;
    is_first = false;
    if (end == left.npos) return out;
    out += '\n';
    left.remove_prefix(end + 1);
  }
}

Value indent(const FilterCall& c) {
  const auto given = c.bound({"width", "first", "blank"});
  std::string by(4, ' ');
  if (given[0] && given[0]->text())
    by = *given[0]->text();
  else if (given[0]) {
    const std::int64_t width = c.in.integer(*given[0], "the width");
    c.in.charge(std::max<std::int64_t>(width, 0));
    by = std::string(static_cast<size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  const std::string text = c.in.str(c.subject);
  c.in.charge(
      static_cast<std::int64_t>(static_cast<size_t>(std::count(text.begin(), text.end(), '\n') + 1) * by.size()));
  return c.in.text(indented(text, by, given_true(given[1]), given_true(given[2])));
}

Value tojson(const FilterCall& c) {
  const auto given = c.bound({"ensure_ascii", "indent", "separators", "sort_keys"});
  DumpOptions options{.ensure_ascii = given_true(given[0]), .sort_keys = given_true(given[3])};
  if (given[1] && given[1]->text())
    options.indent = *given[1]->text();
  else if (given[1] && !given[1]->is_none())
    options.indent =
        std::string(static_cast<size_t>(std::clamp<std::int64_t>(c.in.integer(*given[1], "indent"), 0, 100)), ' ');
  if (options.indent) options.item_separator = ",";
  if (given[2] && !given[2]->is_none()) {
    const Values both = c.in.items_of(*given[2]);
    if (both.size() != 2) c.in.fail("separators are not two strings", repr(*given[2]));
    options.item_separator = c.in.string(both[0], "a separator");
    options.key_separator = c.in.string(both[1], "a separator");
  }
  std::string refused;
  c.in.charge(weight_of(c.subject));
  auto text = dump_json(c.subject, options, refused);
  if (!text) c.in.fail("the value has no JSON form", refused, "numbers, strings, lists and dicts");
  return c.in.text(std::move(*text));
}

Value join(const FilterCall& c) {
  const auto given = c.bound({"d", "attribute"});
  const std::string separator = given[0] ? to_str(*given[0]) : "";
  std::string out;
  bool is_first = true;
  for (const Value& one : c.in.items_of(c.subject)) {
    const std::string part = c.in.str(item_or_attribute(c.in, one, given[1]));
    c.in.charge(static_cast<std::int64_t>(separator.size() + part.size()));
    if (!is_first) out += separator;
    out += part;
    is_first = false;
  }
  return c.in.text(std::move(out));
}

// Returns the arguments after the first n, for the filter or test that the n-th one names.
Arguments behind(const Arguments& arguments, size_t n) {
  Arguments out = arguments;
  out.positional.erase(out.positional.begin(),
                       out.positional.begin() + static_cast<std::ptrdiff_t>(std::min(n, out.positional.size())));
  return out;
}

// Returns the items for map, select and similar filters, which treat a false value (none) as an empty list.
Values items_if_any(const FilterCall& c) {
  return is_true(c.subject) ? c.in.items_of(c.subject) : Values();
}

Value map_values(const FilterCall& c) {
  Values out;
  const auto& named = c.arguments.named;
  const auto attribute = std::find_if(named.begin(), named.end(), [](const auto& a) { return a.first == "attribute"; });
  if (attribute != named.end()) {
    const auto given = c.bound({"attribute", "default"});
    for (const Value& one : items_if_any(c)) {
      Value value = path_of(c.in, one, *given[0]);
      out.push_back(value.is_undefined() && given[1] ? *given[1] : std::move(value));
    }
    return c.in.list(std::move(out), ListKind::generator);
  }
  if (c.arguments.positional.empty()) c.in.fail("map needs the name of a filter, or attribute=...");
  const std::string& filter = c.in.string(c.arguments.positional.front(), "the name of the filter");
  const Arguments rest = behind(c.arguments, 1);
  for (const Value& one : items_if_any(c)) out.push_back(c.in.filter(filter, one, rest));
  return c.in.list(std::move(out), ListKind::generator);
}

// select, reject, selectattr and rejectattr.
Value selected(const FilterCall& c, bool by_attribute, bool wanted) {
  const Values& given = c.arguments.positional;
  const size_t skip = by_attribute ? 1 : 0;
  if (given.size() < skip) c.in.fail("the filter needs the name of an attribute", c.name);
  const Arguments rest = behind(c.arguments, skip + 1);
  Values out;
  for (const Value& one : items_if_any(c)) {
    const Value value = by_attribute ? path_of(c.in, one, given[0]) : one;
    const bool holds =
        given.size() > skip ? c.in.test(c.in.string(given[skip], "the name of the test"), value, rest) : is_true(value);
    if (holds == wanted) out.push_back(one);
  }
  return c.in.list(std::move(out), ListKind::generator);
}

Value number_of(const FilterCall& c, bool whole) {
  const auto given = c.bound(whole ? std::vector<std::string>{"default", "base"} : std::vector<std::string>{"default"});
  const Value usual = given[0] ? *given[0] : whole ? Value(std::int64_t{0}) : Value(0.0);
  if (c.subject.is_undefined()) c.in.fail("an undefined value is not a number");
  if (whole && given[1] && c.in.integer(*given[1], "the base") != 10)
    c.in.fail("this base is not supported", repr(*given[1]), "10");
  if (c.subject.is_number()) {
    if (!whole) return Value(c.subject.as_real());
    if (c.subject.as_integer()) return Value(*c.subject.as_integer());
    const double d = std::trunc(c.subject.as_real());
    return std::abs(d) < 9e18 ? Value(static_cast<std::int64_t>(d)) : usual;
  }
  if (!c.subject.text()) return usual;
  std::string text(trim(*c.subject.text()));
  if (text.starts_with('+')) text.erase(0, 1);
  if (const auto i = parse_number<std::int64_t>(text); i && whole) return Value(*i);
  const auto d = parse_number<double>(text);
  if (!d) return usual;
  if (!whole) return Value(*d);
  return std::abs(*d) < 9e18 ? Value(static_cast<std::int64_t>(*d)) : usual;
}

Value rounded(const FilterCall& c) {
  const auto given = c.bound({"precision", "method"});
  if (!c.subject.is_number()) c.in.fail("round needs a number", type_name(c.subject));
  const std::int64_t digits = given[0] ? c.in.integer(*given[0], "the precision") : 0;
  const std::string method = given[1] ? to_str(*given[1]) : "common";
  const double scale = std::pow(10.0, static_cast<double>(digits)), x = c.subject.as_real();
  if (method == "ceil") return Value(std::ceil(x * scale) / scale);
  if (method == "floor") return Value(std::floor(x * scale) / scale);
  if (method != "common") c.in.fail("the method of round is unknown", method, "common, ceil or floor");
  return Value(std::nearbyint(x * scale) / scale);
}

Value lowered(const Value& value, bool case_sensitive) {
  return value.text() && !case_sensitive ? Value(in_case(*value.text(), LetterCase::lower)) : value;
}

void sort_by(Interpreter& in, Values& items, const std::function<Value(const Value&)>& key, bool reversed) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& one : items) keyed.emplace_back(key(one), std::move(one));
  in.charge(static_cast<std::int64_t>(keyed.size() * 2 * sizeof(Value)));
  // Checked first, because an order that is not one must not reach std::sort.
  for (size_t i = 1; i < keyed.size(); ++i) in.is_less(keyed[0].first, keyed[i].first);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return compare(reversed ? b.first : a.first, reversed ? a.first : b.first).value_or(0) < 0;
  });
  for (size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
}

Value sorted(const FilterCall& c) {
  const auto given = c.bound({"reverse", "case_sensitive", "attribute"});
  Values items = c.in.items_of(c.subject);
  const auto key = [&](const Value& one) {
    return lowered(item_or_attribute(c.in, one, given[2]), given_true(given[1]));
  };
  sort_by(c.in, items, key, given_true(given[0]));
  return c.in.list(std::move(items));
}

Value pairs_of(Interpreter& in, const Dict& d, ListKind kind) {
  Values items;
  for (const auto& [key, value] : d.items) items.push_back(in.list({key, value}, ListKind::tuple));
  return in.list(std::move(items), kind);
}

Value dictsorted(const FilterCall& c) {
  const auto given = c.bound({"case_sensitive", "by", "reverse"});
  if (!c.subject.dict()) c.in.fail("dictsort needs a dict", type_name(c.subject));
  const size_t by = given[1] && to_str(*given[1]) == "value" ? 1 : 0;
  Values items = pairs_of(c.in, *c.subject.dict(), ListKind::list).list()->items;
  sort_by(
      c.in, items, [&](const Value& one) { return lowered(one.list()->items[by], given_true(given[0])); },
      given_true(given[2]));
  return c.in.list(std::move(items));
}

Value unique(const FilterCall& c) {
  const auto given = c.bound({"case_sensitive", "attribute"});
  Values out, keys;
  for (const Value& one : c.in.items_of(c.subject)) {
    const Value key = lowered(item_or_attribute(c.in, one, given[1]), given_true(given[0]));
    c.in.charge(static_cast<std::int64_t>(keys.size()));
    if (key.dict() || (key.list() && key.list()->kind != ListKind::tuple))
      c.in.fail("unique compares no lists and dicts", type_name(key), "numbers and strings, e.g. by attribute=...");
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& k) { return c.in.same(k, key); })) continue;
    keys.push_back(key);
    out.push_back(one);
  }
  return c.in.list(std::move(out), ListKind::generator);
}

Value extreme(const FilterCall& c, bool largest) {
  const auto given = c.bound({"case_sensitive", "attribute"});
  const auto key = [&](const Value& one) {
    return lowered(item_or_attribute(c.in, one, given[1]), given_true(given[0]));
  };
  Value best;
  bool is_first = true;
  for (const Value& one : c.in.items_of(c.subject)) {
    if (is_first || (largest ? c.in.is_less(key(best), key(one)) : c.in.is_less(key(one), key(best)))) best = one;
    is_first = false;
  }
  return best;
}

Value sum(const FilterCall& c) {
  const auto given = c.bound({"attribute", "start"});
  Value total = given[1] ? *given[1] : Value(std::int64_t{0});
  for (const Value& one : c.in.items_of(c.subject)) {
    const Value next = item_or_attribute(c.in, one, given[0]);
    if (!next.is_number() || !total.is_number()) c.in.fail("sum needs numbers", type_name(next));
    if (next.real() || total.real())
      total = Value(total.as_real() + next.as_real());
    else {
      std::int64_t both = 0;
      if (__builtin_add_overflow(*total.as_integer(), *next.as_integer(), &both)) c.in.fail("the number is too large");
      total = Value(both);
    }
  }
  return total;
}

Value first_of(const FilterCall& c, bool last) {
  c.bound({});
  if (const List* l = c.subject.list(); l && l->kind == ListKind::generator && !last)
    return l->used < l->items.size() ? l->items[l->used++] : Value();
  const Values items = c.in.items_of(c.subject);
  return items.empty() ? Value() : last ? items.back() : items.front();
}

Value reversed(const FilterCall& c) {
  c.bound({});
  if (c.subject.text()) {
    std::string out;
    const Characters all(*c.subject.text());
    for (size_t i = all.size(); i-- > 0;) out += all[i];
    return c.in.text(std::move(out));
  }
  Values items = c.in.items_of(c.subject);
  std::reverse(items.begin(), items.end());
  return c.in.list(std::move(items), ListKind::generator);
}

Value items_of_dict(const FilterCall& c) {
  c.bound({});
  if (c.subject.is_undefined()) return c.in.list({}, ListKind::generator);
  if (!c.subject.dict()) c.in.fail("items needs a dict", type_name(c.subject));
  return pairs_of(c.in, *c.subject.dict(), ListKind::generator);
}

Value default_of(const FilterCall& c) {
  const auto given = c.bound({"default_value", "boolean"});
  const bool replaces = c.subject.is_undefined() || (given_true(given[1]) && !is_true(c.subject));
  return !replaces ? c.subject : given[0] ? *given[0] : Value(std::string());
}

Value escape(const FilterCall& c) {
  c.bound({});
  std::string out;
  for (const char x : c.in.str(c.subject)) switch (x) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += x;
    }
  return c.in.text(std::move(out));
}

Value trimmed(const FilterCall& c) {
  Arguments arguments = c.arguments;
  return call_text_method(c.in, c.in.str(c.subject), "strip", arguments);
}

Value replaced_text(const FilterCall& c) {
  const auto given = c.bound({"old", "new", "count"});
  if (!given[0] || !given[1]) c.in.fail("replace needs two strings");
  return replaced(c.in, c.in.str(c.subject), to_str(*given[0]), to_str(*given[1]),
                  given[2] && !given[2]->is_none() ? c.in.integer(*given[2], "the count") : -1);
}

template <LetterCase wanted>
Value cased(const FilterCall& c) {
  c.bound({});
  return c.in.text(in_case(c.in.str(c.subject), wanted));
}

Value listed(const FilterCall& c) {
  c.bound({});
  return c.in.list(c.in.items_of(c.subject));
}

Value absolute(const FilterCall& c) {
  c.bound({});
  if (!c.subject.is_number()) c.in.fail("abs needs a number", type_name(c.subject));
  if (c.subject.real()) return Value(std::abs(*c.subject.real()));
  const std::int64_t i = *c.subject.as_integer();
  if (i == INT64_MIN) c.in.fail("the number is too large");
  return Value(i < 0 ? -i : i);
}

Value batched(const FilterCall& c) {
  const auto given = c.bound({"linecount", "fill_with"});
  const std::int64_t n = given[0] ? c.in.integer(*given[0], "the size of a batch") : 0;
  if (n < 1) c.in.fail("the size of a batch is less than 1", std::to_string(n));
  Values out, one;
  for (const Value& item : c.in.items_of(c.subject)) {
    if (static_cast<std::int64_t>(one.size()) == n) out.push_back(c.in.list(std::exchange(one, {})));
    one.push_back(item);
  }
  if (!one.empty() && given[1] && !given[1]->is_none()) {
    c.in.charge((n - static_cast<std::int64_t>(one.size())) > (1 << 24) ? (std::int64_t{1} << 40) : n * 32);
    one.resize(static_cast<size_t>(n), *given[1]);
  }
  if (!one.empty()) out.push_back(c.in.list(std::move(one)));
  return c.in.list(std::move(out), ListKind::generator);
}

using Filter = Value (*)(const FilterCall&);
const std::map<std::string, Filter, std::less<>>& filters() {
  static const std::map<std::string, Filter, std::less<>> all{
      {"abs", absolute},
      {"batch", batched},
      {"capitalize", cased<LetterCase::capitalized>},
      {"count", [](const FilterCall& c) { return c.bound({}), Value(c.in.length_of(c.subject)); }},
      {"d", default_of},
      {"default", default_of},
      {"dictsort", dictsorted},
      {"e", escape},
      {"escape", escape},
      {"first", [](const FilterCall& c) { return first_of(c, false); }},
      {"float", [](const FilterCall& c) { return number_of(c, false); }},
      {"indent", indent},
      {"int", [](const FilterCall& c) { return number_of(c, true); }},
      {"items", items_of_dict},
      {"join", join},
      {"last", [](const FilterCall& c) { return first_of(c, true); }},
      {"length", [](const FilterCall& c) { return c.bound({}), Value(c.in.length_of(c.subject)); }},
      {"list", listed},
      {"lower", cased<LetterCase::lower>},
      {"map", map_values},
      {"max", [](const FilterCall& c) { return extreme(c, true); }},
      {"min", [](const FilterCall& c) { return extreme(c, false); }},
      {"reject", [](const FilterCall& c) { return selected(c, false, false); }},
      {"rejectattr", [](const FilterCall& c) { return selected(c, true, false); }},
      {"replace", replaced_text},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", [](const FilterCall& c) { return c.bound({}), c.in.text(c.in.str(c.subject)); }},
      {"select", [](const FilterCall& c) { return selected(c, false, true); }},
      {"selectattr", [](const FilterCall& c) { return selected(c, true, true); }},
      {"sort", sorted},
      {"string", [](const FilterCall& c) { return c.bound({}), c.in.text(c.in.str(c.subject)); }},
      {"sum", sum},
      {"title", cased<LetterCase::title>},
      {"tojson", tojson},
      {"trim", trimmed},
      {"unique", unique},
      {"upper", cased<LetterCase::upper>},
  };
  return all;
}

struct TestCall {
  Interpreter& in;
  const std::string& name;
  const Value& subject;
  const Arguments& arguments;

  const Value& other() const {
    const auto given = in.bound(name, arguments, {"other"});
    if (!given[0]) in.fail("the test needs a value", name);
    return *given[0];
  }
};

bool is_integer(const Value& v) {
  return v.integer() != nullptr;
}
std::int64_t remainder_of(const TestCall& c, std::int64_t by) {
  if (by == 0) c.in.fail("division by zero", c.name);
  return by == -1 ? 0 : c.in.integer(c.subject, "the value of the test") % by;
}

using Test = bool (*)(const TestCall&);
const std::map<std::string, Test, std::less<>>& tests() {
  static const Test eq = [](const TestCall& c) { return c.in.same(c.subject, c.other()); };
  static const Test ne = [](const TestCall& c) { return !c.in.same(c.subject, c.other()); };
  static const Test lt = [](const TestCall& c) { return c.in.is_less(c.subject, c.other()); };
  static const Test le = [](const TestCall& c) { return !c.in.is_less(c.other(), c.subject); };
  static const Test gt = [](const TestCall& c) { return c.in.is_less(c.other(), c.subject); };
  static const Test ge = [](const TestCall& c) { return !c.in.is_less(c.subject, c.other()); };
  static const std::map<std::string, Test, std::less<>> all{
      {"defined", [](const TestCall& c) { return !c.subject.is_undefined(); }},
      {"undefined", [](const TestCall& c) { return c.subject.is_undefined(); }},
      {"none", [](const TestCall& c) { return c.subject.is_none(); }},
      {"boolean", [](const TestCall& c) { return c.subject.boolean() != nullptr; }},
      {"true", [](const TestCall& c) { return c.subject.boolean() && *c.subject.boolean(); }},
      {"false", [](const TestCall& c) { return c.subject.boolean() && !*c.subject.boolean(); }},
      {"integer", [](const TestCall& c) { return is_integer(c.subject); }},
      {"float", [](const TestCall& c) { return c.subject.real() != nullptr; }},
      {"number", [](const TestCall& c) { return c.subject.is_number(); }},
      {"string", [](const TestCall& c) { return c.subject.text() != nullptr; }},
      {"mapping", [](const TestCall& c) { return c.subject.dict() != nullptr; }},
      {"iterable",
       [](const TestCall& c) {
         return c.subject.is_undefined() || c.subject.text() || c.subject.list() || c.subject.dict();
       }},
      {"sequence",
       [](const TestCall& c) {
         const List* l = c.subject.list();
         return c.subject.is_undefined() || c.subject.text() || c.subject.dict() ||
                (l && l->kind != ListKind::generator && l->kind != ListKind::view);
       }},
      {"callable", [](const TestCall& c) { return c.subject.callable() || c.subject.loop(); }},
      {"sameas",
       [](const TestCall& c) {
         return type_name(c.subject) == type_name(c.other()) && c.in.same(c.subject, c.other());
       }},
      {"in", [](const TestCall& c) { return c.in.contains(c.other(), c.subject); }},
      {"divisibleby", [](const TestCall& c) { return remainder_of(c, c.in.integer(c.other(), "the divisor")) == 0; }},
      {"even", [](const TestCall& c) { return remainder_of(c, 2) == 0; }},
      {"odd", [](const TestCall& c) { return remainder_of(c, 2) != 0; }},
      {"lower",
       [](const TestCall& c) {
         const std::string text = c.in.str(c.subject), lower = in_case(text, LetterCase::lower);
         return text == lower && in_case(text, LetterCase::upper) != text;
       }},
      {"upper",
       [](const TestCall& c) {
         const std::string text = c.in.str(c.subject), upper = in_case(text, LetterCase::upper);
         return text == upper && in_case(text, LetterCase::lower) != text;
       }},
      {"filter", [](const TestCall& c) { return c.subject.text() && has_filter(*c.subject.text()); }},
      {"test", [](const TestCall& c) { return c.subject.text() && has_test(*c.subject.text()); }},
      {"eq", eq},
      {"equalto", eq},
      {"==", eq},
      {"ne", ne},
      {"!=", ne},
      {"lt", lt},
      {"lessthan", lt},
      {"<", lt},
      {"le", le},
      {"<=", le},
      {"gt", gt},
      {"greaterthan", gt},
      {">", gt},
      {"ge", ge},
      {">=", ge},
  };
  return all;
}

}  // namespace

bool has_filter(const std::string& name) {
  return filters().contains(name);
}
bool has_test(const std::string& name) {
  return tests().contains(name);
}
Value apply_filter(Interpreter& in, const std::string& name, const Value& subject, const Arguments& arguments) {
  return filters().find(name)->second({in, name, subject, arguments});
}
bool apply_test(Interpreter& in, const std::string& name, const Value& subject, const Arguments& arguments) {
  return tests().find(name)->second({in, name, subject, arguments});
}

}  // namespace mw::data::jinja
