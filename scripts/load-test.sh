#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Loads `serve` on a free port with 200 concurrent connections for ten minutes and cancels a tenth of the requests. Checks
# that 429 is the only error, that memory stays flat after the warm-up and that KV blocks of cancelled requests are freed
# at once. Prints latencies at the end.
#   scripts/load-test.sh [--seconds N] [--connections N] [--experiment FILE] [further options of mw_serve_load_bench]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
source "$root/scripts/serve-for.sh"
options_of_load "$root/resources/examples/tiny-lora.json" "$@"
install build test
build release meshwright mw_serve_load_bench
serve_for "$experiment"
"$root/build/release/benchmarks/mw_serve_load_bench" --url "$address" "${options[@]}"
