#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vLLM on the GPUs of this machine.     ./serve.sh [FOLDER]          DRY_RUN=1 prints the command
. "$(dirname "$0")/image.sh"
serve_in --gpus all --ipc host --
