# SPDX-License-Identifier: Apache-2.0
"""Runs this folder on several hosts over ssh: `python3 on_hosts.py FILE [-- arguments of train.py]`.

FILE has a line "[USER@]HOST[:PORT] [FOLDER]" for each host; the first is the coordinator, whose address the others must reach.
Copies this folder to every host (once, if they share it), starts ./launch.sh there with the variables that hosts.py and run.sh
read, and prints the event lines of all hosts as one stream. If one host fails or its connection is lost, the run is ended on
the others. At the end, out/ of the first host is copied back. Standard library of Python 3.6."""
import argparse
import json
import os
import pathlib
import queue
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
KEPT = ("venv", "out", ".meshwright", "__pycache__")  # not copied


class Worker:
    """A host that a local shell command reaches, with {worker} and {command} in it."""

    def __init__(self, index, folder, template):
        self.index, self.folder, self.address, self.name, self.template = index, folder, "", f"worker {index}", template
        self.process, self.code, self.last = None, None, ""

    def command(self, script):
        word = shlex.quote("exec bash -c " + shlex.quote(script))
        return ["sh", "-c", self.template.replace("{worker}", str(self.index)).replace("{command}", word)]

    def call(self, script, **more):
        return subprocess.run(self.command(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


class Host(Worker):
    def __init__(self, index, address, port, folder, options):
        self.index, self.address, self.port, self.folder = index, address, port, folder
        self.name = address.rpartition("@")[2] + (":" + port if port else "")
        self.ssh = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=10",
                    "-o", "ServerAliveCountMax=3", *options, *(["-p", port] if port else []), "--", address]
        self.process, self.code, self.last = None, None, ""

    def command(self, script):
        return self.ssh + ["exec bash -c " + shlex.quote(script)]


def fail(text, code=2):
    emit({"event": "log", "level": "error", "text": text})
    emit({"event": "finished", "state": "failed", "steps": 0, "error": text})
    sys.exit(code)


def emit(event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def read_hosts(path, folder, options):
    hosts, seen = [], {}
    try:
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        found = re.fullmatch(r"((?:[\w.-]+@)?\w[\w.-]*)(?::(\d{1,5}))?", words[0])
        if not found or len(words) > 2:
            fail(f"{path}:{number}: '{line.strip()[:80]}'; expected [USER@]HOST[:PORT] [FOLDER]")
        if tuple(words) in seen:
            fail(f"{path}:{number}: {words[0]} is there twice, first in line {seen[tuple(words)]}; give each host once")
        seen[tuple(words)] = number
        hosts.append(Host(len(hosts), found[1], found[2] or "", words[1] if len(words) > 1 else folder, options))
    if not hosts:
        fail(f"{path} names no host; expected a line [USER@]HOST[:PORT] [FOLDER] for each")
    return hosts


def copy_to(host, token):
    """Whole or not at all; a folder that another host shares has the token already. An earlier out/ and venv/ stay there."""
    folder = shlex.quote(host.folder)
    seen = host.call(f"cat {folder}/.on-hosts 2>/dev/null; true", stdin=subprocess.DEVNULL, timeout=60)
    if seen.returncode:
        fail(f"{host.name} cannot be reached: {seen.stderr.decode(errors='replace').strip()[-300:]}")
    if seen.stdout.decode().strip() == token:
        return
    pack = subprocess.Popen(["tar", "-C", str(HERE), *(f"--exclude=./{k}" for k in KEPT), "-cf", "-", "."], stdout=subprocess.PIPE)
    part = shlex.quote(host.folder.rstrip("/") + ".part-" + token)
    done = host.call(f"set -e; mkdir -p {part}; trap 'rm -rf {part}' EXIT; tar -C {part} -xf -; echo {token} > {part}/.on-hosts; "
                     f"mkdir -p {folder}; cp -rf {part}/. {folder}", stdin=pack.stdout)
    if pack.wait() or done.returncode:
        fail(f"{host.name}: the recipe could not be copied to {host.folder}: {done.stderr.decode(errors='replace').strip()[-300:]}")


def start(host, hosts, options, arguments):
    first = options.coordinator or hosts[0].address.rpartition("@")[2]
    variables = {"JAX_COORDINATOR_ADDRESS": f"{first}:{options.port}", "JAX_NUM_PROCESSES": len(hosts), "JAX_PROCESS_ID": host.index,
                 "NNODES": len(hosts), "RDZV_ENDPOINT": f"{first}:{options.port}", "RDZV_ID": f"on-hosts-{options.port}",
                 "HOST_NAME": host.name}
    if not first:  # JAX finds the others itself
        variables = {k: v for k, v in variables.items() if k in ("JAX_NUM_PROCESSES", "HOST_NAME")}
    if len(hosts) == 1:
        variables = {}
    words = [f"{k}={v}" for k, v in variables.items()] + options.env + ["./launch.sh", *arguments]
    # The job ends with this connection: when its standard input closes, the process group is ended.
    script = (f"cd {shlex.quote(host.folder)} || exit 97; exec 3<&0; setsid env {' '.join(map(shlex.quote, words))} < /dev/null 3<&- & job=$!; "
              "(cat <&3 > /dev/null; kill -TERM -- -$job 2>/dev/null && sleep 10 && kill -KILL -- -$job) > /dev/null 2>&1 & "
              "wait $job; code=$?; kill $! 2>/dev/null; exit $code")
    host.process = subprocess.Popen(host.command(script), stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def pump(host, lines):
    def read(stream, kind):
        for line in iter(stream.readline, b""):
            lines.put((host, kind, line.decode("utf-8", "replace").rstrip("\n")))
    readers = [threading.Thread(target=read, args=(host.process.stdout, "out"), daemon=True),
               threading.Thread(target=read, args=(host.process.stderr, "err"), daemon=True)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    lines.put((host, "end", host.process.wait()))


def follow(hosts, grace_s):
    """Prints what the hosts print until all have ended. Returns whether the run has had its last word, and who failed first."""
    lines, finished, failed, until = queue.Queue(), False, None, None
    for host in hosts:
        threading.Thread(target=pump, args=(host, lines), daemon=True).start()
    while any(h.code is None for h in hosts):
        try:
            host, kind, what = lines.get(timeout=0.5)
        except queue.Empty:
            kind = ""
        if kind == "out":
            if what.startswith("{") and '"event"' in what:
                host.last = what[:400]
                if '"event": "finished"' in what:
                    if finished:
                        continue
                    finished = True
            sys.stdout.write(what + "\n")
            sys.stdout.flush()
        elif kind == "err":
            sys.stderr.write(f"{host.name}: {what}\n")
            sys.stderr.flush()
        elif kind == "end":
            host.code = what
            if what and failed is None:
                failed, until = host, time.monotonic() + grace_s
        if STOP and until is None:
            until = time.monotonic()
        if until is not None and time.monotonic() >= until:
            for h in hosts:
                if h.code is None:
                    h.process.stdin.close() if not h.process.stdin.closed else None
            if time.monotonic() > until + 15:
                for h in hosts:
                    if h.code is None:
                        h.process.kill()
    return finished, failed


def fetch(host):
    """out/ of the first host, whole or not at all; kept beside what is there."""
    part = HERE / "out.part"
    part.mkdir(exist_ok=True)
    script = f"cd {shlex.quote(host.folder)} && if [ -d out ]; then tar -cf - out; fi"
    with open(part / "out.tar", "wb") as file:
        sent = subprocess.run(host.command(script), stdin=subprocess.DEVNULL, stdout=file)
    if sent.returncode == 0 and (part / "out.tar").stat().st_size:
        subprocess.run(["tar", "-C", str(HERE), "-xf", str(part / "out.tar")], check=True)
    subprocess.run(["rm", "-rf", str(part)], check=False)
    return sent.returncode == 0


STOP = []


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="?", help="a line [USER@]HOST[:PORT] [FOLDER] for each host")
    p.add_argument("--dir", default="meshwright/" + HERE.name, help="folder on the hosts, relative to the home folder")
    p.add_argument("--coordinator", help="address of the first host as the others reach it; default: as in FILE")
    p.add_argument("--reach", metavar="COMMAND", help="local command that runs {command} on worker {worker}, instead of FILE")
    p.add_argument("--workers", type=int, default=1, help="number of workers for --reach")
    p.add_argument("--port", type=int, default=random.randint(20000, 29999), help="free port of the first host")
    p.add_argument("--ssh-config", metavar="FILE", help="configuration for ssh, instead of ~/.ssh/config")
    p.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="environment of the job (repeatable)")
    p.add_argument("--grace", type=float, default=15, help="seconds for the other hosts to end by themselves after one has failed")
    options = p.parse_args(sys.argv[1:split])
    if (options.file is None) == (options.reach is None):
        fail("give FILE, or --reach and --workers")
    if options.reach:
        hosts = [Worker(i, options.dir, options.reach) for i in range(options.workers)]
    else:
        hosts = read_hosts(options.file, options.dir, ["-F", options.ssh_config] if options.ssh_config else [])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: STOP.append(1))
    token = os.urandom(8).hex()
    for host in hosts:
        copy_to(host, token)
    if STOP:
        sys.exit(143)
    emit({"event": "log", "level": "info", "text": f"starting on {len(hosts)} hosts: {', '.join(h.name for h in hosts)}"})
    for host in hosts:
        start(host, hosts, options, sys.argv[split + 1:])
    finished, failed = follow(hosts, options.grace)
    if failed is not None:
        lost = failed.code == 255 or failed.code < 0
        text = f"host {failed.name} {'lost its connection' if lost else f'ended with exit code {failed.code}'}"
        text += f"; its last event: {failed.last}" if failed.last else ""
        emit({"event": "log", "level": "error", "text": text, "host": {"process": failed.index, "name": failed.name}})
        if not finished:
            emit({"event": "finished", "state": "failed", "steps": 0, "error": text})
    if not fetch(hosts[0]):
        emit({"event": "log", "level": "error", "text": f"out/ could not be copied from {hosts[0].name}"})
        sys.exit(1)
    sys.exit(143 if STOP else 1 if failed else 0)


main()
