#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Benchmarks Meshwright against PyTorch (transformers + peft, with and without torch.compile), llama.cpp and OpenVINO: the
# same work with the same random weights and number of threads, measured alternately. Prints medians, ratios and peak memory
# as a table, ours in bf16 and in f32; --json FILE writes JSON. benchmarks/results holds such files; scripts/peers/chart.py draws
# them for the manual.
#   scripts/peers.sh [--shape 270m|1b] [--only lora,gsm8k,prefill,decode] [--ways REGEX] [--rounds N] [--threads N]
#                    [--seconds S] [--tokens N] [--cpu native|amx|avx512_bf16|avx512_vnni|avx512|avx2] [--wrap COMMAND] [--json FILE] [--help]
#   --cpu      limit every program to this class of processors: llama.cpp is built for it, the others obey environment variables;
#              amx limits nothing, needs a processor with AMX and names the results so
#   --ways     measure only the peer configurations whose names match this regular expression, such as 'eager|flash'
#   --seconds  minimum measuring time of each process
#   --tokens   tokens that decoding adds to each row
#   --wrap     command prefix of every measured process, such as 'taskset -c 0,1'
# The peers are installed once from PyPI, in build/peers. MESHWRIGHT_PEERS_PYTHON=/path/python uses another installation and
# MESHWRIGHT_PEERS_LLAMA=/path another folder with llama-cpp-python.
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
avx2="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"
case $cpu in
  native | amx) flags="-DGGML_NATIVE=ON" ;;
  avx2) flags=$avx2 ;;
  avx512) flags="$avx2 -DGGML_AVX512=ON" ;;
  avx512_vnni) flags="$avx2 -DGGML_AVX512=ON -DGGML_AVX512_VNNI=ON" ;;
  avx512_bf16) flags="$avx2 -DGGML_AVX512=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON" ;;
  *)
    echo "peers.sh: --cpu: found '$cpu'; expected native, amx, avx512_bf16, avx512_vnni, avx512 or avx2" >&2
    exit 2
    ;;
esac
python=${MESHWRIGHT_PEERS_PYTHON:-$folder/python/bin/python}
llama=${MESHWRIGHT_PEERS_LLAMA:-$folder/llama-$cpu}
mkdir -p "$folder/models"
if [ -z "${MESHWRIGHT_PEERS_PYTHON:-}" ] && [ ! -f "$folder/python/installed" ]; then
  say "Installing PyTorch and OpenVINO from PyPI: several GiB"
  python3 -m venv "$folder/python"
  # optimum-intel exports Gemma for OpenVINO with transformers below 5 only.
  "$python" -m pip install -q torch 'transformers<5' peft tokenizers safetensors numpy openvino optimum-intel
  touch "$folder/python/installed"
fi
if [ ! -d "$llama" ]; then
  say "Compiling llama.cpp for $cpu processors (ten minutes or more)"
  rm -rf "$llama.part"
  # Without pip's cache, which would return a llama.cpp that was built for another class.
  CMAKE_ARGS="$flags -DLLAVA_BUILD=OFF" "$python" -m pip install -q --no-cache-dir --no-binary llama-cpp-python \
    --target "$llama.part" llama-cpp-python
  mv "$llama.part" "$llama"
fi
build release mw_peer_bench
exec "$python" "$root/scripts/peers/bench.py" --program "$root/build/release/benchmarks/mw_peer_bench" --folder "$folder" \
  --llama "$llama" "$@"
