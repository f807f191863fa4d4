// SPDX-License-Identifier: Apache-2.0
#include "core/base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "core/base/error.h"

namespace mw {
namespace {

constexpr size_t kMaxExpressionBytes = 4096;
constexpr std::uint32_t kMatchLimit = 200000;  // backtracking steps, a few milliseconds
constexpr std::uint32_t kHeapKib = 4096;

struct MatchContext {  // holds the limits
  MatchContext() : context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_depth_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapKib);
  }
  ~MatchContext() { pcre2_match_context_free(context); }
  MatchContext(const MatchContext&) = delete;
  MatchContext& operator=(const MatchContext&) = delete;
  pcre2_match_context* context;
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 160> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

[[noreturn]] void refuse(std::string_view expression, const std::string& message, const std::string& place) {
  throw Error("PATTERN", "invalid regular expression: " + message,
              {.place = place,
               .found = std::string(expression.substr(0, 80)),
               .expected = "a regular expression in the syntax of Python's re"});
}

}  // namespace

Pattern::Pattern(std::string_view expression, Extent extent) : text_(expression) {
  if (text_.size() > kMaxExpressionBytes)
    refuse(text_, "it is longer than " + std::to_string(kMaxExpressionBytes) + " bytes", {});
  if (text_.empty()) refuse(text_, "it is empty", {});
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Anchored here and not at each match, which compiled code cannot be.
  const std::uint32_t anchors = extent == Extent::whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0U;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(),
                                   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | anchors, &error, &offset, nullptr);
  if (!code) refuse(text_, message_of(error), "character " + std::to_string(offset + 1));
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it cannot, matching interprets the expression
  code_ = std::shared_ptr<const void>(
      code, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
}

bool Pattern::matches(std::string_view subject) const {
  static const MatchContext limits;
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(pcre2_match_data_create(1, nullptr),
                                                                            pcre2_match_data_free);
  const auto matched = [&](std::uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), 0, options, data.get(),
                       limits.context);
  };
  int rc = matched(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = matched(PCRE2_NO_JIT);  // whose heap is larger
  if (rc >= 0) return true;
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc <= PCRE2_ERROR_UTF8_ERR1 && rc >= PCRE2_ERROR_UTF8_ERR21) return false;  // the subject is not UTF-8
  throw Error("PATTERN-SLOW", "matching the regular expression takes too long (" + message_of(rc) + ")",
              {.found = text_.substr(0, 80),
               .expected = "an expression without nested repetitions such as (a*)*",
               .fix = "replace nested repetitions by a single one"});
}

}  // namespace mw
