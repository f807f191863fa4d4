# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile files for every command that reads files, and raw requests to the server."""
import json
import os
import resource
import shutil
import signal
import socket

from common import FIXTURES, Outcome, crash, project

MEMORY = 2 << 30  # address space of a command that reads a hostile file, including the program's libraries


def hostile_files(folder):
    folder.mkdir()
    whole = (FIXTURES / "gemma3_tiny/model.safetensors").read_bytes()
    bytes_of = {
        "empty.json": b"",
        "deep.json": b"[" * 5_000_000,
        "wide.json": b'{"a":' + b'"' + b"x" * 20_000_000 + b'"}',
        "utf16.json": '{"schema": 1}'.encode("utf-16"),
        "binary.json": bytes(range(256)) * 4096,
        "nan.json": b'{"schema": 1, "train": {"learning_rate": NaN}}',
        "huge-number.json": b'{"schema": 1, "train": {"steps": ' + b"9" * 400 + b"}}",
        "truncated.safetensors": whole[: len(whole) // 2],
        "header.safetensors": b"\xff" * 8 + whole,
        "lfs.safetensors": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123\n",
        "runs.sqlite": b"SQLite format 3\0" + os.urandom(4096),
        "run.wandb": b":W&B" + os.urandom(4096),
        "events.out.tfevents.1": os.urandom(4096),
        "log.jsonl": b"{" * 2_000_000,
        "results.csv": b"=cmd|' /C calc'!A0,\x1b]0;owned\x07\n" * 1000,
        "\x1b[31mred\x1b[0m.json": b"{",
    }
    for name, content in bytes_of.items():
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "directory.json").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket.json"))
    return [*sorted(folder.iterdir()), "/dev/zero", "/dev/full", folder / ("n" * 250), folder / "missing.json", ""]


def commands_reading(path, project_folder):
    experiment = project_folder / "train.json"
    return [("plan", path), ("inspect", path), ("import", path), ("compare", path, path), ("audit", path, "--target", "v6e-8"),
            ("replay", path), ("run", path), ("plan", experiment, "--set", f"data.path={path}"),
            ("plan", experiment, "--set", f"model.path={path}"), ("inspect", project_folder / "model", "--runs-dir", path),
            ("runs", "--runs-dir", path), ("merge", "--base", path, "--adapter", path, "--out", project_folder / "out")]


def hostile_file(program, work, path, arguments, number):
    runs = work / f"hostile-runs-{number}"
    more = () if "--runs-dir" in arguments or arguments[0] in ("merge",) else ("--runs-dir", runs)
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ended = program.run(*arguments, *more, timeout=60, preexec_fn=limit)
    shutil.rmtree(runs, ignore_errors=True)
    faults = [crash(ended)] if crash(ended) else []
    if "\x1b" in ended.out + ended.err or "\x07" in ended.out + ended.err:
        faults.append("an escape sequence from the file reached the terminal")
    if ended.code == 1:
        faults.append("bad input with exit code 1: " + ended.err.strip()[-200:])
    if ended.code == 2 and not ended.err.strip():
        faults.append("no message")
    faults = [f"{arguments[0]} {str(path)[-40:]!r}: {f}" for f in faults]
    return Outcome("hostile file", arguments[0], faults)


