#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Plans random experiments of training, serving and sizing, and fails if `audit` finds a physically impossible number in a
# prediction. Takes minutes.
#   scripts/random-plans.sh [--experiments N] [--seed N]
#   --experiments  number of random experiments (100000)
#   --seed         of the first of them (1)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
experiments=100000
seed=1
while [ $# -gt 0 ]; do
  case "$1" in
    --experiments) experiments=$2; shift ;;
    --seed) seed=$2; shift ;;
    *) say "unknown option: $1"; exit 2 ;;
  esac
  shift
done
install build test
build ci mw_planning_tests
MW_RANDOM_EXPERIMENTS=$experiments MW_RANDOM_SEED=$seed exec "$root/build/ci/tests/mw_planning_tests" \
  --gtest_filter='PossiblePlans.*'
