# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by check-clients.sh and load-test.sh. serve_for EXPERIMENT [OPTION...] starts `serve` on a free port and sets
# $address. The server is stopped when the script exits; the script fails if the server does. MESHWRIGHT=PATH selects the
# program; the default is build/release, which is built first. end_server stops it before that.
# Returns 1 if the server failed.
end_server() {
  local served=0
  kill -INT $server_pid 2>/dev/null || true
  wait $server_pid || served=$?
  if [ $served -ne 0 ]; then say "the server exited with $served"; cat "$server_folder/err" >&2; fi
  rm -rf "$server_folder"
  trap - EXIT
  [ $served -eq 0 ]
}
# options_of_load EXPERIMENT [OPTION...] sets $experiment, which --experiment FILE replaces, and the array options.
options_of_load() {
  experiment=$1 options=()
  shift
  while [ $# -gt 0 ]; do
    if [ "$1" = --experiment ]; then experiment=$2; shift; else options+=("$1"); fi
    shift
  done
}
stop_server() {
  local status=$?
  end_server || status=1
  exit $status
}
serve_for() {
  local experiment=$1; shift
  server_folder=$(mktemp -d)
  touch "$server_folder/out" "$server_folder/err"  # they are read below, perhaps before the server has started
  [ -n "${MESHWRIGHT:-}" ] || build release meshwright
  "${MESHWRIGHT:-$root/build/release/app/meshwright}" serve "$experiment" --port 0 "$@" >"$server_folder/out" 2>"$server_folder/err" &
  server_pid=$!
  trap stop_server EXIT
  for _ in $(seq 600); do
    address=$(sed -nE 's#^(http://[^/]+)/v1 .*#\1#p' "$server_folder/out")
    [ -n "$address" ] && return
    kill -0 $server_pid 2>/dev/null || exit 1
    sleep 0.1
  done
  say "the server did not start"; exit 1
}
