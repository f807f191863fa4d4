// SPDX-License-Identifier: GPL-3.0-or-later
// A user's calibration under every fault of the file system at every change on disk.
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"
#include "tests/base/file_faults.h"

namespace mw::plan {
namespace {
namespace fs = std::filesystem;

std::string calibration_in(const fs::path& folder) {
  return user_calibration(folder).value_or("none");
}

TEST(WriteFaults, ACalibrationIsOldOrNew) {
  mw::test::try_every_fault({.prepare = [](const fs::path& f) { restore_calibration(f, "old"); },
                             .write = [](const fs::path& f) { restore_calibration(f, "new"); },
                             .check_written = [](const fs::path& f) { EXPECT_EQ(calibration_in(f), "new"); },
                             .check_unwritten = [](const fs::path& f) { EXPECT_NE(calibration_in(f), "none"); }});
}

TEST(WriteFaults, ARemovedCalibrationIsThereOrKeptAside) {
  mw::test::try_every_fault({.prepare = [](const fs::path& f) { restore_calibration(f, "old"); },
                             .write =
                                 [](const fs::path& f) {
                                   if (user_calibration(f)) restore_calibration(f, std::nullopt);
                                 },
                             .check_written = [](const fs::path& f) { EXPECT_EQ(calibration_in(f), "none"); },
                             .check_unwritten =
                                 [](const fs::path& f) {
                                   const bool aside = is_file(user_calibration_file(f).string() + ".bak");
                                   EXPECT_TRUE(calibration_in(f) == "old" || aside);
                                 }});
}

}  // namespace
}  // namespace mw::plan
