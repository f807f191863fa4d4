// SPDX-License-Identifier: Apache-2.0
#include "core/launch/job_stream.h"

#include "core/base/error.h"

namespace mw::launch {

JobStream::JobStream(importing::ExternalRun& run, const std::optional<std::string>& cursor) : run_(run) {
  if (cursor) {
    const Json json = parse_json(*cursor, "cursor of the run");
    sources_[0].kept = static_cast<std::uint64_t>(int_member(json, "out", "cursor of the run"));
    sources_[1].kept = static_cast<std::uint64_t>(int_member(json, "err", "cursor of the run"));
    if (json.contains("finished"))
      run_.set_finished(std::get<event::Finished>(event_from_json(json.at("finished")).body));
  }
  connect();
}

// A received Finished event is not recorded yet, so the cursor contains it.
std::string JobStream::cursor() const {
  Json json{{"out", out()}, {"err", err()}};
  if (const auto& f = run_.finished()) json["finished"] = to_json(Event{f->seconds, *f}, "");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void JobStream::connect() {
  for (Source& s : sources_) {
    s.base = s.kept;
    s.fed = 0;
    s.lines = LineSplitter();
  }
}

void JobStream::add_line(size_t which, const std::string& line) {
  Source& s = sources_[which];
  s.kept = s.base + s.lines.consumed_bytes();
  const importing::ExternalRun::At at{seconds_, cursor(), s.lines.dropped_bytes()};
  if (which == 0)
    run_.line(line, at);
  else
    run_.log_output(line, at);
}

void JobStream::take(const Frame& data) {
  const std::string name = string_member(data.head, "stream", "frame");
  const size_t which = name == "out" ? 0 : 1;
  Source& s = sources_[which];
  const long long at = int_member(data.head, "at", "frame");
  if ((name != "out" && name != "err") || at < 0 || static_cast<std::uint64_t>(at) != s.base + s.fed)
    throw Error({.id = "LAUNCH-STREAM",
                 .message = "the data does not follow the previous data",
                 .place = valid_utf8(name),
                 .found = std::to_string(at),
                 .expected = std::to_string(s.base + s.fed)},
                Error::Kind::failed);
  seconds_ = std::max(seconds_, number_member(data.head, "seconds", "frame"));
  s.fed += data.bytes.size();
  s.lines.feed(data.bytes, [&](const std::string& line) { add_line(which, line); });
}

void JobStream::end() {
  for (const size_t which : {0u, 1u})
    sources_[which].lines.finish([&](const std::string& line) { add_line(which, line); });
}

}  // namespace mw::launch
