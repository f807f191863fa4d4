#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans, trains and exports on a data set that is several times larger than the memory that the program may use.

    benchmarks/large_data.py FOLDER [--rows 1000000] [--limit 128] [--preset release]

The limit (MiB) is a control group of the kernel, so it needs root: heap, mapped files and the page cache of the command
count, and the kernel kills a command that needs more. Prints wall time and the largest resident memory, which includes mapped
files, of every command. Fails if one fails, if the data is not at least four times the limit, or if training with the limit
and without it differ.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = "mesh shard token layer batch prompt cache memory step device axis weight rank adapter gradient loss attention norm".split()


def write_rows(file, rows):
    """JSONL of prompts and completions, about 680 bytes a row; every row begins with its number. The last hundredth repeats
    the first rows."""
    unique = rows - rows // 100
    draw = random.Random(1)
    texts = [" ".join(draw.choice(WORDS) for _ in range(50)) for _ in range(1000)]
    with open(file, "w") as out:
        for i in (row % unique for row in range(rows)):
            out.write(json.dumps({"prompt": f"{i}: {texts[i % 1000]}", "completion": texts[(i * 7 + i // 1000) % 1000]}) + "\n")


class MemoryGroup:
    """A control group (version 1 or 2) whose processes use at most `limit` bytes, page cache included."""

    def __init__(self, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        old = (root / "memory").is_dir()
        self.folder = (root / "memory" if old else root) / f"large_data.{os.getpid()}"
        try:
            if not old:
                (root / "cgroup.subtree_control").write_text("+memory")
            self.folder.mkdir()
            (self.folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
        except OSError as error:
            sys.exit(f"a memory limit needs root and a writable {root}: {error}")

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.folder.rmdir()


def run(command, environment, group=None):
    """Runs a command, in the memory group if there is one: output, seconds and peak MiB."""
    start = time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                               preexec_fn=group.enter if group else None)
    text = process.stdout.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code:
        sys.exit(f"{' '.join(map(str, command))}\nended with {code}: {text[-2000:]}")
    return text, time.monotonic() - start, used.ru_maxrss / 1024


def events(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def losses(output):
    """{step: loss} of the events that `run --json` prints."""
    return {e["step"]: e["value"] for e in events(output) if e.get("event") == "metric" and e.get("name") == "train/loss"}


def dropped_rows(output):
    """Training rows that a run dropped because they repeat others."""
    started = next(e for e in events(output) if e["event"] == "started")
    return started["info"]["data"]["dropped_repeated"] + started["info"]["data"]["dropped_held_out"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=128, help="MiB")
    parser.add_argument("--preset", default="release")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    data = args.folder / f"rows-{args.rows}-repeated.jsonl"
    if not data.exists():
        write_rows(data, args.rows)
    size, limit = data.stat().st_size, args.limit << 20
    if size < 4 * limit:
        sys.exit(f"{size} bytes of data are less than four times the limit: give more --rows")
    print(f"{args.rows} rows, {size / 1e6:.0f} MB of data; limit {args.limit} MiB")
    program = ROOT / "build" / args.preset / "app/meshwright"
    settings = [word for s in (f"data.path={data}", "data.max_len=256", "data.overlong=truncate", "train.steps=20",
                               "train.batch=4", "train.answers=0", "data.eval_fraction=0") for word in ("--set", s)]
    example = ROOT / "resources/examples/tiny-lora.json"
    runs = args.folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    shutil.rmtree(args.folder / "recipe", ignore_errors=True)
    environment = dict(os.environ, MESHWRIGHT_RUNS=str(runs), XDG_CONFIG_HOME=str(args.folder / "config"))
    recipe = ["--recipe", "trl-fsdp", "--out", args.folder / "recipe"]
    outputs, group = {}, MemoryGroup(limit)
    commands = (("plan, first", ["plan", example, *settings], group),
                ("plan, again", ["plan", example, *settings], group),
                ("run", ["run", "--json", example, *settings], group),
                ("run, no limit", ["run", "--json", example, *settings], None),
                ("run, dedup", ["run", "--json", example, *settings, "--set", "data.dedup=true"], group),
                ("dedup, no limit", ["run", "--json", example, *settings, "--set", "data.dedup=true"], None),
                ("export", ["export", example, *settings, *recipe], group))
    try:
        for name, command, its_group in commands:
            outputs[name], seconds, peak = run([program, *command], environment, its_group)
            print(f"{name:15} {seconds:6.1f} s   {peak:5.0f} MiB resident at most")
    finally:
        group.remove()
    for limited, free in (("run", "run, no limit"), ("run, dedup", "dedup, no limit")):
        with_limit, without = losses(outputs[limited]), losses(outputs[free])
        if not with_limit or with_limit != without:
            sys.exit(f"{limited}: the losses differ: {with_limit} and {without}")
        print(f"{limited}: {len(with_limit)} losses are the same with the limit and without it")
    dropped = dropped_rows(outputs["run, dedup"])
    if dropped != args.rows // 100:
        sys.exit(f"data.dedup dropped {dropped} rows, not {args.rows // 100}")
    print(f"data.dedup dropped {dropped} rows")


if __name__ == "__main__":
    main()
