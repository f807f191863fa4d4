# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts an exported training recipe on two hosts of this machine with something wrong on one of them, in smoke mode, with the
real software: `bad_input.py KIND PYTHON FOLDER WORK [--only CASE]`. Prints for each case what the run says; fails if a case
is not named, is named beside other errors, leaves a host running, or leaves a file in the output folder."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

PATIENCE_S, JOIN_S = 240, 25


def port():
    return random.randint(20000, 29999)


class Host:
    """One process of the recipe (JAX), or torchrun with those of a host."""

    def __init__(self, case, index, env=None, folder=None, out=None, args=()):
        self.index, self.folder = index, folder or case.folder
        self.out = out or case.out
        names = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "JOIN_TIMEOUT_S": str(JOIN_S), "HOST_NAME": f"host{index}"}
        if case.kind == "trl-fsdp":
            names.update({"NNODES": "2", "RDZV_ENDPOINT": f"127.0.0.1:{case.port}", "RDZV_ID": f"bad-{case.port}",
                          "PROCESSES": "2", "PYTHON": case.python})
            command = [str(self.folder / "run.sh")]
        else:
            names.update({"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{case.port}", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": str(index)})
            command = [case.python, str(self.folder / "train.py")]
        names.update(env or {})
        self.env = {**os.environ, **{k: v for k, v in names.items() if v is not None}}
        self.command = command + ["--smoke", "--out", str(self.out), *args]


class Case:
    def __init__(self, kind, python, folder, work):
        self.kind, self.python, self.folder, self.work = kind, python, folder, work
        self.out, self.port = work / "out", port()
        self.jax = kind != "trl-fsdp"

    def copy(self, change):
        """The recipe's folder as another host has it, with other settings."""
        folder = self.work / "other"
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("out", "__pycache__"))
        settings = json.loads((folder / "settings.json").read_text())
        change(settings)
        (folder / "settings.json").write_text(json.dumps(settings))
        return folder

    def host(self, index, **more):
        return Host(self, index, **more)


# ---- the cases: hosts, and a pattern of what has to be said ----

def other_files(case):
    folder = case.copy(lambda s: s["train"].update(learning_rate=1.0))
    return [case.host(0), case.host(1, folder=folder)], r"hosts differ in the recipe's files: process 1 on host1"


def other_devices(case):
    if not case.jax:
        return [case.host(0), case.host(1, env={"PROCESSES": "6"})], r"hosts differ in processes: process \d on host1 has 3"
    folder = case.copy(lambda s: s["mesh"].update(tp=1))
    return [case.host(0), case.host(1, folder=folder)], r"hosts differ in devices: process 1 on host1 has 1"


def too_few_hosts(case):
    env = {"NNODES": "4", "PROCESSES": "4", "JAX_NUM_PROCESSES": "4"}
    return [case.host(0, env=env), case.host(1, env=env)], r"host\d(: not all 4 processes connected| did not meet the other hosts of 4)"


def other_counts(case):
    env = {"NNODES": "4", "PROCESSES": "4", "JAX_NUM_PROCESSES": "4"}
    return [case.host(0), case.host(1, env=env)], r"hosts differ in the number of processes: process 1 on host1 has 4|did not meet the other hosts of [24]"


def no_coordinator_given(case):
    env = {"JAX_COORDINATOR_ADDRESS": None, "RDZV_ENDPOINT": None}
    return [case.host(1, env=env)], r"(JAX_COORDINATOR_ADDRESS is not set|RDZV_ENDPOINT is '')"


def no_coordinator_there(case):
    env = {"RDZV_ENDPOINT": f"coordinator.invalid:{case.port}"}
    return [case.host(1, env=env)], r"(no coordinator at 127.0.0.1:\d+|host1 did not meet the other hosts of 2 at coordinator.invalid)"


def other_clock(case):
    """The clock as this Python reads it."""
    (case.work / "late").mkdir()
    (case.work / "late" / "sitecustomize.py").write_text("import time\nclock = time.time\ntime.time = lambda: clock() + 60\n")
    args = ["--steps", "1"]
    hosts = [case.host(0, args=args), case.host(1, env={"PYTHONPATH": str(case.work / "late")}, args=args)]
    return hosts, r"clocks differ from that of process 0 on host0: process 1 on host1 by \+(59|60)"


def tmpfs(folder, size):
    folder.mkdir(parents=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]).returncode == 0


def full_disk(case):
    disk = case.work / "disk"
    if not tmpfs(disk, "16k"):
        return None, "needs the right to mount"
    return [case.host(0), case.host(1, out=disk / "out")], r"the disk of .*disk/out on host1 is too full: 0 MiB free"


