# SPDX-License-Identifier: GPL-3.0-or-later
"""Full, read-only and deleted folders, and signals: the program must end with a clear error and keep committed data."""
import json
import resource
import shutil
import signal
import subprocess
import time

from common import FIXTURES, Outcome, crash, parts, project


def mount(folder, options):
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode != 0:
        return False
    return True


def unmount(folder):
    subprocess.run(["umount", "-l", folder], capture_output=True)


def listed(program, runs):
    """Returns the runs of the store, or why they cannot be listed."""
    ended = program.run("runs", "--runs-dir", runs, "--json")
    return (json.loads(ended.out)["rows"], "") if ended.code == 0 else ([], f"runs: exit code {ended.code}: {ended.err.strip()}")


def full(program, work, kib):
    name = "disk full"
    folder = project(work / f"full-{kib}")
    disk = folder / "disk"
    if not mount(disk, f"size={kib}k"):
        return Outcome(name, "tmpfs", [], "mounting needs root")
    try:
        ended = program.run("run", folder / "train.json", "--runs-dir", disk / "runs", "--json")
        faults = [crash(ended)] if crash(ended) else []
        if ended.code == 0 and '"state":"done"' not in ended.out:
            faults.append("exit code 0 without a finished run")
        if ended.code not in (0, 1):
            faults.append(f"exit code {ended.code}, not 1: {ended.err.strip()[-200:]}")
        if ended.code == 1 and "space" not in ended.err.lower() + ended.out.lower():
            faults.append("the error does not report the lack of space: " + ended.err.strip()[-200:])
        faults += [f"left behind: {p}" for p in parts(disk)]
        subprocess.run(["mount", "-o", "remount,size=64m", disk], capture_output=True)
        if (disk / "runs/runs.sqlite").exists():
            rows, fault = listed(program, disk / "runs")
            faults += [fault] if fault else []
        again = program.run("run", folder / "train.json", "--runs-dir", disk / "runs", "--json")
        if again.code != 0:
            faults.append(f"after making room: exit code {again.code}: {again.err.strip()[-200:]}")
        return Outcome(name, "tmpfs", faults)
    finally:
        unmount(disk)
        shutil.rmtree(folder, ignore_errors=True)


def read_only(program, work):
    name = "read-only"
    folder = project(work / "read-only", steps=20)
    disk = folder / "disk"
    if not mount(disk, "size=64m"):
        return [Outcome(name, "folder", [], "mounting needs root")]
    outcomes = []
    try:
        made = program.run("run", folder / "train.json", "--runs-dir", disk / "runs", "--json")
        assert made.code == 0, made
        made = program.run("run", folder / "mesh.json", "--runs-dir", disk / "runs", "--json")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for reading in (("runs",), ("compare", "run-1", "run-2")):
            ended = program.run(*reading, "--runs-dir", disk / "runs", "--json")
            outcomes.append(Outcome(name, reading[0], [] if ended.code == 0 else [f"exit code {ended.code}: {ended.err.strip()}"]))
        for writing in (("run", folder / "train.json"), ("import", FIXTURES / "bench/vllm_detailed.json")):
            ended = program.run(*writing, "--runs-dir", disk / "runs", "--json")
            faults = [crash(ended)] if crash(ended) else []
            if ended.code not in (1, 2) or not ended.err.strip():
                faults.append(f"exit code {ended.code}: {ended.err.strip()}")
            outcomes.append(Outcome(name, writing[0], faults))
        for out in (("export", folder / "train.json", "--recipe", "trl-fsdp"),):
            ended = program.run(*out, "--out", disk / "out")
            held = ended.code in (1, 2) and str(disk) in ended.err and not crash(ended)
            outcomes.append(Outcome(name, out[0], [] if held else [f"exit code {ended.code}: {ended.err.strip()}"]))
        return outcomes
    finally:
        unmount(disk)
        shutil.rmtree(folder, ignore_errors=True)


def deleted(program, work, number, rng):
    """Deletes or moves the store while a run writes to it. Success may be reported only for a run that is stored."""
    kind = ("run", "sweep")[number % 2]
    folder = project(work / f"deleted-{number}")
    runs = folder / "runs"
    try:
        arguments = ("run", folder / "train.json") if kind == "run" else ("sweep", folder / "serve.json")
        process = program.start(*arguments, "--runs-dir", runs, "--json")
        while not (runs / "runs.sqlite").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.0))
        if number % 3 == 0 and runs.exists():
            runs.rename(folder / "moved")
        else:
            shutil.rmtree(runs, ignore_errors=True)
        out, err = process.communicate(timeout=120)
        faults = []
        if process.returncode == 0 and not (runs / "runs.sqlite").exists() and not (folder / "moved/runs.sqlite").exists():
            faults.append("exit code 0, but the store is gone")
        if process.returncode == 0 and (folder / "moved").exists():
            rows, fault = listed(program, folder / "moved")
            if fault or not rows or rows[0]["state"] != "done":
                faults.append("exit code 0, but the moved store has no finished run")
        if process.returncode not in (0, 1, 2):
            faults.append(f"exit code {process.returncode}: {err.decode(errors='replace')[-200:]}")
        if process.returncode in (1, 2) and str(runs).encode() not in err:
            faults.append("the error does not name the folder: " + err.decode(errors="replace")[-200:])
        return Outcome("deleted folder", kind, faults)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def signalled(program, work, number, rng):
    """Sends a signal at a random moment: the run must end with a checkpoint, a record and exit code 130. A broken pipe must do
    no harm."""
    sent = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)[number % 4]
    kind = signal.Signals(sent).name
    folder = project(work / f"signal-{number}")
    try:
        process = program.start("run", folder / "train.json", "--runs-dir", folder / "runs", "--json")
        time.sleep(rng.uniform(0.05, 2.0))
        if sent == signal.SIGPIPE:
            process.stdout.close()
            process.stdout = None
        else:
            process.send_signal(sent)
        out, err = process.communicate(timeout=120)
        # Before the handlers are installed, the default action of the signal ends the process; no run has started then.
        begun = (folder / "runs/runs.sqlite").exists()
        allowed = {0, 130} if sent != signal.SIGPIPE else {0, 1, 130, -sent}
        if not begun:
            allowed |= {-sent}
        faults = [] if process.returncode in allowed else [f"exit code {process.returncode}: {err.decode(errors='replace')[-200:]}"]
        if begun:
            rows, fault = listed(program, folder / "runs")
            faults += [fault] if fault else []
            if rows and rows[0]["state"] not in ("cancelled", "done") and sent != signal.SIGPIPE:
                faults.append(f"the run is {rows[0]['state']}")
            if rows and rows[0]["state"] == "cancelled" and rows[0]["steps"] > 0:
                if not list((folder / "runs/run-1").glob(f"checkpoint-{rows[0]['steps']}")):
                    faults.append(f"no checkpoint of step {rows[0]['steps']}, at which the run stopped")
        return Outcome("signal", kind, faults + [f"left behind: {p}" for p in parts(folder)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file_limit(program, work, kib):
    folder = project(work / f"limit-{kib}", steps=20)
    try:
        ended = program.run("run", folder / "train.json", "--runs-dir", folder / "runs", "--json",
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024)))
        faults = [crash(ended)] if crash(ended) else []
        if ended.code != 0 and not ended.err.strip():
            faults.append("no message")
        if ended.code == 0 and '"state":"done"' not in ended.out:
            faults.append("exit code 0 without a finished run")
        return Outcome("signal", "SIGXFSZ", faults)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
