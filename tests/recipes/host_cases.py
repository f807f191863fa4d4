# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of recipe_hosts_test.cpp: `host_cases.py RECIPES CASE FOLDER`, with the standard library only. A process of a run is
this file again, as `host_cases.py RECIPES member FOLDER INDEX COUNT`; files stand for the collectives of JAX or torch."""
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

COMMON = pathlib.Path(sys.argv[1]) / "common"
FOLDER = pathlib.Path(sys.argv[3])
sys.path[:0] = [str(COMMON), str(pathlib.Path(sys.argv[1]) / "hf")]
TORCH = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node0"}
JAX = {"JAX_COORDINATOR_ADDRESS": "node0:8476", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "1"}
SLURM = {"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2", "SLURM_STEP_NODELIST": "gpu[007-009],x", "SLURM_JOB_ID": "4097"}


def environment():
    """What of_torchrun and of_jax make of the launcher's variables."""
    cases = [("of_torchrun", {}, [0, 1, ""]), ("of_torchrun", TORCH, [1, 4, "node0"]), ("of_jax", {}, [0, 1, ""]),
             ("of_jax", JAX, [1, 4, "node0:8476"]), ("of_jax", SLURM, [2, 3, "gpu007:61441"]),
             ("of_torchrun", {**TORCH, "MASTER_ADDR": ""}, "MASTER_ADDR is not set"),
             ("of_torchrun", {"RANK": "1"}, "WORLD_SIZE is not set"),
             ("of_torchrun", {**TORCH, "RANK": "4"}, "process 4 of 4"),
             ("of_jax", {**JAX, "JAX_COORDINATOR_ADDRESS": ""}, "JAX_COORDINATOR_ADDRESS is not set, but JAX_NUM_PROCESSES is 4"),
             ("of_jax", {**JAX, "JAX_COORDINATOR_ADDRESS": "node0"}, "expected HOST:PORT"),
             ("of_jax", {**JAX, "JAX_PROCESS_ID": ""}, "JAX_PROCESS_ID is not set"),
             ("of_jax", {**JAX, "JAX_NUM_PROCESSES": ""}, "JAX_NUM_PROCESSES is not set"),
             ("of_jax", {**JAX, "JAX_NUM_PROCESSES": "four"}, "JAX_NUM_PROCESSES is 'four'"),
             ("of_jax", {**SLURM, **JAX}, "JAX_NUM_PROCESSES is 4, but srun started 3 tasks")]
    import hosts
    for function, variables, expected in cases:
        os.environ.clear()
        os.environ.update(variables)
        try:
            found = getattr(hosts, function)()
            assert [found.index, found.count, found.coordinator] == expected, (variables, vars(found))
        except SystemExit as error:
            assert isinstance(expected, str) and expected in str(error), (variables, error)


def member():
    import events
    import hosts
    index, count = int(sys.argv[4]), int(sys.argv[5])
    os.environ["HOST_NAME"], hosts.FAILURE_S, hosts.SHARED_S = f"host{index}", 0.3, 0.1
    if os.environ.get("LATE") == str(index):
        clock = time.time
        time.time = lambda: clock() - 60
    round_of = [0]

    def gather(data):
        round_of[0] += 1
        name = lambda i: FOLDER / f"round{round_of[0]}-{i}"  # noqa: E731
        name(index).with_suffix(".part").write_bytes(data)
        name(index).with_suffix(".part").rename(name(index))
        while not all(name(i).exists() for i in range(count)):
            time.sleep(0.002)
        return [name(i).read_bytes() for i in range(count)]

    with events.finishing() as done:
        done.team = hosts.Team(hosts.Processes(index, count, "127.0.0.1:1"), gather)
        done.team.require_same({"devices": 4 if index != int(os.environ.get("UNEQUAL", -1)) else 2})
        done.team.require_space(FOLDER, 1 << (60 if os.environ.get("FULL") else 10))
        done.team.require_shared(FOLDER / (f"out{index}" if os.environ.get("COPIED") else "out"))
        events.log("the same on every process")
        for step in range(1, 4):
            events.metric("train/loss", step, 1 / step)
            done.steps = step
            done.team.end_without_space(FOLDER, 1 << (60 if os.environ.get("FILLED") and step == 2 else 10))
        done.team.barrier()
        if os.environ.get("BROKEN") == str(index):
            raise OSError("No space left on device")
        (FOLDER / f"waiting-{index}").touch()
        hosts.SPACE_S = 0.05
        if os.environ.get("FULL_NOW") == str(index):
            hosts.FULL_BYTES = 1 << 60
        if os.environ.get("FULL_NOW"):
            done.team.watch_space(FOLDER)
        while os.environ.get("HOLD"):
            time.sleep(0.01)


