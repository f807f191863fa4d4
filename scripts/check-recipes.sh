#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tests the exported training recipes against the engine. Exports the tiny experiment for Tunix, TRL and TorchAX, installs
# their pinned requirements from PyPI, runs them in smoke mode under `meshwright watch`, and compares 20 steps with the
# engine in f32 from the same adapter: losses and gradient norms must agree within 2 % at every step (with dropout the
# losses), and the answers to held-out prompts are compared. The resulting
# adapters are merged, converted and loaded in transformers and peft: logits must agree within 1e-3 at every position.
# Prints a table of each comparison and a comparison of the runs. Takes six minutes on two cores after the first download
# of 13 GB.
#     scripts/check-recipes.sh [tunix] [trl-fsdp] [torchax]      the recipes to test; default: all
#     MESHWRIGHT=PATH           the program; default: build/release
#     MESHWRIGHT_VENVS=DIR      folder of the virtual environments DIR/tunix, DIR/trl-fsdp, DIR/torchax
#     MESHWRIGHT_KEEP=DIR       folder that keeps the event lines of every run
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
cd "$root"
kinds=("$@"); [ $# -gt 0 ] || kinds=(tunix trl-fsdp torchax)
meshwright=$(realpath "${MESHWRIGHT:-build/release/app/meshwright}")
venvs=${MESHWRIGHT_VENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshwright/recipes}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} HF_HUB_OFFLINE=1
[ -x "$meshwright" ] || { echo "build first: scripts/run.sh --version, or give MESHWRIGHT=PATH" >&2; exit 2; }
for kind in "${kinds[@]}"; do
  [ -e "resources/recipes/$kind/train.py" ] || { echo "unknown training recipe: $kind" >&2; exit 2; }
done
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
runs=$work/runs steps=20 failed=0
printf 'recipe\ttraining loss\theld-out loss\tgradient norm\tsame answers\tverdict\n' > "$work/losses.tsv"
printf 'weights\tlargest difference\tsame most likely token\tadapter\tverdict\n' > "$work/logits.tsv"
say() { echo "== $*" >&2; }

environment() {  # KIND: prints the Python of its virtual environment, created on first use
  local kind=$1 venv=$venvs/$1 pins=resources/recipes/$1/requirements.txt
  if [ ! -e "$venv/done" ] || ! cmp -s "$pins" "$venv/done"; then
    say "$kind: installing its requirements into $venv"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
    # Prefers the CPU build of torch from its own index: the one on PyPI depends on gigabytes of CUDA libraries.
    { "$venv/bin/pip" install -q --retries 0 --timeout 15 --extra-index-url https://download.pytorch.org/whl/cpu -r "$pins" ||
      "$venv/bin/pip" install -q -r "$pins"; } >&2
    cp "$pins" "$venv/done"
  fi
  echo "$venv/bin/python"
}
logged() {  # LOG COMMAND...: prints the last lines of the log if the command fails
  local log=$1 status=0; shift
  "$@" 2> "$log" || { status=$?; tail -n 20 "$log" >&2; }
  return $status
}
run_of() { grep -m1 '"event":"started"' "$1" | sed 's/.*"run":"\(run-[0-9]*\)".*/\1/'; }
table() {
  python3 - "$1" <<'PYTHON'
import sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1], encoding="utf-8")]
widths = [max(len(r[c]) for r in rows) for c in range(len(rows[0]))]
for row in rows:
    print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
PYTHON
}

settings=(--set "train.steps=$steps" --set train.dtype=f32 --set train.eval_every=10 --set train.checkpoint_every=10
  --set data.max_len=128 --set train.answers=6 --set train.sample_every=0)
prompts=(--prompt "Who lives here?" --prompt "The red ball is behind the green box. The cat sits under the table and looks at the door." --raw --set sample.max_new_tokens=1 --set train.dtype=f32)

# logits NAME MODEL ADAPTER|'': compares the engine's logits with those of transformers and peft for the same folders
logits() {
  local name=$1 model=$2 adapter=$3 file=$work/logits.safetensors
  logged "$work/logits.err" "$meshwright" generate resources/examples/tiny-lora.json --set "model.path=$model" \
    "${prompts[@]}" ${adapter:+--adapter "$adapter"} --logits "$file" > /dev/null &&
    logged "$work/logits.err" "$(environment trl-fsdp)" scripts/recipes/round_trip.py "$name" "$file" "$model" \
      ${adapter:+--adapter "$adapter"} >> "$work/logits.tsv" || failed=1
}

