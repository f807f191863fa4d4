// SPDX-License-Identifier: Apache-2.0
#include "core/base/event.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw {
namespace {

// Reads a number that or_null() wrote: NaN for null or a missing key.
double number(const Json& j, const char* key) {
  if (!j.contains(key) || j.at(key).is_null()) return std::numeric_limits<double>::quiet_NaN();
  return j.at(key).get<double>();
}

Json entry_json(const event::StepTraffic::Entry& e) {
  Json json{{"kind", valid_utf8(e.kind)},
            {"axis", valid_utf8(e.axis)},
            {"phase", valid_utf8(e.phase)},
            {"cause", valid_utf8(e.cause)},
            {"layer", e.layer},
            {"calls", e.calls},
            {"bytes", e.bytes.value},
            {"seconds", or_null(e.seconds)},
            {"waited", or_null(e.waited)}};
  if (e.planned) json["planned"] = e.planned->value;
  return json;
}

struct ToJson {
  Json operator()(const event::Started& e) const { return {{"event", "started"}, {"info", e.info}}; }
  Json operator()(const event::Metric& e) const {
    return {{"event", "metric"}, {"name", valid_utf8(e.name)}, {"step", e.step}, {"value", or_null(e.value)}};
  }
  Json operator()(const event::Memory& e) const {
    return {{"event", "memory"},         {"device", e.device},  {"step", e.step}, {"phase", valid_utf8(e.phase)},
            {"bytes", to_json(e.bytes)}, {"peak", e.peak.value}};
  }
  Json operator()(const event::StepTraffic& e) const {
    Json entries = Json::array(), devices = Json::array();
    for (const auto& entry : e.entries) entries.push_back(entry_json(entry));
    for (const auto& d : e.devices)
      devices.push_back({{"bytes", d.bytes.value}, {"seconds", or_null(d.seconds)}, {"waited", or_null(d.waited)}});
    return {{"event", "traffic"}, {"step", e.step}, {"entries", std::move(entries)}, {"devices", std::move(devices)}};
  }
  Json operator()(const event::Sample& e) const {
    return {{"event", "sample"},
            {"step", e.step},
            {"prompt", valid_utf8(e.prompt)},
            {"text", valid_utf8(e.text)},
            {"expected", valid_utf8(e.expected)},
            {"verdict", valid_utf8(e.verdict)}};
  }
  Json operator()(const event::Checkpoint& e) const {
    return {{"event", "checkpoint"}, {"step", e.step}, {"path", valid_utf8(e.path)}};
  }
  Json operator()(const event::ResultPoint& e) const {
    return {{"event", "point"}, {"step", e.step}, {"kind", valid_utf8(e.kind)}, {"values", e.values}};
  }
  Json operator()(const event::Log& e) const {
    return {{"event", "log"}, {"level", valid_utf8(e.level)}, {"text", valid_utf8(e.text)}};
  }
  Json operator()(const event::Progress& e) const {
    return {{"event", "progress"}, {"phase", valid_utf8(e.phase)}, {"done", e.done}, {"total", e.total}};
  }
  Json operator()(const event::StateChanged& e) const { return {{"event", "state"}, {"state", to_string(e.state)}}; }
  Json operator()(const event::Finished& e) const {
    return {{"event", "finished"},          {"state", to_string(e.state)},   {"steps", e.steps},
            {"tokens", e.tokens},           {"seconds", or_null(e.seconds)}, {"peak_bytes", e.peak.value},
            {"error", valid_utf8(e.error)}, {"summary", e.summary}};
  }
};

// Other programs may write an integer as 3.0, or one that overflows T.
template <class T>
T whole(const Json& j, const char* key, T otherwise) {
  if (!j.contains(key)) return otherwise;
  const Json& value = j.at(key);
  using Limits = std::numeric_limits<T>;
  const bool fits =
      value.is_number_float()      ? std::abs(value.get<double>()) <= std::min(9e18, static_cast<double>(Limits::max()))
      : value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max())
                                   : value.get<std::int64_t>() >= Limits::min();
  if (!fits) throw Error("EVENT", "the number is out of range", {.place = key, .expected = "a whole number"});
  return value.get<T>();
}

Bytes bytes_member(const Json& j, const char* key) {
  return Bytes(whole(j, key, std::int64_t{0}));
}

event::StepTraffic traffic_from(const Json& j) {
  event::StepTraffic e{.step = whole(j, "step", 0L), .entries = {}, .devices = {}};
  const auto seconds = [](const Json& from, const char* key) { return from.contains(key) ? number(from, key) : 0.0; };
  const auto text = [](const Json& from, const char* key) { return from.value(key, std::string()); };
  for (const Json& from : j.value("entries", Json::array()))
    e.entries.push_back({text(from, "kind"), text(from, "axis"), text(from, "phase"), text(from, "cause"),
                         whole(from, "layer", -1), whole(from, "calls", std::int64_t{0}), bytes_member(from, "bytes"),
                         seconds(from, "seconds"), seconds(from, "waited"),
                         from.contains("planned") ? std::optional(bytes_member(from, "planned")) : std::nullopt});
  for (const Json& from : j.value("devices", Json::array()))
    e.devices.push_back({bytes_member(from, "bytes"), seconds(from, "seconds"), seconds(from, "waited")});
  return e;
}

// Merges "info" with the other members of a started event, where external programs may put the same facts.
Json info_of(const Json& started) {
  Json info = started.value("info", Json::object());
  if (!info.is_object()) return info;
  for (const auto& [key, value] : started.items())
    if (key != "event" && key != "info" && key != "run" && key != "time_s" && key != "host" && !info.contains(key))
      info[key] = value;
  return info;
}

