// SPDX-License-Identifier: Apache-2.0
// The bytes of a data file, decompressed while they are read if its name ends in .gz or .zst. Use each object on one
// thread.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/data/dataset/examples.h"

namespace mw::data {

// The extension of a data file in lower case and without that of its compression: ".csv" of "A.CSV.gz".
std::string data_extension(const std::filesystem::path& file);

class Decompressor;

class DataFile {
 public:
  // Adds all bytes of the file, as they are stored, to `sum`, if it is not null. Throws as open_input().
  explicit DataFile(const std::filesystem::path& file, Sha256* sum = nullptr);
  ~DataFile();
  // Fills the beginning of `out`; returns the number of bytes, 0 at the end. Throws DATA-COMPRESSED if the content is
  // damaged or incomplete.
  size_t read(std::span<char> out);
  // Continues at this byte of the decompressed content; decompresses everything before it again.
  void seek(long position);
  const std::string& name() const { return name_; }
  bool is_compressed() const { return decompressor_ != nullptr; }
  long stored_bytes() const { return stored_bytes_; }        // size of the file
  long stored_position() const { return stored_position_; }  // bytes of the file that are read
 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  size_t read_stored(std::span<char> out);
  void rewind(long position);

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  Sha256* sum_;
  std::unique_ptr<Decompressor> decompressor_;
  std::string stored_;  // read but not decompressed: [at_, filled_)
  size_t at_ = 0, filled_ = 0;
  long stored_bytes_ = 0, stored_position_ = 0;
};

// The files of a dataset. Thread-safe.

// Identifies a file of the dataset.
struct FileNumber {
  std::uint16_t index = 0;  // among the files of path, or of eval_path; below kMostFiles
  bool held_out = false;    // a file of eval_path
  bool operator==(const FileNumber&) const = default;
};
inline constexpr size_t kMostFiles = 1 << 15;

struct NumberedFile {
  FileNumber number;
  std::filesystem::path path;
};

// Whether the path names nothing and contains * ? [ or {.
bool is_pattern(const std::filesystem::path& path);

// The files of options.path, then those of options.eval_path. A pattern is expanded as in a shell: its files are in
// the order of their names, alternatives {a,b} in the order given. Any other path is returned as it is, so that reading
// it reports the error. Throws DATA-FILES for a pattern that no file
// matches.
std::vector<NumberedFile> data_files(const DatasetOptions& options);

// The path of one of these files; empty if it does not exist any more.
std::filesystem::path data_file(const DatasetOptions& options, FileNumber number);

}  // namespace mw::data
