// SPDX-License-Identifier: Apache-2.0
#include "core/base/event_text.h"

#include <charconv>
#include <optional>

namespace mw {
namespace {

// Takes the parts of a JSON text one after another. After a part that is not there, everything fails.
class PlainText {
 public:
  explicit PlainText(std::string_view text) : rest_(text) {}
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

  void skip(std::string_view part) {
    ok_ = ok_ && rest_.starts_with(part);
    if (ok_) rest_.remove_prefix(part.size());
  }
  // Up to the closing quote. Fails for escapes and for bytes that are not ASCII.
  std::string_view text() {
    size_t size = 0;
    while (size < rest_.size() && rest_[size] >= 0x20 && rest_[size] < 0x7f && rest_[size] != '"' &&
           rest_[size] != '\\')
      ++size;
    return take(size);
  }
  template <class Number>
  Number number() {
    const std::string_view digits = take(number_size());
    Number value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    ok_ = ok_ && error == std::errc() && end == digits.data() + digits.size();
    return value;
  }

 private:
  std::string_view take(size_t size) {
    const std::string_view part = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(part.size());
    return part;
  }
  size_t digits_from(size_t at) const {
    size_t end = at;
    while (end < rest_.size() && rest_[end] >= '0' && rest_[end] <= '9') ++end;
    return end - at;
  }
  bool has(size_t at, std::string_view any) const { return at < rest_.size() && any.find(rest_[at]) != any.npos; }

  // The size of a number in the grammar of JSON, which is stricter than that of from_chars(); 0 if there is none.
  size_t number_size() const {
    size_t at = has(0, "-") ? 1 : 0;
    const size_t whole = digits_from(at);
    if (whole == 0 || (whole > 1 && rest_[at] == '0')) return 0;
    at += whole;
    if (has(at, ".")) {
      const size_t fraction = digits_from(at + 1);
      if (fraction == 0) return 0;
      at += 1 + fraction;
    }
    if (!has(at, "eE")) return rest_.substr(0, at) == "-0" ? 0 : at;  // an integer, which has no negative zero
    const size_t sign = has(at + 1, "+-") ? 1 : 0, exponent = digits_from(at + 1 + sign);
    return exponent == 0 ? 0 : at + 1 + sign + exponent;
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Empty for a text that only the JSON parser can tell.
std::optional<Event> plain_metric(std::string_view text) {
  PlainText json(text);
  json.skip(R"({"event":"metric","name":")");
  const std::string_view name = json.text();
  json.skip(R"(","step":)");
  const long step = json.number<long>();
  json.skip(R"(,"value":)");
  const auto value = json.number<double>();
  json.skip(R"(,"time_s":)");
  const auto time_s = json.number<double>();
  json.skip("}");
  if (!json.at_end()) return std::nullopt;
  return Event{time_s, event::Metric{std::string(name), step, value}};
}

}  // namespace

Event event_from_text(std::string_view text, const std::string& source) {
  if (auto metric = plain_metric(text)) return *std::move(metric);
  return event_from_json(parse_json(text, source));
}

}  // namespace mw
