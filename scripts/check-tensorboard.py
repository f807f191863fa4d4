#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains with train.tensorboard, stops the run, resumes it, and compares what tensorboard reads with the run's record.

    pip install tensorboard
    python scripts/check-tensorboard.py build/release/app/meshwright [EXPERIMENT]
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

STEPS, STOP_AT = 12, 5


def events_of(process):
    for line in process.stdout:
        yield json.loads(line)


def metrics(events, into):
    for event in events:
        if event["event"] == "metric":
            into.setdefault(event["name"], {})[event["step"]] = event["value"]


def main():
    program = sys.argv[1]
    root = pathlib.Path(__file__).resolve().parent.parent
    experiment = sys.argv[2] if len(sys.argv) > 2 else str(root / "resources/examples/tiny-lora.json")
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        common = ["--json", "--runs-dir", str(base / "runs")]
        sets = [f"train.tensorboard={base / 'curves'}", f"train.steps={STEPS}", "train.answers=0", "train.eval_every=4",
                "train.sample_every=0", "train.checkpoint_every=0"]
        command = [program, "run", experiment, *common] + [part for s in sets for part in ("--set", s)]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        written = {}
        for event in events_of(first):
            metrics([event], written)
            if event.get("name") == "train/loss" and event["step"] == STOP_AT:
                first.send_signal(signal.SIGINT)
        first.wait()
        resumed = subprocess.run([program, "run", "--resume", "run-1", *common], capture_output=True, text=True, check=True)
        metrics((json.loads(line) for line in resumed.stdout.splitlines()), written)
        accumulator = EventAccumulator(str(base / "curves" / "run-1"), size_guidance={"scalars": 0})
        accumulator.Reload()
        files = len(list((base / "curves" / "run-1").iterdir()))
        assert set(accumulator.Tags()["scalars"]) == set(written), (accumulator.Tags()["scalars"], sorted(written))
        for name, values in written.items():
            read = {s.step: s.value for s in accumulator.Scalars(name)}
            assert set(read) == set(values), (name, sorted(read), sorted(values))
            for step, value in values.items():
                assert abs(read[step] - value) <= 1e-6 * abs(value), (name, step, read[step], value)
        print(f"{len(written)} curves of {files} files agree with the record")


if __name__ == "__main__":
    main()