std::optional<EventHost> host_from(const Json& j) {
  const auto host = j.find("host");
  if (host == j.end() || !host->is_object()) return std::nullopt;  // other programs may mean something else
  return EventHost{whole(*host, "process", 0), host->value("name", std::string())};
}

decltype(Event::body) body_from(const Json& j) {
  const auto kind = string_member(j, "event", "event");
  const auto text = [&](const char* key) { return j.value(key, std::string()); };
  const auto step = [&] { return whole(j, "step", 0L); };
  if (kind == "started") return event::Started{info_of(j)};
  if (kind == "metric") return event::Metric{string_member(j, "name", "event"), step(), number(j, "value")};
  if (kind == "memory")
    return event::Memory{whole(j, "device", 0), step(), text("phase"),
                         ledger_from_json(j.value("bytes", Json::object())), bytes_member(j, "peak")};
  if (kind == "sample") return event::Sample{step(), text("prompt"), text("text"), text("expected"), text("verdict")};
  if (kind == "traffic") return traffic_from(j);
  if (kind == "checkpoint") return event::Checkpoint{step(), text("path")};
  if (kind == "point") return event::ResultPoint{step(), text("kind"), j.value("values", Json::object())};
  if (kind == "log") return event::Log{text("level"), text("text")};
  if (kind == "progress") return event::Progress{text("phase"), whole(j, "done", 0L), whole(j, "total", 0L)};
  if (kind == "state") return event::StateChanged{parse_run_state(string_member(j, "state", "event"))};
  if (kind == "finished")
    return event::Finished{parse_run_state(string_member(j, "state", "event")),
                           whole(j, "steps", 0L),
                           whole(j, "tokens", 0L),
                           j.contains("seconds") ? number(j, "seconds") : 0.0,
                           bytes_member(j, "peak_bytes"),
                           text("error"),
                           j.value("summary", Json())};
  throw Error("EVENT", "unknown event",
              {.found = kind,
               .expected = "started, metric, memory, sample, checkpoint, point, log, progress, state or finished"});
}

}  // namespace

RunState parse_run_state(std::string_view name) {
  if (const auto state = parse<RunState>(name)) return *state;
  throw Error("EVENT", "unknown run state",
              {.found = std::string(name), .expected = "queued, running, paused, done, failed or cancelled"});
}

Json to_json(const Ledger& ledger) {
  Json j = Json::object();
  for (const MemoryCategory category : all_values<MemoryCategory>())
    if (ledger[category].value != 0) j[std::string(to_string(category))] = ledger[category].value;
  j["total"] = ledger.total().value;
  return j;
}

Ledger ledger_from_json(const Json& json) {
  Ledger ledger;
  if (!json.is_object()) throw Error("EVENT", "\"bytes\" is not an object", {.expected = "{category: bytes, ...}"});
  for (const auto& [name, value] : json.items()) {
    const auto category = parse<MemoryCategory>(name);
    if (!category) continue;
    if (!value.is_number())
      throw Error("EVENT", "the number of bytes is not a number", {.place = name, .expected = "a number"});
    ledger[*category] = bytes_member(json, name.c_str());
  }
  return ledger;
}

Json to_json(const Event& event, const std::string& run_id) {
  Json j = std::visit(ToJson{}, event.body);
  const bool names_run =
      std::holds_alternative<event::Started>(event.body) || std::holds_alternative<event::Finished>(event.body);
  if (names_run && !run_id.empty()) j["run"] = run_id;
  j["time_s"] = or_null(event.time_s);
  if (event.host) j["host"] = {{"process", event.host->process}, {"name", valid_utf8(event.host->name)}};
  remove_url_secrets(j);
  return j;
}

Event event_from_json(const Json& json) {
  try {
    const double time_s = json.contains("time_s") ? number(json, "time_s") : 0.0;
    return {std::isnan(time_s) ? 0.0 : time_s, body_from(json), host_from(json)};
  } catch (const Json::exception& e) {
    throw Error("EVENT", std::string("malformed event: ") + e.what(), {.found = json.dump().substr(0, 80)});
  }
}

bool is_telemetry(const Event& event) {
  return std::holds_alternative<event::Metric>(event.body) || std::holds_alternative<event::Memory>(event.body) ||
         std::holds_alternative<event::StepTraffic>(event.body) || std::holds_alternative<event::Progress>(event.body);
}

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
    const auto value = parse_number<Number>(take(number_size()));
    ok_ = ok_ && value;
    return value.value_or(0);
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

void ProgressLimit::pass(const Event& event) {
  last_s_ = event.time_s;
  next_(event);
}

void ProgressLimit::end_phase() {
  if (waiting_) pass({last_s_, *std::exchange(waiting_, std::nullopt)});
  phase_.reset();
}

void ProgressLimit::operator()(const Event& event) {
  const auto* progress = std::get_if<event::Progress>(&event.body);
  if (!progress) return pass(event);
  if (phase_ && phase_->phase != progress->phase) end_phase();
  if (phase_ && phase_->done == progress->done && phase_->total == progress->total) return;  // nothing new
  const bool is_soon = phase_ && std::abs(event.time_s - passed_s_) < kSeconds;
  const bool is_last = progress->total > 0 && progress->done >= progress->total;
  if (is_soon && !is_last) {
    waiting_ = *progress;
    return;
  }
  waiting_.reset();
  phase_ = *progress;
  passed_s_ = event.time_s;
  pass(event);
}

}  // namespace mw
