#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs missing packages, builds what changed, and runs meshwright with the given arguments. Without arguments it opens
# the window with the default example, or runs the example if there is no display.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
install build
build release meshwright
exec "$root/build/release/app/meshwright" "$@"