def disk_that_fills(case):
    if not tmpfs(case.out, "32m"):
        return None, "needs the right to mount"
    return [case.host(0), case.host(1)], r"could not be written to .* on host\d: no space left on the disk|the disk of .* on host\d is too full"


CASES = {"other files": other_files, "other devices": other_devices, "too few hosts": too_few_hosts, "other counts": other_counts,
         "no coordinator given": no_coordinator_given, "no coordinator there": no_coordinator_there, "other clock": other_clock,
         "full disk": full_disk, "disk that fills": disk_that_fills}


# ---- running them ----

def fill(folder):
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def is_after_a_checkpoint(event):
    """Tunix says so at the end only; its last one before step 5 was after step 4."""
    return event["event"] == "checkpoint" or (event["event"] == "metric" and event["name"] == "train/loss" and event["step"] == 5)


def run(hosts, on_checkpoint=None):
    """Returns the events of all hosts, their exit codes (None: had to be killed) and their standard errors."""
    events, errors, lock = [], [], threading.Lock()

    def read(process):
        for line in process.stdout:
            if line.startswith("{"):
                event = json.loads(line)
                with lock:
                    events.append(event)
                if on_checkpoint and is_after_a_checkpoint(event):
                    on_checkpoint()

    def read_errors(process):
        errors.extend(process.stderr)

    running = [subprocess.Popen(h.command, env=h.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True) for h in hosts]
    readers = [threading.Thread(target=r, args=(p,)) for p in running for r in (read, read_errors)]
    for reader in readers:
        reader.start()
    until, codes = time.monotonic() + PATIENCE_S, []
    for process in running:
        try:
            codes.append(process.wait(max(1, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            codes.append(None)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for reader in readers:
        reader.join()
    return events, codes, errors


def said_by(events):
    """Texts of errors and warnings; those of processes that only repeat another's are the same text."""
    texts = [e["error"] for e in events if e["event"] == "finished" and e["error"]]
    texts += [e["text"] for e in events if e["event"] == "log" and e["level"] in ("error", "warning")]
    return list(dict.fromkeys(re.sub(r"^(process \d+ on host\d+: )?(SystemExit|Everywhere): ", r"\1", t) for t in texts))


def verdict(name, events, codes, texts, pattern, out):
    named = [t for t in texts if re.search(pattern, t)]
    if not named:
        return f"BAD: not named, but {texts[:3]}"
    if None in codes:
        return f"BAD: host {codes.index(None)} did not end"
    if name == "other clock":
        return named[0] if not any(codes) else f"BAD: ended with {codes}"
    if not all(codes):
        return f"BAD: ended with {codes}"
    if others := [t for t in texts if t not in named]:
        return f"BAD: beside it {others[:3]}"
    left = [str(p) for p in out.rglob("*") if p.is_file()]
    return f"BAD: left {left[:3]}" if left else named[0]


def after_the_disk_was_full(case, events, codes, texts, pattern):
    """What is there is whole, and the run goes on from it once there is room."""
    named = [t for t in texts if re.search(pattern, t)]
    if not named or None in codes or not all(codes):
        return f"BAD: {texts[:3]}, ended with {codes}"
    parts = [str(p.relative_to(case.out)) for p in case.out.rglob("*.part")]
    (case.out / "filler").unlink()
    again, codes, _ = run([case.host(0), case.host(1)])
    resumed = [e["text"] for e in again if e["event"] == "log" and "resumed from" in e["text"]]
    if any(codes) or not resumed or parts:
        return f"BAD: {named[0][:120]}; then {said_by(again)[:2]} {resumed[:1]}, parts {parts}"
    return f"{named[0]}; then {resumed[0].replace(str(case.out), 'out')}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("kind")
    p.add_argument("python")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("--only", action="append", choices=list(CASES), default=[])
    options, failed = p.parse_args(), 0
    for name in options.only or CASES:
        work = options.work.resolve() / f"{options.kind}-{name.replace(' ', '-')}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        case = Case(options.kind, options.python, options.folder.resolve(), work)
        hosts, pattern = CASES[name](case)
        if hosts is None:
            text = f"not tested: {pattern}"
        else:
            fills = name == "disk that fills"
            events, codes, errors = run(hosts, (lambda c=case: fill(c.out)) if fills else None)
            (work / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
            (work / "errors.txt").write_text("".join(errors))
            texts = said_by(events)
            text = after_the_disk_was_full(case, events, codes, texts, pattern) if fills else \
                verdict(name, events, codes, texts, pattern, case.out)
        for disk in (work / "disk", work / "out"):
            if os.path.ismount(disk):
                subprocess.run(["umount", str(disk)], check=False)
        failed += text.startswith("BAD")
        print(f"{options.kind:<10} {name:<22} {text}", flush=True)
    sys.exit(failed > 0)


main()
