#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs missing packages, builds with warnings as errors, and runs every test.
#   scripts/test.sh [sanitize]    sanitize: first runs the threaded tests of core under the thread sanitizer, and all tests
#                                 under the address and undefined-behaviour sanitizers (two more builds)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test
cd "$root"
if [ "${1:-}" = sanitize ]; then
  build tsan mw_base_tests mw_data_tests mw_engine_tests mw_store_tests mw_jobs_tests mw_serve_tests mw_launch_tests
  say "Testing the threads of core under the thread sanitizer"
  ctest --preset tsan -R '(^|/)(Mailbox|ThreadPool|Batches|Store|StoreProcesses|AdamW|Network|Lora|Decode|Serving)\.'
  ctest --preset tsan -R '(^|/)(OnMesh|Fabric|FabricSizes|ClusterErrors)\.'
  ctest --preset tsan -R '^((Live|EngineBackend|HttpServer|HttpClients|OurServer|BadServer|Sweep)Test|Launching|OverSsh)\.'
  build asan
  say "Testing everything under the address and undefined-behaviour sanitizers"
  ctest --preset asan -j 2
fi
build release mw_base_tests all
# One more than two cores: many tests wait for servers and processes.
ctest --preset release -j 3
