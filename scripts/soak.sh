#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Serves mixed traffic for two hours on a free port: chats and completions, whole and streamed, shared prefixes, long
# prompts, sampled answers, answers that clients break off or read slowly, bursts, and requests that must be refused.
# Checks that every answer is as expected, that greedy and seeded answers never change, and that memory, threads and open
# files of the server do not grow. Prints a table while it runs; exits with 1 if a check fails.
#   scripts/soak.sh [--seconds N] [--rate REQUESTS_PER_S] [--seed N] [--json FILE] [--experiment FILE]
# MESHWRIGHT=PATH selects the program; the default is build/release, which is built first.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
source "$root/scripts/serve-for.sh"
options_of_load "$root/resources/examples/tiny-serve.json" "$@"
install build test
serve_for "$experiment"
python3 "$root/scripts/attack/soak.py" --url "$address" --pid "$server_pid" "${options[@]}"
