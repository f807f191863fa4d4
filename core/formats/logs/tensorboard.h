// SPDX-License-Identifier: Apache-2.0
// Incremental reader of TensorBoard event files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/formats/logs/run_log.h"

namespace mw::formats {

// The checksum of a TFRecord's length and content.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// Use on one thread.
class TensorboardFile {
 public:
  explicit TensorboardFile(std::filesystem::path file) : file_(std::move(file)) {}
  std::vector<Scalar> read_more();  // scalars of the complete records appended since the last call
  const std::vector<std::string>& notes() const { return notes_; }
  // Tags that are not scalars, by type: "histograms", "images", "text" ...
  const std::map<std::string, std::set<std::string>>& others() const { return others_; }
  bool broken() const { return broken_; }  // the checksum of a length is wrong: the rest cannot be read

 private:
  std::filesystem::path file_;
  std::uint64_t offset_ = 0;
  bool broken_ = false;
  std::vector<std::string> notes_, scalar_tags_;  // tags declared as scalars
  std::map<std::string, std::set<std::string>> others_;
};

}  // namespace mw::formats
