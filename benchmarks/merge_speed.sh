#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Compares merging an adapter into random bf16 weights, its check included, with copying them (cp and sync) on the same
# disk, alternately and with cold caches: seconds, ratio of the speeds, CPU time and peak memory. Needs three times SIZE in
# FOLDER/mw-merge-speed, which is removed afterwards.
#   benchmarks/merge_speed.sh FOLDER [ROUNDS] [PRESET] [SIZE]    default: 3 rounds, release, 8g; SIZE is 1g, 2g or 8g (bytes)
set -euo pipefail
folder=${1:?folder} rounds=${2:-3} preset=${3:-release} size=${4:-8g}
case $size in
  1g) shape=(--shape gemma3-1b --layers 8 --shards 1) ;;
  2g) shape=(--shape gemma3-1b --shards 1) ;;
  8g) shape=(--shape gemma3-8gb --shards 20) ;;
  *) echo "SIZE is 1g, 2g or 8g" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench=$root/build/$preset/benchmarks/mw_merge_bench
work=$folder/mw-merge-speed
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
python3 "$root/scripts/make_random_checkpoint.py" "${shape[@]}" --out "$work/base" --adapter "$work/adapter"
bytes=$(cat "$work"/base/*.safetensors | wc -c)
# Drops the files from the page cache.
cold() {
  sync -f "$work"
  python3 -c 'import os,sys
for name in sys.argv[1:]:
    fd = os.open(name, os.O_RDONLY); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.close(fd)' "$work"/base/*
}
now() { date +%s.%N; }
load() { cut -d' ' -f1 /proc/loadavg; }
echo "$bytes bytes in $(ls "$work"/base/*.safetensors | wc -l) files; load $(load)"
for round in $(seq "$rounds"); do
  cold
  start=$(now); cp -r "$work/base" "$work/copy"; sync -f "$work/copy"; end=$(now)
  copy=$(awk "BEGIN { print $end - $start }")
  rm -rf "$work/copy"
  for checked in checked unchecked; do
    cold
    option=; [ $checked = unchecked ] && option=unchecked
    read -r seconds _ merged peak cpu verdict < <("$bench" "$work/base" "$work/adapter" "$work/out" $option)
    rm -rf "$work/out"
    awk -v c="$copy" -v m="$seconds" -v b="$bytes" -v n="$merged" -v p="$peak" -v u="$cpu" -v r="$round" -v v="$verdict" -v l="$(load)" 'BEGIN {
      printf "round %d: copy %.1f s (%.0f MB/s), merge %.1f s (%.0f MB/s, %d tensors changed, check %s), ratio %.0f %%, CPU %.1f s, peak %.2f GB; load %s\n",
        r, c, b / c / 1e6, m, b / m / 1e6, n, v, 100 * c / m, u, p / 1e9, l }'
  done
done