# Tunix has one A matrix for K and V, so a case that adapts them differs by design; the packed case without them must not.
variants=("all|" "packed|data.packing=true train.accumulation=2 train.batch=8 lora.targets=q_proj,o_proj,gate_proj,up_proj,down_proj"
  "dropout|lora.dropout=0.1")
compared=()
for variant in "${variants[@]}"; do
  name=${variant%%|*} more=()
  for set in ${variant#*|}; do more+=(--set "$set"); done
  # The initial adapter comes from the engine, with one A matrix for K and V as Tunix requires.
  start=() ours=$work/ours-$name.jsonl
  if [ "$name" = all ]; then
    python=$(environment tunix)
    logged "$work/start.err" "$meshwright" export resources/examples/tiny-mesh.json --recipe tunix --out "$work/start" \
      "${settings[@]}" > /dev/null
    logged "$work/start.err" "$python" "$work/start/train.py" --smoke --write-start "$work/adapter"
    start=(--set "lora.adapter=$work/adapter")
  fi
  say "engine, $name: $steps steps"
  logged "$work/ours.err" "$meshwright" run resources/examples/tiny-lora.json --runs-dir "$runs" --json "${settings[@]}" \
    "${more[@]}" "${start[@]}" > "$ours"
  [ "$name" = all ] && compared+=("$(run_of "$ours")")
  for kind in "${kinds[@]}"; do
    python=$(environment "$kind")
    out="$work/a folder of $kind, $name" theirs=$work/$kind-$name.jsonl
    example=tiny-mesh; [ "$kind" = trl-fsdp ] && example=tiny-lora
    logged "$work/export.err" "$meshwright" export "resources/examples/$example.json" --recipe "$kind" --out "$out" \
      "${settings[@]}" "${more[@]}" "${start[@]}" > /dev/null
    say "$kind, $name: $steps steps in smoke mode"
    watch() { (cd / && "$meshwright" watch --runs-dir "$runs" --name "$kind" --json -- "$python" "$out/train.py" --smoke); }
    if ! logged "$work/$kind-$name.err" watch > "$theirs" || ! tail -n 1 "$theirs" | grep -q '"state":"done"'; then
      printf '%s, %s\t\t\t\t\tBAD: the run failed\n' "$kind" "$name" >> "$work/losses.tsv"
      failed=1; continue
    fi
    why=(); [ "$kind, $name" != "tunix, all" ] || why=("of one A for K and V, not of two")
    [ "$name" != dropout ] || why=("of other random numbers for dropout")
    python3 scripts/recipes/compare_losses.py "$kind, $name" "$ours" "$theirs" "$steps" 0.02 "${why[@]}" \
      >> "$work/losses.tsv" || failed=1
    [ "$name" = all ] && compared+=("$(run_of "$theirs")")
    [ -z "${MESHWRIGHT_KEEP:-}" ] || { mkdir -p "$MESHWRIGHT_KEEP"; cp "$ours" "$theirs" "$MESHWRIGHT_KEEP/"; }
    # The resulting adapter, read by Meshwright, compared with transformers and peft.
    adapter=$out/out/adapter
    if [ "$kind" = tunix ]; then
      if [ "$name" = all ]; then
        f32=$work/base-f32
        logged "$work/f32.err" "$(environment trl-fsdp)" scripts/recipes/round_trip.py --as-f32 resources/base-model "$f32"
        logged "$work/merge.err" "$meshwright" merge --base "$f32" --adapter "$out/out/checkpoints" --out "$out/merged f32" >&2 ||
          failed=1
        logits "Tunix's checkpoint, merged by us into f32" "$out/merged f32" ""
      fi
      logged "$work/merge.err" "$meshwright" merge --base resources/base-model --adapter "$out/out/checkpoints" \
        --out "$out/merged" >&2 || failed=1
      logits "Tunix's checkpoint, $name, merged by us into bf16" "$out/merged" ""
      logged "$work/convert.err" "$meshwright" convert --to peft --adapter "$out/out/checkpoints" --base resources/base-model \
        --out "$out/peft" >&2 || failed=1
      adapter=$out/peft
    fi
    logits "adapter of $kind, $name" "$PWD/resources/base-model" "$adapter"
  done
  logits "adapter of our engine, $name" "$PWD/resources/base-model" "$runs/$(run_of "$ours")/checkpoint-$steps"
done

"$meshwright" runs --runs-dir "$runs"
echo
[ ${#compared[@]} -lt 2 ] || "$meshwright" compare "${compared[@]}" --runs-dir "$runs"
for each in losses logits; do echo; table "$work/$each.tsv"; done
exit $failed
