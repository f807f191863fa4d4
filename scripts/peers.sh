#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Benchmarks Meshwright against PyTorch (transformers + peft) and llama.cpp: the same work with the same random weights and
# number of threads, measured alternately. Prints medians, ratios and peak memory as a table; --json FILE writes JSON.
#   scripts/peers.sh [--shape 270m|1b] [--only lora,gsm8k,prefill,decode] [--ways TEXT] [--rounds N] [--threads N]
#                    [--seconds S] [--cpu native|avx512|avx2] [--wrap COMMAND] [--json FILE] [--help]
#   --cpu      limit every program to this class of processors: llama.cpp is built for it, the others obey environment variables
#   --ways     measure only the peer configurations whose names contain TEXT, such as 'bf16, eager'
#   --seconds  minimum measuring time of each process
#   --wrap     command prefix of every measured process, such as 'taskset -c 0,1'
# The peers are installed once from PyPI, in build/peers; MESHWRIGHT_PEERS_PYTHON=/path/python uses another installation.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
install build test peers
folder="$root/build/peers"
cpu=native previous=
for argument in "$@"; do
  if [ "$previous" = --cpu ]; then cpu=$argument; fi
  case $argument in --cpu=*) cpu=${argument#--cpu=} ;; esac
  previous=$argument
done
# The flags of llama.cpp's build for the class, and the folder of its installation.
avx2="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"
case $cpu in
  native) flags="-DGGML_NATIVE=ON" installed=python ;;
  avx2) flags=$avx2 installed=python-avx2 ;;
  avx512) flags="$avx2 -DGGML_AVX512=ON" installed=python-avx512 ;;
  *)
    echo "peers.sh: --cpu: found '$cpu'; expected native, avx512 or avx2" >&2
    exit 2
    ;;
esac
python=${MESHWRIGHT_PEERS_PYTHON:-$folder/$installed/bin/python}
mkdir -p "$folder/models"
if [ -z "${MESHWRIGHT_PEERS_PYTHON:-}" ] && [ ! -f "$folder/$installed/ready" ]; then
  say "Installing the peers from PyPI: several GiB; llama.cpp is compiled for $cpu processors (ten minutes or more)"
  python3 -m venv "$folder/$installed"
  # Without pip's cache, which would return a llama.cpp that was built for another class.
  CMAKE_ARGS="$flags" "$python" -m pip install -q --no-cache-dir torch transformers peft tokenizers safetensors numpy \
    llama-cpp-python
  touch "$folder/$installed/ready"
fi
build ci mw_peer_bench
exec "$python" "$root/scripts/peers/bench.py" --program "$root/build/ci/benchmarks/mw_peer_bench" --folder "$folder" "$@"
