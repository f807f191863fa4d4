# SPDX-License-Identifier: Apache-2.0
"""Event lines on standard output, as `meshwright watch` reads them: one JSON object a line."""
import importlib.metadata
import json
import math
import pathlib
import sys
import time

_BEGUN = time.monotonic()
_OUT = sys.stdout
sys.stdout = sys.stderr  # what libraries print must not come between the events


def _number(value):
    value = float(value)
    return value if math.isfinite(value) else None


def emit(event, **fields):
    line = {"event": event, **fields, "time_s": round(time.monotonic() - _BEGUN, 6)}
    _OUT.write(json.dumps(line, allow_nan=False) + "\n")
    _OUT.flush()


def started(settings, steps, packages, rows, **more):
    """Says what is carried out (the experiment's document, where the software differs by design) and by what."""
    document = pathlib.Path(__file__).resolve().parent / "experiment.json"
    emit("started", info={"name": settings["name"], "software": settings["recipe"], "steps": steps,
                          "mesh": settings["mesh"], "settings": {k: settings[k] for k in ("lora", "train")},
                          "versions": {p: importlib.metadata.version(p) for p in packages},
                          "differences": settings["differences"], "source": rows.source,
                          "experiment": json.loads(document.read_text(encoding="utf-8")), **more})


def metric(name, step, value):
    emit("metric", name=name, step=int(step), value=_number(value))


def held_out(step, loss):
    """Loss and perplexity of the held-out rows."""
    metric("eval/loss", step, loss)
    metric("eval/perplexity", step, math.exp(loss) if loss < 700 else math.inf)


def log(text, level="info"):
    emit("log", level=level, text=text)


def checkpoint(step, path):
    emit("checkpoint", step=int(step), path=str(path))


def finished(state, steps, tokens=0, error="", summary=None):
    emit("finished", state=state, steps=int(steps), tokens=int(tokens),
         seconds=round(time.monotonic() - _BEGUN, 3), error=error, summary=summary or {})


class finishing:
    """The last word of a run, whatever ends it."""

    def __init__(self):
        self.steps = self.tokens = 0
        self.summary = {}  # final results

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            finished("done", self.steps, self.tokens, summary=self.summary)
        elif issubclass(kind, KeyboardInterrupt):
            finished("cancelled", self.steps, self.tokens, summary=self.summary)
        else:
            finished("failed", self.steps, self.tokens, f"{kind.__name__}: {error}", self.summary)
        return False