def members(count, **variables):
    return [subprocess.Popen([sys.executable, "-B", __file__, sys.argv[1], "member", str(FOLDER), str(i), str(count)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **variables})
            for i in range(count)]


def ends(processes):
    """(exit code, events) of each."""
    out = []
    for p in processes:
        text, _ = p.communicate(timeout=60)
        out.append((p.returncode, [json.loads(line) for line in text.decode().splitlines()]))
    return out


def one_stream():
    """Only process 0 prints what concerns the whole run; every line names its process and host."""
    first, second, third = ends(members(3))
    assert [first[0], second, third] == [0, (0, []), (0, [])], (first, second, third)
    assert [e["event"] for e in first[1]] == ["log", "metric", "metric", "metric", "finished"]
    assert all(e["host"] == {"process": 0, "name": "host0"} for e in first[1])


def killed(lost, speaker):
    processes = members(3, HOLD="1")
    while not all((FOLDER / f"waiting-{i}").exists() for i in range(3)):
        time.sleep(0.01)
    processes[lost].send_signal(signal.SIGKILL)
    found = ends(processes)
    assert found[lost][0] == -signal.SIGKILL and all(found[i][0] == 1 for i in range(3) if i != lost), found
    said = [e for e in found[speaker][1] if e["event"] in ("log", "finished")][-2:]
    assert [e["event"] for e in said] == ["log", "finished"], found
    assert said[0]["level"] == "error" and said[0]["host"] == {"process": lost, "name": f"host{lost}"}, said
    assert said[1]["state"] == "failed" and said[1]["error"].startswith(f"process {lost} on host{lost} was lost"), said
    assert said[1]["steps"] == 3
    assert sum(e["event"] == "finished" for _, lines in found for e in lines) == 1, found
    return said[1]["error"]


def lost_process():
    assert '"step": 3' in killed(2, 0)  # its last event


def lost_first_process():
    assert '"step": 3' in killed(0, 1)


def broken_process():
    """The disk of one host is full while it writes."""
    found = ends(members(3, BROKEN="1"))
    last = found[0][1][-1]
    assert last["state"] == "failed" and "process 1 on host1 failed: OSError: No space left on device" in last["error"], found
    assert [code for code, _ in found][:2] == [1, 1], found


def unequal_hosts():
    for variables, text in (({"UNEQUAL": "2"}, "the hosts differ in devices: process 2 on host2 has 2, process 0 on host0 has 4"),
                            ({"FULL": "1"}, "on host0 is too full"),
                            ({"COPIED": "1"}, "process 1 on host1, process 2 on host2 cannot see")):
        for file in FOLDER.iterdir():
            file.unlink()
        found = ends(members(3, **variables))
        assert text in found[0][1][-1]["error"] and not found[1][1] and not found[2][1], found
        assert [code for code, _ in found] == [1, 1, 1], found


def disk_that_fills():
    """Named in every process, and no process is left to wait for another."""
    found = ends(members(3, FILLED="1"))
    assert [code for code, _ in found] == [1, 1, 1], found
    last = found[0][1][-1]
    assert last["event"] == "finished" and last["steps"] == 2 and "on host0 is too full" in last["error"], found
    for _, said in found[1:]:
        assert [e["text"] for e in said if e["event"] == "log" and e["level"] == "error"] == [last["error"]], found


