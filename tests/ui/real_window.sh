#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs real_window.py in a virtual display with a window manager and an accessibility bus.
#   real_window.sh MESHWRIGHT RESOURCES PICTURES
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export NO_AT_BRIDGE=0
exec xvfb-run -a -s "-screen 0 1280x800x24" dbus-run-session -- \
  bash -c 'openbox & sleep 1; exec /usr/bin/python3 "$@"' openbox "$here/real_window.py" "$@"
