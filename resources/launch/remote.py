# SPDX-License-Identifier: Apache-2.0
"""The other end of `meshwright launch`. It is sent along with every call, before what the call copies:
    python3 -c 'read and run it' check|put|start|follow|cancel|fetch FOLDER ...
and answers in frames: a line "@mw {json}", then as many bytes as its "size" says. Standard library of Python 3.6.

What it knows of a job lies in FOLDER/.meshwright: token (whose it is), started, out and err (what the job prints), cancel
(touch it to end the job), exit (how it ended), lock (held while somebody waits for it)."""
import errno
import fcntl
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import time

STATE = ".meshwright"
CHUNK = 1 << 16
BEAT_S, COPY_BEAT_S, POLL_S, GRACE_S = 5.0, 1.0, 0.1, 10.0
SPARE = 16 << 20  # bytes that stay free
IN, OUT = sys.stdin.buffer, sys.stdout.buffer


class Refused(Exception):
    def __init__(self, id, message, **more):
        Exception.__init__(self, message)
        self.fields = dict(more, id=id, message=message)


def say(kind, data=b"", **fields):
    fields["kind"] = kind
    if data:
        fields["size"] = len(data)
    OUT.write(b"@mw " + json.dumps(fields).encode() + b"\n" + data)
    OUT.flush()


def write(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def place(folder):
    return os.path.abspath(os.path.join(os.path.expanduser("~"), os.path.expanduser(folder)))


class Job:
    def __init__(self, folder, token=None):
        self.folder = folder
        self.state = os.path.join(folder, STATE)
        if token is None:
            return
        if not os.path.isfile(self.file("token")):
            raise Refused("LAUNCH-GONE", "the job's folder is no longer there", file=folder)
        if read(self.file("token")) != token:
            raise Refused("LAUNCH-GONE", "the folder belongs to another launch now", file=folder)

    def file(self, name):
        return os.path.join(self.state, name)

    def lock(self):
        """A descriptor, or None: its supervisor lives."""
        fd = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            os.close(fd)
            return None

    def lives(self):
        if not os.path.isdir(self.state):
            return False
        fd = self.lock()
        if fd is not None:
            os.close(fd)
        return fd is None


def check(folder, need, force):
    folder = place(folder)
    if os.path.lexists(folder):
        if not os.path.isdir(folder):
            raise Refused("LAUNCH-FOLDER", "not a folder", file=folder, fix="choose another --dir")
        if Job(folder).lives():
            raise Refused("LAUNCH-FOLDER", "a launched job is running in the folder", file=folder,
                          fix="choose another --dir, or cancel that job")
        names = sorted(os.listdir(folder))
        if names and force != "force":
            raise Refused("LAUNCH-FOLDER", "the folder is not empty", file=folder, found=", ".join(names[:3]),
                          expected="a folder that is empty or not there",
                          fix="choose another --dir, or give --force to write into it")
    above = folder
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK | os.X_OK):
        raise Refused("LAUNCH-FOLDER", "nothing can be written there", file=above, fix="choose another --dir")
    disk = os.statvfs(above)
    free = disk.f_bavail * disk.f_frsize
    if free < int(need) + SPARE:
        raise Refused("DISK-FULL", "the disk is too full", file=above, found="%d MiB free" % (free >> 20),
                      expected="%d MiB" % ((int(need) + SPARE) >> 20), fix="make room, or choose another --dir")
    return folder


def safe(path):
    parts = path.split("/")
    if not path or path.startswith("/") or "\0" in path or any(p in ("", ".", "..") for p in parts):
        raise Refused("LAUNCH-PATH", "the path must stay inside the job's folder", found=path)
    return os.path.join(*parts)


def receive(into):
    """Files as put by the caller: a line {"path", "size", "mode"}, its bytes, ..., {"files"}. Says how far it has come."""
    count, got, beat = 0, 0, time.monotonic()
    while True:
        line = IN.readline(1 << 16)
        head = json.loads(line.decode()) if line.endswith(b"\n") else {"broken": True}
        if "files" in head and head["files"] == count:
            return
        if "path" not in head:
            raise Refused("LAUNCH-STREAM", "the connection ended while files were copied")
        path = os.path.join(into, safe(head["path"]))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            left = head["size"]
            while left > 0:
                data = IN.read(min(left, CHUNK))
                if not data:
                    raise Refused("LAUNCH-STREAM", "the connection ended while files were copied")
                file.write(data)
                left -= len(data)
                got += len(data)
                if time.monotonic() - beat > COPY_BEAT_S:
                    say("beat", bytes=got)
                    beat = time.monotonic()
        os.chmod(path, head["mode"] & 0o755)
        count += 1


