#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds what changed, and runs meshwright with the given arguments.
# Without arguments: the window, on the default example (without a display: that example's run).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
install build
build release meshwright
exec "$root/build/release/app/meshwright" "$@"
