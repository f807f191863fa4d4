// SPDX-License-Identifier: Apache-2.0
// One process's care for one launched job: the run's lock, copying, starting, following, fetching, the last word. One
// thread.
#pragma once
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/job_stream.h"
#include "core/launch/launch.h"
#include "core/launch/launch_record.h"

namespace mw::launch {

inline constexpr const char* kFetched = "fetched";  // of the run's folder: what came back

class Attendance {
 public:
  // Takes the run's lock: Error RUN-LOCKED where another process attends to it. Everything outlives it.
  Attendance(store::Store& store, store::RunId run, Ticket ticket, std::filesystem::path resources, Timing timing,
             const EventSink& sink, const importing::OnLine& on_line, Stops stops);

  void begin(const std::string& name);  // Started, with where and what
  void say(const std::string& text, const char* level = "info");
  // Whole or not at all, again after lost connections. Throws LAUNCH-COPY (failed) when it gives up, or cancelled().
  void put(const std::filesystem::path& recipe, const std::vector<std::string>& files, Folder use);
  event::Finished fail(RunState state, const std::string& error);
  // Starts the job where it has not been, follows it to its end, fetches, ends the record. Detached: finished is empty.
  Launched attend();

 private:
  std::optional<std::uint64_t> send(const std::filesystem::path& recipe, const std::vector<std::string>& files,
                                    Folder use);  // bytes; none: stopped
  Answer ask(const Call& what, const OnFrame& on_frame, const std::stop_token& stop);
  Answer ask_until_answered(const Call& what, const OnFrame& on_frame, const std::stop_token& stop);
  Answer follow(const std::stop_token& stop);
  Answer follow_to_the_end();
  void waiting(const std::string& why, std::chrono::milliseconds wait, const char* during = "");
  void reached();
  bool fetch();  // false: detached
  void progress(const char* phase, std::uint64_t done, std::uint64_t total);
  void idle();  // that has ended, well or not: the record says so
  Launched last_word(const Json& end);

  store::Store& store_;
  store::RunId run_id_;
  Ticket ticket_;
  std::filesystem::path resources_;
  Timing timing_;
  const EventSink& sink_;
  const importing::OnLine& on_line_;
  Stops stops_;
  std::unique_ptr<store::RunLock> lock_;
  importing::ExternalRun run_;
  JobStream stream_;
  bool lost_ = false;  // the connection, and the record says so
  bool busy_ = false;  // with something whose progress is in the record
  std::uint64_t told_ = 0;
};

}  // namespace mw::launch