def disk_full_while_waiting():
    """The host whose disk is full is named, although all processes wait."""
    for full in (0, 1, 2):
        for file in FOLDER.iterdir():
            file.rmdir() if file.is_dir() else file.unlink()
        found = ends(members(3, FULL_NOW=str(full), HOLD="1"))
        assert [code for code, _ in found] == [1, 1, 1], found
        errors = [e["error"] for _, said in found for e in said if e["event"] == "finished"]
        assert errors and all(f"on host{full} is too full" in e for e in errors), (full, found)


def late_clock():
    first, _, _ = ends(members(3, LATE="1"))
    said = [e for e in first[1] if e.get("level") == "warning"]
    assert first[0] == 0 and len(said) == 1, first
    assert said[0]["text"].startswith("clocks differ from that of process 0 on host0: process 1 on host1 by -"), said
    assert not list((FOLDER / "out").iterdir())  # the mark of the shared folder is gone


def slices():
    """How the axes are split between slices; JAX itself is not here."""
    import hosts
    import types
    asked = []
    utils = types.SimpleNamespace(create_hybrid_device_mesh=lambda ici, dcn, devices, **_: asked.append((ici, dcn)))
    sys.modules["jax"] = types.ModuleType("jax")
    sys.modules["jax.experimental"] = types.SimpleNamespace(mesh_utils=utils)
    devices = lambda slices: [types.SimpleNamespace(slice_index=i % slices) for i in range(16)]  # noqa: E731
    assert hosts.over_slices(devices(1), 4, 4) is None and not asked
    hosts.over_slices(devices(2), 4, 4)
    hosts.over_slices(devices(8), 4, 4)
    hosts.over_slices(devices(2), 4, 4, {"fsdp": 1, "tp": 2})
    hosts.over_slices(devices(4), 4, 4, {"fsdp": 1, "tp": 2})  # planned for another number of slices
    assert asked == [((2, 4), (2, 1)), ((1, 2), (4, 2)), ((4, 2), (1, 2)), ((1, 4), (4, 1))], asked
    try:
        hosts.over_slices(devices(4), 2, 1)
        raise AssertionError("accepted")
    except SystemExit as error:
        assert "does not divide over 4 slices" in str(error), error


def missing_coordinator():
    """Named at once, before JAX is imported."""
    import hosts
    import socket
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    try:
        hosts.start_jax(hosts.Processes(1, 2, f"127.0.0.1:{port}"), timeout=0.2)
        raise AssertionError("connected")
    except SystemExit as error:
        assert f"no coordinator at 127.0.0.1:{port} for 0.2 s" in str(error), error


def checkpoints():
    """Training goes on from the last checkpoint that is whole."""
    import checkpoints as store
    for step in (2, 4, 6, 8):
        (FOLDER / f"checkpoint-{step}").mkdir()
        (FOLDER / f"checkpoint-{step}" / "model").write_bytes(b"x" * step)
        if step != 8:
            store.complete(FOLDER, step, 2)
    assert sorted(p.name for p in FOLDER.iterdir()) == ["checkpoint-4", "checkpoint-6", "checkpoint-8"]  # two and the broken one
    assert store.last(FOLDER).name == "checkpoint-6"
    (FOLDER / "checkpoint-6" / "model").write_bytes(b"x")  # cut short
    assert store.last(FOLDER).name == "checkpoint-4"
    (FOLDER / "checkpoint-4" / "complete.json").write_text("{")
    assert store.last(FOLDER) is None
    before = sorted(p.name for p in FOLDER.iterdir())
    try:
        with store.new_folder(FOLDER, 10) as part:
            (part / "model").write_bytes(b"half")
            raise OSError("No space left on device")
    except OSError:
        assert sorted(p.name for p in FOLDER.iterdir()) == before  # nothing half-written
    with store.new_folder(FOLDER, 8) as part:  # replaces the broken one
        (part / "model").write_bytes(b"x" * 9)
    store.complete(FOLDER, 8, 2)
    assert store.last(FOLDER).name == "checkpoint-8" and not (FOLDER / "checkpoint-8.part").exists()


