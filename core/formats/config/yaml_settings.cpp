// SPDX-License-Identifier: Apache-2.0
// Reads YAML (config_settings.h) from the events of yaml-cpp: depth, size and aliases are checked before anything is
// built, and no alias is expanded.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <sstream>

#include "core/base/text.h"
#include "core/formats/config/config_settings.h"
#include "core/formats/config/config_text.h"

namespace mw::formats {
namespace {

constexpr size_t kMaxYamlNodes = 10'000;

// The value of a plain scalar in YAML 1.1, as PyYAML reads it; numbers such as 1e-4 as YAML 1.2 reads them.
Json plain_scalar(const std::string& text) {
  using Words = std::array<std::string_view, 9>;
  if (is_listed(text, std::array<std::string_view, 5>{"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_listed(text, Words{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_listed(text, Words{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  const std::string_view number = digits.starts_with('+') ? std::string_view(digits).substr(1) : digits;
  if (const auto whole = parse_number<std::int64_t>(number)) return *whole;
  const bool numeric = !number.empty() && number.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  if (const auto real = parse_number<double>(number); numeric && real) return *real;
  return text;
}

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& source) : source_(source) {}
  LinedConfig take() { return std::move(config_); }
  bool is_map() const { return map_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { put(mark, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { put_unread(mark, "an alias"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (levels_.empty()) throw config_error(source_, line(mark), "the file is no map of settings");
    if (Level& level = levels_.back(); level.is_map && !level.has_key) {
      level.key = value;
      level.has_key = true;
      level.key_line = line(mark);
      if (level.value.contains(value))
        throw config_error(source_, line(mark), "the key '" + value + "' is given twice");
      return;
    }
    if (tag == "?" || tag.empty())
      put(mark, plain_scalar(value));
    else if (tag == "!")
      put(mark, value);
    else
      put_unread(mark, "a value with the tag " + tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, tag, Json::object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    bool is_map = false, has_key = false;
    std::string key, unread;
    int key_line = 0;
    Json value;
  };

  static int line(const YAML::Mark& mark) { return mark.line + 1; }

  void open(const YAML::Mark& mark, const std::string& tag, Json empty) {
    if (levels_.empty() && !empty.is_object())
      throw config_error(source_, line(mark), "the file is no map of settings");
    if (!levels_.empty() && levels_.back().is_map && !levels_.back().has_key)
      throw config_error(source_, line(mark), "a key is a list or a map", "use text as the key");
    if (levels_.size() >= static_cast<size_t>(kMaxConfigDepth))
      throw config_error(source_, line(mark),
                         "lists and maps are nested deeper than " + std::to_string(kMaxConfigDepth) + " levels");
    Level level;
    level.is_map = empty.is_object();
    level.value = std::move(empty);
    if (!tag.empty() && tag != "?" && tag != "!") level.unread = "a value with the tag " + tag;
    levels_.push_back(std::move(level));
  }

  void close() {
    Level done = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
      map_ = true;
      config_.value = std::move(done.value);
      return;
    }
    store(std::move(done.value), done.unread);
  }

  void put(const YAML::Mark& mark, Json value) {
    if (levels_.empty()) throw config_error(source_, line(mark), "the file is no map of settings");
    if (levels_.back().is_map && !levels_.back().has_key)
      throw config_error(source_, line(mark), "a key is empty", "use text as the key");
    store(std::move(value), {});
  }

  void put_unread(const YAML::Mark& mark, const std::string& reason) {
    if (levels_.empty()) throw config_error(source_, line(mark), "the file is no map of settings");
    if (levels_.back().is_map && !levels_.back().has_key)
      throw config_error(source_, line(mark), "a key is an alias", "use text as the key");
    store(nullptr, reason);
  }

  // A value is not read if a part of it is not.
  void store(Json value, const std::string& unread) {
    if (++nodes_ > kMaxYamlNodes)
      throw config_error(source_, 0, "the file has more than " + std::to_string(kMaxYamlNodes) + " values");
    Level& level = levels_.back();
    if (!level.is_map) {
      level.value.push_back(std::move(value));
      if (!unread.empty()) level.unread = unread;
      return;
    }
    const bool top = levels_.size() == 1, second = levels_.size() == 2 && levels_[0].has_key;
    if (top || second) {
      const std::string path = top ? level.key : levels_[0].key + '\n' + level.key;
      config_.lines.emplace(path, level.key_line);
      if (!unread.empty()) config_.unread.emplace(path, unread);
    }
    if (!top && !unread.empty()) level.unread = unread;
    level.value[level.key] = std::move(value);
    level.has_key = false;
  }

  const std::string& source_;
  std::vector<Level> levels_;
  LinedConfig config_;
  size_t nodes_ = 0;
  bool map_ = false;
};

}  // namespace

std::vector<ConfigSetting> read_yaml_settings(std::string_view text, const std::string& source) {
  require_text(text, source);
  std::istringstream in{std::string(text)};
  Builder builder(source);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) throw config_error(source, 1, "the file is empty");
    Builder rest(source);
    if (parser.HandleNextDocument(rest)) throw config_error(source, 0, "the file has several documents", "keep one");
  } catch (const YAML::Exception& error) {
    throw config_error(source, error.mark.is_null() ? 0 : error.mark.line + 1, "not valid YAML: " + error.msg);
  }
  if (!builder.is_map()) throw config_error(source, 1, "the file is no map of settings");
  return settings_of(builder.take(), source);
}

}  // namespace mw::formats
