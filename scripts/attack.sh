#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Attacks the built program in a temporary folder and prints a table of what held: kill -9 at random moments of every kind
# of work, signals, HTTP probes, hostile files, full and read-only and deleted folders. Ends with 1 where something did not.
#   scripts/attack.sh [--only kills,signals,http,files,full,readonly,deleted] [--kills N] [--seed N] [--jobs N] [--json FILE]
#   --kills    how often a process is killed in all (300), split over train, mesh, sweep, import, merge, export, convert
#   --seed     of the random moments (1); --jobs: attacks at once (2)
# MESHWRIGHT=PATH attacks that program; else build/release's, which is brought up to date. Full and read-only folders
# are tmpfs mounts, which need root; without it they are reported as skipped.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test
[ -n "${MESHWRIGHT:-}" ] || build release meshwright
exec python3 "$root/scripts/attack/attack.py" --program "${MESHWRIGHT:-$root/build/release/app/meshwright}" "$@"
