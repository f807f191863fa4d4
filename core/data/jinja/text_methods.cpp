// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str.
#include <locale.h>
#include <cwctype>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "core/base/text.h"
#include "core/data/jinja/characters.h"
#include "core/data/jinja/interpreter.h"

namespace mw::data::jinja {
namespace {

enum class Side { left, right, both };

struct TextCall {
  Interpreter& in;
  const std::string& self;
  const std::string& name;
  const Arguments& arguments;

  std::vector<const Value*> bound(const std::vector<std::string>& parameters) const {
    return in.bound("str." + name, arguments, parameters);
  }
  // The required first argument.
  const std::string& first(const std::vector<const Value*>& given) const {
    if (!given[0]) in.fail("the method needs an argument", "." + name + "()");
    return in.string(*given[0], "the argument of ." + name + "()");
  }
};

std::string stripped(std::string_view text, const std::string* characters, Side side) {
  if (!characters) {
    const std::string_view inner = trim(text);
    if (inner.empty()) return {};
    const auto begin = static_cast<size_t>(inner.begin() - text.begin()), end = begin + inner.size();
    return std::string(side == Side::left ? text.substr(begin) : side == Side::right ? text.substr(0, end) : inner);
  }
  const Characters set(*characters), all(text);
  const auto is_in_set = [&](std::string_view c) {
    for (size_t i = 0; i < set.size(); ++i)
      if (set[i] == c) return true;
    return false;
  };
  size_t begin = 0, end = all.size();
  if (side != Side::right)
    while (begin < end && is_in_set(all[begin])) ++begin;
  if (side != Side::left)
    while (end > begin && is_in_set(all[end - 1])) --end;
  return std::string(text.substr(all.offset(begin), all.offset(end) - all.offset(begin)));
}

Value strip(const TextCall& c, Side side) {
  const auto given = c.bound({"chars"});
  const std::string* characters =
      given[0] && !given[0]->is_none() ? &c.in.string(*given[0], "the characters") : nullptr;
  if (characters)
    c.in.charge(static_cast<std::int64_t>(std::min<size_t>(c.self.size() * characters->size(), 1u << 30)));
  return c.in.text(stripped(c.self, characters, side));
}

std::vector<std::string> words(std::string_view text, std::int64_t most, Side side) {
  std::vector<std::string> out;
  const auto is_space = [](std::string_view c) { return trim(c).empty(); };
  const Characters all(text);
  size_t begin = 0, end = all.size();
  const auto part = [&](size_t a, size_t b) {
    return std::string(text.substr(all.offset(a), all.offset(b) - all.offset(a)));
  };
  if (side == Side::left) {
    while (true) {
      while (begin < end && is_space(all[begin])) ++begin;
      if (begin == end) return out;
      if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
        out.push_back(stripped(part(begin, end), nullptr, Side::right));
        return out;
      }
      size_t stop = begin;
      while (stop < end && !is_space(all[stop])) ++stop;
      out.push_back(part(begin, stop));
      begin = stop;
    }
  }
  while (true) {
    while (end > begin && is_space(all[end - 1])) --end;
    if (begin == end) break;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      out.push_back(stripped(part(begin, end), nullptr, Side::left));
      break;
    }
    size_t start = end;
    while (start > begin && !is_space(all[start - 1])) --start;
    out.push_back(part(start, end));
    end = start;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> pieces(std::string_view text, std::string_view separator, std::int64_t most, Side side) {
  std::vector<std::string> out;
  const auto is_full = [&] { return most >= 0 && static_cast<std::int64_t>(out.size()) >= most; };
  if (side == Side::left) {
    for (size_t at; !is_full() && (at = text.find(separator)) != text.npos; text.remove_prefix(at + separator.size()))
      out.emplace_back(text.substr(0, at));
    out.emplace_back(text);
    return out;
  }
  for (size_t at; !is_full() && (at = text.rfind(separator)) != text.npos; text = text.substr(0, at))
    out.emplace_back(text.substr(at + separator.size()));
  out.emplace_back(text);
  std::reverse(out.begin(), out.end());
  return out;
}

Value as_list(Interpreter& in, const std::vector<std::string>& texts, ListKind kind = ListKind::list) {
  Values items;
  for (const std::string& t : texts) items.push_back(in.text(t));
  return in.list(std::move(items), kind);
}

Value split(const TextCall& c, Side side) {
  const auto given = c.bound({"sep", "maxsplit"});
  const std::int64_t most = given[1] ? c.in.integer(*given[1], "maxsplit") : -1;
  c.in.charge(static_cast<std::int64_t>(c.self.size()) * 2);
  if (!given[0] || given[0]->is_none()) return as_list(c.in, words(c.self, most, side));
  const std::string& separator = c.in.string(*given[0], "the separator");
  if (separator.empty()) c.in.fail("the separator is empty");
  c.in.charge(static_cast<std::int64_t>(c.self.size() / separator.size() * 32));
  return as_list(c.in, pieces(c.self, separator, most, side));
}

Value splitlines(const TextCall& c) {
  const auto given = c.bound({"keepends"});
  const bool keeps = given[0] && is_true(*given[0]);
  std::vector<std::string> out;
  std::string_view rest = c.self;
  constexpr std::string_view kEnds = "\n\r\v\f\x1c\x1d\x1e";
  while (!rest.empty()) {
    size_t at = 0, length = 0;
    for (; at < rest.size() && length == 0; ++at) {
      if (kEnds.find(rest[at]) != kEnds.npos) length = rest.substr(at).starts_with("\r\n") ? 2 : 1;
      for (const std::string_view wide : {"\u0085", "\u2028", "\u2029"})
        if (rest.substr(at).starts_with(wide)) length = wide.size();
      if (length) break;
    }
    out.emplace_back(rest.substr(0, keeps ? at + length : at));
    rest.remove_prefix(std::min(rest.size(), at + length));
  }
  return as_list(c.in, out);
}

bool matches_end(std::string_view text, std::string_view end, bool at_start) {
  return at_start ? text.starts_with(end) : text.ends_with(end);
}

Value ends_with(const TextCall& c, bool at_start) {
  const auto given = c.bound({"prefix", "start", "end"});
  if (!given[0]) c.in.fail("the method needs an argument", "." + c.name + "()");
  const Characters all(c.self);
  const auto n = static_cast<std::int64_t>(all.size());
  const auto place = [&](const Value* v, std::int64_t usual) {
    const std::int64_t i = v && !v->is_none() ? c.in.integer(*v, "a position") : usual;
    return static_cast<size_t>(std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n));
  };
  const size_t from = all.offset(place(given[1], 0)), to = all.offset(place(given[2], n));
  const std::string_view text = from <= to ? std::string_view(c.self).substr(from, to - from) : std::string_view();
  if (const List* l = given[0]->list(); l && l->kind == ListKind::tuple)
    return Value(std::any_of(l->items.begin(), l->items.end(), [&](const Value& one) {
      return matches_end(text, c.in.string(one, "the argument"), at_start);
    }));
  return Value(matches_end(text, c.in.string(*given[0], "the argument"), at_start));
}

Value replace(const TextCall& c) {
  const auto given = c.bound({"old", "new", "count"});
  if (!given[0] || !given[1]) c.in.fail("replace() needs two strings");
  return replaced(c.in, c.self, c.in.string(*given[0], "the old text"), c.in.string(*given[1], "the new text"),
                  given[2] ? c.in.integer(*given[2], "the count") : -1);
}

Value find(const TextCall& c, bool from_right, bool must_exist) {
  const auto given = c.bound({"sub"});
  const std::string& part = c.first(given);
  const size_t at = from_right ? c.self.rfind(part) : c.self.find(part);
  if (at == std::string::npos && must_exist) c.in.fail("the text is not found", part);
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value(static_cast<std::int64_t>(Characters(c.self).index(at)));
}

Value count(const TextCall& c) {
  const std::string& part = c.first(c.bound({"sub"}));
  if (part.empty()) return Value(static_cast<std::int64_t>(Characters(c.self).size() + 1));
  std::int64_t n = 0;
  for (size_t at = 0; (at = c.self.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return Value(n);
}

Value join(const TextCall& c) {
  const auto given = c.bound({"iterable"});
  if (!given[0]) c.in.fail("join() needs a list");
  std::string out;
  bool first = true;
  for (const Value& one : c.in.items_of(*given[0])) {
    if (!first) out += c.self;
    out += c.in.string(one, "an item of join()");
    c.in.charge(static_cast<std::int64_t>(c.self.size() + 16));
    first = false;
  }
  return c.in.text(std::move(out));
}

Value partition(const TextCall& c, bool from_right) {
  const std::string& separator = c.first(c.bound({"sep"}));
  if (separator.empty()) c.in.fail("the separator is empty");
  const size_t at = from_right ? c.self.rfind(separator) : c.self.find(separator);
  if (at == std::string::npos)
    return as_list(c.in,
                   from_right ? std::vector<std::string>{"", "", c.self} : std::vector<std::string>{c.self, "", ""},
                   ListKind::tuple);
  return as_list(c.in, {c.self.substr(0, at), separator, c.self.substr(at + separator.size())}, ListKind::tuple);
}

Value without_end(const TextCall& c, bool at_start) {
  const std::string& end = c.first(c.bound({"affix"}));
  if (!matches_end(c.self, end, at_start)) return c.in.text(c.self);
  return c.in.text(at_start ? c.self.substr(end.size()) : c.self.substr(0, c.self.size() - end.size()));
}

Value aligned(const TextCall& c, Side side) {
  const auto given = c.bound({"width", "fillchar"});
  if (!given[0]) c.in.fail("the method needs a width", "." + c.name + "()");
  const std::string fill = given[1] ? c.in.string(*given[1], "the fill character") : c.name == "zfill" ? "0" : " ";
  if (Characters(fill).size() != 1) c.in.fail("the fill character is not one character", fill);
  const std::int64_t width = c.in.integer(*given[0], "the width");
  const std::int64_t missing = std::max<std::int64_t>(0, width - static_cast<std::int64_t>(Characters(c.self).size()));
  if (missing > std::int64_t{1} << 30) c.in.fail("the width is too large", std::to_string(width));
  c.in.charge(missing * 4);
  std::string padding;
  for (std::int64_t i = 0; i < missing; ++i) padding += fill;
  if (side == Side::left) return c.in.text(c.self + padding);
  const size_t sign = c.name == "zfill" && !c.self.empty() && (c.self[0] == '-' || c.self[0] == '+') ? 1 : 0;
  return c.in.text(c.self.substr(0, sign) + padding + c.self.substr(sign));
}

// Fields "{}", "{0}" and "{name}"; those with a format or an attribute are refused.
const Value& format_argument(const TextCall& c, std::string_view field, size_t& next) {
  const auto& [positional, named] = c.arguments;
  const std::optional<size_t> given = field.empty() ? std::optional(next++) : parse_number<size_t>(field);
  if (given && *given < positional.size()) return positional[*given];
  if (!given)
    for (const auto& [name, value] : named)
      if (name == field) return value;
  c.in.fail("the text has a field without a value", "{" + std::string(field) + "}",
            "{}, a number or a name among the arguments of .format()");
}

Value format(const TextCall& c) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < c.self.size(); ++at) {
    const char letter = c.self[at];
    const bool is_brace = letter == '{' || letter == '}';
    if (is_brace && at + 1 < c.self.size() && c.self[at + 1] == letter)
      ++at;  // doubled: itself
    else if (is_brace) {
      const size_t end = letter == '{' ? c.self.find('}', at) : std::string::npos;
      if (end == std::string::npos) c.in.fail("the text of .format() has a single brace", std::string(1, letter));
      const std::string value =
          c.in.str(format_argument(c, std::string_view(c.self).substr(at + 1, end - at - 1), next));
      c.in.charge(static_cast<std::int64_t>(value.size()));
      out += value;
      at = end;
      continue;
    }
    out += letter;
  }
  return c.in.text(std::move(out));
}

Value is_all(const TextCall& c, const std::function<bool(std::wint_t)>& is) {
  c.bound({});
  if (c.self.empty()) return Value(false);
  const Characters all(c.self);
  for (size_t i = 0; i < all.size(); ++i)
    if (!is(code_point(all[i]))) return Value(false);
  return Value(true);
}

using Method = Value (*)(const TextCall&);
const std::map<std::string, Method, std::less<>>& methods() {
  static const std::map<std::string, Method, std::less<>> all{
      {"strip", [](const TextCall& c) { return strip(c, Side::both); }},
      {"lstrip", [](const TextCall& c) { return strip(c, Side::left); }},
      {"rstrip", [](const TextCall& c) { return strip(c, Side::right); }},
      {"split", [](const TextCall& c) { return split(c, Side::left); }},
      {"rsplit", [](const TextCall& c) { return split(c, Side::right); }},
      {"splitlines", splitlines},
      {"startswith", [](const TextCall& c) { return ends_with(c, true); }},
      {"endswith", [](const TextCall& c) { return ends_with(c, false); }},
      {"replace", replace},
      {"find", [](const TextCall& c) { return find(c, false, false); }},
      {"rfind", [](const TextCall& c) { return find(c, true, false); }},
      {"index", [](const TextCall& c) { return find(c, false, true); }},
      {"rindex", [](const TextCall& c) { return find(c, true, true); }},
      {"count", count},
      {"join", join},
      {"format", format},
      {"partition", [](const TextCall& c) { return partition(c, false); }},
      {"rpartition", [](const TextCall& c) { return partition(c, true); }},
      {"removeprefix", [](const TextCall& c) { return without_end(c, true); }},
      {"removesuffix", [](const TextCall& c) { return without_end(c, false); }},
      {"ljust", [](const TextCall& c) { return aligned(c, Side::left); }},
      {"rjust", [](const TextCall& c) { return aligned(c, Side::right); }},
      {"zfill", [](const TextCall& c) { return aligned(c, Side::right); }},
      {"upper", [](const TextCall& c) { return c.bound({}), c.in.text(in_case(c.self, LetterCase::upper)); }},
      {"lower", [](const TextCall& c) { return c.bound({}), c.in.text(in_case(c.self, LetterCase::lower)); }},
      {"title", [](const TextCall& c) { return c.bound({}), c.in.text(in_case(c.self, LetterCase::title)); }},
      {"capitalize",
       [](const TextCall& c) { return c.bound({}), c.in.text(in_case(c.self, LetterCase::capitalized)); }},
      {"isdigit", [](const TextCall& c) { return is_all(c, [](std::wint_t x) { return x >= '0' && x <= '9'; }); }},
      {"isalpha", [](const TextCall& c) { return is_all(c, [](std::wint_t x) { return is_letter(x); }); }},
      {"isalnum",
       [](const TextCall& c) {
         return is_all(c, [](std::wint_t x) { return is_letter(x) || (x >= '0' && x <= '9'); });
       }},
      {"isspace", [](const TextCall& c) { return c.bound({}), Value(!c.self.empty() && trim(c.self).empty()); }},
      {"isupper",
       [](const TextCall& c) {
         return c.bound({}),
                Value(in_case(c.self, LetterCase::upper) == c.self && in_case(c.self, LetterCase::lower) != c.self);
       }},
      {"islower",
       [](const TextCall& c) {
         return c.bound({}),
                Value(in_case(c.self, LetterCase::lower) == c.self && in_case(c.self, LetterCase::upper) != c.self);
       }},
  };
  return all;
}

}  // namespace

Value replaced(Interpreter& in, const std::string& text, const std::string& old, const std::string& by,
               std::int64_t most) {
  std::string out;
  const Characters all(text);
  size_t at = 0;
  std::int64_t n = 0;
  if (old.empty()) {  // between all characters
    for (size_t i = 0; i <= all.size(); ++i) {
      if (most < 0 || n++ < most) out += by;
      if (i < all.size()) out += all[i];
      in.charge(static_cast<std::int64_t>(by.size()) + 4);
    }
    return in.text(std::move(out));
  }
  for (size_t next; (most < 0 || n < most) && (next = text.find(old, at)) != std::string::npos; ++n) {
    out.append(text, at, next - at).append(by);
    in.charge(static_cast<std::int64_t>(by.size()) + 4);
    at = next + old.size();
  }
  return in.text(out.append(text, at));
}

bool has_text_method(const std::string& name) {
  return methods().contains(name);
}

Value call_text_method(Interpreter& in, const std::string& self, const std::string& name, const Arguments& arguments) {
  return methods().find(name)->second({in, self, name, arguments});
}

}  // namespace mw::data::jinja
