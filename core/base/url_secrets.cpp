// SPDX-License-Identifier: Apache-2.0
#include "core/base/url_secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/text.h"

namespace mw {
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

void remove_url_secrets(Json& value) {
  if (value.is_string()) {
    std::string& text = value.get_ref<std::string&>();
    if (text.find(kSchemeEnd) != std::string::npos) text = without_url_secrets(text);
  } else if (value.is_structured()) {
    for (Json& member : value) remove_url_secrets(member);
  }
}

}  // namespace mw
