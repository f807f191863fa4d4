#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicts every published measurement with the shipped calibration, and writes chapter 11 of the manual and the tables of
# resources/hardware/accuracy.md, with the date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build
build release meshwright
# A folder of its own: the user's calibration must not change the published table.
config=$(mktemp -d)
trap 'rm -rf "$config"' EXIT
XDG_CONFIG_HOME=$config python3 "$root/scripts/accuracy.py" "$root/build/release/app/meshwright"
say "Written: $root/resources/manual/11-accuracy.md, $root/resources/hardware/accuracy.md"
