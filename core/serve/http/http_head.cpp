// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/http_head.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::serve {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr int kMaxSizeDigits = 15;  // of a chunk size: below 2^60
constexpr int kMaxExtension = 1024, kMaxTrailers = 8192;

[[noreturn]] void malformed(const std::string& what) {
  throw Error("HTTP", "malformed or unsupported request: " + what);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kMarks.find(c) != std::string_view::npos;
  });
}

std::string_view next_line(std::string_view& rest) {
  const size_t end = rest.find(kLineEnd);
  if (end == std::string_view::npos) malformed("a line has no end");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + kLineEnd.size());
  return line;
}

// Splits "http://host/path" and returns the host; empty for the other forms. A scheme that this server does not speak
// and user names, which readers of URLs disagree about, make no path of the target.
std::string take_authority(std::string& target) {
  constexpr std::string_view kScheme = "http://";
  if (lower_case(std::string_view(target).substr(0, kScheme.size())) != kScheme) return {};
  const size_t end = std::min(target.find_first_of("/?#", kScheme.size()), target.size());
  const std::string authority = target.substr(kScheme.size(), end - kScheme.size());
  if (authority.empty() || authority.find('@') != std::string::npos) return {};
  target.replace(0, end, end < target.size() && target[end] == '/' ? "" : "/");
  return authority;
}

// Returns the host of a target in absolute form.
std::string read_request_line(std::string_view line, HttpHead& head) {
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) malformed("the request line is incomplete");
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(head.method)) malformed("the method is not a token");
  std::string authority = take_authority(head.target);
  const bool visible =
      std::all_of(head.target.begin(), head.target.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  const bool of_server = head.method == "OPTIONS" && head.target == "*";
  if (!visible || (!head.target.starts_with('/') && !of_server)) malformed("the target is not a path");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") malformed("the version is not HTTP/1.1 or HTTP/1.0");
  head.minor_version = version.back() - '0';
  return authority;
}

void read_header(std::string_view line, HttpHead& head) {
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name)) malformed("a header has no valid name");
  head.headers.emplace_back(lower_case(name), trimmed(line.substr(colon + 1)));
}

// Value of a header that may occur only once.
std::optional<std::string_view> single(const HttpHead& head, std::string_view name) {
  const auto is_named = [&](const auto& header) { return header.first == name; };
  if (std::count_if(head.headers.begin(), head.headers.end(), is_named) > 1)
    malformed("more than one " + std::string(name) + " header");
  return head.find(name);
}

void read_framing(HttpHead& head) {
  const auto length = single(head, "content-length"), coding = single(head, "transfer-encoding");
  if (length && coding) malformed("both content-length and transfer-encoding");
  if (coding) {
    if (head.minor_version == 0 || lower_case(*coding) != "chunked")
      malformed("the transfer-encoding is not chunked in HTTP/1.1");
    head.chunked = true;
  }
  if (!length) return;
  head.content_length = parse_number<std::uint64_t>(*length);
  if (!head.content_length) malformed("the content-length is not a number of bytes");
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view lower_case_name) const {
  const auto at =
      std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return h.first == lower_case_name; });
  return at == headers.end() ? std::nullopt : std::optional<std::string_view>(at->second);
}

std::string HttpHead::path() const {
  const std::string_view coded = std::string_view(target).substr(0, target.find_first_of("?#"));
  std::string out;
  for (size_t i = 0; i < coded.size(); ++i) {
    unsigned code = 0;
    const char* const digits = coded.data() + i + 1;
    const bool is_coded =
        coded[i] == '%' && i + 2 < coded.size() && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    out += is_coded ? static_cast<char>(code) : coded[i];
    if (is_coded) i += 2;
  }
  return out;
}

size_t head_size(std::string_view received, size_t& scanned) {
  for (; scanned < received.size(); ++scanned) {
    const char c = received[scanned];
    const bool after_cr = scanned > 0 && received[scanned - 1] == '\r';
    if (after_cr != (c == '\n')) malformed("a line does not end with CR LF");
    if (is_control(c) && c != '\r' && c != '\n' && c != '\t') malformed("the head contains a control character");
    const bool empty_line = scanned > 2 && received[scanned - 2] == '\n';  // the first line may be empty
    if (c == '\n' && empty_line) return ++scanned;
  }
  return 0;
}

HttpHead parse_head(std::string_view text) {
  HttpHead head;
  if (text.starts_with(kLineEnd)) text.remove_prefix(kLineEnd.size());
  const std::string authority = read_request_line(next_line(text), head);
  for (std::string_view line; !(line = next_line(text)).empty();) read_header(line, head);
  read_framing(head);
  if (!single(head, "host") && head.minor_version == 1) malformed("the host header is missing");
  for (auto& [name, value] : head.headers)
    if (name == "host" && !authority.empty()) value = authority;
  single(head, "content-type");  // the first would decide here, the last elsewhere
  return head;
}

void ChunkedBodyReader::step(char c) {
  const auto expect = [&](char wanted, State next) {
    if (c != wanted) malformed("the chunked body is not framed correctly");
    state_ = next;
  };
  switch (state_) {
    case State::size: {
      if (c == '\r' && digits_ > 0) return expect('\r', State::size_lf);
      if (c == ';' && digits_ > 0) return expect(';', State::extension);
      unsigned digit = 0;
      if (std::from_chars(&c, &c + 1, digit, 16).ec != std::errc() || ++digits_ > kMaxSizeDigits)
        malformed("the size of a chunk is not a hexadecimal number");
      left_ = left_ << 4 | digit;
      return;
    }
    case State::extension:
      if (c == '\r') return expect('\r', State::size_lf);
      if ((is_control(c) && c != '\t') || ++extension_ > kMaxExtension)
        malformed("the extension of a chunk is invalid");
      return;
    case State::size_lf:
      return expect('\n', left_ > 0 ? State::data : State::last_cr);
    case State::data_cr:
      return expect('\r', State::data_lf);
    case State::data_lf:
      digits_ = extension_ = 0;
      return expect('\n', State::size);
    case State::last_cr:
      name_ = 0;
      if (c == '\r') return expect('\r', State::last_lf);
      [[fallthrough]];
    case State::trailer:  // the name, which a colon follows
      state_ = c == ':' && name_ > 0 ? State::value : State::trailer;
      if ((state_ == State::trailer && !is_token({&c, 1})) || ++trailers_ > kMaxTrailers)
        malformed("a trailer of the chunked body is invalid");
      ++name_;
      return;
    case State::value:
      if (c == '\r') return expect('\r', State::trailer_lf);
      if ((is_control(c) && c != '\t') || ++trailers_ > kMaxTrailers)
        malformed("a trailer of the chunked body is invalid");
      return;
    case State::trailer_lf:
      return expect('\n', State::last_cr);
    case State::last_lf:
      return expect('\n', State::ended);
    case State::data:
    case State::ended:
      break;  // not of the framing
  }
}

size_t ChunkedBodyReader::read(std::string_view bytes, std::string& body) {
  size_t at = 0;
  while (at < bytes.size() && !has_ended()) {
    if (state_ != State::data) {
      step(bytes[at++]);
      continue;
    }
    const size_t n = static_cast<size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
    body.append(bytes.substr(at, n));
    at += n;
    left_ -= n;
    if (left_ == 0) state_ = State::data_cr;
  }
  return at;
}

}  // namespace mw::serve
