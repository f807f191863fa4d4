#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fits the planner's efficiencies to the calibration rows of resources/hardware/measurements.json and writes
# resources/hardware/calibration.json. Prints predicted and measured values of every row, held-out rows first, then those
# of the simulator for the serving rows and for the serving table of arXiv 2605.25645.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build
build ci mw_calibrate mw_serve_accuracy
"$root/build/ci/benchmarks/mw_calibrate" --write "$(date -u +%F)"
exec "$root/build/ci/benchmarks/mw_serve_accuracy"
