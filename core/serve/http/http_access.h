// SPDX-License-Identifier: Apache-2.0
// HttpAccessPolicy decides which host names a server answers to and which web pages may use it. A web page can reach a
// server on this machine through the user's browser: directly, which the Origin header shows, or through a host name
// that resolves to 127.0.0.1 (DNS rebinding), which the Host header shows. Immutable; any thread.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mw::serve {

// Whether `host` is localhost, in 127.0.0.0/8 or ::1. Without a port; an IPv6 address may have brackets.
bool is_loopback(std::string_view host);

enum class HostCheck { allowed, refused, malformed };

class HttpAccessPolicy {
 public:
  // A server on a loopback address answers only to loopback names and `hosts`, on any other address to every name
  // unless `hosts` is given. Only pages of `origins` ("https://app.example:8443") may use it. Throws Error ALLOW-HOST
  // if a host is invalid, ALLOW-ORIGIN if an origin is.
  HttpAccessPolicy(const std::string& bound_host, const std::vector<std::string>& hosts,
                   const std::vector<std::string>& origins);
  bool checks_hosts() const { return checks_hosts_; }
  HostCheck check_host(std::string_view header) const;  // NAME or NAME:PORT with any port
  bool allows_origin(std::string_view header) const;

 private:
  bool checks_hosts_;
  std::set<std::string> hosts_, origins_;  // lower case
};

}  // namespace mw::serve
