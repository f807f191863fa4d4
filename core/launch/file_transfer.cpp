// SPDX-License-Identifier: Apache-2.0
#include "core/launch/file_transfer.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

constexpr size_t kChunk = 1 << 18;

constexpr std::uint64_t kSpare = 16 << 20;  // bytes to keep free on the disk
constexpr size_t kMostLinks = 20;

}  // namespace

void require_inside(std::string_view path, const std::string& place) {
  bool good = !path.empty() && path.size() < 4096 && path.front() != '/' && path.back() != '/' &&
              path.find('\0') == std::string_view::npos;
  for (size_t at = 0; good && at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    good = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  if (!good)
    throw Error("LAUNCH-PATH", "the path is outside the job's folder",
                {.place = place,
                 .found = valid_utf8(path.substr(0, 200)),
                 .expected = "a relative path without '..', such as out/logs"});
}

UploadStream::UploadStream(fs::path folder, std::vector<std::string> files, TransferProgress copied)
    : folder_(std::move(folder)), files_(std::move(files)), copied_(std::move(copied)), buffer_(kChunk, '\0') {
  for (const std::string& file : files_) bytes_ += fs::file_size(folder_ / file);
}

std::string_view UploadStream::header() {
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

std::string_view UploadStream::next() {
  if (!file_ || left_ == 0) return header();
  buffer_.resize(kChunk);
  const size_t n = std::fread(buffer_.data(), 1, std::min<std::uint64_t>(kChunk, left_), file_.get());
  if (n == 0)
    throw Error("LAUNCH-COPY", "the file was truncated during the copy", {.file = (folder_ / files_[at_ - 1]).string()},
                Error::Kind::failed);
  left_ -= n;
  sent_ += n;
  copied_(sent_, bytes_);
  return std::string_view(buffer_).substr(0, n);
}

void DownloadReceiver::close() {
  if (!file_) return;
  if (left_ > 0)
    throw Error("LAUNCH-STREAM", "the file is shorter than announced", {.file = path_.string()}, Error::Kind::failed);
  file_.reset();
}

void DownloadReceiver::open(const Frame& frame) {
  close();
  files_.push_back(string_member(frame.head, "path", "frame"));
  require_inside(files_.back(), "fetched file");
  path_ = folder_ / files_.back();
  make_folders(path_.parent_path());
  left_ = static_cast<std::uint64_t>(std::max(0ll, int_member(frame.head, "bytes", "frame")));
  std::error_code error;
  if (const auto disk = fs::space(folder_, error); !error && disk.available < kSpare + left_)
    throw Error("DISK-FULL", "the disk has not enough space for the fetched files",
                {.file = path_.string(),
                 .found = std::to_string(disk.available >> 20) + " MiB free",
                 .expected = std::to_string((left_ + kSpare) >> 20) + " MiB",
                 .fix = "free some space and reattach"},
                Error::Kind::failed);
  file_.emplace(path_, OutputFile::Create::must_be_new);
}

void DownloadReceiver::write(std::string_view bytes) {
  if (!file_ || bytes.size() > left_)
    throw Error("LAUNCH-STREAM", file_ ? "the file is longer than announced" : "received bytes that belong to no file",
                {.file = path_.string()}, Error::Kind::failed);
  file_->write(std::as_bytes(std::span(bytes)));
  left_ -= bytes.size();
  got_ += bytes.size();
  copied_(got_, total_);
}

void DownloadReceiver::take(const Frame& frame) {
  if (frame.kind == "begin") total_ = static_cast<std::uint64_t>(int_member(frame.head, "bytes", "frame"));
  if (frame.kind == "file") open(frame);
  if (frame.kind == "data") write(frame.bytes);
}

void DownloadReceiver::end(const Json& head) {
  close();
  if (int_member(head, "files", "frame") != static_cast<long long>(files_.size()))
    throw Error("LAUNCH-STREAM", "some files were not received", {}, Error::Kind::failed);
  if (!head.contains("links")) return;
  links_ = int_member(head, "links", "frame");
  for (const Json& path : list_member(head, "link_paths", "frame"))
    if (path.is_string() && link_paths_.size() < kMostLinks) link_paths_.push_back(valid_utf8(path.get<std::string>()));
}

}  // namespace mw::launch
