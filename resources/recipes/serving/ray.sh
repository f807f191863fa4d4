#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the container of each host of a server on several: joins a Ray cluster, the way vLLM documents
# (docs.vllm.ai/en/stable/examples/online_serving/multi-node-serving). Host 0 waits for all and serves; the others end with it.
#   ray.sh RANK HOSTS ADDRESS:PORT SECONDS [argument of vllm ...]
set -euo pipefail
rank=$1 hosts=$2 address=$3 limit=$4
shift 4
export TPU_MULTIHOST_BACKEND=ray  # read by vLLM on TPUs only
if [ "$rank" != 0 ]; then
  until (exec 3<>"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null; do
    [ "$SECONDS" -lt "$limit" ] || { echo "host $rank: no Ray head at $address after $SECONDS s" >&2; exit 1; }
    sleep 2
  done
  exec ray start --block --disable-usage-stats --address="$address"  # ends when host 0 is gone
fi
ray start --head --disable-usage-stats --port="${address##*:}"
python3 - "$hosts" "$limit" <<'PYTHON'
import sys
import time

import ray

hosts, limit, began = int(sys.argv[1]), float(sys.argv[2]), time.monotonic()
ray.init(address="auto", logging_level="error")
while (joined := sum(node["Alive"] for node in ray.nodes())) < hosts:
    if time.monotonic() - began > limit:
        sys.exit(f"{joined} of {hosts} hosts have joined after {limit:.0f} s")
    time.sleep(1)
PYTHON
exec vllm "$@" --distributed-executor-backend ray
