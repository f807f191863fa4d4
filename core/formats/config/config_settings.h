// SPDX-License-Identifier: Apache-2.0
// Reads the settings in configuration files and scripts of other training software without executing anything: literal
// arguments of calls in Python, JSON and YAML. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/json.h"

namespace mw::formats {

// Limits of the readers. Larger input is an error.
inline constexpr std::uint64_t kMaxConfigText = 4 << 20;  // bytes of a script, YAML or JSON
inline constexpr std::uint64_t kMaxNotebook = 64 << 20;   // bytes, pictures of outputs included
inline constexpr int kMaxConfigDepth = 64;                // nested brackets, lists and maps

enum class ConfigFormat { python, notebook, yaml, json };

struct ConfigPlace {
  std::string file;
  int line = 0;  // from 1
  int cell = 0;  // of a notebook, from 1; 0: no notebook
  bool operator==(const ConfigPlace&) const = default;
};
std::string to_text(const ConfigPlace& place);  // "train.py, line 12"; "train.ipynb, cell 3, line 2"

// One argument of a call, or one key of a JSON or YAML file.
struct ConfigSetting {
  std::string section;        // the called name or the enclosing key: "SFTConfig", "fsdp_config"; empty: top level
  std::string name;           // "learning_rate"; "#1": the first positional argument
  std::optional<Json> value;  // empty: not a literal, and not read
  std::string text;           // as it stands in the file, shortened
  std::string reason;         // why there is no value: "a call"
  ConfigPlace place;
};

struct ConfigFile {
  ConfigFormat format = ConfigFormat::json;
  std::vector<ConfigSetting> settings;  // in file order
};

// Calls whose arguments are read: *Config(...), *Arguments(...), *Trainer(...), X.from_pretrained(...),
// load_dataset(...) and get_peft_model(...). A name is replaced by its value if the file binds it once, to a literal
// that cannot change. Assignments to attributes of a configuration are settings of it; statements that change a dataset
// have no value. Throws PORT for text that is not Python, deeper than kMaxConfigDepth or binary.
std::vector<ConfigSetting> read_python_settings(std::string_view text, const std::string& source);
// The code cells of a Jupyter notebook as one script. Throws JSON and PORT.
std::vector<ConfigSetting> read_notebook_settings(std::string_view text, const std::string& source);
// One document, whose top level is a map. Its keys are typed as PyYAML types them. Values with aliases or tags have no
// value, so that no alias is expanded. Throws PORT.
std::vector<ConfigSetting> read_yaml_settings(std::string_view text, const std::string& source);
// One JSON object. Members of an object at the top level are settings of a section with its name, except of *_pattern
// and *_kwargs, which are values. The same holds for YAML. Throws JSON and PORT.
std::vector<ConfigSetting> read_json_settings(std::string_view text, const std::string& source);

// Chooses the reader by the name: .py, .ipynb, .yaml, .yml or .json. Throws PORT for other files, and the Errors of the
// reader.
ConfigFile read_config_file(const std::filesystem::path& file);

}  // namespace mw::formats

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::formats::ConfigFormat>{"python", "notebook", "yaml", "json"};
