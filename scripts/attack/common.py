# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the attacks: the program, a small project, and outcomes."""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures"
PROJECT = FIXTURES / "version_0_1"  # a model with random weights, data and experiments


@dataclasses.dataclass
class Outcome:
    attack: str
    kind: str
    faults: list  # empty if the program withstood the attack
    skipped: str = ""


@dataclasses.dataclass
class Ended:
    code: int
    out: str
    err: str


class Program:
    def __init__(self, path):
        self.path = str(path)

    def start(self, *arguments, **options):
        environment = {**os.environ, **options.pop("env", {})}
        environment.pop("DISPLAY", None)
        return subprocess.Popen([self.path, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment, **options)

    def run(self, *arguments, timeout=120, **options):
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return Ended(-1000, out.decode(errors="replace"), err.decode(errors="replace") + f"\nstill running after {timeout} s")
        return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def project(folder, steps=90):
    """Copies the small project; its training takes about two seconds on one core."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("runs", "results*"))
    for name in ("train", "mesh", "full"):
        document = json.loads((folder / f"{name}.json").read_text())
        document["train"].update({"steps": steps if name == "train" else max(4, steps // 4), "checkpoint_every": 10, "eval_every": 20,
                                  "sample_every": 40})
        (folder / f"{name}.json").write_text(json.dumps(document))
    serve = json.loads((folder / "serve.json").read_text())
    serve["sweep"].update({"num_prompts": 20, "request_rates": [20, 40]})
    (folder / "serve.json").write_text(json.dumps(serve))
    return folder


def crash(ended):
    """Returns why this exit is a crash, or an empty string."""
    if ended.code == -1000:
        return ended.err.splitlines()[-1]
    if ended.code < 0 or ended.code >= 128 and ended.code != 130:
        return f"ended by signal (exit code {ended.code})"
    if "unexpected failure" in ended.err:
        return "unexpected failure: " + ended.err.strip().splitlines()[-1][:200]
    return ""


def parts(folder):
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if re.search(r"\.(part|old)-\d+$", p.name)]


def tree(folder):
    """Returns the contents of every file, except those with times, paths or ids."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
