# SPDX-License-Identifier: Apache-2.0
# Sourced by serve.sh: the settings, the pinned image and what it serves. serve_in OPTIONS... -- FLAGS...: vLLM in that
# container, with the options of docker and flags of vLLM that this kind of machine needs. DRY_RUN=1 prints the command.
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
  local command=(docker run --rm --network host "${options[@]}" "${mount[@]}" -e HF_TOKEN --entrypoint vllm "$image"
    serve "$served" --served-model-name /model "${SERVE_FLAGS[@]}" "$@" --port 8000)
  if [ "${DRY_RUN:-0}" = 1 ]; then printf '%q ' "${command[@]}"; echo; else exec "${command[@]}"; fi
}
