// SPDX-License-Identifier: Apache-2.0
// A report of how the process ended, if it ends by a fatal signal or is killed: version, signal, stack and the last
// events. It contains no documents, data, error messages or paths.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace mw {

// Creates the report file and handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: the handler adds signal and stack to
// the file, and the process ends by the signal. Replaces an earlier report of this process. Throws Error if the file
// cannot be created. Call it, and end_crash_report(), on the main thread.
void start_crash_report(const std::filesystem::path& file, std::string_view version);
// Removes the file of the report and restores the default actions of the signals.
void end_crash_report();

// Adds an event, at most 60 bytes of it; the file keeps the last 64, also if the process is killed. `event` must come
// from the program, not from the user's data: "action run.start". Any thread. Does nothing without a report.
void note_event(std::string_view event) noexcept;

// The report that an earlier process left in the file, as text for the user; empty if there is none.
std::optional<std::string> read_crash_report(const std::filesystem::path& file);

}  // namespace mw
