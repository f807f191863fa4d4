#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Submits slurm.sbatch, prints what the job prints until it has ended, and ends with its exit code; ended itself, it cancels the
# job. Options of sbatch come first, arguments of train.py after --:
#     ./slurm.sh --nodes=2 --gpus-per-node=8 -- --steps 100
set -euo pipefail
cd "$(dirname "$0")"
options=() arguments=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -eq 0 ] || { shift; arguments=("$@"); }
command -v sbatch >/dev/null || { echo "slurm.sh: sbatch is not in the PATH: start this on a login node of the cluster" >&2; exit 2; }
: > slurm.out; : > slurm.err
job=$(sbatch --parsable --output=slurm.out --error=slurm.err "${options[@]}" slurm.sbatch "${arguments[@]}")
job=${job%%;*}
echo "slurm.sh: submitted job $job" >&2
tail -n +1 -f slurm.out & readers=($!)
tail -n +1 -f slurm.err >&2 & readers+=($!)
stop() { scancel "$job"; }
trap stop TERM INT
state=
while :; do
  # A job that has left the queue is kept by slurmctld for MinJobAge (300 s), which has its exit code.
  found=$(scontrol --oneliner show job "$job" 2>/dev/null) || found=
  state=$(sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' <<< "$found")
  code=$(sed -n 's/.* ExitCode=\([0-9]*\):\([0-9]*\).*/\1 \2/p' <<< "$found")
  case $state in PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | REQUEUED) sleep 1 & wait $! || true ;; *) break ;; esac
done
sleep 1  # the last lines
kill "${readers[@]}" 2>/dev/null || true
echo "slurm.sh: job $job ended: ${state:-unknown}" >&2
[ "$state" != COMPLETED ] || exit 0
read -r status number <<< "${code:-1 0}"
[ "$number" -eq 0 ] || exit $((128 + number))
[ "$status" -ne 0 ] || status=1
exit "$status"
