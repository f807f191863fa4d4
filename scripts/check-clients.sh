#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests `serve` with real clients: curl, and the openai and guidellm packages from PyPI, and with tools after training a
# model that calls them. Needs the network, so it is not
# part of the CI tests.
#   scripts/check-clients.sh [EXPERIMENT]
# The packages are installed once, in build/clients; MESHWRIGHT_CLIENTS=/path/venv names a virtual environment with them.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
source "$root/scripts/serve-for.sh"
experiment=${1:-$root/resources/examples/tiny-lora.json}
clients=${MESHWRIGHT_CLIENTS:-$root/build/clients}
install build peers
if [ ! -x "$clients/bin/guidellm" ]; then
  say "Installing openai and guidellm from PyPI"
  python3 -m venv "$clients"
  "$clients/bin/pip" install -q openai guidellm
fi
serve_for "$experiment" --api-key check

say "curl"
key=(-H "Authorization: Bearer check")
curl -fsS "$address/health"
curl -fsS "${key[@]}" "$address/v1/models" | grep '"object":"list"' >/dev/null
[ "$(curl -s -o /dev/null -w '%{http_code}' "$address/v1/models")" = 401 ]
curl -fsSN "${key[@]}" -H 'Content-Type: application/json' "$address/v1/completions" \
  -d '{"prompt": "Once", "max_tokens": 8, "stream": true}' | tail -n 2 | grep '\[DONE\]' >/dev/null
curl -fsS "$address/metrics" | grep '^vllm:generation_tokens_total' >/dev/null

say "openai"
OPENAI_BASE_URL="$address/v1" OPENAI_API_KEY=check "$clients/bin/python" "$root/scripts/clients/openai_check.py"

say "guidellm"
model_folder=${MESHWRIGHT_TOKENIZER:-$root/resources/base-model}
"$clients/bin/python" "$root/scripts/clients/guidellm_check.py" --guidellm "$clients/bin/guidellm" \
  --url "$address" --tokenizer "$model_folder" --folder "$server_folder"
end_server

say "openai: tools"
tools=$(mktemp -d)
python3 "$root/scripts/clients/tools_model.py" "$root" "$tools"
program=${MESHWRIGHT:-$root/build/release/app/meshwright}
"$program" run "$tools/tools.json" --runs-dir "$tools/runs" --json >"$tools/log"
serve_for "$tools/tools.json" --runs-dir "$tools/runs" --run-id latest --api-key check
OPENAI_BASE_URL="$address/v1" OPENAI_API_KEY=check "$clients/bin/python" "$root/scripts/clients/openai_tools_check.py"
rm -rf "$tools"
say "all clients passed"
