#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vLLM on a TPU VM.     ./serve.sh [FOLDER]          DRY_RUN=1 prints the command
. "$(dirname "$0")/image.sh"
serve_in --privileged --shm-size 16G -v /dev/shm:/dev/shm -e MODEL_IMPL_TYPE="${MODEL_IMPL_TYPE:-auto}" -- \
  --disable_chunked_mm_input
