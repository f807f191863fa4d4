#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicts every published measurement with the shipped calibration and writes resources/manual/11-accuracy.md, with the
# date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build
build release meshwright
page=$root/resources/manual/11-accuracy.md
# A folder of its own: the user's calibration must not change the published table.
config=$(mktemp -d)
trap 'rm -rf "$config"' EXIT
XDG_CONFIG_HOME=$config "$root/build/release/app/meshwright" accuracy --markdown >"$config/page"
cp "$config/page" "$page"
say "Written: $page"
