#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Creates the base model: generates the corpus, tokenizer, configuration and instruction set, pretrains in the engine (5.3
# million tokens, 25 minutes on two busy cores) and copies the weights to resources/base-model. Arguments are passed to
# `meshwright run`, e.g. --set train.steps=50.
set -euo pipefail
cd "$(dirname "$0")/../.."
meshwright=${MESHWRIGHT:-build/release/app/meshwright}
work=build/base-model
model=resources/base-model

if [ ! -x "$meshwright" ]; then
  echo "build first (scripts/run.sh --version), or set MESHWRIGHT to the program" >&2
  exit 2
fi
mkdir -p "$work"
python3 scripts/base_model/generate_corpus.py --megabytes 24 --seed 1 --out "$work/corpus.jsonl"
python3 scripts/base_model/train_tokenizer.py "$work/corpus.jsonl" --out "$model"
python3 scripts/base_model/write_config.py --out "$model"
python3 scripts/base_model/generate_instructions.py --out resources/instructions/small-world.json

started=$(date +%s)
"$meshwright" run "$model/pretrain.json" --runs-dir "$work/runs" "$@"
# The last checkpoint of the newest run is a Hugging Face model.
weights=$(find "$work/runs" -name model.safetensors -newermt "@$started" -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
[ -n "$weights" ] || { echo "the run left no model.safetensors" >&2; exit 1; }
cp "$weights" "$model/model.safetensors"
ls -l "$model"
