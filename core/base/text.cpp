// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <cctype>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace mw {

std::string formatted(const char* format, ...) {
  char text[512];
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const auto size = static_cast<size_t>(std::max(0, std::vsnprintf(text, sizeof text, format, arguments)));
  std::string out(text, std::min(size, sizeof text - 1));
  if (size >= sizeof text) {
    out.resize(size);
    std::vsnprintf(out.data(), size + 1, format, again);
  }
  va_end(again);
  va_end(arguments);
  return out;
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, text.find('\0'))) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string spreadsheet_text(const std::string& text) {
  if (text.empty() || std::string_view("=+-@\t\r\n").find(text[0]) == std::string_view::npos) return text;
  double number = 0;
  const char* const begin = text.data() + (text[0] == '+');
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number);
  const bool is_number = error == std::errc{} && (stop == end || std::string_view(stop, end) == " %");
  return is_number || text == "-" ? text : "'" + text;
}

std::string csv_cell(const std::string& content) {
  std::string text = spreadsheet_text(content);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_{}[]<>#|!~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

namespace {

constexpr std::array<std::string_view, 19> kWideSpaces = {
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

}  // namespace

size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // surrogate
  if (lead == 0xf0 && second < 0x90) return 0;  // overlong
  if (lead == 0xf4 && second > 0x8f) return 0;  // above U+10FFFF
  return n;
}

char32_t code_point(std::string_view character) {
  const auto bits = [&](size_t i, int mask) { return static_cast<char32_t>(character[i] & mask); };
  switch (character.size()) {
    case 1:
      return bits(0, 0xff);
    case 2:
      return bits(0, 0x1f) << 6 | bits(1, 0x3f);
    case 3:
      return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
    default:
      return bits(0, 0x07) << 18 | bits(1, 0x3f) << 12 | bits(2, 0x3f) << 6 | bits(3, 0x3f);
  }
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | (code_point >> shift & 0x3f)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    tail(6);
  } else {
    put(0xf0 | code_point >> 18);
    tail(12);
    tail(6);
  }
  tail(0);
}

size_t first_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    std::uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // ASCII
        i += sizeof eight;
        continue;
      }
    }
    const size_t n = character_length(text.substr(i));
    if (n == 0) return i;
    i += n;
  }
  return std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace), last = text.find_last_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::string excerpt(std::string_view text, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= bytes) return out + "...";
    const size_t n = character_length(text.substr(i));
    out += n > 0 ? text.substr(i, n) : std::string_view("\uFFFD");
    i += std::max<size_t>(n, 1);
  }
  return out;
}

std::string_view trim(std::string_view text) {
  const auto space_before = [&](std::string_view s) -> size_t {
    if (ascii_space(s.front())) return 1;
    for (const std::string_view w : kWideSpaces)
      if (s.starts_with(w)) return w.size();
    return 0;
  };
  const auto space_after = [&](std::string_view s) -> size_t {
    if (ascii_space(s.back())) return 1;
    for (const std::string_view w : kWideSpaces)
      if (s.ends_with(w)) return w.size();
    return 0;
  };
  size_t n = 0;
  while (!text.empty() && (n = space_before(text)) > 0) text.remove_prefix(n);
  while (!text.empty() && (n = space_after(text)) > 0) text.remove_suffix(n);
  return text;
}

namespace {

// Bit-parallel Levenshtein distance from one short text to others (Myers 1999, in Hyyrö's form); it dominates the cost
// of rejecting an unknown key.
class EditDistance {
 public:
  static constexpr size_t kLongest = 64;  // characters of `text`

  explicit EditDistance(std::string_view text) : size_(text.size()) {
    for (size_t i = 0; i < size_; ++i) where_[static_cast<unsigned char>(text[i])] |= std::uint64_t{1} << i;
  }

  size_t to(std::string_view other) const {
    if (size_ == 0) return other.size();
    const std::uint64_t last = std::uint64_t{1} << (size_ - 1);
    std::uint64_t more = ~std::uint64_t{0}, less = 0;  // rows that are one more, one less than the previous row
    size_t distance = size_;
    for (const char c : other) {
      const std::uint64_t same = where_[static_cast<unsigned char>(c)];
      const std::uint64_t diagonal = (((same & more) + more) ^ more) | same | less;
      std::uint64_t right_more = less | ~(diagonal | more), right_less = diagonal & more;
      if (right_more & last) ++distance;
      if (right_less & last) --distance;
      right_more = (right_more << 1) | 1;
      right_less <<= 1;
      more = right_less | ~(diagonal | right_more);
      less = right_more & diagonal;
    }
    return distance;
  }

 private:
  size_t size_;
  std::array<std::uint64_t, 256> where_{};  // bit i is set if character i of the text has this value
};

}  // namespace

