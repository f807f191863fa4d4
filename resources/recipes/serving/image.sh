# SPDX-License-Identifier: Apache-2.0
# Sourced by serve.sh: the settings, the pinned image and what it serves. serve_in OPTIONS... -- FLAGS...: vLLM in that
# container, with the options of docker and flags of vLLM that this kind of machine needs. DRY_RUN=1 prints the command.
# On several hosts every one runs serve.sh with HOSTS, HOST_RANK (0 serves) and HEAD_ADDRESS (of host 0, port 6379 unless it
# has one), which Slurm's own variables give, too: `srun --ntasks-per-node=1 ./serve.sh FOLDER`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/settings.sh"
folder=${1:-$MODEL_FOLDER}
image=${IMAGE:-$(grep -v '^#' "$here/requirements.txt" | head -n 1)}
serve_in() {
  local options=() mount=() served=$MODEL_HUB
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  if [ -n "$folder" ]; then
    mount=(-v "$(cd "$folder" && pwd):/model:ro") served=/model
  fi
  local entry=(--entrypoint vllm "$image") hosts=${HOSTS:-${SLURM_JOB_NUM_NODES:-1}}
  if [ "$hosts" -gt 1 ]; then
    local rank=${HOST_RANK:-${SLURM_NODEID:?set HOST_RANK, the number of this host from 0}} head=${HEAD_ADDRESS:-}
    [ -n "$head" ] || head=$(scontrol show hostnames "${SLURM_JOB_NODELIST:?set HEAD_ADDRESS, the address of host 0}" | head -n 1)
    case $head in *:*) ;; *) head+=:6379 ;; esac
    mount+=(-v "$here/ray.sh:/ray.sh:ro")
    entry=(--entrypoint bash "$image" /ray.sh "$rank" "$hosts" "$head" "${JOIN_TIMEOUT_S:-300}")
  fi
  local command=(docker run --rm --network host "${options[@]}" "${mount[@]}" -e HF_TOKEN "${entry[@]}"
    serve "$served" --served-model-name /model "${SERVE_FLAGS[@]}" "$@" --port 8000)
  if [ "${DRY_RUN:-0}" = 1 ]; then printf '%q ' "${command[@]}"; echo; else exec "${command[@]}"; fi
}
