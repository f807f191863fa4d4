#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs robustness attacks against the program in a temporary folder and prints a table of the results: kill -9 at random
# moments of every kind of work, signals, HTTP probes, hostile files, and full, read-only or deleted folders. Exits with 1
# if an attack succeeds.
#   scripts/attack.sh [--only kills,signals,http,files,full,readonly,deleted] [--kills N] [--seed N] [--jobs N] [--json FILE]
#   --kills    total number of kills (300), split over train, mesh, sweep, import, merge, export and convert
#   --seed     random seed of the kill moments (1)
#   --jobs     number of attacks that run in parallel (2)
# MESHWRIGHT=PATH selects the program; the default is build/release, which is built first. Full and read-only folders are
# tmpfs mounts and need root; without it they are reported as skipped.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test
[ -n "${MESHWRIGHT:-}" ] || build release meshwright
exec python3 "$root/scripts/attack/attack.py" --program "${MESHWRIGHT:-$root/build/release/app/meshwright}" "$@"
