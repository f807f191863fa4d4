#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzes every reader of files and of the network (tests/readers) with libFuzzer under the address and undefined-behaviour
# sanitizers, one after the other; needs clang-14.
#   scripts/fuzz.sh [READER...] [--runs N | --seconds S]    default: all of them, a million executions each
#   scripts/fuzz.sh --list                                  readers, and how often each was executed so far
# A crash, a hang over 20 s, another exception than mw::Error or too much memory leaves its input in build/fuzz/found and
# ends in failure: mend the reader and put the input into tests/readers/found/READER/. Corpora grow in build/fuzz/corpus.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
runs=1000000 seconds=0 list=no readers=()
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2; shift ;;
    --seconds) seconds=$2 runs=-1; shift ;;
    --list) list=yes ;;
    -*) sed -n '3,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    *) readers+=("$1") ;;
  esac
  shift
done
command -v clang++-14 >/dev/null || { say "clang++-14 is missing: apt-get install clang-14 libclang-rt-14-dev"; exit 1; }
build fuzz mw_fuzz_formats mw_fuzz_data mw_fuzz_serve mw_fuzz_runs
out=$root/build/fuzz
mkdir -p "$out"/{corpus,found,log}
touch "$out/executions"
declare -A binary length
all=()
for room in formats data serve runs; do
  while read -r name size; do
    all+=("$name") binary[$name]=$out/tests/fuzz/mw_fuzz_$room length[$name]=$size
  done < <("$out/tests/fuzz/mw_fuzz_$room" --list)
done
executed() { awk -v r="$1" '$1 == r { n += $2 } END { print n + 0 }' "$out/executions"; }
if [ $list = yes ]; then
  for name in "${all[@]}"; do printf '%-18s %12d\n' "$name" "$(executed "$name")"; done
  exit
fi
[ ${#readers[@]} -gt 0 ] || readers=("${all[@]}")
failed=()
export ASAN_OPTIONS=quarantine_size_mb=16:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
for name in "${readers[@]}"; do
  [ -n "${binary[$name]:-}" ] || { say "no reader is called $name (--list says which are)"; exit 2; }
  corpus=$out/corpus/$name log=$out/log/$name.log
  mkdir -p "$corpus"
  "${binary[$name]}" --reader="$name" --seeds="$corpus"
  mv -f "$corpus.dict" "$out/log/$name.dict"
  found=("$corpus"); [ -d "tests/readers/found/$name" ] && found+=("tests/readers/found/$name")
  nice -n 19 "${binary[$name]}" --reader="$name" -max_len="${length[$name]}" -timeout=20 -rss_limit_mb=2048 -dict="$out/log/$name.dict" \
    -runs="$runs" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$out/found/$name-" "${found[@]}" \
    >"$log" 2>&1 </dev/null && result=ok || { result="FAILED, see $log"; failed+=("$name"); }
  n=$(sed -nE 's/^stat::number_of_executed_units: +//p' "$log" | tail -1)
  echo "$name ${n:-0}" >>"$out/executions"
  printf '%-18s %10d executions (%d in all)  %s\n' "$name" "${n:-0}" "$(executed "$name")" "$result"
done
[ ${#failed[@]} -eq 0 ]
