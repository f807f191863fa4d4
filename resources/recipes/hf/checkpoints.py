# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are whole: complete.json, written when all processes have written theirs, names every file with its size.
A folder without it, or with other files, is what a lost process left; training does not go on from it."""
import contextlib
import json
import os
import shutil

import events

MARK = "complete.json"


def path(out, step):
    return out / f"checkpoint-{step}"


def _steps(out):
    names = [p.name.removeprefix("checkpoint-") for p in out.glob("checkpoint-*") if p.is_dir()]
    return sorted(int(n) for n in names if n.isdigit())


def _files(folder):
    return {str(p.relative_to(folder)): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file() and p.name != MARK}


def is_complete(folder):
    try:
        return json.loads((folder / MARK).read_text(encoding="utf-8"))["files"] == _files(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def new_folder(out, step):
    """For the files that one process writes: the folder gets the checkpoint's name with the end of the block, or is removed."""
    folder, part = path(out, step), out / f"checkpoint-{step}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        shutil.rmtree(folder, ignore_errors=True)
        part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def complete(out, step, keep):
    """Marks the checkpoint of a step as whole, then removes those before the last `keep`."""
    folder = path(out, step)
    part = folder / (MARK + ".part")
    files = _files(folder)
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"step": step, "files": files}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MARK)
    whole = [s for s in _steps(out) if is_complete(path(out, s))]
    for old in _steps(out):
        if old < step and old not in whole[-keep:]:
            shutil.rmtree(path(out, old), ignore_errors=True)


def last(out):
    """The last whole checkpoint, or None."""
    for step in reversed(_steps(out)):
        if is_complete(path(out, step)):
            return path(out, step)
        events.log(f"{path(out, step)} is incomplete and not used", "warning")
    return None