std::vector<std::string> nearest_names(std::string_view wrong, const std::vector<std::string>& names, size_t count) {
  const std::string_view head = wrong.substr(0, EditDistance::kLongest);  // names are short
  const EditDistance distance(head);
  std::vector<std::pair<size_t, size_t>> order, best;  // {lower bound of the distance, index}; {distance, index}
  order.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_prefix = !head.empty() && names[i].starts_with(head);
    const size_t a = head.size(), b = names[i].size();
    order.emplace_back(is_prefix ? 0 : std::max(a, b) - std::min(a, b), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [least, i] : order) {
    if (best.size() >= count && (count == 0 || least > best[count - 1].first)) break;
    const bool is_prefix = !head.empty() && names[i].starts_with(head);
    const std::pair found{is_prefix ? 0 : distance.to(names[i]), i};
    best.insert(std::upper_bound(best.begin(), best.end(), found), found);
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(count, best.size()); ++i) out.push_back(names[best[i].second]);
  return out;
}

namespace {

// Equal, or one letter replaced, added, missing, or swapped with the next one.
bool differs_by_one_edit(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t same = 0;
  while (same < a.size() && a[same] == b[same]) ++same;
  a.remove_prefix(same), b.remove_prefix(same);
  if (a.empty()) return true;
  if (a.size() < b.size()) return a == b.substr(1);
  const bool exchanged = a.size() > 1 && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2);
  return exchanged || a.substr(1) == b.substr(1);
}

std::string letters_of(std::string text) {
  std::sort(text.begin(), text.end());
  text.erase(std::unique(text.begin(), text.end()), text.end());
  return text;
}

}  // namespace

bool is_likely_typo(std::string_view text, std::string_view name) {
  constexpr size_t kShort = 3;  // shorter names are one edit away from too many others
  const std::string a = lower_case(text), b = lower_case(name);
  if (a == b) return true;
  if (std::min(a.size(), b.size()) < kShort) return letters_of(a) == letters_of(b);
  return differs_by_one_edit(a, b);
}

std::string nearest_names_text(std::string_view wrong, const std::vector<std::string>& names, size_t count) {
  const std::vector<std::string> best = nearest_names(wrong, names, count);
  std::string text;
  for (size_t i = 0; i < best.size(); ++i) text += (i == 0 ? "" : i + 1 == best.size() ? " or " : ", ") + best[i];
  return text;
}

namespace {

constexpr std::string_view kSchemeEnd = "://";

// A URL in a text ends at white space, a control character, a quote or an angle bracket.
bool ends_url(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '<' || c == '>' || c == '\x7f';
}

bool belongs_to_scheme(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

// Length of the URL at the beginning of `text`, without its scheme; another URL may follow immediately.
size_t url_size(std::string_view text) {
  size_t size = std::min(text.find(kSchemeEnd), text.size());
  if (size < text.size())
    while (size > 0 && belongs_to_scheme(text[size - 1])) --size;
  const std::string_view url = text.substr(0, size);
  return static_cast<size_t>(std::find_if(url.begin(), url.end(), ends_url) - url.begin());
}

// Length of "user:password@" at the beginning of a URL without its scheme, 0 if there is none. Passwords are often not
// escaped, so it ends at the last '@', which may follow the first '/' only if the text before is not HOST:PORT.
size_t user_info_size(std::string_view url) {
  const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) return at + 1;
  const size_t colon = authority.starts_with('[') ? std::string_view::npos : authority.find(':');
  const size_t at = url.rfind('@');
  if (colon == std::string_view::npos || at == std::string_view::npos) return 0;
  const std::string_view port = authority.substr(colon + 1);
  const bool is_port = std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_port ? 0 : at + 1;
}

bool names_secret(std::string_view parameter) {
  static constexpr std::array<std::string_view, 14> kNames{
      "key",      "api_key", "api-key", "apikey", "token",     "access_token",    "auth",
      "password", "passwd",  "secret",  "sig",    "signature", "x-amz-signature", "x-goog-signature"};
  return std::find(kNames.begin(), kNames.end(), lower_case(parameter)) != kNames.end();
}

// Host, path and parameters of one URL, with the values of secret parameters replaced by "...".
std::string without_secret_parameters(std::string_view url) {
  std::string out(url.substr(0, url.find_first_of("?#")));
  url.remove_prefix(out.size());
  while (!url.empty()) {  // each begins with its separator
    const std::string_view parameter = url.substr(0, url.find_first_of("?&#;", 1));
    const size_t equals = parameter.find('=');
    const bool secret = equals != std::string_view::npos && names_secret(parameter.substr(1, equals - 1));
    out += secret ? std::string(parameter.substr(0, equals + 1)) + "..." : std::string(parameter);
    url.remove_prefix(parameter.size());
  }
  return out;
}

}  // namespace

std::string without_url_secrets(std::string_view text) {
  std::string out;
  for (size_t mark; (mark = text.find(kSchemeEnd)) != std::string_view::npos;) {
    out.append(text.substr(0, mark + kSchemeEnd.size()));
    const bool has_scheme = mark > 0 && std::isalnum(static_cast<unsigned char>(text[mark - 1])) != 0;
    text.remove_prefix(mark + kSchemeEnd.size());
    if (!has_scheme) continue;
    std::string_view url = text.substr(0, url_size(text));
    text.remove_prefix(url.size());
    url.remove_prefix(user_info_size(url));
    out += without_secret_parameters(url);
  }
  return out.append(text);
}

}  // namespace mw
