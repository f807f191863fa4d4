// SPDX-License-Identifier: Apache-2.0
// Supervises one launched job: locks the run, copies the recipe, starts the job, streams its events into the store,
// fetches its results and records how it ended. Not thread-safe: create and use on one thread.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/launch/job_stream.h"
#include "core/launch/launch.h"
#include "core/launch/launch_record.h"

namespace mw::launch {

inline constexpr const char* kFetched = "fetched";  // subfolder of the run's folder for fetched files

class JobSupervisor {
 public:
  // Acquires the run's lock; throws RUN-LOCKED if another process supervises the run. All references must outlive the
  // object.
  JobSupervisor(store::Store& store, LaunchRecord record, const ReattachRequest& run, const EventSink& sink,
                StopTokens stops);

  void record_start(const std::string& name);
  void log(const std::string& text, const char* level = "info");
  // Uploads the recipe atomically and retries after a lost connection. Throws LAUNCH-COPY (failed) when it gives up,
  // and cancelled() after a stop.
  void upload_recipe(const std::filesystem::path& recipe, const std::vector<std::string>& files, FolderUse use);
  event::Finished fail(RunState state, const std::string& error);
  // Starts the job unless it already runs, streams it to its end and fetches the results. If the user detaches, the
  // result has no Finished event.
  LaunchResult run_to_completion();

 private:
  std::optional<std::uint64_t> upload(const std::filesystem::path& recipe, const std::vector<std::string>& files,
                                      FolderUse use);  // number of bytes; empty if stopped
  CallResult call_target(const RemoteCall& what, const OnFrame& on_frame, const std::stop_token& stop);
  // retry_until_answered() with the supervisor's timing; logs lost connections.
  CallResult retry(const std::function<CallResult(const OnFrame& counting)>& once, const OnFrame& on_frame,
                   const std::stop_token& stop, const char* during = "");
  CallResult call_until_answered(const RemoteCall& what, const std::stop_token& stop);
  CallResult follow(const std::stop_token& stop);
  CallResult follow_to_end();
  void log_lost_connection(const std::string& why, const char* during = "");
  void log_reconnected();
  bool fetch_results();  // false if the user detached
  void progress(const char* phase, std::uint64_t done, std::uint64_t total);
  void record_transfer_finished();
  LaunchResult record_end(const Json& end);

  store::Store& store_;
  store::RunId run_id_;
  LaunchRecord record_;
  std::filesystem::path resources_;
  Timing timing_;
  const EventSink& sink_;
  StopTokens stops_;
  std::unique_ptr<store::RunLock> lock_;
  importing::ExternalRun run_;
  JobStream stream_;
  bool connection_lost_ = false;  // and logged
  bool transferring_ = false;     // and the progress is recorded
  std::uint64_t reported_mib_ = 0;
};

}  // namespace mw::launch
