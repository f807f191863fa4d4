// SPDX-License-Identifier: GPL-3.0-or-later
// Heads and chunked bodies that could be parsed in two ways are rejected.
#include "core/serve/http/http_head.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace mw::serve {
namespace {

HttpHead read(const std::string& text) {
  size_t scanned = 0;
  const size_t size = head_size(text, scanned);
  return parse_head(text.substr(0, size));
}

std::string with(const std::string& headers) {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

TEST(HttpHead, ParsesHeadsInArbitraryPieces) {
  const std::string text = with("Content-Length:  5 \r\nX-Any: a:b\xc3\xa9\t c\r\n"), body = "body";
  const std::string all = text + body;
  for (size_t cut = 1; cut <= all.size(); ++cut) {
    size_t scanned = 0, size = head_size(std::string_view(all).substr(0, cut), scanned);
    EXPECT_EQ(size, cut < text.size() ? 0 : text.size());
    if (size == 0) size = head_size(all, scanned);
    EXPECT_EQ(size, text.size()) << cut;
  }
  const HttpHead head = read(all);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/completions");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_EQ(head.find("x-any"), "a:b\xc3\xa9\t c");
  EXPECT_EQ(head.content_length, 5u);
  EXPECT_TRUE(head.has_body());
  EXPECT_TRUE(read(with("transfer-encoding: Chunked\r\n")).chunked);
  EXPECT_EQ(read("GET / HTTP/1.0\r\n\r\n").minor_version, 0);
}

TEST(HttpHead, RejectsAmbiguousFraming) {
  for (const char* headers :
       {"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\ncontent-length: 6\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n", "Content-Length: -5\r\n", "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n", "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n", "Host: other\r\n"})
    EXPECT_THROW(read(with(headers)), Error) << headers;
  EXPECT_THROW(read("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Error);
}

TEST(HttpHead, RejectsMalformedLines) {
  for (const std::string& headers :
       {std::string("X : a\r\n"), std::string(" X: a\r\n"), std::string("X: a\r\n b\r\n"), std::string("X\r\n"),
        std::string(": a\r\n"), std::string("X: a\nY: b\r\n"), std::string("X: a\rb\r\n"),
        std::string("X: a\0b\r\n", 8), std::string("X: \x1b[2J\r\n"), std::string("X: \x7f\r\n"),
        std::string("X(y): a\r\n")})
    EXPECT_THROW(read(with(headers)), Error) << headers;
  for (const char* line :
       {"", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", "GET / HTTP/1.2", "GET / HTTP/2", "GET / http/1.1",
        "GET x HTTP/1.1", "GET https://localhost/ HTTP/1.1", "GET * HTTP/1.1", "GET http:///v1 HTTP/1.1",
        "GET http://a@localhost/ HTTP/1.1", "GET http:/v1 HTTP/1.1", "GET ftp://localhost/ HTTP/1.1", "G@T / HTTP/1.1",
        "GET /\xc3\xa9 HTTP/1.1", " GET / HTTP/1.1"})
    EXPECT_THROW(read(std::string(line) + "\r\nHost: localhost\r\n\r\n"), Error) << line;
  EXPECT_THROW(read("GET / HTTP/1.1\r\n\r\n"), Error) << "HTTP/1.1 requires a Host header";
}

TEST(HttpHead, TakesPathAndHostOfATargetInAbsoluteForm) {
  for (const auto& [target, path] : {std::pair("http://other:81/v1/models?a=b", "/v1/models?a=b"),
                                     {"HTTP://other:81", "/"},
                                     {"http://other:81?a=b", "/?a=b"}}) {
    const HttpHead head = read(std::string("GET ") + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(head.target, path);
    EXPECT_EQ(head.find("host"), "other:81") << "the host that is checked is that of the target";
  }
  EXPECT_THROW(read("GET http://localhost/ HTTP/1.1\r\n\r\n"), Error) << "HTTP/1.1 requires a Host header";
  EXPECT_THROW(read("GET http://localhost/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), Error);
}

TEST(HttpHead, IgnoresOneEmptyLineBeforeTheRequest) {
  EXPECT_EQ(read("\r\nGET /v1 HTTP/1.1\r\nHost: a\r\n\r\n").target, "/v1");
  EXPECT_THROW(read("\r\n\r\nGET /v1 HTTP/1.1\r\nHost: a\r\n\r\n"), Error);
  EXPECT_THROW(read("\nGET /v1 HTTP/1.1\r\nHost: a\r\n\r\n"), Error);
}

std::string read_chunks(const std::string& text, size_t piece) {
  ChunkedBodyReader chunks;
  std::string body;
  size_t read = 0;
  while (read < text.size() && !chunks.has_ended())
    read += chunks.read(std::string_view(text).substr(read, piece), body);
  return chunks.has_ended() ? body + "|" + text.substr(read) : "incomplete";
}

TEST(ChunkedBodyReader, ReadsChunksInArbitraryPiecesAndNothingBehindThem) {
  for (const size_t piece : {1u, 2u, 7u, 1000u}) {
    EXPECT_EQ(read_chunks("5\r\nhello\r\n0a;name=value\r\n0123\r\n6789\r\n0\r\n\r\nGET /", piece),
              "hello0123\r\n6789|GET /");
    EXPECT_EQ(read_chunks("5\r\nhello\r\n0\r\n", piece), "incomplete");
    EXPECT_EQ(read_chunks("5\r\nhello\r\n0\r\nDigest: a, b\r\nContent-Length:\t7\r\n\r\nGET /", piece), "hello|GET /")
        << "trailers are dropped";
    EXPECT_EQ(read_chunks("0\r\nDigest: a\r\n", piece), "incomplete");
  }
}

TEST(ChunkedBodyReader, RejectsInvalidFraming) {
  for (const char* body : {"-5\r\nhello\r\n",
                           "+5\r\nhello\r\n",
                           "0x5\r\nhello\r\n",
                           " 5\r\nhello\r\n",
                           "5 \r\nhello\r\n",
                           "\r\nhello",
                           "g\r\n",
                           "5\nhello\r\n",
                           "5\r\nhello0\r\n",
                           "5\r\nhello\n0\r\n",
                           "fffffffffffffffff\r\n",
                           "5\rhello\r\n",
                           "0\r\nDigest\r\n\r\n",
                           "0\r\n: x\r\n\r\n",
                           "0\r\n x: y\r\n\r\n",
                           "0\r\na: x\r\n y\r\n\r\n",
                           "0\r\na : x\r\n\r\n",
                           "0\r\na: x\n\r\n",
                           "0\r\na: \x01\r\n\r\n",
                           "0\r\nGET / HTTP/1.1\r\n",
                           ";x\r\n",
                           "5;\x01\r\n"})
    EXPECT_THROW(read_chunks(body, 1), Error) << body;
  EXPECT_THROW(read_chunks("0\r\n" + std::string(10'000, 'a'), 1), Error) << "trailers have a bound";
  std::string many = "0\r\n";
  for (int i = 0; i < 3000; ++i) many += "a: b\r\n";
  EXPECT_THROW(read_chunks(many, 1), Error);
}

TEST(HttpHead, DecodesThePath) {
  for (const auto& [target, path] : {std::pair("/v1/models/%74iny?a=%62", "/v1/models/tiny"),
                                     {"/%2Fa#b", "//a"},
                                     {"/%4", "/%4"},
                                     {"/%", "/%"},
                                     {"/%zz%4g+", "/%zz%4g+"}})
    EXPECT_EQ(read(std::string("GET ") + target + " HTTP/1.1\r\nHost: a\r\n\r\n").path(), path);
}

}  // namespace
}  // namespace mw::serve
