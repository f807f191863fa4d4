// SPDX-License-Identifier: Apache-2.0
// Reads the head of an HTTP/1 request and the framing of its body strictly (RFC 9112): everything that two programs
// could read as two different requests is refused. The HTTP library behind it is lenient; it only sees what passed.
// Throws Error HTTP with the reason in `message`. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mw::serve {

struct HttpHead {
  std::string method, target;
  int minor_version = 1;                                     // of HTTP/1
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, values without outer white space
  std::optional<std::uint64_t> content_length;
  bool chunked = false;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  // Value of a header that is there, the first one.
  std::optional<std::string_view> find(std::string_view lower_case_name) const;
};

// Bytes of the head that `received` begins with, its empty line included; 0: the end has not come. `scanned` keeps from
// call to call what has been looked at. Throws as soon as a byte cannot belong to a head.
size_t head_size(std::string_view received, size_t& scanned);

// `head` ends with its empty line.
HttpHead parse_head(std::string_view head);

// Follows a chunked body as it is handed on. Trailers are refused.
class ChunkedBodyValidator {
 public:
  // Throws at the first byte that breaks the framing; bytes behind the end of the body are not to be given.
  void check(std::string_view bytes);
  bool ended() const { return state_ == State::ended; }

 private:
  enum class State { size, extension, size_lf, data, data_cr, data_lf, last_cr, last_lf, ended };
  void step(char c);
  State state_ = State::size;
  std::uint64_t left_ = 0;  // of the chunk
  int digits_ = 0, extension_ = 0;
};

}  // namespace mw::serve
