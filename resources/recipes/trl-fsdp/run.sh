#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One process per device of the experiment under torchrun, which meets the other hosts at one of them (c10d); arguments go
# to train.py. On several hosts start it on each, with
#   NNODES=N                      the number of hosts (Slurm: SLURM_NNODES)
#   RDZV_ENDPOINT=HOST:PORT       a host of the run and a free port there, the same on all (Slurm: the first node)
#   RDZV_ID=NAME                  if several runs meet at one port (Slurm: the job's id)
# PROCESSES=N starts N processes in all instead of one per device.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
devices=${PROCESSES:-$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["mesh"]["fsdp"])' "$here/settings.json")}
nodes=${NNODES:-${SLURM_NNODES:-1}}
fail() {
  "$python" -c 'import json, sys; print(json.dumps({"event": "finished", "state": "failed", "steps": 0, "error": sys.argv[1]}))' "run.sh: $*"
  echo "run.sh: $*" >&2
  exit 2
}
[[ $nodes =~ ^[1-9][0-9]*$ ]] || fail "NNODES is '$nodes'; expected the number of hosts"
[ $((devices % nodes)) -eq 0 ] || fail "$devices devices cannot be divided among $nodes hosts; set NNODES to a divisor of it"
if [ "$nodes" -eq 1 ]; then
  meet=(--standalone)
else
  endpoint=${RDZV_ENDPOINT:-}
  if [ -z "$endpoint" ] && [ -n "${SLURM_STEP_NODELIST:-}" ]; then
    first=$("$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); import hosts; print(hosts.first_host(sys.argv[2]), file=sys.__stdout__)' \
      "$here" "$SLURM_STEP_NODELIST")
    endpoint=$first:$((61440 + SLURM_JOB_ID % 4096))
  fi
  [[ $endpoint == *:* ]] || fail "RDZV_ENDPOINT is '$endpoint'; expected HOST:PORT of one of the $nodes hosts"
  meet=(--nnodes "$nodes" --rdzv-backend c10d --rdzv-endpoint "$endpoint" --rdzv-id "${RDZV_ID:-${SLURM_JOB_ID:-meshwright}}"
    --rdzv-conf "join_timeout=${JOIN_TIMEOUT_S:-300}")
fi
exec "$python" "$here/processes.py" "${meet[@]}" --nproc-per-node $((devices / nodes)) "$here/train.py" "$@"
