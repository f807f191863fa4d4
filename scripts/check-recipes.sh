#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Exports the tiny experiment for Tunix, TRL and TorchAX, installs what each pins from PyPI (outside the repository), runs
# them in smoke mode to the end under `meshwright watch`, and compares 20 steps with our engine's from the same adapter in
# f32: losses within 2 % at every step. What Tunix leaves is converted and merged, and each adapter is generated with.
#     scripts/check-recipes.sh [tunix] [trl-fsdp] [torchax]      some of them; all without arguments
#     MESHWRIGHT_VENVS=DIR      where the environments are made or found: DIR/tunix, DIR/trl-fsdp, DIR/torchax
set -euo pipefail
cd "$(dirname "$0")/.."
kinds=("$@"); [ $# -gt 0 ] || kinds=(tunix trl-fsdp torchax)
meshwright=$(realpath "${MESHWRIGHT:-build/release/app/meshwright}")
venvs=${MESHWRIGHT_VENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshwright/recipes}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
steps=20
[ -x "$meshwright" ] || { echo "build first: scripts/run.sh --version, or give MESHWRIGHT=PATH" >&2; exit 2; }

environment() {  # of a kind: made once
  local kind=$1 venv=$venvs/$1 pins=resources/recipes/$1/requirements.txt
  if [ ! -e "$venv/done" ] || ! cmp -s "$pins" "$venv/done"; then
    echo "== $kind: installing its requirements into $venv" >&2
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    # torch's CPU build where its index can be reached: PyPI's brings gigabytes of CUDA
    "$venv/bin/pip" install -q --extra-index-url https://download.pytorch.org/whl/cpu -r "$pins" ||
      "$venv/bin/pip" install -q -r "$pins"
    cp "$pins" "$venv/done"
  fi
  echo "$venv/bin/python"
}

settings=(--set "train.steps=$steps" --set train.dtype=f32 --set train.eval_every=10 --set train.checkpoint_every=10
  --set data.max_len=128 --set train.answers=0 --set train.sample_every=0)
# name: sets. Tunix has one A for K and V, so that case drifts by design; without K and V, or with three targets, it must not.
variants=("all|" "packed|data.packing=true train.accumulation=2 train.batch=8 lora.targets=q_proj,o_proj,gate_proj,up_proj,down_proj")
failed=0
for variant in "${variants[@]}"; do
  name=${variant%%|*} more=()
  for set in ${variant#*|}; do more+=(--set "$set"); done
  # The adapter to start from: our engine's own numbers, with one A for K and V, as Tunix needs it.
  start=(); ours=$work/ours-$name.jsonl
  if [ "$name" = all ]; then
    python=$(environment tunix)
    "$meshwright" export resources/examples/tiny-mesh.json --recipe tunix --out "$work/start" "${settings[@]}" > /dev/null 2>&1
    "$python" "$work/start/train.py" --smoke --write-start "$work/adapter" 2> /dev/null
    start=(--set "lora.adapter=$work/adapter")
  fi
  "$meshwright" run resources/examples/tiny-lora.json --runs-dir "$work/runs" --json "${settings[@]}" "${more[@]}" \
    "${start[@]}" > "$ours" 2> /dev/null
  for kind in "${kinds[@]}"; do
    python=$(environment "$kind")
    out="$work/a folder of $kind, $name"
    example=tiny-mesh; [ "$kind" = trl-fsdp ] && example=tiny-lora
    "$meshwright" export "resources/examples/$example.json" --recipe "$kind" --out "$out" "${settings[@]}" "${more[@]}" \
      "${start[@]}" > /dev/null 2>&1
    echo "== $kind, $name: $steps steps in smoke mode"
    if ! (cd / && "$meshwright" watch --runs-dir "$work/runs" --name "$kind" --json -- "$python" "$out/train.py" --smoke) \
        > "$work/$kind-$name.jsonl" 2> "$work/$kind-$name.err"; then
      tail -n 20 "$work/$kind-$name.err" >&2; failed=1; continue
    fi
    tail -n 1 "$work/$kind-$name.jsonl" | grep -q '"state":"done"' || { echo "  not done" >&2; failed=1; }
    python3 scripts/recipes/compare_losses.py "$ours" "$work/$kind-$name.jsonl" "$steps" 0.02 || failed=1
    adapter=$out/out/adapter
    if [ "$kind" = tunix ]; then
      "$meshwright" merge --base resources/base-model --adapter "$out/out/checkpoints" --out "$out/merged" | tail -n 1
      "$meshwright" convert --adapter "$out/out/checkpoints" --base resources/base-model --out "$out/peft" > /dev/null
      adapter=$out/peft
    fi
    "$meshwright" generate resources/examples/tiny-lora.json --adapter "$adapter" --prompt "Who lives here?" > /dev/null ||
      failed=1
  done
done
"$meshwright" runs --runs-dir "$work/runs"
exit $failed
