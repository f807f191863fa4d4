# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the attacks and prints a table of the results; see scripts/attack.sh."""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time

import folders
import inputs
import kills
from common import Outcome, Program, project

ATTACKS = ("kills", "signals", "http", "files", "full", "readonly", "deleted")


def tasks(program, work, chosen, total_kills, seed):
    """Yields (name, function) of every attack; a function returns an Outcome or a list of them."""
    if "kills" in chosen:
        killer = kills.Kills(program, work, random.Random(seed))
        for kind, count in kills.shares(total_kills).items():
            killer.prepare(kind)
            for number in range(count):
                yield f"kill {kind}", lambda kind=kind, number=number: killer.one(kind, number)
    rng = random.Random(seed + 1)
    if "signals" in chosen:
        for number in range(40):
            yield "signal", lambda number=number: folders.signalled(program, work, number, rng)
        for kib in (4, 16, 64, 100, 200):
            yield "file size limit", lambda kib=kib: folders.file_limit(program, work, kib)
    if "deleted" in chosen:
        for number in range(24):
            yield "deleted", lambda number=number: folders.deleted(program, work, number, rng)
    if "full" in chosen:
        for kib in (16, 64, 128, 160, 200, 256, 300, 350, 400, 500):
            yield "full", lambda kib=kib: folders.full(program, work, kib)
    if "readonly" in chosen:
        yield "read-only", lambda: folders.read_only(program, work)
    if "http" in chosen:
        yield "http", lambda: inputs.http(program, work, rounds=3)
    if "files" in chosen:
        small = project(work / "hostile-project")
        number = 0
        for path in inputs.hostile_files(work / "hostile"):
            for arguments in inputs.commands_reading(path, small):
                number += 1
                yield "file", lambda path=path, arguments=arguments, number=number: inputs.hostile_file(
                    program, work, path, arguments, number)


def run_all(prepared, jobs):
    outcomes, began = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(task): name for name, task in prepared}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            try:
                result = future.result()
            except Exception as error:  # an error in the attack itself is reported as a fault
                result = Outcome(futures[future], "attack", [f"{type(error).__name__}: {error}"])
            outcomes += result if isinstance(result, list) else [result]
            if done % 20 == 0:
                left = (time.monotonic() - began) / done * (len(futures) - done)
                print(f"  {done} of {len(futures)} attacks, {left:.0f} s left", file=sys.stderr)
    return outcomes


def table(outcomes):
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for o in outcomes:
        row = rows[o.attack, o.kind]
        row[0] += 1
        row[1] += not o.faults and not o.skipped
        row[2] += bool(o.skipped)
    lines = [f"{'attack':16} {'kind':22} {'tries':>6} {'held':>6} {'skipped':>8}"]
    lines += [f"{attack:16} {kind:22} {tries:6} {held:6} {skipped:8}" for (attack, kind), (tries, held, skipped) in sorted(rows.items())]
    lines.append(f"{'all':39} {len(outcomes):6} {sum(r[1] for r in rows.values()):6} {sum(r[2] for r in rows.values()):8}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--only", default=",".join(ATTACKS))
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - set(ATTACKS):
        parser.error(f"unknown attack: {', '.join(sorted(unknown))} (known attacks: {', '.join(ATTACKS)})")
    work = pathlib.Path(tempfile.mkdtemp(prefix="meshwright-attack-"))
    try:
        began = time.monotonic()
        outcomes = run_all(list(tasks(Program(arguments.program), work, chosen, arguments.kills, arguments.seed)), arguments.jobs)
        faults = [(o, f) for o in outcomes for f in o.faults]
        for outcome, fault in faults:
            print(f"{outcome.attack}, {outcome.kind}: {fault}")
        print(table(outcomes))
        print(f"{time.monotonic() - began:.0f} s, seed {arguments.seed}")
        if arguments.json:
            arguments.json.write_text(json.dumps([vars(o) for o in outcomes], indent=1) + "\n")
        sys.exit(1 if faults else 0)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
