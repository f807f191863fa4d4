// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::serve {
namespace {

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The host of "host", "host:port", "[v6]" or "[v6]:port" in lower case, without brackets and trailing dot; none if the
// text has no such form.
std::optional<std::string> host_of(std::string_view text) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    std::array<unsigned char, 16> address;
    if (::inet_pton(AF_INET6, std::string(host).c_str(), address.data()) != 1) return std::nullopt;
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
    const bool is_name = std::all_of(host.begin(), host.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
    });
    if (!is_name || host.size() > 255) return std::nullopt;
    if (host.ends_with('.')) host.remove_suffix(1);
  }
  if (!port.empty() && (!port.starts_with(':') || port.size() > 6 || !is_number(port.substr(1)))) return std::nullopt;
  return lower_case(host);
}

// Normalises "https://app.example:8443" as browsers do: lower case, without the default port of the scheme.
std::string origin_of(const std::string& text) {
  std::string origin = lower_case(text.ends_with('/') ? std::string_view(text).substr(0, text.size() - 1) : text);
  const size_t mark = origin.find("://");
  const std::string scheme = origin.substr(0, mark);
  const bool has_scheme =
      mark != std::string::npos && !scheme.empty() && std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '+' || c == '.';
      });
  const std::string_view rest = has_scheme ? std::string_view(origin).substr(mark + 3) : std::string_view();
  if (!host_of(rest) || host_of(rest)->empty())
    throw Error("ALLOW-ORIGIN", "invalid origin of a web page",
                {.place = "--allow-origin",
                 .found = text,
                 .expected = "scheme://host or scheme://host:port",
                 .fix = "use for example --allow-origin http://localhost:3000"});
  for (const auto& [default_scheme, port] : {std::pair("http", ":80"), {"https", ":443"}})
    if (scheme == default_scheme && origin.ends_with(port))
      return origin.substr(0, origin.size() - std::string_view(port).size());
  return origin;
}

std::string allowed_host(const std::string& text) {
  const auto host = host_of(text.find(':') != std::string::npos && !text.starts_with('[') ? "[" + text + "]" : text);
  if (!host || host->empty() || (text.starts_with('[') && !text.ends_with(']')))
    throw Error("ALLOW-HOST", "invalid host name",
                {.place = "--allow-host",
                 .found = text,
                 .expected = "a name or an address without a port",
                 .fix = "use for example --allow-host gpu-box.lan"});
  return *host;
}

}  // namespace

bool is_loopback(std::string_view text) {
  const bool bare_v6 = std::count(text.begin(), text.end(), ':') > 1 && !text.starts_with('[');
  const auto host = host_of(bare_v6 ? "[" + std::string(text) + "]" : std::string(text));
  if (!host) return false;
  std::array<unsigned char, 16> address{};
  if (*host == "localhost") return true;
  if (::inet_pton(AF_INET, host->c_str(), address.data()) == 1) return address[0] == 127;
  if (::inet_pton(AF_INET6, host->c_str(), address.data()) != 1) return false;
  return std::all_of(address.begin(), address.end() - 1, [](unsigned char c) { return c == 0; }) && address[15] == 1;
}

HttpAccessPolicy::HttpAccessPolicy(const std::string& bound_host, const std::vector<std::string>& hosts,
                                   const std::vector<std::string>& origins)
    : checks_hosts_(is_loopback(bound_host) || !hosts.empty()) {
  for (const std::string& host : hosts) hosts_.insert(allowed_host(host));
  for (const std::string& origin : origins) origins_.insert(origin_of(origin));
  hosts_.insert(lower_case(bound_host));
}

HostCheck HttpAccessPolicy::check_host(std::string_view header) const {
  const auto host = host_of(header);
  if (!host) return HostCheck::malformed;
  if (!checks_hosts_ || is_loopback(*host) || hosts_.contains(*host)) return HostCheck::allowed;
  return HostCheck::refused;
}

bool HttpAccessPolicy::allows_origin(std::string_view header) const {
  return origins_.contains(lower_case(header));
}

}  // namespace mw::serve
