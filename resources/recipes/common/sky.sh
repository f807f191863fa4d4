#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Launches skypilot.yaml, prints what the job prints until it has ended, copies out/ back, and ends with the job's outcome; ended
# itself, it cancels the job. The cluster stays (sky down CLUSTER ends it), so that started again, training goes on from the last
# complete checkpoint there. Options of sky launch:
#     ./sky.sh --cluster my-cluster --infra gcp
set -euo pipefail
cd "$(dirname "$0")"
cluster=meshwright options=()
while [ $# -gt 0 ]; do
  case $1 in -c | --cluster) cluster=$2; shift 2 ;; *) options+=("$1"); shift ;; esac
done
command -v sky >/dev/null || { echo "sky.sh: sky is not in the PATH: install SkyPilot (skypilot.readthedocs.io)" >&2; exit 2; }
stop() { stopped=1; sky cancel --yes "$cluster" --all >&2; }
trap stop TERM INT
sky launch --yes --detach-run --cluster "$cluster" "${options[@]}" skypilot.yaml >&2 < /dev/null & wait $!
# Without "(head, rank=0, pid=123) " in front, which is coloured.
sky logs "$cluster" < /dev/null > >(sed -uE $'s/^(\x1b\\[[0-9;]*m)*\\([^()]*pid=[^()]*\\)(\x1b\\[[0-9;]*m)* ?//') & reader=$!
while stopped= status=0; wait $reader || status=$?; [ "$stopped" ]; do :; done  # a signal ends a wait with its own number
rsync -a "$cluster":sky_workdir/out . >&2 || echo "sky.sh: out/ could not be copied from $cluster" >&2
exit $status