def refusals():
    """A failure before the processes connect is an event: process 0 finishes with it, the others report an error."""
    import hosts
    for variables, expected in (({"JAX_NUM_PROCESSES": "2"}, ("finished", "JAX_COORDINATOR_ADDRESS is not set")),
                                ({**JAX, "JAX_PROCESS_ID": "9"}, ("finished", "process 9 of 4"))):
        read, write = os.pipe()
        if not os.fork():
            os.dup2(write, 1)
            os.environ.clear()
            os.environ.update(variables)
            import events
            try:
                with events.starting():
                    hosts.of_jax()
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            said = [json.loads(line) for line in file]
        assert len(said) == 1 and said[0]["event"] == expected[0] and expected[1] in said[0]["error"], said
    team = hosts.Team(hosts.Processes(), None)
    for raised, full, expected in ((OSError(errno.ENOSPC, "x"), False, SystemExit), (RuntimeError("x"), True, SystemExit),
                                   (OSError(errno.EACCES, "x"), False, OSError), (RuntimeError("x"), False, RuntimeError)):
        hosts.FULL_BYTES = 1 << (60 if full else 10)
        try:
            with team.writing("the checkpoint of step 2", FOLDER):
                raise raised
        except expected as error:
            named = f"the checkpoint of step 2 could not be written to {FOLDER} on {team.name}" in str(error)
            assert named == (expected is SystemExit), error


SKY = """#!/bin/sh
echo "sky $*" >> "$CALLS"
case $1 in
  logs) printf '\\033[36m(head, rank=0, pid=12)\\033[0m {"event": "log", "text": "(a) pid=1"}\\n(worker1, rank=1, pid=3, ip=10.0.0.2) {"event": "memory"}\\n'
    while [ -n "$HOLD" ] && [ ! -e cancelled ]; do sleep 0.02; done
    [ ! -e cancelled ] || exit 103
    exit "${CODE:-0}" ;;
  cancel) touch cancelled; sleep 0.2 ;;  # until after the logs have ended
esac
"""
# A cluster of one volume, $VOLUME, and a JobSet of two pods. $BREAK: arguments of which a call fails; $EXISTS: the state of an
# earlier JobSet. The first connection to pod 0 ends after its first line.
KUBECTL = """#!/bin/sh
echo "kubectl $*" >> "$CALLS"
case "$*" in *"${BREAK:-nothing}"*) echo 'it says "no"' >&2; exit 1 ;; esac
[ "$1" != --namespace ] || shift 2
value() { sed -nE "s/^ *(- )?[A-Za-z]+: \\"?([^\\" ]+)\\"? # edit: $1$/\\2/p" jobset.applied.yaml | head -n 1; }
case "$*" in
  api-resources*) [ -n "$NO_JOBSET" ] || echo jobsets.jobset.x-k8s.io ;;
  create*) printf '%s|%s|%s' "$(value name)" "$(value claim)" "$(value image)" ;;
  "apply --filename jobset.applied.yaml") touch .applied; mkdir -p "$VOLUME/out"; echo weights > "$VOLUME/out/adapter" ;;
  "delete jobset"*) touch .deleted ;;
  "get jobset"*)
    if [ -e .applied ] && [ ! -e .asked ] || [ -e .applied -a -n "$HOLD" ]; then printf "$(value name) "; touch .asked
    elif [ -e .applied ] || [ "$EXISTS" = Completed ]; then printf "$(value name) ${STATE:-Completed}"
    elif [ -n "$EXISTS" ] && [ ! -e .seen ]; then printf "$(value name) "; touch .seen .applied; fi ;;
  "get pods"*field-selector*) printf 'no node has the volume' ;;
  "get pods"*) printf 'run-host-0-0 run-host-0-1 ' ;;
  "get pod run-"*) [ -n "$HOLD" ] || [ ! -e ".phase-$3" ] || printf Succeeded; [ -e ".phase-$3" ] || printf Running; touch ".phase-$3" ;;
  *logs*run-host-0-0*)
    echo '{"event": "log", "text": "(a) pid=1"}'
    [ ! -e .lost ] || printf '{"event": "progress"}'
    touch .lost ;;
  *logs*) echo '{"event": "memory"}' ;;
  exec*tar*) exec tar -xf - -C "$VOLUME" ;;
  exec*test*) [ -d "$VOLUME/out" ] ;;
  cp*) mkdir -p out && cp -r "$VOLUME/out/." out ;;
esac
"""


