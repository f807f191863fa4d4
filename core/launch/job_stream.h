// SPDX-License-Identifier: Apache-2.0
// Splits the output of a launched job into lines and adds each line to its run exactly once, across reconnects. The
// position after a line is stored with the line's event. Use on one thread.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "core/base/process.h"
#include "core/import/external_run.h"
#include "core/launch/frames.h"

namespace mw::launch {

class JobStream {
 public:
  // Continues at the cursor of an earlier process, or starts at the beginning.
  JobStream(importing::ExternalRun& run, const std::optional<std::string>& cursor);

  void connect();                // starts a new connection, which repeats an incomplete last line
  void take(const Frame& data);  // throws LAUNCH-STREAM unless the data follows the previous data
  void end();                    // the job has ended: adds last lines without a line end
  std::uint64_t out() const { return sources_[0].kept; }
  std::uint64_t err() const { return sources_[1].kept; }
  std::string cursor() const;
  double seconds() const { return seconds_; }  // run time of the job, by the target's clock

 private:
  struct Source {
    std::uint64_t base = 0, fed = 0, kept = 0;  // start of this connection, bytes received, end of the last whole line
    LineSplitter lines{};
  };
  void add_line(size_t which, const std::string& line);
  importing::ExternalRun& run_;
  std::array<Source, 2> sources_;  // out, err
  double seconds_ = 0;
};

}  // namespace mw::launch
