#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The experiment's sweep against the server of serve.sh: one vLLM-bench file per rate and input length in results/.
#     ./bench.sh [BASE_URL]          DRY_RUN=1 prints the commands
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/settings.sh"
url=${1:-http://127.0.0.1:8000}
mkdir -p "$here/results"
limit=()
[ "$CONCURRENCY" = 0 ] || limit=(--max-concurrency "$CONCURRENCY")
for input in $INPUT_LENS; do
  prompts=$NUM_PROMPTS
  for at in $NUM_PROMPTS_AT; do [ "${at%%:*}" != "$input" ] || prompts=${at#*:}; done
  for rate in $REQUEST_RATES; do
    command=(vllm bench serve --backend vllm --base-url "$url" --model "${SERVED_MODEL:-/model}" --tokenizer "${TOKENIZER:-${MODEL_FOLDER:-$MODEL_HUB}}"
      --dataset-name random --random-input-len "$input" --random-output-len "$OUTPUT_LEN" --ignore-eos
      --num-prompts "$prompts" --request-rate "$rate" "${limit[@]}" --seed "$SEED" --temperature 0
      --percentile-metrics ttft,tpot,itl,e2el --save-result --save-detailed
      --result-dir "$here/results" --result-filename "input$input-rate$rate.json")
    if [ "${DRY_RUN:-0}" = 1 ]; then printf '%q ' "${command[@]}"; echo; else "${command[@]}"; fi
  done
done