def request(lines, body=b""):
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def probes(port):
    """Returns (name, bytes to send, expected status codes); 0 stands for a connection closed without an answer."""
    host = f"Host: 127.0.0.1:{port}"
    body = json.dumps({"model": "model", "prompt": "The", "max_tokens": 2}).encode()
    length = f"Content-Length: {len(body)}"
    post = ["POST /v1/completions HTTP/1.1", host, "Content-Type: application/json"]
    return [
        ("good", request([*post, length], body), {200}),
        ("good HTTP/1.1 get", request(["GET /v1/models HTTP/1.1", host]), {200}),
        ("foreign host", request(["GET /v1/models HTTP/1.1", "Host: evil.example"]), {403, 421}),
        ("foreign host with our port", request(["GET /metrics HTTP/1.1", f"Host: evil.example:{port}"]), {403, 421}),
        ("host that begins like ours", request(["GET /v1/models HTTP/1.1", "Host: 127.0.0.1.evil.example"]), {400, 403, 421}),
        ("no host", request(["GET /v1/models HTTP/1.1"]), {400, 403, 421}),
        ("two hosts", request(["GET /v1/models HTTP/1.1", host, "Host: evil.example"]), {400, 403, 421}),
        ("foreign origin", request([*post, length, "Origin: https://evil.example"], body), {403}),
        ("null origin", request([*post, length, "Origin: null"], body), {403}),
        ("two lengths", request([*post, length, "Content-Length: 3"], body), {400}),
        ("two equal lengths", request([*post, length, length], body), {400}),
        ("length list", request([*post, f"Content-Length: {len(body)}, 3"], body), {400}),
        ("length and chunked", request([*post, length, "Transfer-Encoding: chunked"], b"0\r\n\r\n"), {400}),
        ("negative length", request([*post, "Content-Length: -1"], body), {400}),
        ("signed length", request([*post, f"Content-Length: +{len(body)}"], body), {400}),
        ("huge length", request([*post, "Content-Length: 99999999999999"], body), {400, 413}),
        ("no length", request(post), {400, 411}),
        ("bad chunk", request([*post, "Transfer-Encoding: chunked"], b"zz\r\nx\r\n0\r\n\r\n"), {0, 400}),
        ("other coding", request([*post, "Transfer-Encoding: gzip"], body), {400, 501}),
        ("space before colon", request([*post, f"Content-Length : {len(body)}"], body), {400}),
        ("folded header", request(["GET /v1/models HTTP/1.1", host, "X: a", " b"]), {400}),
        ("nul in a header", request(["GET /v1/models HTTP/1.1", host, "X: a\0b"]), {400}),
        ("wrong method", request(["DELETE /v1/models HTTP/1.1", host]), {405}),
        ("get of a post", request(["GET /v1/completions HTTP/1.1", host]), {405}),
        ("unknown path", request(["GET /v1/nothing HTTP/1.1", host]), {404}),
        ("path upwards", request(["GET /../../etc/passwd HTTP/1.1", host]), {400, 404}),
        ("long path", request(["GET /" + "a" * 100_000 + " HTTP/1.1", host]), {0, 400, 414, 431}),
        ("long header", request(["GET /v1/models HTTP/1.1", host, "X: " + "a" * 1_000_000]), {0, 400, 413, 431}),
        ("many headers", request(["GET /v1/models HTTP/1.1", host, *[f"X{i}: a" for i in range(5000)]]), {0, 200, 400, 431}),
        ("not HTTP", b"\x16\x03\x01\x02\x00\x01\x00" + os.urandom(200), {0, 400}),
        ("no version", b"GET /v1/models\r\n\r\n", {0, 400}),
        ("bad JSON", request([*post, "Content-Length: 5"], b"{" * 5), {400}),
        ("deep JSON", request([*post, "Content-Length: 100000"], b"[" * 100_000), {400, 413}),
        ("n of two", request([*post, f"Content-Length: {len(body) + 7}"], body[:-1] + b', "n":2}'), {400}),
    ]


def answer(port, sent):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(sent)
        except OSError:
            pass  # the server closed the connection during sending; its answer may still be readable
        try:
            head = connection.recv(4096)
        except OSError:
            return 0
    fields = head.split(b" ", 2)
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def http(program, work, rounds):
    folder = project(work / "http")
    process = program.start("serve", folder / "serve.json", "--port", "0")
    outcomes = []
    try:
        line = b""
        while b"http://" not in line:
            line = process.stdout.readline()
            assert line, process.stderr.read()
        port = int(line.split(b"http://127.0.0.1:")[1].split(b"/")[0])
        for _ in range(rounds):
            for name, sent, right in probes(port):
                try:
                    status = answer(port, sent)
                    faults = [] if status in right else [f"{name}: {status}, not {sorted(right)}"]
                except OSError as error:
                    faults = [f"{name}: {error}"]
                outcomes.append(Outcome("HTTP probe", "request", faults))
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for connection in idle[:50]:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\n")
        outcomes.append(Outcome("HTTP probe", "idle", [] if answer(port, probes(port)[0][1]) == 200 else ["100 idle connections block the server"]))
        for connection in idle:
            connection.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        held = process.returncode in (0, 130)
        outcomes.append(Outcome("HTTP probe", "end", [] if held else [f"the server ended with {process.returncode}"]))
        return outcomes
    finally:
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)
