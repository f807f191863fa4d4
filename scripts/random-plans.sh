#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Plans random experiments of training, serving and sizing, and fails if `audit` finds a physically impossible number in a
# prediction. With --times, other random experiments also test that plan, checker, search, size, sweep, Design page and
# report agree and that better hardware is never slower. Takes minutes.
#   scripts/random-plans.sh [--experiments N] [--seed N] [--times N]
#   --experiments  number of random experiments (100000)
#   --seed         of the first of them (1)
#   --times        how many times as many as the usual tests of consistency and properties take (0: none)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
experiments=100000
seed=1
times=0
while [ $# -gt 0 ]; do
  case "$1" in
    --experiments) experiments=$2; shift ;;
    --seed) seed=$2; shift ;;
    --times) times=$2; shift ;;
    *) say "unknown option: $1"; exit 2 ;;
  esac
  shift
done
install build test
build release mw_plan_tests mw_report_tests
export MW_RANDOM_EXPERIMENTS=$experiments MW_RANDOM_SEED=$seed MW_RANDOM_TIMES=$times
"$root/build/release/tests/mw_plan_tests" --gtest_filter='PossiblePlans.*'
[ "$times" -gt 0 ] || exit 0
"$root/build/release/tests/mw_plan_tests" --gtest_filter='Consistency.*'
"$root/build/release/tests/mw_report_tests" --gtest_filter='Agreement.*'
"$root/build/release/tests/mw_plan_tests" --gtest_filter='Properties.*'
