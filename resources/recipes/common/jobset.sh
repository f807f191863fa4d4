#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Applies jobset.yaml, prints what its pods print until the JobSet has ended, and ends with its outcome; ended itself, it deletes
# the JobSet. Set the lines with "edit" first; out/ stays in the volume. Options of kubectl:
#     ./jobset.sh --context my-cluster --namespace training
set -euo pipefail
cd "$(dirname "$0")"
command -v kubectl >/dev/null || { echo "jobset.sh: kubectl is not in the PATH" >&2; exit 2; }
kube() { kubectl "${options[@]}" "$@" < /dev/null; }
options=("$@")
name=$(kube create --dry-run=client --filename jobset.yaml --output 'jsonpath={.metadata.name}')
stop() { kube delete jobset "$name" --wait=false >&2; stopped=1; }
trap stop TERM INT
stopped= followed=" " readers=()
kube delete jobset "$name" --ignore-not-found >&2  # an earlier run, whose pods are kept for their logs
kube apply --filename jobset.yaml >&2
of_name=jobset.sigs.k8s.io/jobset-name=$name state=
while [ -z "$stopped" ] && [ -z "$state" ]; do
  state=$(kube get jobset "$name" --output 'jsonpath={.status.terminalState}') || state=
  for pod in $(kube get pods --selector "$of_name" \
    --output 'jsonpath={range .items[?(@.status.phase!="Pending")]}{.metadata.name}{" "}{end}'); do
    [[ $followed == *" $pod "* ]] && continue
    followed+="$pod "
    kube logs --follow "$pod" & readers+=($!)
  done
  [ -n "$state" ] || { sleep 2 & wait $! || true; }
done
for reader in "${readers[@]}"; do wait "$reader" || true; done
echo "jobset.sh: $name ended: ${state:-cancelled}" >&2
[ "$state" = Completed ]
