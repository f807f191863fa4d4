#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Compares merging an adapter into 8 GB of random bf16 weights in 20 files with copying them (cp and sync) on the same disk,
# alternately and with cold caches: seconds, ratio of the speeds and peak memory. Then measures the verification of a
# merge. Needs 25 GB in FOLDER, which is emptied afterwards.
#   benchmarks/merge_speed.sh FOLDER [ROUNDS] [PRESET]    default: 3 rounds, ci
set -euo pipefail
folder=${1:?folder} rounds=${2:-3} preset=${3:-ci}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench=$root/build/$preset/benchmarks/mw_merge_bench
work=$folder/mw-merge-speed
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
python3 "$root/scripts/make_random_checkpoint.py" --shape gemma3-8gb --shards 20 --out "$work/base" --adapter "$work/adapter"
bytes=$(cat "$work"/base/*.safetensors | wc -c)
# Drops the files from the page cache: all pages as root, otherwise those that the system frees on request.
cold() {
  sync
  if [ -w /proc/sys/vm/drop_caches ]; then echo 1 >/proc/sys/vm/drop_caches; return; fi
  python3 -c 'import os,sys
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.close(fd)' "$work"/base/*
}
now() { date +%s.%N; }
echo "$bytes bytes in $(ls "$work"/base/*.safetensors | wc -l) files; load $(cut -d' ' -f1 /proc/loadavg)"
for round in $(seq "$rounds"); do
  cold
  start=$(now); cp -r "$work/base" "$work/copy"; sync -f "$work/copy"; end=$(now)
  copy=$(awk "BEGIN { print $end - $start }")
  rm -rf "$work/copy"
  cold
  read -r seconds written merged peak checked whole verdict < <("$bench" "$work/base" "$work/adapter" "$work/out")
  rm -rf "$work/out"
  awk -v c="$copy" -v m="$seconds" -v b="$bytes" -v w="$written" -v n="$merged" -v p="$peak" -v r="$round" -v k="$checked" -v q="$whole" -v v="$verdict" -v l="$(cut -d' ' -f1 /proc/loadavg)" 'BEGIN {
    printf "round %d: copy %.1f s (%.0f MB/s), merge %.1f s (%.0f MB/s, %d tensors changed), ratio %.0f %%, peak %.2f GB; gate %s in %.0f s, ratio with it %.0f %%, peak of all %.2f GB; load %s\n",
      r, c, b / c / 1e6, m, w / m / 1e6, n, 100 * (w / m) / (b / c), p / 1e9, v, k, 100 * c / (m + k), q / 1e9, l }'
done
