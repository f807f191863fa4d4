// SPDX-License-Identifier: Apache-2.0
// One call of resources/launch/remote.py at a target: a process there, its answer in frames. The calling thread's.
#pragma once
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/launch/frames.h"
#include "core/launch/target.h"

namespace mw::launch {

// How long things may take; tests are in more of a hurry.
struct Timing {
  std::chrono::milliseconds silence = std::chrono::seconds(45);  // without a frame: the connection has gone
  std::chrono::milliseconds first_wait = std::chrono::milliseconds(500), longest_wait = std::chrono::minutes(1);
  std::chrono::milliseconds give_up = std::chrono::minutes(30);  // after so long without a connection
};

std::string in_words(std::chrono::milliseconds time);  // "500 ms", "30:00"

struct Call {
  std::vector<std::string> arguments;         // put FOLDER TOKEN ...
  std::function<std::string_view()> input{};  // what follows remote.py on its standard input; see Process::Streams
};

enum class Ended { answered, lost, stopped };
struct Answer {
  Ended ended = Ended::lost;
  Json end = Json::object();  // the last frame, where it answered
  std::string said{};         // by the program that connects, where the connection was lost
};

// `on_frame` hears every frame but the last. Throws Error: what remote.py refuses (bad input); LAUNCH-PYTHON where
// there is none; PROCESS where the program that connects is missing.
Answer call(const Target& target, const std::filesystem::path& resources, const Call& what, const OnFrame& on_frame,
            const Timing& timing, std::stop_token stop);

// Again and again, with longer and longer waits, until there is an answer or a stop; frames start the count anew.
// Throws Error LAUNCH-LOST (failed) when it gives up. `waiting` hears why and how long.
using OnWait = std::function<void(const std::string& why, std::chrono::milliseconds wait)>;
Answer persistently(const std::function<Answer(const OnFrame& counting)>& once, const OnFrame& on_frame,
                    const Timing& timing, const OnWait& waiting, std::stop_token stop);

// As a sentence of an Error: LAUNCH-REACH.
Error unreachable(const Target& target, const Answer& answer);

}  // namespace mw::launch
