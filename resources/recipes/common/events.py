# SPDX-License-Identifier: Apache-2.0
"""Event lines on standard output, as `meshwright watch` reads them: one JSON object a line. Of several processes, only
the first prints what concerns the whole run; the others print warnings, errors and the memory of their devices."""
import contextlib
import importlib.metadata
import json
import math
import os
import pathlib
import sys
import threading
import time

_BEGUN = time.monotonic()
_OUT, _fd = sys.stdout, sys.stdout.fileno()
sys.stdout = sys.stderr  # what libraries print must not come between the events
_LOCK = threading.RLock()
_host = None  # {"process", "name"} of several processes
_note = None  # told every event of this process
_progress = {"steps": 0, "tokens": 0}  # for a last word from another thread


def _number(value):
    value = float(value)
    return value if math.isfinite(value) else None


def set_host(process, name):
    """Of several processes. What their C++ libraries print (Gloo) goes to standard error, too."""
    global _host, _fd
    if not _host:
        _fd = os.dup(_fd)
        os.dup2(sys.stderr.fileno(), 1)
    _host = {"process": process, "name": name}


def is_first():
    return not _host or _host["process"] == 0


def relay(note):
    global _note
    _note = note


def last_line():
    """The lock under which lines are printed. A thread that keeps it prints the last line."""
    return _LOCK


def emit(event, host=None, **fields):
    line = {"event": event, **fields, "time_s": round(time.monotonic() - _BEGUN, 6)}
    if host or _host:
        line["host"] = {"process": host[0], "name": host[1]} if host else _host
    text = json.dumps(line, allow_nan=False)
    with _LOCK:
        if is_first() or event in ("memory", "finished") or (event == "log" and fields["level"] != "info"):
            _OUT.flush()
            data = (text + "\n").encode()
            while data:  # in one piece where the system can: other processes write to the same pipe
                data = data[os.write(_fd, data):]
    if _note and event != "finished":
        _note(text)


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


def log(text, level="info", host=None):
    emit("log", level=level, text=text, host=host)


def checkpoint(step, path):
    emit("checkpoint", step=int(step), path=str(path))


def finished(state, steps, tokens=0, error="", summary=None):
    emit("finished", state=state, steps=int(steps), tokens=int(tokens),
         seconds=round(time.monotonic() - _BEGUN, 3), error=error, summary=summary or {})


def finished_now(state, error):
    """From a thread beside the training, with the progress that it has made."""
    finished(state, _progress["steps"], _progress["tokens"], error)


class finishing:
    """The last word of a run, whatever ends it; process 0 says it for all."""

    def __init__(self):
        self.summary, self.team = {}, None  # final results; hosts.Team once the processes are connected

    steps = property(lambda self: _progress["steps"], lambda self, n: _progress.update(steps=int(n)))
    tokens = property(lambda self: _progress["tokens"], lambda self, n: _progress.update(tokens=int(n)))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        text = "" if kind is None else f"{kind.__name__}: {error}"
        everywhere = kind is not None and kind.__name__ in ("Everywhere", "KeyboardInterrupt")  # hosts.Everywhere
        if self.team and everywhere:
            self.team.ended.set()
        elif self.team:
            self.team.done() if kind is None else self.team.failed(text)
        if _host and _host["process"] != 0:
            if kind is not None and not everywhere:
                own = f"process {_host['process']} on {_host['name']}: "
                log(str(error) if str(error).startswith(own) else own + text, "error")
            return False
        with _LOCK:
            if kind is None:
                finished("done", self.steps, self.tokens, summary=self.summary)
            elif issubclass(kind, KeyboardInterrupt):
                finished("cancelled", self.steps, self.tokens, summary=self.summary)
            else:
                finished("failed", self.steps, self.tokens, text, self.summary)
        return False


@contextlib.contextmanager
def starting():
    """Before `finishing`: a refusal to start is an event, too."""
    try:
        yield
    except SystemExit as error:
        finishing().__exit__(SystemExit, error, None)
        raise
