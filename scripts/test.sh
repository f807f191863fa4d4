#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds, and runs the tests: core's threads under the thread sanitizer, everything under the
# address and undefined-behaviour sanitizers, then everything as released with warnings as errors.
#   scripts/test.sh [quick]    quick: without the sanitizers
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
install build test
cd "$root"
if [ "${1:-}" != quick ]; then
  build tsan mw_base_tests mw_data_tests mw_engine_tests mw_runs_tests
  say "Threads of core under the thread sanitizer"
  ctest --preset tsan -R '^(Mailbox|ThreadPool|Batches|Store|StoreProcesses|AdamW|Network|Lora|Decode)\.'
  build asan
  say "Everything under the address and undefined-behaviour sanitizers"
  ctest --preset asan -j 2
fi
build ci
ctest --preset ci -j 2
