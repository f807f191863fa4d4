// SPDX-License-Identifier: Apache-2.0
// Writes scalars as a TensorBoard event file: TFRecords of Event messages (tensorboard/compat/proto). Every record is
// whole on disk before the next one, so that a reader may follow the file. Use on one thread.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/atomic_file.h"

namespace mw::formats {

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
