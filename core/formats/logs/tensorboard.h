// SPDX-License-Identifier: Apache-2.0
// Incremental reader of TensorBoard event files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/atomic_file.h"
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

// Writes scalars as a TensorBoard event file: TFRecords of Event messages (tensorboard/compat/proto). Every record is
// whole on disk before the next one, so that a reader may follow the file. Use on one thread.

// A new file name in the folder that TensorBoard reads: "events.out.tfevents.SECONDS.HOST.PID.N".
std::filesystem::path new_event_file(const std::filesystem::path& folder, double wall_time);

class TensorboardWriter {
 public:
  // Creates the file in an existing folder. TensorBoard ignores values from `first_step` on in older files of the same
  // folder, as a resumed run needs it. Times are seconds since 1970. Throws for a file that cannot be written.
  TensorboardWriter(const std::filesystem::path& file, double wall_time, long first_step);
  void add_scalar(const std::string& tag, long step, double value, double wall_time);  // throws like the constructor

 private:
  void write_record(std::string_view message);
  OutputFile file_;
};

}  // namespace mw::formats