def run_script(script, *options, cancel=False, files=(), **variables):
    """Exit code, events and calls of a script of the recipe, started in a folder of its own with `files`, and the folder."""
    work, calls = FOLDER / f"{script}-{len(list(FOLDER.iterdir()))}", FOLDER / "calls"
    work.mkdir()
    for name in (script, "jobset.yaml", "launch.sh"):
        (work / name).write_bytes((COMMON / name).read_bytes())
    (work / "launch.sh").chmod(0o755)
    for name in files:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    calls.write_text("")
    env = {**os.environ, "PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}", **variables, "CALLS": str(calls)}
    process = subprocess.Popen(["/bin/bash", str(work / script), *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if cancel:
        while " logs" not in calls.read_text():
            time.sleep(0.02)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
    out = process.communicate(timeout=60)[0]
    return process.returncode, [json.loads(line) for line in out.splitlines()], calls.read_text(), work


def stand_ins(**tools):
    (FOLDER / "bin").mkdir()
    for name, text in tools.items():
        (FOLDER / "bin" / name).write_text(text)
        (FOLDER / "bin" / name).chmod(0o755)


def kinds(events):
    return sorted(e["event"] for e in events)


def submitters():
    """sky.sh with stand-ins for sky and rsync: events, outcome, results and cancelling."""
    stand_ins(sky=SKY, rsync="#!/bin/sh\necho \"rsync $*\" >> \"$CALLS\"\n")
    code, said, called, _ = run_script("sky.sh", "--cluster", "mine", "--infra", "gcp")
    assert (code, kinds(said)) == (0, ["log", "memory"]), (code, said)
    assert "sky launch --yes --detach-run --cluster mine --infra gcp skypilot.yaml" in called and "rsync -a mine:sky_workdir/out ." in called
    assert run_script("sky.sh", CODE="100")[0] == 100
    code, said, called, _ = run_script("sky.sh", cancel=True, HOLD="1")
    assert code == 103 and "sky cancel --yes meshwright --all" in called, (code, called)


def jobset():
    """jobset.sh with a stand-in for kubectl: the folder goes into the volume, lines are printed once, out/ comes back."""
    stand_ins(kubectl=KUBECTL)
    volume = FOLDER / "volume"
    volume.mkdir()

    def run(*options, **variables):
        return run_script("jobset.sh", *options, VOLUME=str(volume), **variables)

    code, said, called, work = run("--namespace", "n", files=("data/rows.jsonl", "out/old", "venv/python", ".meshwright/out"))
    assert (code, kinds(said)) == (0, ["log", "memory", "progress"]), (code, said, called)
    assert sorted(p.name for p in volume.iterdir()) == ["data", "jobset.applied.yaml", "jobset.sh", "jobset.yaml", "launch.sh", "out"]
    assert os.access(volume / "launch.sh", os.X_OK) and sorted(os.listdir(volume / "out")) == ["adapter"]
    assert (work / "out" / "adapter").read_text() == "weights\n"
    name = work.name.replace(".", "-")
    order = [line for line in called.splitlines() if re.search(r"apply|wait|exec|cp|delete", line)]
    helper = [f"delete pod {name}-files --ignore-not-found", "apply --filename jobset.files.yaml",
              f"wait --for=condition=Ready pod/{name}-files --timeout=600s"]
    assert order == [f"kubectl --namespace n {line}" for line in (
        *helper, f"exec --stdin {name}-files -- tar -xof - -C /recipe", f"delete pod {name}-files",
        "apply --filename jobset.applied.yaml",
        *helper, f"exec {name}-files -- test -d /recipe/out", f"cp --retries=10 {name}-files:/recipe/out out", f"delete pod {name}-files")], order
    pod = (work / "jobset.files.yaml").read_text()
    assert f"subPath: {name}\n" in pod and "claimName: meshwright-recipe\n" in pod and "image: python:3.11\n" in pod

    code, said, called, work = run("--claim", "c", "--hosts", "4", "--accelerator", "google.com/tpu=4", "--node-selector", "a.b/c=2x2,d=e",
                                   JOBSET_CLAIM="unused", JOBSET_IMAGE="r:5000/i@sha256:0a", JOBSET_NAME="mine", STATE="Failed")
    assert code == 1 and (work / "out" / "adapter").exists(), (code, said)
    applied = [line.strip() for line in (work / "jobset.applied.yaml").read_text().splitlines() if "# edit" in line]
    assert [line.split(" # edit")[0] for line in applied] == [
        'name: "mine"', "parallelism: 4", "completions: 4", 'nodeSelector: {a.b/c: "2x2", d: "e"}', 'image: "r:5000/i@sha256:0a"',
        'value: "4"', "google.com/tpu: 4", 'subPath: "mine"', 'claimName: "c"'], applied

    for options, variables in (((), {}), (("--attach",), {"EXISTS": "Running"})):
        code, said, called, work = run(*options, cancel=True, HOLD="1", **variables)
        assert code == 143 and (work / ".deleted").exists() and " cp " not in called, (code, called)
    code, said, called, work = run("--attach", EXISTS="Running")
    assert (code, kinds(said)) == (0, ["log", "memory", "progress"]) and (work / "out" / "adapter").exists(), (code, said)
    assert "--stdin" not in called and "jobset.applied.yaml --output" in called and "apply --filename jobset.applied" not in called
    code, said, called, work = run("--fetch")
    assert (code, said) == (0, []) and (work / "out" / "adapter").exists() and " logs " not in called
    code, said, called, work = run(EXISTS="Completed")
    assert code == 0 and called.index(" --stdin ") < called.index("delete jobset") < called.index("apply --filename jobset.applied"), called
    jobset_failures(run)


def jobset_failures(run):
    """Each failure ends jobset.sh with one error that names it, before the JobSet or after it."""
    (FOLDER / "none").mkdir()
    for tool in ("dirname", "tr", "sed", "bash"):
        (FOLDER / "none" / tool).symlink_to(shutil.which(tool))
    for options, variables, expected in (
            ((), {"PATH": str(FOLDER / "none")}, "kubectl is not in the PATH"),
            ((), {"BREAK": "api-resources"}, "cannot reach the cluster: it says no"),
            ((), {"NO_JOBSET": "1"}, "the cluster has no JobSet"),
            ((), {"BREAK": "create"}, "does not accept jobset.applied.yaml: it says no"),
            (("--claim", "c"), {"BREAK": "persistentvolumeclaim c"}, "there is no PersistentVolumeClaim c:"),
            ((), {"BREAK": "wait --for"}, "did not start: no node has the volume"),
            ((), {"BREAK": "--stdin"}, "this folder could not be copied into the claim meshwright-recipe"),
            ((), {"BREAK": "apply --filename jobset.applied"}, "could not be applied"),
            ((), {"EXISTS": "Running"}, "runs already"),
            (("--attach",), {}, "there is no JobSet"),
            (("--hosts", "many"), {}, "--hosts 'many' is invalid"),
            (("--image", "a|b"), {}, "--image 'a|b' is invalid"),
            (("--name",), {}, "--name has no value")):
        code, said, called, work = run(*options, **variables)
        assert code == 2 and kinds(said) == ["finished", "log"], (variables, code, said, called)
        assert expected in said[0]["text"] and said[1]["error"] == said[0]["text"] and said[1]["state"] == "failed", said
        assert not (work / ".applied").exists() or "EXISTS" in variables, variables
        started, ended = called.count("apply --filename jobset.files.yaml"), called.count("--wait=false") + called.count("-files\n")
        assert started == ended - ("could not be applied" in expected), called  # that also deletes the JobSet
    code, said, called, work = run(BREAK="cp --retries")
    assert code == 1 and "out/ could not be copied from the claim" in said[-1]["text"] and " delete pod " in called.splitlines()[-1], (code, said)


def on_hosts():
    """Two hosts behind a stand-in for ssh: one stream, and the name of the host that fails."""
    home, recipe = FOLDER / "home", FOLDER / "recipe"
    (FOLDER / "bin").mkdir()
    home.mkdir()
    recipe.mkdir()
    (FOLDER / "bin" / "ssh").write_text("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n[ \"$2\" != gone ] || "
                                        "{ echo refused >&2; exit 255; }\ncd \"$HOME\" && exec sh -c \"$3\"\n")
    (FOLDER / "bin" / "ssh").chmod(0o755)
    (recipe / "on_hosts.py").write_bytes((COMMON / "on_hosts.py").read_bytes())
    (recipe / "launch.sh").write_text("""#!/bin/sh
echo '{"event": "log", "level": "info", "text": "'$JAX_PROCESS_ID/$NNODES at $JAX_COORDINATOR_ADDRESS as $HOST_NAME: $*'"}'
mkdir -p out; echo $JAX_PROCESS_ID > out/of-$JAX_PROCESS_ID
[ -z "$FAIL" ] || [ "$JAX_PROCESS_ID" = 0 ] || exit 7
[ -z "$FAIL" ] || exec sleep 600
""")
    (recipe / "launch.sh").chmod(0o755)
    shared, own = "node0\nme@node1:2222\n", f"node0 {home}/a # first\n\nnode1 {home}/b\n"

    def run(text, *arguments, **variables):
        (FOLDER / "hosts").write_text(text)
        done = subprocess.run([sys.executable, "-B", "on_hosts.py", str(FOLDER / "hosts"), *arguments], cwd=recipe, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60,
                              env={**os.environ, "PATH": f"{FOLDER}/bin:{os.environ['PATH']}", "HOME": str(home), **variables})
        return done.returncode, [json.loads(line) for line in done.stdout.decode().splitlines()]

    code, lines = run(shared, "--port", "1234", "--dir", "d", "--", "--steps", "3")
    said = sorted(e["text"] for e in lines)
    assert code == 0 and said == ["0/2 at node0:1234 as node0: --steps 3", "1/2 at node0:1234 as node1:2222: --steps 3",
                                  "starting on 2 hosts: node0, node1:2222"], (code, lines)
    assert sorted(os.listdir(recipe / "out")) == ["of-0", "of-1"] and not list(home.glob("*.part*"))
    code, lines = run(own, "--port", "1234")
    assert code == 0 and os.listdir(home / "b" / "out") == ["of-1"], lines
    for text, error in (("node0\nnode0\n", "hosts:2: node0 is there twice"), ("# none\n", "names no host"), ("-oX\n", "hosts:1: '-oX'"),
                        ("node0\ngone\n", "gone cannot be reached: refused")):
        code, lines = run(text)
        assert code == 2 and lines[-1]["state"] == "failed" and error in lines[-1]["error"], lines
    code, lines = run(own, "--grace", "0.1", FAIL="1")
    assert code == 1 and "host node1 ended with exit code 7; its last event" in lines[-1]["error"], lines
    assert lines[-2]["host"] == {"process": 1, "name": "node1"}


globals()[sys.argv[2]]()
