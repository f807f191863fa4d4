// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/train/merger.h"

#include <algorithm>

#include "ui/session/run_controller.h"
#include "ui/theme/text.h"

namespace mw::ui {

void Merger::start(runs::MergeRequest request) {
  if (busy()) return;
  percent_ = 0;
  checking_ = false;
  said_.drain();
  thread_ = std::jthread([this, request = std::move(request)](const std::stop_token& stop) {
    yield_to_the_window();
    said_.push(work(request, stop), Delivery::state);
  });
  emit changed();
}

Merger::Said Merger::work(const runs::MergeRequest& request, const std::stop_token& stop) {
  Said end{.percent = 100, .last = true};
  try {
    int told = 0;
    QString notes;
    const runs::MergeResult result = runs::merge_adapter(
        request, [&](const std::string& note) { notes += u"\n"_s + qs(note); },
        [&](long done, long of) {
          const int percent = static_cast<int>(100 * done / std::max(1L, of));
          if (percent > told) said_.push({.percent = told = percent}, Delivery::telemetry);
        },
        [&](long done, long of) {
          said_.push({.percent = static_cast<int>(100 * done / std::max(1L, of)), .checking = true},
                     done == 0 ? Delivery::state : Delivery::telemetry);
        },
        stop);
    end.verdict =
        tr("%1 of %2 tensors merged, %3 in %4. Parity %5%6")
            .arg(result.merged.merged)
            .arg(result.merged.tensors)
            .arg(qs(to_text(result.merged.written)), qpath(request.out), qs(train::to_string(result.parity.verdict)),
                 result.parity.reason.empty() ? u"."_s : u": "_s + qs(result.parity.reason)) +
        notes;
  } catch (const Error& error) {
    end.problem = error.kind() == Error::Kind::cancelled ? Problem{} : error.problem();
  } catch (const std::exception& error) {
    end.problem = Problem{.id = "MERGE", .message = error.what()};
  }
  return end;
}

void Merger::cancel() {
  if (busy()) thread_.request_stop();
}

void Merger::drain() {
  for (const Said& said : said_.drain().items) {
    percent_ = said.percent;
    checking_ = said.checking;
    if (said.last) thread_ = {};
    emit changed();
    if (said.problem) emit failed(*said.problem);
    if (said.last && !said.problem) emit merged(said.verdict);
  }
}

}  // namespace mw::ui
