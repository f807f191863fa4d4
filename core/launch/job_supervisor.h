// SPDX-License-Identifier: Apache-2.0
// Supervises one launched job: locks the run, copies the recipe, starts the job, streams its events into the store,
// fetches its results and records how it ended. Not thread-safe: create and use on one thread.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/process.h"
#include "core/import/external_run.h"
#include "core/launch/launch.h"
#include "core/launch/remote_call.h"
#include "core/launch/target.h"
#include "core/recipes/recipe.h"

namespace mw::launch {

inline constexpr const char* kFetched = "fetched";  // subfolder of the run's folder for fetched files

// launch.json in a run's folder: identifies a launched job so that a later process can reattach to it. Contains no
// secrets.
struct LaunchRecord {
  LaunchTarget target;
  std::string folder;  // absolute path on the target
  std::string token;   // identifies the folder of this launch
  std::string command;
  model::Stack recipe = model::Stack::tunix;
  std::vector<std::string> fetch;
};
void save(const LaunchRecord& record, const std::filesystem::path& run_folder);
LaunchRecord load_launch_record(
    const std::filesystem::path& run_folder);  // throws LAUNCH-TICKET if the run was not launched
bool has_launch_record(const std::filesystem::path& run_folder);
std::string new_token();  // 16 random hexadecimal digits

// Splits the output of a launched job into lines and adds each line to its run exactly once, across reconnects. The
// position after a line is stored with the line's event. Use on one thread.
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

class JobSupervisor {
 public:
  // Acquires the run's lock; throws RUN-LOCKED if another process supervises the run. All references must outlive the
  // object.
  JobSupervisor(store::Store& store, LaunchRecord record, const ReattachRequest& run, const EventSink& sink,
                StopTokens stops);

  void record_start(const std::string& name);
  void log(const std::string& text, const char* level = "info") { run_.log_output(text, {}, level); }
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
