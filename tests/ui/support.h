// SPDX-License-Identifier: GPL-3.0-or-later
// What the GUI tests share: Qt warnings fail a test, scratch folders, made-up but complete run records.
#pragma once
#include <QStringList>
#include <QTest>
#include <filesystem>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/store/store.h"
#include "tests/base/scratch.h"

class QPushButton;
class QWidget;

// Qt waits 5 s for a condition, too short on a machine with other work. Longer costs time only where the condition
// fails.
#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(condition) QTRY_VERIFY_WITH_TIMEOUT(condition, mw::test::kPatience)
#define QTRY_VERIFY2(condition, message) QTRY_VERIFY2_WITH_TIMEOUT(condition, message, mw::test::kPatience)
#define QTRY_COMPARE(value, expected) QTRY_COMPARE_WITH_TIMEOUT(value, expected, mw::test::kPatience)

namespace mw::test {

inline constexpr int kPatience = 120'000;  // ms

// Collects Qt's warnings while it lives, without the notices of the offscreen plugin.
class WarningWatch {
 public:
  ~WarningWatch();
  void start();  // from init(): Qt Test puts a handler of its own in place before that
  QStringList take();
};

// A run of `steps` steps in the store: falling loss, memory by phase, samples, a log; ends in `state`.
store::RunId add_run(const std::filesystem::path& runs_folder, const std::string& name, int steps, RunState state);

// Test data only: the record of a finished run of `steps` steps on a mesh of fsdp x tp devices, with memory of every
// device in two phases and traffic of every step that can be told from (device, step) by hand:
// device d holds 40 MiB of weights and (10 + d) MiB of activations in the backward, half of that forward; a step sends
// 1 MiB * step over fsdp and 2 MiB over tp, in (4 + 6) ms of which 1 ms is waiting. Predicted were just these, but for
// device 1 (5 MiB of activations) and for the steps after 40 (half a MiB less over tp).
store::RunId add_mesh_run(const std::filesystem::path& runs_folder, const std::string& name, int steps, int fsdp,
                          int tp);
// Its events, for whom they come live.
std::vector<Event> mesh_events(const std::string& name, int steps, int fsdp, int tp);

// The shipped base model sized by batch, quickly; `changes` are merged in. Not run yet.
experiment::Experiment sizing(const Json& changes = Json::object());
// The same, really measured into the store.
store::RunId add_sizing(const std::filesystem::path& runs_folder, const Json& changes = Json::object());

// The button below `root` with this text; there must be one.
QPushButton& button_of(QWidget& root, const QString& text);
// Whether a label below `root` contains this text.
bool shows_text(QWidget& root, const QString& part);
QString result_text(QWidget& dialog);  // of the dialog's ResultText

// Writes `name`.png into the folder $MW_PICTURES, or one of the build. Hardly compressed: zlib took a sixth of these
// tests.
void save_picture(QWidget& of, const QString& name);

// Focusable, visible widgets below `root` that a screen reader could not name.
QStringList unnamed(QWidget& root);
// Visible buttons and one-line labels below `root` that are narrower than what they say.
QStringList clipped(QWidget& root);

}  // namespace mw::test