def drop_attempts(part):
    """What earlier attempts of the same launch left. One that has not heard yet that its caller is gone finds nothing to
    rename any more: its token's folder is away before anything of it is."""
    above, name = os.path.split(part)
    for each in os.listdir(above) if os.path.isdir(above) else []:
        if each.startswith(name):
            gone = os.path.join(above, name + "gone-" + os.urandom(4).hex())
            try:
                os.rename(os.path.join(above, each), gone)
            except FileNotFoundError:
                continue
            shutil.rmtree(gone, ignore_errors=True)


def merge(part, folder):
    """Into a folder with files in it: what a job left there stays, so that training can go on from it. What says whose it
    is comes last: a start does not find it before all the rest is there."""
    state = os.path.join(folder, STATE)
    if os.path.lexists(state):
        os.rename(state, os.path.join(part, STATE + "-before"))
    for root, folders, names in os.walk(part):
        if root == part:
            folders[:] = [f for f in folders if f not in (STATE, STATE + "-before")]
        to = os.path.normpath(os.path.join(folder, os.path.relpath(root, part)))
        os.makedirs(to, exist_ok=True)
        for name in names:
            os.replace(os.path.join(root, name), os.path.join(to, name))
    os.rename(os.path.join(part, STATE), state)


def put(folder, token, need, force):
    """All of it under the folder's name, or nothing."""
    folder = place(folder)
    drop_attempts(folder + ".part-" + token + "-")
    whose = Job(folder).file("token")
    if os.path.isfile(whose) and read(whose) == token:  # an earlier call came through, but its answer did not
        say("end", folder=folder, again=True)
        return
    check(folder, need, force)
    part = folder + ".part-" + token + "-" + os.urandom(4).hex()
    try:
        os.makedirs(os.path.join(part, STATE))
        say("begin")
        receive(part)
        write(os.path.join(part, STATE, "token"), token)
        try:
            os.rename(part, folder)  # an empty folder gives way
        except OSError as error:
            if force != "force" or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            merge(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say("end", folder=folder)


def supervise(job, command, lock):
    """In a session of its own, until the job has ended; holds the lock."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    # Whatever else the caller had open: somebody waits for the end of a pipe as long as anybody has it.
    os.closerange(3, lock)
    os.closerange(lock + 1, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begun, asked = time.time(), None
    try:
        with open(job.file("out"), "ab", 0) as out, open(job.file("err"), "ab", 0) as err:
            process = subprocess.Popen(["/bin/sh", "-c", command], cwd=job.folder, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, start_new_session=True)
        while process.poll() is None:
            time.sleep(POLL_S)
            if asked is None and os.path.exists(job.file("cancel")):
                asked = time.monotonic()
                os.killpg(process.pid, signal.SIGTERM)
            elif asked is not None and time.monotonic() - asked > GRACE_S:
                os.killpg(process.pid, signal.SIGKILL)
        end = {"code": process.returncode, "cancelled": asked is not None}
    except OSError as error:
        end = {"code": 127, "cancelled": False, "error": str(error)}
    end["seconds"] = round(time.time() - begun, 3)
    write(job.file("exit"), json.dumps(end))
    os.close(lock)


def start(folder, token, command):
    job = Job(folder, token)
    if os.path.exists(job.file("started")):  # an earlier call came through, but its answer did not
        say("end", again=True)
        return
    lock = job.lock()
    if lock is None:
        raise Refused("LAUNCH-FOLDER", "another call is starting the job", file=folder)
    write(job.file("started"), json.dumps({"time": time.time(), "command": command}))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            supervise(job, command, lock)
        os._exit(0)
    os.close(lock)
    os.wait()
    say("end")


def since(begun, path):
    """Seconds from the start to when what is read now was written, at most."""
    try:
        return max(0.0, min(time.time(), os.path.getmtime(path)) - begun)
    except OSError:
        return 0.0


def follow(folder, token, out, err):
    job = Job(folder, token)
    if not os.path.exists(job.file("started")):
        raise Refused("LAUNCH-GONE", "the job was never started", file=folder)
    begun = json.loads(read(job.file("started")))["time"]
    at = {"out": int(out), "err": int(err)}
    beat = time.monotonic()
    say("begin", seconds=time.time() - begun)
    while True:
        ended = os.path.exists(job.file("exit"))  # before reading: what is read after it is all there is
        lost = not ended and not job.lives() and not os.path.exists(job.file("exit"))
        some = False
        for name in ("out", "err"):
            path = job.file(name)
            size = os.path.getsize(path) if os.path.exists(path) else 0
            if size < at[name]:
                raise Refused("LAUNCH-GONE", "what the job printed is shorter than it was", file=path)
            if size > at[name]:
                with open(path, "rb") as file:
                    file.seek(at[name])
                    data = file.read(CHUNK)
                say("data", data, stream=name, at=at[name], seconds=since(begun, path))
                at[name] += len(data)
                some = True
        if some:
            beat = time.monotonic()
            continue
        if lost:
            say("end", lost=True)
            return
        if ended:
            say("end", **json.loads(read(job.file("exit"))))
            return
        if time.monotonic() - beat > BEAT_S:  # so that both sides hear of a connection that has gone
            say("beat")
            beat = time.monotonic()
        time.sleep(POLL_S)


def cancel(folder, token):
    job = Job(folder, token)
    write(job.file("cancel"), "")
    say("end", lives=job.lives())


class Links:
    """Symbolic links that were met below the job's folder. None is followed: it may lead to any file of this machine."""
    SHOWN = 20

    def __init__(self):
        self.count, self.paths = 0, []

    def add(self, path):
        if path in self.paths:
            return
        self.count += 1
        if len(self.paths) < self.SHOWN:
            self.paths.append(path[:1024])


def opened(folder, path, links):
    """A descriptor of folder/path, or None: it is not there, is no file or folder, or a symbolic link is on the way."""
    fd, parts = os.open(folder, os.O_RDONLY | os.O_DIRECTORY), safe(path).split(os.sep)
    for at, name in enumerate(parts):
        last = at + 1 == len(parts)
        try:  # O_NONBLOCK: a pipe without a writer must not hold this up
            below = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if last else os.O_DIRECTORY), dir_fd=fd)
        except OSError as error:
            if is_link(name, fd):
                links.add("/".join(parts[:at + 1]))
            elif error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
                raise
            return None
        finally:
            os.close(fd)
        fd = below
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return fd
    os.close(fd)
    return None


