#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fits the planner's efficiencies to the calibration rows of resources/hardware/measurements.json and writes
# resources/hardware/calibration.json. Prints predicted and measured values of every row. Then scripts/accuracy.sh writes
# the chapter of the manual, with the simulator's figures of servers.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build
build release mw_calibrate
"$root/build/release/benchmarks/mw_calibrate" --write "$(date -u +%F)"
exec "$root/scripts/accuracy.sh"
