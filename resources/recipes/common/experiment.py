# SPDX-License-Identifier: Apache-2.0
"""The experiment of settings.json and what the command line says of it; before anything heavy is imported."""
import argparse
import json
import os
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))


def parser(about, out, model, name="", smoke=""):
    """Of every train.py. `out`, `model`: what they help with; `name`: the model's where no folder is given."""
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--model", default=SETTINGS["model"]["path"] or name, help=model)
    p.add_argument("--out", default=str(HERE / "out"), help=out)
    p.add_argument("--steps", type=int, help="stop after so many steps")
    p.add_argument("--data", metavar="FILE", help="downloaded copy of data.source (JSON or JSON Lines), to load nothing "
                                                  "from the hub")
    p.add_argument("--smoke", action="store_true",
                   help=f"try it on this CPU{smoke}; without --model a tiny random model of the family")
    return p


def force_cpu_devices(processes):
    """JAX, not imported yet, takes this CPU for eight devices; several processes share those of the mesh, at most eight."""
    mesh = SETTINGS["mesh"]["fsdp"] * SETTINGS["mesh"]["tp"]
    count = min(mesh, 8) if processes > 1 else 8
    if count % processes:
        raise SystemExit(f"--smoke: {processes} processes cannot share {count} devices equally; start a divisor of {count}")
    count //= processes
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
