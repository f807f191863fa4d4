// SPDX-License-Identifier: Apache-2.0
// Which names a server answers to and which web pages may use it. A web page reaches servers of this machine through
// the user's browser: directly, which its Origin header tells, or through a name of its own that resolves to 127.0.0.1
// (DNS rebinding), which the Host header tells. Immutable: any thread.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mw::serve {

// localhost, 127.0.0.0/8, ::1; without a port, an IPv6 address with or without brackets.
bool is_loopback(std::string_view host);

enum class HostCheck { allowed, refused, malformed };

class HttpAccessPolicy {
 public:
  // A server on a loopback address answers to loopback names and `hosts` only; on any other address to every name,
  // unless `hosts` are given. Pages of `origins` ("https://app.example:8443") may use it, no others.
  // Throws Error ALLOW-HOST, ALLOW-ORIGIN.
  HttpAccessPolicy(const std::string& bound_host, const std::vector<std::string>& hosts,
                   const std::vector<std::string>& origins);
  bool checks_hosts() const { return checks_hosts_; }
  HostCheck check_host(std::string_view header) const;  // NAME or NAME:PORT; every port is allowed
  bool allows_origin(std::string_view header) const;

 private:
  bool checks_hosts_;
  std::set<std::string> hosts_, origins_;  // in lower case
};

}  // namespace mw::serve
