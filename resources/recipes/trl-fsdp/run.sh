#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One process per device of the experiment under accelerate's FSDP2; arguments go to train.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
processes=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["mesh"]["fsdp"])' "$here/settings.json")
layer=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["model"]["layer_class"])' "$here/settings.json")
remat=$("$python" -c 'import json, sys; print("true" if json.load(open(sys.argv[1]))["train"]["remat"] != "none" else "false")' "$here/settings.json")
exec "$python" -m accelerate.commands.launch --config_file "$here/fsdp.yaml" --num_processes "$processes" \
  --fsdp_transformer_layer_cls_to_wrap "$layer" --fsdp_activation_checkpointing "$remat" "$here/train.py" "$@"
