#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# 200 connections at once for ten minutes against `serve` on a free port, a tenth of the requests broken off: no error
# but 429, memory flat after the warm-up, blocks of broken-off requests free at once; latencies at the end.
#   scripts/load-test.sh [--seconds N] [--connections N] [--experiment FILE] [further options of mw_serve_load_bench]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
source "$root/scripts/serve-for.sh"
experiment="$root/resources/examples/tiny-lora.json"
options=()
while [ $# -gt 0 ]; do
  if [ "$1" = --experiment ]; then experiment=$2; shift; else options+=("$1"); fi
  shift
done
install build test
build ci meshwright mw_serve_load_bench
serve_for "$experiment"
"$root/build/ci/benchmarks/mw_serve_load_bench" --url "$address" "${options[@]}"
