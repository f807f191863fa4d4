// SPDX-License-Identifier: Apache-2.0
// Strict parser of the head of an HTTP/1 request and of the framing of its body (RFC 9112). Rejects everything that two
// programs could parse as different requests. Throws Error HTTP with the reason in `message`. Any thread.
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
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, values trimmed
  std::optional<std::uint64_t> content_length;
  bool chunked = false;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  // Value of the first header of this name, if there is one.
  std::optional<std::string_view> find(std::string_view lower_case_name) const;
  std::string path() const;  // of the target: without the query, percent-decoded
};

// Size in bytes of the head at the start of `received`, including its empty line; 0 if it is incomplete. `scanned`
// holds the position between calls, initially 0. Throws as soon as a byte cannot belong to a head.
size_t head_size(std::string_view received, size_t& scanned);

// `head` includes its empty line, and may start with another one (RFC 9112, 2.2). The target of an absolute form
// (3.2.2) becomes its path, and its authority the host header.
HttpHead parse_head(std::string_view head);

// Reads a chunked body while it arrives, and drops trailers.
class ChunkedBodyReader {
 public:
  // Appends the data of `bytes` to `body` and returns how many bytes it has read: all, unless the body ends before
  // them. Throws at the first byte that breaks the framing.
  size_t read(std::string_view bytes, std::string& body);
  bool has_ended() const { return state_ == State::ended; }

 private:
  enum class State {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    last_cr,
    last_lf,
    trailer,
    value,
    trailer_lf,
    ended
  };
  void step(char c);
  State state_ = State::size;
  std::uint64_t left_ = 0;          // bytes of the chunk
  int digits_ = 0, extension_ = 0;  // characters of the size and of its extension
  int trailers_ = 0, name_ = 0;     // characters of the trailers and of the name of one
};

}  // namespace mw::serve
