# SPDX-License-Identifier: Apache-2.0
"""The processes of a run on one or several hosts. Coordinator, number of processes and rank come from the launcher:
  torchrun          RANK, WORLD_SIZE (it also sets MASTER_ADDR)
  any launcher      JAX_COORDINATOR_ADDRESS=HOST:PORT, JAX_NUM_PROCESSES, JAX_PROCESS_ID
  Slurm's srun      SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_STEP_NODELIST
  TPU slice, MPI    JAX_NUM_PROCESSES alone; jax.distributed finds the rest
Every process holds a connection to process 0, so that the others learn at once which process was lost."""
import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time

import events

FAILURE_S, LOSS_S, JOIN_S = 2.0, 5.0, 60.0  # a failing process waits for news of another; connecting
CLOCK_S, SHARED_S = 5.0, 10.0  # of clocks that differ; until a file of another host is seen
FULL_BYTES, SPACE_S = 1 << 20, 2.0  # a disk with less is full; between two looks at it


class Everywhere(SystemExit):
    """An error that every process raises."""


class Processes:
    """This process's index of `count`, and the address of the coordinator ("host:port", empty: found by the library)."""

    def __init__(self, index=0, count=1, coordinator=""):
        self.index, self.count, self.coordinator = index, count, coordinator
        self.name = os.environ.get("HOST_NAME") or socket.gethostname()
        if count < 1 or not 0 <= index < count:
            raise SystemExit(f"process {index} of {count} on {self.name}: expected an index from 0 to {count - 1}")
        if count > 1:
            events.set_host(index, self.name)


def _number(name):
    text = os.environ.get(name, "")
    if not text:
        return None
    if not text.isdigit():
        raise SystemExit(f"{name} is '{text}'; expected a whole number")
    return int(text)


def of_torchrun():
    index, count = _number("RANK"), _number("WORLD_SIZE")
    if (index is None) != (count is None):
        raise SystemExit(f"{'WORLD_SIZE' if count is None else 'RANK'} is not set: start train.py with run.sh or torchrun")
    if count is not None and count > 1 and not os.environ.get("MASTER_ADDR"):
        raise SystemExit("MASTER_ADDR is not set: start train.py with run.sh or torchrun")
    return Processes(index or 0, count or 1, os.environ.get("MASTER_ADDR", ""))


def first_host(nodes):
    """The first host of Slurm's list: node[001-015],other -> node001."""
    prefix, ranges = re.match(r"([^,\[]*)(?:\[([^\]]*)\])?", nodes).groups()
    return prefix + re.split("[-,]", ranges or "")[0]


def of_jax():
    address, count, index = os.environ.get("JAX_COORDINATOR_ADDRESS", ""), _number("JAX_NUM_PROCESSES"), _number("JAX_PROCESS_ID")
    tasks = _number("SLURM_STEP_NUM_TASKS")
    if tasks is not None and tasks > 1:
        if count not in (None, tasks):
            raise SystemExit(f"JAX_NUM_PROCESSES is {count}, but srun started {tasks} tasks")
        port = 61440 + (_number("SLURM_JOB_ID") or 0) % 4096
        return Processes(_number("SLURM_PROCID"), tasks, address or f"{first_host(os.environ['SLURM_STEP_NODELIST'])}:{port}")
    if count is None and index is None and not address:
        return Processes()
    if count is None:
        raise SystemExit("JAX_NUM_PROCESSES is not set, but JAX_COORDINATOR_ADDRESS or JAX_PROCESS_ID is")
    if count == 1:
        return Processes()
    found_by_jax = any(os.environ.get(v) for v in ("TPU_WORKER_HOSTNAMES", "OMPI_COMM_WORLD_SIZE")) or os.path.exists("/dev/accel0") \
        or os.path.exists("/dev/vfio/0")
    if not address and index is None and found_by_jax:
        index = _number("TPU_WORKER_ID") or _number("OMPI_COMM_WORLD_RANK") or 0  # until jax.distributed says it
        return Processes(min(index, count - 1), count)
    for name, missing in (("JAX_COORDINATOR_ADDRESS", not address), ("JAX_PROCESS_ID", index is None)):
        if missing:
            raise SystemExit(f"{name} is not set, but JAX_NUM_PROCESSES is {count}: set it on every host "
                             "(coordinator: HOST:PORT of process 0)")
    if not re.fullmatch(r".+:\d+", address):
        raise SystemExit(f"JAX_COORDINATOR_ADDRESS is '{address}'; expected HOST:PORT of process 0")
    return Processes(index, count, address)


