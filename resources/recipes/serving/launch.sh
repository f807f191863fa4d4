#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Serves, plays the experiment's sweep against it, ends the server: what `meshwright launch` starts. results/ has a file per
# point. Arguments go to serve.sh. WAIT=seconds until the server has to answer (3600).
set -euo pipefail
cd "$(dirname "$0")"
command -v vllm >/dev/null || { echo "bench.sh needs vllm in PATH (pip install vllm): only the server runs in a container" >&2; exit 1; }
if [ "${HOST_RANK:-${SLURM_NODEID:-0}}" != 0 ]; then exec ./serve.sh "$@" >&2; fi  # host 0 serves and is measured
./serve.sh "$@" >&2 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true' EXIT
trap 'exit 143' TERM INT
answers() { python3 -c 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:8000/health", timeout=5)' 2>/dev/null; }
for ((waited = 0; ; waited += 2)); do
  kill -0 "$server" 2>/dev/null || { echo "the server has ended" >&2; exit 1; }
  if answers; then break; fi
  [ "$waited" -lt "${WAIT:-3600}" ] || { echo "the server does not answer after $waited s" >&2; exit 1; }
  sleep 2
done
printf '{"event":"log","level":"info","text":"the server answers after %s s"}\n' "$waited"
./bench.sh http://127.0.0.1:8000 >&2
printf '{"event":"log","level":"info","text":"%s results"}\n' "$(find results -name '*.json' | wc -l)"
