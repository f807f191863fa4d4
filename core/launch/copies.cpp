// SPDX-License-Identifier: Apache-2.0
#include "core/launch/copies.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/input_file.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

constexpr size_t kChunk = 1 << 18;

// Where a path of the other side may be written: below the folder, whatever it says.
fs::path inside(const fs::path& folder, const std::string& path) {
  bool good = !path.empty() && path.size() < 4096 && path.front() != '/' && path.back() != '/' &&
              path.find('\0') == std::string::npos;
  for (size_t at = 0; good && at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    good = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  if (!good)
    throw Error({.id = "LAUNCH-PATH",
                 .message = "a path that leads out of the folder",
                 .file = folder.string(),
                 .found = valid_utf8(path)});
  return folder / path;
}

}  // namespace

Outgoing::Outgoing(fs::path folder, std::vector<std::string> files, Copied copied)
    : folder_(std::move(folder)), files_(std::move(files)), copied_(std::move(copied)), buffer_(kChunk, '\0') {
  for (const std::string& file : files_) bytes_ += fs::file_size(folder_ / file);
}

std::string_view Outgoing::header() {
  if (ended_) return {};
  if (at_ == files_.size()) {
    ended_ = true;
    buffer_ = Json{{"files", files_.size()}}.dump() + "\n";
    return buffer_;
  }
  const fs::path path = folder_ / files_[at_];
  struct stat st {};
  file_.reset(::fdopen(open_input(path), "rb"));
  if (!file_ || ::fstat(::fileno(file_.get()), &st) != 0) throw system_error("cannot read", path.string(), errno);
  left_ = static_cast<std::uint64_t>(st.st_size);
  buffer_ = Json{{"path", files_[at_]}, {"size", left_}, {"mode", st.st_mode & 0777u}}.dump() + "\n";
  ++at_;
  return buffer_;
}

std::string_view Outgoing::next() {
  if (!file_ || left_ == 0) return header();
  buffer_.resize(kChunk);
  const size_t n = std::fread(buffer_.data(), 1, std::min<std::uint64_t>(kChunk, left_), file_.get());
  if (n == 0)
    throw Error({.id = "LAUNCH-COPY",
                 .message = "a file became shorter while it was copied",
                 .file = (folder_ / files_[at_ - 1]).string()},
                Error::Kind::failed);
  left_ -= n;
  sent_ += n;
  copied_(sent_, bytes_);
  return std::string_view(buffer_).substr(0, n);
}

void Incoming::open(const Frame& frame) {
  files_.push_back(string_member(frame.head, "path", "frame"));
  path_ = inside(folder_, files_.back());
  make_folders(path_.parent_path());
  file_.emplace(path_, OutputFile::Create::must_be_new);
}

void Incoming::take(const Frame& frame) {
  if (frame.kind == "begin") total_ = static_cast<std::uint64_t>(int_member(frame.head, "bytes", "frame"));
  if (frame.kind == "file") open(frame);
  if (frame.kind != "data") return;
  if (!file_) throw Error({.id = "LAUNCH-STREAM", .message = "bytes of no file"}, Error::Kind::failed);
  file_->write(std::as_bytes(std::span(frame.bytes)));
  got_ += frame.bytes.size();
  copied_(got_, total_);
}

void Incoming::end(const Json& head) {
  file_.reset();
  if (int_member(head, "files", "frame") != static_cast<long long>(files_.size()))
    throw Error({.id = "LAUNCH-STREAM", .message = "files are missing"}, Error::Kind::failed);
}

}  // namespace mw::launch