def is_link(name, fd):
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def files_below(folder, path, links):
    """Paths from `folder` of all regular files in folder/path, or of itself, with their sizes."""
    fd = opened(folder, path, links)
    if fd is None:
        return
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield path, os.fstat(fd).st_size
            return
        for root, folders, names, at in os.fwalk(".", dir_fd=fd, follow_symlinks=False):
            folders.sort()
            below = path if root == "." else path + "/" + os.path.relpath(root, ".").replace(os.sep, "/")
            for name in sorted(names + folders):
                try:
                    state = os.stat(name, dir_fd=at, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISLNK(state.st_mode):
                    links.add(below + "/" + name)
                elif stat.S_ISREG(state.st_mode):
                    yield below + "/" + name, state.st_size
    finally:
        os.close(fd)


def send_file(folder, path, links):
    """False: it has gone, or become something else, since it was listed."""
    fd = opened(folder, path, links)
    if fd is None:
        return False
    with open(fd, "rb") as file:
        left = os.fstat(fd).st_size
        say("file", path=path, bytes=left)
        while left > 0:  # what is appended meanwhile stays there
            data = file.read(min(left, CHUNK))
            if not data:
                raise Refused("LAUNCH-STREAM", "a file became shorter while it was fetched", file=path)
            say("data", data)
            left -= len(data)
    return True


def fetch(folder, token, *paths):
    job, links, found = Job(folder, token), Links(), {}
    for path in paths:  # "A|B": B where A has no files
        for choice in path.split("|"):
            files = list(files_below(job.folder, choice, links))
            if files:
                break
        found.update(files)  # each once, whatever paths lead to it
    say("begin", files=len(found), bytes=sum(found.values()))
    sent = sum(send_file(job.folder, path, links) for path in found)
    say("end", files=sent, links=links.count, link_paths=links.paths)


def main(name, *arguments):
    OUT.write(b"\n")  # ends what a login may have printed
    calls = {"put": put, "start": start, "follow": follow, "cancel": cancel, "fetch": fetch}
    try:
        if sys.version_info < (3, 6):
            raise Refused("LAUNCH-PYTHON", "Python is too old there", found=platform.python_version(),
                          expected="3.6 or newer")
        if name == "check":
            say("end", folder=check(*arguments), python=platform.python_version(), machine=platform.node())
        else:
            calls[name](*arguments)
    except Refused as refused:
        say("error", **refused.fields)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say("error", id="DISK-FULL" if full else "LAUNCH-THERE", message=os.strerror(error.errno or 0),
            file=str(error.filename or arguments[0]), fix="make room, or choose another --dir" if full else "")


main(*sys.argv[1:])
