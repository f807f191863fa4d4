// SPDX-License-Identifier: Apache-2.0
#include "core/formats/config/config_settings.h"

#include <algorithm>
#include <map>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/config/config_text.h"

namespace mw::formats {

std::string to_text(const ConfigPlace& place) {
  return place.file + (place.cell > 0 ? ", cell " + std::to_string(place.cell) : "") + ", line " +
         std::to_string(place.line);
}

Error config_error(const std::string& source, int line, const std::string& message, const std::string& fix) {
  return Error("PORT", message, {.file = source, .place = line > 0 ? "line " + std::to_string(line) : "", .fix = fix});
}

void require_text(std::string_view text, const std::string& source) {
  if (text.size() > kMaxConfigText)
    throw config_error(source, 0, "the file is larger than " + std::to_string(kMaxConfigText >> 20) + " MiB",
                       "pass the file with the settings only");
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos)
    throw config_error(source, line_of(text, zero), "the file is binary",
                       "pass a script, a notebook, YAML or JSON as text");
}

int line_of(std::string_view text, size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::vector<ConfigSetting> settings_of(const LinedConfig& config, const std::string& source) {
  std::vector<ConfigSetting> out;
  const auto add = [&](const std::string& section, const std::string& name, const Json& value) {
    const std::string path = section.empty() ? name : section + '\n' + name;
    const auto line = config.lines.find(path);
    const auto unread = config.unread.find(path);
    ConfigSetting setting{.section = section,
                          .name = name,
                          .value = value,
                          .text = json_excerpt(value),
                          .reason = {},
                          .place = {source, line == config.lines.end() ? 1 : line->second}};
    if (unread != config.unread.end()) {
      setting.value.reset();
      setting.text.clear();
      setting.reason = unread->second;
    }
    out.push_back(std::move(setting));
  };
  for (const auto& [name, value] : config.value.items()) {
    const bool section = value.is_object() && !name.ends_with("_pattern") && !name.ends_with("_kwargs");
    if (!section)
      add("", name, value);
    else
      for (const auto& [key, inner] : value.items()) add(name, key, inner);
  }
  return out;
}

namespace {

// The lines of the keys at the first two levels of valid JSON.
std::map<std::string, int> key_lines(std::string_view text) {
  std::map<std::string, int> lines;
  std::string outer, last;
  int depth = 0, line = 1, line_of_last = 1;
  bool list = false;  // within a list of the second level: its objects are no sections
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"') {
      const size_t end = end_of_string(text, i);
      last = std::string(text.substr(i, end - i));
      line_of_last = line;
      i = end - 1;
    } else if (c == ':' && depth <= 2 && !list) {
      const std::string name = parse_json(last, "key").get<std::string>();
      if (depth == 1) outer = name;
      lines.emplace(depth == 1 ? name : outer + '\n' + name, line_of_last);
    } else if (c == '{' || c == '[') {
      ++depth;
      if (depth == 2) list = c == '[';
    } else if (c == '}' || c == ']') {
      if (depth == 2) list = false;
      --depth;
    }
  }
  return lines;
}

Json json_object(std::string_view text, const std::string& source) {
  Json value = parse_json(text, source);
  if (!value.is_object())
    throw Error("PORT", "the file holds no JSON object",
                {.file = source,
                 .found = json_excerpt(value),
                 .expected = "an object with settings, e.g. adapter_config.json"});
  return value;
}

}  // namespace

std::vector<ConfigSetting> read_json_settings(std::string_view text, const std::string& source) {
  require_text(text, source);
  const std::string plain = without_python_numbers(text);
  return settings_of({json_object(plain, source), key_lines(plain), {}}, source);
}

std::vector<ConfigSetting> read_notebook_settings(std::string_view text, const std::string& source) {
  const Json notebook = json_object(text, source);
  std::string code;
  std::vector<ConfigPlace> places;  // of each line of `code`
  int number = 0;
  for (const Json& cell : list_member(notebook, "cells", source)) {
    ++number;
    if (!cell.is_object() || string_member(cell, "cell_type", source) != "code") continue;
    std::string lines;
    const Json& content = member(cell, "source", source);
    if (content.is_string())
      lines = content.get<std::string>();
    else
      for (const Json& line : list_member(cell, "source", source)) {
        if (!line.is_string())
          throw config_error(source, 0, "a line of cell " + std::to_string(number) + " is no text",
                             "save the notebook again");
        lines += line.get<std::string>();
      }
    int line_number = 0;
    for (std::string_view rest = lines; !rest.empty();) {
      const std::string_view line = take_line(rest);
      const size_t first = line.find_first_not_of(" \t");
      // Commands of IPython are no Python.
      const bool magic = first != std::string_view::npos && (line[first] == '%' || line[first] == '!');
      if (!magic) code += line;
      code += '\n';
      places.push_back({source, ++line_number, number});
    }
  }
  std::vector<ConfigSetting> settings = read_python_settings(code, source);
  for (ConfigSetting& setting : settings)
    if (const auto line = static_cast<size_t>(setting.place.line); line >= 1 && line <= places.size())
      setting.place = places[line - 1];
  return settings;
}

ConfigFile read_config_file(const std::filesystem::path& file) {
  const std::string ending = lower_case(file.extension().string()), name = file.string();
  if (ending == ".ipynb") return {ConfigFormat::notebook, read_notebook_settings(read_text(file, kMaxNotebook), name)};
  if (ending == ".py") return {ConfigFormat::python, read_python_settings(read_text(file, kMaxConfigText), name)};
  if (ending == ".yaml" || ending == ".yml")
    return {ConfigFormat::yaml, read_yaml_settings(read_text(file, kMaxConfigText), name)};
  if (ending == ".json") return {ConfigFormat::json, read_json_settings(read_text(file, kMaxConfigText), name)};
  throw Error("PORT", "the file is not of a kind whose settings can be read",
              {.file = name,
               .found = file.extension().string(),
               .expected = ".py, .ipynb, .yaml, .yml or .json",
               .fix = ending == ".bin" ? "a pickled training_args.bin is never loaded; write training_args.json with "
                                         "args.to_json_string()"
                                       : ""});
}

}  // namespace mw::formats