def start_jax(processes, timeout=None):
    """Connects the processes through the coordinator. Returns them as JAX numbers them."""
    if processes.count == 1:
        return processes
    timeout = timeout or int(os.environ.get("JOIN_TIMEOUT_S", "300"))
    if processes.coordinator and processes.index:
        _await_coordinator(processes, timeout)
    import jax
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    known = {"coordinator_address": processes.coordinator, "num_processes": processes.count, "process_id": processes.index}
    late = (f"process {processes.index} on {processes.name}: not all {processes.count} processes connected to "
            f"{processes.coordinator or 'the coordinator'} within {timeout} s: start all of them with the same JAX_NUM_PROCESSES")
    alarm = threading.Timer(timeout, _end, (late,))  # JAX would abort the process without a word to its caller
    alarm.daemon = True
    alarm.start()
    try:
        jax.distributed.initialize(**(known if processes.coordinator else {}), initialization_timeout=timeout + 30)
        _agree(processes, processes.count, "the hosts differ in the number of processes: {said}; set the same JAX_NUM_PROCESSES on "
               "every host", timeout)
    except RuntimeError as error:
        raise SystemExit(f"{late}: {str(error)[:300]}") from None
    finally:
        alarm.cancel()
    _agree(processes, jax.local_device_count(), "the hosts differ in devices: {said}; give every host the same devices", timeout)
    if jax.process_count() != processes.count:
        raise SystemExit(f"{jax.process_count()} processes connected, JAX_NUM_PROCESSES is {processes.count}")
    return Processes(jax.process_index(), jax.process_count(), processes.coordinator)


def _end(text):
    """Ends this process from another thread, with a last word."""
    with events.last_line():
        if not events.is_first():
            events.log(text, "error")
        else:
            events.finished_now("failed", text)
        sys.stderr.flush()
        os._exit(1)


def _agree(processes, value, text, timeout):
    """Ends this process, where process 0 was given another value: {said} in `text` is both. JAX would wait for processes that were
    never started, and gathers from equal numbers of devices only."""
    from jax._src import distributed
    store, key = distributed.global_state.client, "meshwright/" + text
    mine = distributed.global_state.process_id  # also where JAX found it by itself
    store.key_value_set(f"{key}/{mine}", json.dumps([value, processes.name]))
    for index in range(processes.count) if mine == 0 else [0]:
        other, name = json.loads(store.blocking_key_value_get(f"{key}/{index}", timeout * 1000))
        if other == value:
            continue
        if mine == 0:
            time.sleep(LOSS_S)  # the others ask this process
        pair = sorted([(mine, processes.name, value), (index, name, other)], reverse=True)
        _end(text.format(said=", ".join(f"process {i} on {n} has {v}" for i, n, v in pair)))


def _await_coordinator(processes, timeout):
    host, _, port = processes.coordinator.rpartition(":")
    until, why = time.monotonic() + timeout, ""
    while time.monotonic() < until:
        try:
            socket.create_connection((host.strip("[]"), int(port)), 5).close()
            return
        except OSError as error:
            why = error
            time.sleep(0.5)
    raise SystemExit(f"process {processes.index} on {processes.name}: no coordinator at {processes.coordinator} for "
                     f"{timeout} s ({why}): is process 0 started, and is the port open?")


