#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does each of the three jobs in a real window, by mouse and keys, in at most 12 actions.

Needs a display with a window manager and an accessibility bus: run it through real_window.sh. An action is one click, one
drag, one key chord or one typed value. Widgets are found by their accessible names, as a screen reader finds them.
  real_window.py MESHWRIGHT RESOURCES PICTURES
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

MAX_ACTIONS = 12
PATIENCE_S = 120


class Failure(Exception):
    pass


def showing(node):
    """Yields `node` and its descendants that are on the screen."""
    try:
        states = node.get_state_set()
        if node.get_role() != Atspi.Role.APPLICATION and not states.contains(Atspi.StateType.SHOWING):
            return
        count = node.get_child_count()
    except gi.repository.GLib.GError:  # the widget was deleted meanwhile
        return
    yield node
    if states.contains(Atspi.StateType.MANAGES_DESCENDANTS) and count > 2000:
        return
    for i in range(count):
        child = node.get_child_at_index(i)
        if child:
            yield from showing(child)


class Window:
    def __init__(self, binary, folder, pictures, title):
        self.binary, self.folder, self.pictures, self.title = binary, folder, pictures, title
        self.actions = 0
        self.runs = folder / "runs"
        self.environment = dict(os.environ, HOME=str(folder), XDG_RUNTIME_DIR=str(folder), MESHWRIGHT_RUNS=str(self.runs),
                                QT_QPA_PLATFORM="xcb", QT_LINUX_ACCESSIBILITY_ALWAYS_ON="1")
        os.chmod(folder, 0o700)
        self.errors = open(folder / "stderr.txt", "w+")
        self.process = subprocess.Popen([binary], env=self.environment, cwd=folder, stderr=self.errors)
        self.application = self.wait("the window", self._application)

    def _application(self):
        desktop = Atspi.get_desktop(0)
        for i in range(desktop.get_child_count()):
            application = desktop.get_child_at_index(i)
            if application and application.get_process_id() == self.process.pid and application.get_child_count():
                return application
        return None

    def wait(self, what, condition, seconds=PATIENCE_S):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failure(f"the window ended with {self.process.returncode} before: {what}")
            found = condition()
            if found:
                return found
            time.sleep(0.5 if seconds <= PATIENCE_S else 3)  # looking costs the window time
        self.picture("failed")
        raise Failure(f"not seen within {seconds} s: {what}")

    def texts(self):
        return [node.get_name() or "" for node in showing(self.application)]

    def find(self, name, role=None):
        def matches():
            for node in showing(self.application):
                if node.get_name() == name and (role is None or node.get_role_name() == role):
                    if node.get_state_set().contains(Atspi.StateType.ENABLED):
                        return node
            return None

        return self.wait(f"enabled {role or 'widget'} '{name}'", matches, 60)

    def wait_for_text(self, part, seconds=PATIENCE_S):
        return self.wait(f"text '{part}'", lambda: any(part in text for text in self.texts()), seconds)

    # --- Actions ---

    def _act(self, *arguments):
        self.actions += 1
        if self.actions > MAX_ACTIONS:
            raise Failure(f"more than {MAX_ACTIONS} actions")
        self._xdotool(*arguments)

    def _xdotool(self, *arguments):
        subprocess.run(["xdotool", *map(str, arguments)], check=True)
        time.sleep(0.3)

    @staticmethod
    def centre(node, at=(0.5, 0.5)):
        box = node.get_extents(Atspi.CoordType.SCREEN)
        return int(box.x + box.width * at[0]), int(box.y + box.height * at[1])

    def click(self, name, role=None):
        x, y = self.centre(self.find(name, role))
        self._act("mousemove", x, y, "click", 1)

    def drag(self, name, dx, dy):
        x, y = self.centre(self.find(name))
        steps = []
        for i in range(1, 11):
            steps += ["mousemove", x + dx * i // 10, y + dy * i // 10, "sleep", 0.03]
        self._act("mousemove", x, y, "mousedown", 1, *steps, "mouseup", 1)

    def chord(self, keys):
        self._act("key", keys)

    def type(self, text):
        """Types a value and confirms it."""
        self._act("type", "--delay", 5, text)
        self._xdotool("key", "Return")

    def picture(self, name):
        subprocess.run(["import", "-window", "root", str(self.pictures / f"{self.title}-{name}.png")], check=False)

    def close(self):
        """Ends the window as the end of a session does, which asks nothing; the run writes a checkpoint first."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("the window did not close") from None
        self.errors.seek(0)
        errors = self.errors.read()
        if errors or self.process.returncode not in (0, -signal.SIGTERM):
            raise Failure(f"ended with {self.process.returncode}; stderr: {errors!r}")

    def command(self, *arguments):
        out = subprocess.run([self.binary, *map(str, arguments), "--json"], env=self.environment, check=True,
                             stdout=subprocess.PIPE)
        return json.loads(out.stdout)


# --- The jobs ---


def seconds_text(seconds):
    return f"{seconds:.3g} s"


def design_a_mesh(window, examples):
    """Drags an axis, goes back, takes the fastest alternative and saves it."""
    example = examples / "paper-train-v5p-8.json"
    before, dragged = (window.command("plan", example, *options)["step"]["seconds"]
                       for options in ((), ("--set", "mesh.fsdp=2", "--set", "mesh.tp=2")))
    fastest = window.command("search", example, "--top", 1)["candidates"][0]["seconds_per_step"]
    window.click("Design a Mesh")
    window.wait_for_text(f"{seconds_text(before)} per step")
    window.drag("Mesh axis tp, 4 devices", -30, 0)
    window.wait_for_text(f"{seconds_text(dragged)} per step")
    window.chord("ctrl+z")
    window.wait_for_text(f"{seconds_text(before)} per step")
    window.click("Alternatives", "page tab")
    window.click("Search", "push button")
    window.wait_for_text(seconds_text(fastest))
    window.click(seconds_text(fastest), "table cell")
    window.click("Apply", "push button")
    window.wait_for_text(f"{seconds_text(fastest)} per step")
    window.picture("alternative")
    file = window.folder / "mesh.json"
    window.chord("ctrl+shift+s")
    window.find("File name:", "text")
    window.type(file)
    window.wait("the saved file", file.exists)
    plan = window.command("plan", file)
    if not plan["fits"] or abs(plan["step"]["seconds"] - fastest) > 0.005:
        raise Failure(f"the saved mesh is another: {plan['step']['seconds']} s per step")


def watch_a_run(window, examples):
    """Follows the example run to its end, looks at an earlier step and writes the adapter."""
    window.click("Watch a Training Run")
    window.wait_for_text("step 300 of 300", 300)
    window.click("Loss chart")
    window.chord("shift+Left")
    earlier = re.compile(r"step [12]?\d{1,2}$")
    window.wait("an earlier step", lambda: any(earlier.match(text) for text in window.texts()), 30)
    window.picture("earlier step")
    # The run answers its last questions after the last step.
    window.wait("the run's end", lambda: any(run["state"] == "done" and run["steps"] == 300 for run in window.command("runs")["rows"]))


def compare_sweeps(window, examples):
    """Simulates a sweep and compares it with the published ones."""
    window.click("Compare Inference Sweeps")
    window.wait_for_text("confounders")
    window.click("Stop", "push button")  # the example run; one run at a time
    window.chord("ctrl+o")
    window.find("File name:", "text")
    window.type(examples / "paper-serve-v6e-8.json")
    window.chord("ctrl+4")
    window.click("Run Sweep", "push button")
    window.wait_for_text("point 40 of 40")
    window.click("Compare", "push button")
    window.wait_for_text("confounders")
    window.picture("comparison")


def main():
    binary, resources, pictures = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    pictures.mkdir(parents=True, exist_ok=True)
    failures = 0
    for job in (design_a_mesh, watch_a_run, compare_sweeps):
        with tempfile.TemporaryDirectory() as folder:
            window = None
            try:
                window = Window(binary, pathlib.Path(folder), pictures, job.__name__)
                job(window, resources / "examples")
                window.picture("end")
                window.close()
                print(f"PASS {job.__name__}: {window.actions} actions", flush=True)
            except Failure as failure:
                failures += 1
                print(f"FAIL {job.__name__}: {failure}", flush=True)
                if window:
                    window.process.kill()
    print(f"{3 - failures} of 3 jobs done")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
