#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fits the planner's efficiencies to the calibration rows of resources/hardware/measurements.json, writes
# resources/hardware/calibration.json and prints predicted against measured for every row, held out ones first; then
# plays the servers among them on the simulator, and the shipped paper's cells.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build
build ci mw_calibrate mw_serve_accuracy
"$root/build/ci/benchmarks/mw_calibrate" --write "$(date -u +%F)"
exec "$root/build/ci/benchmarks/mw_serve_accuracy"
