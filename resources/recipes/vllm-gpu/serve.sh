#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vLLM on the GPUs of this machine.     ./serve.sh [FOLDER]          DRY_RUN=1 prints the command
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/settings.sh"
folder=${1:-$MODEL_FOLDER}
image=${IMAGE:-$(grep -v '^#' "$here/requirements.txt" | head -n 1)}
mount=() served=$MODEL_HUB
if [ -n "$folder" ]; then
  mount=(-v "$(cd "$folder" && pwd):/model:ro") served=/model
fi
command=(docker run --rm --gpus all --ipc host --network host "${mount[@]}" -e HF_TOKEN
  --entrypoint vllm "$image" serve "$served" --served-model-name /model
  "${SERVE_FLAGS[@]}" --port 8000)
if [ "${DRY_RUN:-0}" = 1 ]; then printf '%q ' "${command[@]}"; echo; else exec "${command[@]}"; fi
