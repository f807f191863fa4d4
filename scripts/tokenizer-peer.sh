#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Compares tokenising with PyPI's `tokenizers`: the same lines of text on the same number of threads, alternately. Prints
# MB/s and tokens of both, and whether all ids are the same. The peer is installed once from PyPI, in build/peers.
#   scripts/tokenizer-peer.sh FILE [--tokenizer tokenizer.json | --vocabulary N] [--threads N] [--rounds N]
#   FILE          UTF-8 text; each line is one text
#   --tokenizer   otherwise one like Gemma's is trained on FILE, of N pieces (32768)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
file=${1:?a text file}; shift
tokenizer='' vocabulary=32768 threads=$(nproc) rounds=3
while [ $# -gt 0 ]; do
  case "$1" in
    --tokenizer) tokenizer=$2 ;;
    --vocabulary) vocabulary=$2 ;;
    --threads) threads=$2 ;;
    --rounds) rounds=$2 ;;
    *) say "unknown option $1"; exit 2 ;;
  esac
  shift 2
done
install build test peers
folder="$root/build/peers"
python=${MESHWRIGHT_TOKENIZERS_PYTHON:-$folder/tokenizers/bin/python}
mkdir -p "$folder"
if [ -z "${MESHWRIGHT_TOKENIZERS_PYTHON:-}" ] && [ ! -f "$folder/tokenizers/ready" ]; then
  python3 -m venv "$folder/tokenizers"
  "$python" -m pip install -q tokenizers
  touch "$folder/tokenizers/ready"
fi
side="$root/scripts/peers/tokenizers_side.py"
if [ -z "$tokenizer" ]; then
  tokenizer="$folder/trained-$vocabulary.json"
  say "Training a tokenizer of $vocabulary pieces on $file"
  "$python" "$side" train "$tokenizer" "$vocabulary" "$file"
fi
build release mw_tokenizer_bench
ours=$("$root/build/release/benchmarks/mw_tokenizer_bench" "$tokenizer" "$file" "$threads" "$rounds")
peer=$(RAYON_NUM_THREADS=$threads "$python" "$side" encode "$tokenizer" "$file" "$rounds")
OURS=$ours PEER=$peer THREADS=$threads python3 - <<'PYTHON'
import json, os
ours, peer = json.loads(os.environ["OURS"]), json.loads(os.environ["PEER"])
for name, one in (("meshwright", ours), ("tokenizers", peer)):
    print(f'{name:11} {one["bytes"] / one["seconds"] / 1e6:8.1f} MB/s  {one["tokens"]} tokens  {os.environ["THREADS"]} threads')
print(f'{peer["seconds"] / ours["seconds"]:.2f} times the speed, ids {"equal" if ours["ids"] == peer["ids"] else "DIFFER"}')
raise SystemExit(ours["ids"] != peer["ids"])
PYTHON
