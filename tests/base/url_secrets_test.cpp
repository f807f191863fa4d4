// SPDX-License-Identifier: GPL-3.0-or-later
// Credentials in URLs are removed from recorded and displayed text; the rest of the text is unchanged.

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/event.h"
#include "core/base/text.h"

namespace mw {
namespace {

TEST(UrlSecrets, RemovesUserAndPassword) {
  for (const auto& [text, expected] :
       {std::pair("http://user:secret@host:8000/v1", "http://host:8000/v1"),
        {"https://secret@host", "https://host"},
        {"http://user:se@cret@host/x", "http://host/x"},
        {"http://user:sec/ret@host/x", "http://host/x"},
        {"http://user:secret@[::1]:80/", "http://[::1]:80/"},
        {"jdbc:postgresql://u:secret@db/x and ssh://u:secret@h.", "jdbc:postgresql://db/x and ssh://h."},
        {"git+https://secret@host,http://u:secret@other", "git+https://host,http://other"},
        {"{\"a\":\"http://u:secret@h\",\"b\":\"x@y\"}", "{\"a\":\"http://h\",\"b\":\"x@y\"}"},
        {"http://h/to?u=http://b:secret@c", "http://h/to?u=http://c"}})
    EXPECT_EQ(without_url_secrets(text), expected);
}

TEST(UrlSecrets, RemovesValuesOfSecretParameters) {
  EXPECT_EQ(without_url_secrets("http://h/v1?key=secret&n=1"), "http://h/v1?key=...&n=1");
  EXPECT_EQ(without_url_secrets("see https://h/?n=1&API_KEY=secret#access_token=secret !"),
            "see https://h/?n=1&API_KEY=...#access_token=... !");
}

TEST(UrlSecrets, KeepsOtherText) {
  for (const char* text :
       {"", "a@b", "http://host/@scope/package@1.0", "http://host:8000/@x", "http://[::1]:80/a@b", "://u:p@h",
        "http://host mail@example.org", "what ://", "http://h/?monkey=1&tokens=7", "C://x"})
    EXPECT_EQ(without_url_secrets(text), text);
}

TEST(UrlSecrets, TakesLinearTime) {
  std::string text, expected;
  for (int i = 0; i < 200000; ++i) text += "a://u:p@", expected += "a://";
  EXPECT_EQ(without_url_secrets(text), expected);
}

TEST(UrlSecrets, ErrorsAndEventsContainNone) {
  const Error error({.id = "SERVER", .message = "m", .place = "http://u:secret@h", .found = "http://u:secret@h"});
  EXPECT_EQ(error.problem().place, "http://h");
  EXPECT_EQ(std::string(error.what()), "http://h: m (found: http://h)");
  const Event event{0, event::Started{{{"experiment", {{"sweep", {{"url", "http://u:secret@h"}}}}}}}};
  EXPECT_EQ(to_json(event, "run-1").dump().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace mw
