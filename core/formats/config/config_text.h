// SPDX-License-Identifier: Apache-2.0
// Helpers of the readers of config_settings.h. Internal to core/formats/config.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/formats/config/config_settings.h"

namespace mw::formats {

template <size_t N>
bool is_listed(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Error PORT; `line` 0: none.
Error config_error(const std::string& source, int line, const std::string& message, const std::string& fix = {});
// Throws PORT for text above kMaxConfigText, and for binary data.
void require_text(std::string_view text, const std::string& source);
int line_of(std::string_view text, size_t at);  // from 1

// A map of settings. Keys of `lines` and `unread`: "name", or "section\nname".
struct LinedConfig {
  Json value = Json::object();
  std::map<std::string, int> lines;
  std::map<std::string, std::string> unread;  // why a value is not read
};
std::vector<ConfigSetting> settings_of(const LinedConfig& config, const std::string& source);

}  // namespace mw::formats
