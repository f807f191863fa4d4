# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by check-clients.sh and load-test.sh. serve_for EXPERIMENT [OPTION...]: starts `serve` on a free port, sets
# $address and stops it when the script ends.
serve_for() {
  local experiment=$1; shift
  server_folder=$(mktemp -d)
  "$root/build/ci/app/meshwright" serve "$experiment" --port 0 "$@" >"$server_folder/out" 2>"$server_folder/err" &
  server_pid=$!
  trap 'kill -INT $server_pid 2>/dev/null; wait $server_pid; rm -rf "$server_folder"' EXIT
  for _ in $(seq 600); do
    address=$(sed -nE 's#^(http://[^/]+)/v1 .*#\1#p' "$server_folder/out")
    [ -n "$address" ] && return
    kill -0 $server_pid 2>/dev/null || { cat "$server_folder/err" >&2; exit 1; }
    sleep 0.1
  done
  say "the server did not start"; exit 1
}
