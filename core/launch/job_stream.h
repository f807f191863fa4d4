// SPDX-License-Identifier: Apache-2.0
// What a launched job prints, frame by frame, as lines of its run: each once, whatever connections are lost in between.
// The position behind the last whole line goes into the store with that line's event. One thread.
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
  // Goes on where the cursor of an earlier process says; none: at the beginning.
  JobStream(importing::ExternalRun& run, const std::optional<std::string>& cursor);

  void connect();                // another connection: half a line of the last one comes again
  void take(const Frame& data);  // throws Error LAUNCH-STREAM where it is not what comes next
  void end();                    // the job has ended: last lines without an end
  std::uint64_t out() const { return sources_[0].kept; }
  std::uint64_t err() const { return sources_[1].kept; }
  std::string cursor() const;
  double seconds() const { return seconds_; }  // of the job, by the clock there

 private:
  struct Source {
    std::uint64_t base = 0, fed = 0, kept = 0;  // where this connection began, what it gave, end of the last whole line
    LineSplitter lines{};
  };
  void hand_on(size_t which, const std::string& line);
  importing::ExternalRun& run_;
  std::array<Source, 2> sources_;  // out, err
  double seconds_ = 0;
};

}  // namespace mw::launch
