// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/data_file.h"

#include <glob.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <algorithm>
#include <cerrno>
#include <new>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace mw::data {

// Decompresses a sequence of gzip members or zstd frames.
class Decompressor {
 public:
  struct Step {
    size_t read = 0, written = 0;
    std::string fault{};  // of the library; empty: none
  };
  virtual ~Decompressor() = default;
  virtual Step run(std::span<const char> in, std::span<char> out) = 0;
  virtual bool is_at_end() const = 0;  // between two members
  virtual void reset() = 0;
};

namespace {

class Gzip : public Decompressor {
 public:
  Gzip() {
    if (::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { ::inflateEnd(&stream_); }
  Step run(std::span<const char> in, std::span<char> out) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    if (at_end_ && !in.empty()) ::inflateReset(&stream_);
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    if (!in.empty()) at_end_ = false;
    Step step{.read = in.size() - stream_.avail_in, .written = out.size() - stream_.avail_out};
    if (code == Z_STREAM_END)
      at_end_ = true;
    else if (code != Z_OK && code != Z_BUF_ERROR)
      step.fault = stream_.msg ? stream_.msg : code == Z_NEED_DICT ? "a dictionary is needed" : "inflate failed";
    return step;
  }
  bool is_at_end() const override { return at_end_; }
  void reset() override {
    ::inflateReset(&stream_);
    at_end_ = true;
  }

 private:
  z_stream stream_{};
  bool at_end_ = true;
};

class Zstd : public Decompressor {
 public:
  Zstd() : stream_(::ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~Zstd() override { ::ZSTD_freeDStream(stream_); }
  Step run(std::span<const char> in, std::span<char> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const size_t left = ::ZSTD_decompressStream(stream_, &to, &from);
    Step step{.read = from.pos, .written = to.pos};
    if (::ZSTD_isError(left))
      step.fault = ::ZSTD_getErrorName(left);
    else if (from.pos > 0 || to.pos > 0)
      at_end_ = left == 0;
    return step;
  }
  bool is_at_end() const override { return at_end_; }
  void reset() override {
    ::ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only);
    at_end_ = true;
  }

 private:
  ZSTD_DStream* stream_;
  bool at_end_ = true;
};

constexpr size_t kStoredBuffer = 1 << 16;

std::unique_ptr<Decompressor> decompressor_of(const std::filesystem::path& file) {
  const std::string extension = lower_case(file.extension().string());
  if (extension == ".gz") return std::make_unique<Gzip>();
  if (extension == ".zst") return std::make_unique<Zstd>();
  return nullptr;
}

}  // namespace

std::string data_extension(const std::filesystem::path& file) {
  const std::string extension = lower_case(file.extension().string());
  const bool compressed = extension == ".gz" || extension == ".zst";
  return compressed ? lower_case(file.stem().extension().string()) : extension;
}

DataFile::DataFile(const std::filesystem::path& file, Sha256* sum)
    : name_(file.string()), sum_(sum), decompressor_(decompressor_of(file)) {
  const int fd = open_input(file);
  file_.reset(::fdopen(fd, "rb"));
  if (!file_) {
    const int error = errno;
    ::close(fd);
    throw system_error("cannot open", name_, error);
  }
  std::error_code ec;
  const auto bytes = std::filesystem::file_size(file, ec);
  stored_bytes_ = ec ? 0 : static_cast<long>(bytes);
  if (decompressor_) stored_.resize(kStoredBuffer);
}

DataFile::~DataFile() = default;

size_t DataFile::read_stored(std::span<char> out) {
  const size_t n = std::fread(out.data(), 1, out.size(), file_.get());
  if (n == 0 && std::ferror(file_.get())) throw system_error("cannot read", name_, errno);
  if (sum_) sum_->add({out.data(), n});
  stored_position_ += static_cast<long>(n);
  return n;
}

size_t DataFile::read(std::span<char> out) {
  if (!decompressor_) return read_stored(out);
  for (;;) {
    if (at_ == filled_) {
      at_ = 0;
      filled_ = read_stored(stored_);
    }
    const Decompressor::Step step = decompressor_->run({stored_.data() + at_, filled_ - at_}, out);
    at_ += step.read;
    const auto fail = [&](const std::string& message, const std::string& found) {
      throw Error("DATA-COMPRESSED", message,
                  {.file = name_,
                   .place = "byte " + std::to_string(stored_position_ - static_cast<long>(filled_ - at_)),
                   .found = found,
                   .expected = std::filesystem::path(name_).extension() == ".gz" ? "gzip data" : "zstd data",
                   .fix = "test the file with gzip -t or zstd -t, and copy or compress it again"});
    };
    if (step.written > 0) return step.written;  // a fault is found again by the next call
    if (!step.fault.empty()) fail("the compressed file is damaged", step.fault);
    if (filled_ > 0) continue;
    if (!decompressor_->is_at_end()) fail("the compressed file is incomplete", "the end of the file");
    return 0;
  }
}

void DataFile::rewind(long position) {
  if (std::fseek(file_.get(), position, SEEK_SET) != 0) throw system_error("cannot read", name_, errno);
  stored_position_ = position;
  at_ = filled_ = 0;
}

void DataFile::seek(long position) {
  if (!decompressor_) return rewind(position);
  rewind(0);
  decompressor_->reset();
  std::string skipped(kStoredBuffer, '\0');
  while (position > 0) {
    const size_t n = read(std::span(skipped).first(std::min(skipped.size(), static_cast<size_t>(position))));
    if (n == 0) return;
    position -= static_cast<long>(n);
  }
}

namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_pattern(const fs::path& pattern, const std::string& message, const std::string& expected) {
  throw Error("DATA-FILES", message,
              {.file = pattern.string(),
               .place = "data",
               .expected = expected,
               .fix = "list the files with ls, and correct the pattern"});
}

std::vector<fs::path> files_of_pattern(const fs::path& pattern) {
  if (!is_pattern(pattern)) return {pattern};
  glob_t found{};
  const int code = ::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found);
  std::vector<fs::path> files;
  if (code == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.empty()) refuse_pattern(pattern, "no file matches the pattern", "at least one file");
  if (files.size() > kMostFiles)
    refuse_pattern(pattern, "too many files match the pattern", "at most " + std::to_string(kMostFiles));
  return files;
}

// `number`: that of the pattern's first file.
void add_files(std::vector<NumberedFile>& files, const fs::path& pattern, FileNumber number) {
  for (fs::path& path : files_of_pattern(pattern)) {
    files.push_back({number, std::move(path)});
    ++number.index;
  }
}

}  // namespace

bool is_pattern(const fs::path& path) {
  return path.string().find_first_of("*?[{") != std::string::npos && !path_exists(path);
}

std::vector<NumberedFile> data_files(const DatasetOptions& options) {
  std::vector<NumberedFile> files;
  add_files(files, options.path, {});
  if (!options.eval_path.empty()) add_files(files, options.eval_path, {.held_out = true});
  return files;
}

fs::path data_file(const DatasetOptions& options, FileNumber number) try {
  for (NumberedFile& file : data_files(options))
    if (file.number == number) return std::move(file.path);
  return {};
} catch (const Error&) {
  return {};
}

}  // namespace mw::data
