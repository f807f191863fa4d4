#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Benchmarks Meshwright against PyTorch (transformers + peft) and llama.cpp: the same work with the same random weights and
# number of threads, measured alternately. Prints medians, ratios and peak memory as a table; --json FILE writes JSON.
#   scripts/peers.sh [--shape 270m|1b] [--only lora,gsm8k,prefill,decode] [--ways TEXT] [--rounds N] [--threads N]
#                    [--seconds S] [--wrap COMMAND] [--json FILE] [--help]
#   --ways     measure only the peer configurations whose names contain TEXT, such as 'bf16, eager'
#   --seconds  minimum measuring time of each process
#   --wrap     command prefix of every measured process, such as 'taskset -c 0,1'
# The peers are installed once from PyPI, in build/peers; MESHWRIGHT_PEERS_PYTHON=/path/python uses another installation.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test peers
folder="$root/build/peers"
python=${MESHWRIGHT_PEERS_PYTHON:-$folder/python/bin/python}
mkdir -p "$folder/models"
if [ -z "${MESHWRIGHT_PEERS_PYTHON:-}" ] && [ ! -f "$folder/python/ready" ]; then
  say "Installing the peers from PyPI: several GiB; llama.cpp is compiled for this CPU (ten minutes or more)"
  python3 -m venv "$folder/python"
  CMAKE_ARGS="-DGGML_NATIVE=ON" "$python" -m pip install -q torch transformers peft tokenizers safetensors numpy llama-cpp-python
  touch "$folder/python/ready"
fi
build ci mw_peer_bench
exec "$python" "$root/scripts/peers/bench.py" --program "$root/build/ci/benchmarks/mw_peer_bench" --folder "$folder" "$@"
