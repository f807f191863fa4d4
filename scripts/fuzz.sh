#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzes the readers of files and network input (tests/readers) with libFuzzer under the address and undefined-behaviour
# sanitizers. Needs clang-14.
#   scripts/fuzz.sh [READER...] [--runs N | --seconds S | --upto N] [--jobs J] [--no-build]
#                     executes each reader N more times (default: a million), or for S seconds, or in turns of two
#                     minutes until it has N executions in total or has run for an hour; J readers run in parallel
#   scripts/fuzz.sh --list     lists the readers with their total executions and seconds
#   scripts/fuzz.sh --record   adds the executions of this folder to tests/fuzz/executed.txt
#   scripts/fuzz.sh --minimise [READER...]   reduces the corpora of build/fuzz to the inputs needed for their coverage, in
#                     tests/readers/corpus; fuzzing starts from them, and the tests of every build read them
# A crash, a hang over 20 s, an exception other than mw::Error or excessive memory use is a failure; its input is kept in
# build/fuzz/found. Fix the reader and add the input to tests/readers/found/READER/. Corpora grow in build/fuzz/corpus.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
cd "$root"
runs=1000000 seconds=0 upto=0 jobs=1 mode=fuzz make=yes readers=()
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2; shift ;;
    --seconds) seconds=$2 runs=-1; shift ;;
    --upto) upto=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --list) mode=list ;;
    --record) mode=record ;;
    --minimise) mode=minimise ;;
    --no-build) make=no ;;
    -*) sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    *) readers+=("$1") ;;
  esac
  shift
done
out=$root/build/fuzz ever=$root/tests/fuzz/executed.txt hour=3600 turn=120
if [ $make = yes ]; then
  command -v clang++-14 >/dev/null || { say "clang++-14 is missing: apt-get install clang-14 libclang-rt-14-dev"; exit 1; }
  build fuzz mw_fuzzers
fi
mkdir -p "$out"/{corpus,found,log}
touch "$out/executions"
declare -A length
all=()
for fuzzer in "$out"/tests/fuzz/mw_fuzz_*; do
  read -r name size < <("$fuzzer" --list)
  all+=("$name") length[$name]=$size
done

# executed READER [RECORD]: prints "EXECUTIONS SECONDS" of this folder, plus those of the record if given.
executed() { awk -v r="$1" '$1 == r { n += $2; s += $3 } END { printf "%d %d\n", n, s }' "${@:2}" "$out/executions"; }

table() {
  for name in "${all[@]}"; do printf '%-18s %12d %8d\n' "$name" $(executed "$name" "$ever"); done
}

fuzz() {  # reader, executions, seconds
  local name=$1 fuzzer=$out/tests/fuzz/mw_fuzz_$1 corpus=$out/corpus/$1 log=$out/log/$1.log result=ok begun n all_of
  mkdir -p "$corpus"
  "$fuzzer" --seeds="$corpus"
  mv -f "$corpus.dict" "$out/log/$name.dict"
  local folders=("$corpus"); [ -d "tests/readers/found/$name" ] && folders+=("tests/readers/found/$name")
  begun=$(date +%s)
  nice -n 19 "$fuzzer" -max_len="${length[$name]}" -timeout=20 -rss_limit_mb=2048 \
    -dict="$out/log/$name.dict" -runs="$2" -max_total_time="$3" -entropic=0 -detect_leaks=0 -print_final_stats=1 \
    -artifact_prefix="$out/found/$name-" "${folders[@]}" >"$log" 2>&1 </dev/null || result="FAILED, see $log"
  n=$(sed -nE 's/^stat::number_of_executed_units: +//p' "$log" | tail -1)
  echo "$name ${n:-0} $(($(date +%s) - begun))" >>"$out/executions"
  all_of=$(executed "$name" "$ever")
  printf '%-18s %10d executions (%d in all)  %s\n' "$name" "${n:-0}" "${all_of% *}" "$result"
  [ "$result" = ok ]
}

minimise() {  # reader
  local name=$1 fuzzer=$out/tests/fuzz/mw_fuzz_$1 corpus=$out/corpus/$1 least=$out/least/$1 log=$out/log/$1.least
  rm -rf "$least"
  mkdir -p "$corpus" "$least"
  "$fuzzer" --seeds="$corpus"
  rm "$corpus.dict"
  "$fuzzer" -set_cover_merge=1 -use_counters=0 -detect_leaks=0 -max_len="${length[$name]}" "$least" "$corpus" \
    >"$log" 2>&1 </dev/null || { say "$name: see $log"; return 1; }
  "$fuzzer" --pack="$least"
  printf '%-18s %6d inputs of %d\n' "$name" "$(find "$least" -type f | wc -l)" "$(find "$corpus" -type f | wc -l)"
}

case $mode in
  list) table; exit ;;
  record)
    table >"$out/table"
    # Readers whose fuzzer is not built here keep their lines.
    { sed -n '/^#/p' "$ever"; { cat "$out/table"; awk 'NR == FNR { built[$1]; next } !/^#/ && !($1 in built)' "$out/table" "$ever"; } | sort; } \
      >"$out/record"
    mv "$out/record" "$ever" && : >"$out/executions"
    exit ;;
esac
[ ${#readers[@]} -gt 0 ] || readers=("${all[@]}")
for name in "${readers[@]}"; do
  [ -n "${length[$name]:-}" ] || { say "unknown reader $name (--list prints the readers)"; exit 2; }
done
# Most readers spend their time in allocations, which these options make cheap. Leaks are detected at the end of a run.
export ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:max_malloc_fill_size=0:max_redzone=64
export UBSAN_OPTIONS=print_stacktrace=1
failed=0
wait_for_one() { wait -n || failed=$((failed + 1)); }
wait_for_room() { while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait_for_one; done; }
wait_for_all() { while [ -n "$(jobs -rp)" ]; do wait_for_one; done; }
if [ $mode = minimise ]; then
  for name in "${readers[@]}"; do wait_for_room; minimise "$name" & done
  wait_for_all
  [ $failed -eq 0 ]
  exit
fi
while :; do
  begun=0
  for name in "${readers[@]}"; do
    if [ "$upto" -gt 0 ]; then
      read -r n s < <(executed "$name" "$ever")
      [ "$n" -lt "$upto" ] && [ "$s" -lt $hour ] || continue
      ! compgen -G "$out/found/$name-*" >/dev/null || continue
      runs=$((upto - n)) seconds=$turn
    fi
    wait_for_room
    fuzz "$name" "$runs" "$seconds" &
    begun=$((begun + 1))
  done
  wait_for_all
  [ "$upto" -gt 0 ] && [ $begun -gt 0 ] || break
done
[ $failed -eq 0 ]