def over_slices(devices, fsdp, tp, planned=None):
    """The devices of a mesh over several TPU slices, which jax.make_mesh refuses: `planned` (settings.json) says how many slices
    each axis crosses. On another number of slices fsdp crosses them, and tp what fsdp does not divide. None on one slice."""
    slices = len({getattr(device, "slice_index", 0) for device in devices})
    if slices == 1:
        return None
    between = math.gcd(fsdp, slices), slices // math.gcd(fsdp, slices)
    if planned and planned["fsdp"] * planned["tp"] == slices:
        between = planned["fsdp"], planned["tp"]
    if fsdp % between[0] or tp % between[1]:
        raise Everywhere(f"the mesh fsdp {fsdp} x tp {tp} does not divide over {slices} slices: export with an fsdp that is a "
                         f"multiple of {slices}")
    from jax.experimental import mesh_utils
    return mesh_utils.create_hybrid_device_mesh((fsdp // between[0], tp // between[1]), between, devices,
                                                allow_split_physical_axes=True)


def gather_jax(data):
    """The bytes of every process, by index."""
    import numpy as np
    from jax.experimental import multihost_utils
    sizes = multihost_utils.process_allgather(np.int32(len(data)))
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[:len(data)] = np.frombuffer(data, np.uint8)
    return [bytes(row[:n]) for row, n in zip(multihost_utils.process_allgather(padded), sizes)]


def gather_torch(data):
    import torch.distributed
    out = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(out, data)
    return out


def fingerprint(folder, names=("settings.json", "data/rows.safetensors", "data/source.lock.json", "train.py")):
    digest = hashlib.sha256()
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                for part in iter(lambda: file.read(1 << 20), b""):
                    digest.update(part)
    return digest.hexdigest()


def _free_bytes(folder):
    """Of the disk that the folder is on, or will be."""
    above = os.path.abspath(folder)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    return shutil.disk_usage(above).free


class Team:
    """All processes of the run; alone, its functions do nothing. `gather(bytes)` returns those of all processes."""

    def __init__(self, processes, gather):
        self.index, self.count, self.name, self.gather = processes.index, processes.count, processes.name, gather
        self.names, self.ended, self.peers, self.lock = [self.name], threading.Event(), {}, threading.Lock()
        if self.count == 1:
            return
        server, token = None, ""
        if self.index == 0:
            server, token = socket.create_server(("", 0), backlog=self.count), secrets.token_hex(16)
        address = (processes.coordinator.rpartition(":")[0] or processes.coordinator or self.name).strip("[]")
        mine = {"name": self.name, "token": token, "at": [address, server.getsockname()[1]] if server else []}
        all_of = self._gather(mine)
        self.names = [one["name"] for one in all_of]
        if server:
            self._accept(server, all_of[0]["token"])
        else:
            self._connect(all_of[0])
        clocks = self._gather(time.time())
        late = [f"{self.place(i)} by {c - clocks[0]:+.1f} s" for i, c in enumerate(clocks) if abs(c - clocks[0]) > CLOCK_S]
        if late and self.index == 0:
            events.log(f"clocks differ from that of {self.place(0)}: {', '.join(late[:8])}", "warning")
        events.relay(self._note)

    def place(self, index):
        return f"process {index} on {self.names[index]}"

    def _gather(self, value):
        return [json.loads(data) for data in self.gather(json.dumps(value).encode())]

    def require_same(self, what, fix=""):
        """`what`: {name: value}, which must be the same on all processes."""
        if self.count == 1:
            return
        for index, other in enumerate(all_of := self._gather(what)):
            for key, value in all_of[0].items():
                if other.get(key) != value:
                    raise Everywhere(f"the hosts differ in {key}: {self.place(index)} has {other.get(key)}, {self.place(0)} has "
                                     f"{value}{'; ' + fix if fix else ''}")

    def require_space(self, folder, need):
        """Bytes on the disk of `folder`, on every host."""
        found = [_free_bytes(folder)] if self.count == 1 else self._gather(_free_bytes(folder))
        for index, free in enumerate(found):
            if free < need:
                raise Everywhere(f"the disk of {folder} on {self.names[index]} is too full: {free >> 20} MiB free, checkpoints "
                                 f"need {-(-need >> 20)} MiB; make room, or choose another --out")

    def end_without_space(self, folder, need):
        """The same between steps. Ends the process at once: threads of libraries may wait for those of other processes."""
        try:
            self.require_space(folder, need)
        except Everywhere as error:
            self.ended.set()
            # Process 0 speaks for all, after the others know that the run has ended: they would call it lost.
            time.sleep(FAILURE_S if self.index else FAILURE_S / 2)
            _end(str(error))

    def watch_space(self, folder):
        """Ends the run when the disk gets full while it is being written to; see end_without_space()."""
        def watch():
            while not self.ended.wait(SPACE_S):
                if _free_bytes(folder) < FULL_BYTES:
                    self._end_all(self.index, f"{self.place(self.index)} failed: the disk of {folder} on {self.name} is too full: no space "
                                              "is left; make room, or choose another --out")
        if self.count > 1:
            threading.Thread(target=watch, daemon=True).start()

    def not_sharing(self, folder):
        """Who does not see the `folder` of process 0, in words; empty if all processes share it."""
        if self.count == 1:
            return ""
        mark = os.path.join(folder, ".seen-" + self._gather(secrets.token_hex(8))[0])
        if self.index == 0:
            os.makedirs(folder, exist_ok=True)
            open(mark, "x").close()
        self.barrier()
        until = time.monotonic() + SHARED_S
        while not os.path.exists(mark) and time.monotonic() < until:
            time.sleep(0.1)
        seen = self._gather(os.path.exists(mark))
        if self.index == 0:
            os.remove(mark)
        others = [self.place(index) for index, sees in enumerate(seen) if not sees]
        return f"{', '.join(others[:8])} cannot see {folder} of {self.place(0)}" if others else ""

    def require_shared(self, folder):
        """Orbax waits without end for files that it expects from another process."""
        if text := self.not_sharing(folder):
            raise Everywhere(f"{text}: checkpoints need one folder that all hosts see; put --out on a shared disk")

    def barrier(self):
        if self.count > 1:
            self._gather(0)

    @contextlib.contextmanager
    def writing(self, what, folder):
        """Names a disk that is full, which libraries report in words of their own."""
        try:
            yield
        except Exception as error:
            if getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT) and _free_bytes(folder) >= FULL_BYTES:
                raise
            raise SystemExit(f"{what} could not be written to {folder} on {self.name}: no space left on the disk; make room, and start "
                             "again: training goes on from the last complete checkpoint") from error

    def of_first(self, value):
        """The value that process 0 has."""
        return value if self.count == 1 else self._gather(value if self.index == 0 else None)[0]

    # ---- connections to process 0 ----

    def _accept(self, server, token):
        server.settimeout(JOIN_S)
        while len(self.peers) < self.count - 1:
            try:
                connection, _ = server.accept()
                connection.settimeout(JOIN_S)
                file = connection.makefile("rb")
                hello = json.loads(file.readline(1 << 16))
            except TimeoutError:
                missing = [self.place(i) for i in range(1, self.count) if i not in self.peers]
                raise SystemExit(f"no connection from {', '.join(missing[:8])}: the hosts must reach port "
                                 f"{server.getsockname()[1]} of {self.name}") from None
            except (OSError, ValueError):
                continue
            if isinstance(hello, dict) and hello.get("token") == token and isinstance(hello.get("process"), int):
                self.peers[hello["process"]] = self._watched(connection)
                threading.Thread(target=self._watch, args=(hello["process"], file), daemon=True).start()
        server.close()

    def _connect(self, first):
        try:
            connection = socket.create_connection(tuple(first["at"]), JOIN_S)
        except OSError as error:
            raise SystemExit(f"{self.place(self.index)}: no connection to port {first['at'][1]} of {first['at'][0]}: {error}") from None
        self.peers[0] = self._watched(connection)
        self._send(0, {"token": first["token"], "process": self.index})
        threading.Thread(target=self._watch, args=(0, connection.makefile("rb")), daemon=True).start()

    @staticmethod
    def _watched(connection):
        """Without data for 25 s the system asks whether the other host is still there."""
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 25000)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return connection

    def _send(self, to, message):
        try:
            with self.lock:
                self.peers[to].sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the watching thread says so

    def _note(self, line):
        """Tells process 0 the last event of this process, and process 1 that of process 0."""
        to = 0 if self.index else 1
        if to in self.peers:
            self._send(to, {"last": line[:400]})

    def _watch(self, other, file):
        last, failure = "none", None
        try:
            for line in iter(lambda: file.readline(1 << 16), b""):
                message = json.loads(line)
                last = message.get("last", last)
                failure = message.get("failed")
                if "done" in message:
                    self.peers.pop(other, None)
                    return
                if failure is not None:
                    break
        except (OSError, ValueError):
            pass
        if self.ended.is_set():
            return
        if other == 0 and failure is not None:
            os._exit(1)  # process 0 has said why
        what = f"failed: {failure}" if failure is not None else "was lost"
        text = f"{self.place(other)} {what}" + (f"; its last event: {last}" if self.index <= 1 else "")
        self._end_all(other, text)

    def _end_all(self, other, text):
        """The run has ended: says why, once, and ends this process; the launcher ends the rest."""
        with events.last_line():
            self.ended.set()
            if self.index <= 1:  # process 1 speaks where process 0 is lost
                events.log(text, "error", host=(other, self.names[other]))
                events.finished_now("failed", text)
            for peer in list(self.peers):
                self._send(peer, {"failed": text})
            sys.stderr.flush()
            os._exit(1)

    def failed(self, text):
        """This process fails. Returns after the others had time to say that they are the cause."""
        if self.count == 1:
            return
        time.sleep(LOSS_S if self.index == 0 else FAILURE_S)  # a lost process ends this one in the meantime
        self.ended.set()
        for peer in list(self.peers):
            self._send(peer, {"failed": text})

    def done(self):
        """Process 0 waits for the others, whose end decides the run's."""
        if self.count == 1:
            return
        if self.index:
            self.ended.set()
            self._send(0, {"done": True})
            return
        while self.peers:
            time.sleep(0.05)
        self.ended.set()
