#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs requirements.txt into venv/ where that has not been done, then trains: what `meshwright launch` starts.
# Arguments go to train.py. PYTHON=... takes a Python that has everything, and installs nothing.
set -euo pipefail
cd "$(dirname "$0")"
if [ -z "${PYTHON:-}" ]; then
  exec 9> .venv.lock
  flock 9  # hosts may share the folder
  if [ ! -e venv/complete ]; then
    wanted=(-r requirements.txt)
    if grep -q '^jax==' requirements.txt && { ls /dev/accel* /dev/vfio/[0-9]* >/dev/null 2>&1; }; then wanted+=('jax[tpu]'); fi
    python3 -m venv venv >&2
    venv/bin/python -m pip install --progress-bar off --quiet "${wanted[@]}" >&2
    touch venv/complete
  fi
  exec 9>&-
  PYTHON=$PWD/venv/bin/python
fi
export PYTHON
if [ -e run.sh ]; then exec ./run.sh "$@"; else exec "$PYTHON" train.py "$@"; fi
