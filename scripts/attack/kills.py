# SPDX-License-Identifier: GPL-3.0-or-later
"""kill -9 at a random moment: the store must open, no partial file may remain, and resumed work must end the same."""
import json
import shutil
import signal
import sqlite3
import time

from common import FIXTURES, Outcome, crash, parts, project, tree

SHARE = {"train": 100, "mesh": 50, "sweep": 40, "import": 40, "merge": 25, "export": 20, "convert": 25}  # of 300


def command(kind, folder):
    runs = ("--runs-dir", folder / "runs", "--json")
    return {
        "train": ("run", folder / "train.json", *runs),
        "mesh": ("run", folder / "mesh.json", *runs),
        "sweep": ("sweep", folder / "serve.json", "--out", folder / "out", *runs),
        "import": ("import", FIXTURES / "bench/vllm_detailed.json", FIXTURES / "logs/wandb/run-fixture.wandb", *runs),
        "merge": ("merge", "--base", FIXTURES / "gemma3_tiny", "--adapter", FIXTURES / "orbax/tunix_gemma3_tiny", "--alpha", "6",
                  "--out", folder / "out"),
        "export": ("export", folder / "train.json", "--recipe", "trl-fsdp", "--out", folder / "out"),
        "convert": ("convert", "--base", FIXTURES / "gemma3_tiny", "--adapter", FIXTURES / "orbax/tunix_gemma3_tiny", "--alpha",
                    "6", "--out", folder / "out"),
    }[kind]


def events(folder, run):
    """Returns the stored events of a run without times. Progress and resume events are omitted, as they differ."""
    database = sqlite3.connect(f"file:{folder / 'runs/runs.sqlite'}?mode=ro", uri=True)
    rows = database.execute("SELECT kind, step, name, value FROM events WHERE run=? ORDER BY sequence", (run,)).fetchall()
    database.close()
    timed = ("train/tokens_per_second",)
    return sorted(set(str(r) for r in rows if r[0] == "metric" and r[2] not in timed)), [
        str(r) for r in rows if r[0] == "metric" and r[2] not in timed]


class Kills:
    def __init__(self, program, work, rng):
        self.program, self.work, self.rng, self.reference = program, work, rng, {}

    def prepare(self, kind):
        """Runs each kind of work undisturbed, to measure its duration and keep its results."""
        folder = project(self.work / f"reference-{kind}")
        began = time.monotonic()
        ended = self.program.run(*command(kind, folder))
        assert ended.code == 0, (kind, ended)
        self.reference[kind] = (time.monotonic() - began, folder)

    def one(self, kind, number):
        """Kills one process. If it ended before the chosen moment, kills another one earlier."""
        seconds, reference = self.reference[kind]
        folder = self.work / f"kill-{kind}-{number}"
        try:
            for earlier in range(20):
                shutil.rmtree(folder, ignore_errors=True)
                project(folder)
                process = self.program.start(*command(kind, folder))
                time.sleep(self.rng.uniform(0, seconds * 0.8**earlier))
                process.send_signal(signal.SIGKILL)
                process.communicate()
                if process.returncode == -signal.SIGKILL:
                    break
            else:
                return Outcome("kill -9", kind, ["ended before every chosen moment"])
            return Outcome("kill -9", kind, (self.after_run if kind in ("train", "mesh") else self.after_output)(kind, folder, reference))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def after_run(self, kind, folder, reference):
        faults = []
        listed = self.program.run("runs", "--runs-dir", folder / "runs", "--json")
        if listed.code != 0:
            return [f"runs: exit code {listed.code}: {listed.err.strip()}"]
        faults += [f"left behind: {p}" for p in parts(folder)]
        rows = json.loads(listed.out)["rows"]
        if not rows or rows[0]["state"] == "queued":
            return faults
        if rows[0]["state"] != "done":
            if rows[0]["state"] != "failed" or "interrupted" not in rows[0]["error"]:
                faults.append(f"the run is {rows[0]['state']}: {rows[0]['error']}")
            resumed = self.program.run(*command(kind, folder), "--resume", "run-1")
            if resumed.code != 0:
                return faults + [f"resume: exit code {resumed.code}: {resumed.err.strip()[-300:]}"]
        steps = [int(p.name.split("-")[1]) for p in (folder / "runs/run-1").glob("checkpoint-*") if ".part" not in p.name]
        last = f"checkpoint-{max(steps)}"
        for name in ("adapter_model.safetensors", "trainer_state.safetensors"):
            if (folder / "runs/run-1" / last / name).read_bytes() != (reference / "runs/run-1" / last / name).read_bytes():
                faults.append(f"{last}/{name} differs from that of the undisturbed run")
        (ours, ours_all), (theirs, _) = events(folder, 1), events(reference, 1)
        if ours != theirs:
            faults.append(f"metrics differ from those of the undisturbed run: {sorted(set(ours) ^ set(theirs))[:3]}")
        if len(ours_all) != len(set(ours_all)):
            faults.append("a metric is stored twice: " + next(e for e in ours_all if ours_all.count(e) > 1))
        return faults + [f"left behind after resuming: {p}" for p in parts(folder)]

    def after_output(self, kind, folder, reference):
        faults = []
        out, whole = folder / "out", reference / "out"
        if kind in ("merge", "convert", "export") and out.exists() and kind != "merge" and set(tree(out)) != set(tree(whole)):
            faults.append("the output folder exists but is incomplete: " + str(set(tree(whole)) - set(tree(out))))
        if kind == "merge" and out.exists() and not set(tree(whole)) - {"merge.json"} <= set(tree(out)):
            faults.append("the merged folder exists but is incomplete")
        if kind == "sweep":
            for file in out.glob("*.json") if out.exists() else []:
                json.loads(file.read_text())
        if kind in ("sweep", "import"):
            listed = self.program.run("runs", "--runs-dir", folder / "runs", "--json")
            if listed.code != 0:
                faults.append(f"runs: exit code {listed.code}: {listed.err.strip()}")
        if kind in ("merge", "convert") and out.exists():
            shutil.rmtree(out)
        again = self.program.run(*command(kind, folder))
        if again.code != 0:
            faults.append(f"second run: exit code {again.code}: {again.err.strip()[-300:]} {crash(again)}")
        elif kind in ("merge", "convert", "export"):
            ours, theirs = tree(out), tree(whole)
            for name in sorted(set(ours) | set(theirs)):
                if name.endswith((".safetensors", ".py")) and ours.get(name) != theirs.get(name):
                    faults.append(f"{name} differs from that of the undisturbed run")
        return faults + [f"left behind: {p}" for p in parts(folder)]


def shares(total):
    return {kind: max(1, round(total * part / sum(SHARE.values()))) for kind, part in SHARE.items()}
