// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "core/base/text.h"

namespace mw {

std::string to_text(const Problem& p) {
  std::string text = p.file;
  if (!p.place.empty()) text += (text.empty() ? "" : ", ") + p.place;
  if (!text.empty()) text += ": ";
  text += p.message;
  std::string facts;
  if (!p.found.empty()) facts += "found: " + p.found;
  if (!p.expected.empty()) facts += (facts.empty() ? "" : "; ") + ("expected: " + p.expected);
  if (!facts.empty()) text += " (" + facts + ")";
  if (!p.fix.empty()) text += ". Fix: " + p.fix;
  return without_url_secrets(text);
}

std::string to_string(Severity severity) {
  static constexpr const char* kNames[] = {"info", "warning", "error"};
  return kNames[static_cast<size_t>(severity)];
}

namespace {

Problem identified(Problem details, std::string id, std::string message) {
  details.id = std::move(id);
  details.message = std::move(message);
  return details;
}

}  // namespace

Error::Error(std::string id, std::string message, Problem details, Kind kind)
    : Error(identified(std::move(details), std::move(id), std::move(message)), kind) {}

Error::Error(Problem problem, Kind kind)
    : std::runtime_error(to_text(problem)), problem_(std::move(problem)), kind_(kind) {
  for (std::string* text :
       {&problem_.message, &problem_.file, &problem_.place, &problem_.found, &problem_.expected, &problem_.fix})
    *text = without_url_secrets(*text);
}

Error cancelled(const std::string& work) {
  Problem p;
  p.id = "CANCELLED";
  p.severity = Severity::info;
  p.message = work + " was cancelled";
  return Error(std::move(p), Error::Kind::cancelled);
}

Error system_error(const std::string& action, const std::string& file, int errno_value) {
  Problem p;
  p.id = "SYSTEM";
  p.message = action + ": " + std::strerror(errno_value);
  p.file = file;
  if (errno_value == ENOSPC) p.fix = "free some space on this disk and run again; incomplete output was removed";
  if (errno_value == EACCES || errno_value == EROFS || errno_value == EPERM)
    p.fix = "choose a folder that you may write to, or change its permissions";
  if (errno_value == EISDIR) p.fix = "give the path of a file, not of a folder";
  rlimit limit{};
  if (errno_value == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    p.message = action + ": the file would exceed the file size limit of this process (ulimit -f)";
    p.found = "a limit of " + std::to_string(limit.rlim_cur) + " bytes";
    p.fix = "raise the limit, for example with `ulimit -f unlimited` in the shell, and run again";
  }
  const bool wrong_path = errno_value == ENOENT || errno_value == ENOTDIR || errno_value == ENAMETOOLONG ||
                          errno_value == ELOOP || errno_value == EISDIR || errno_value == ENXIO;
  return Error(std::move(p), wrong_path ? Error::Kind::bad_input : Error::Kind::failed);
}

}  // namespace mw
