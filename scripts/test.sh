#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds, and runs the tests: everything in the ci preset, then the unit tests again under the
# address and undefined-behaviour sanitizers and core's threads under the thread sanitizer.
#   scripts/test.sh [quick]    quick: without the sanitizer builds
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
install build test
build ci
cd "$root"
if [ "${1:-}" != quick ]; then
  build tsan
  ctest --preset tsan -L threads
  build asan
  ctest --preset asan -LE 'slow|x11'
fi
ctest --preset ci
