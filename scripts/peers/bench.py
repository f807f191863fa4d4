# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs Meshwright and its peers on the same work, alternately and in one process per measurement; see peers.sh.

The first round runs every configuration of a peer. Later rounds run those within a sixth of the fastest, and of the fastest
in f32; the one with the best median is compared. Our work in bf16 is compared with the peers' fastest way of all, our work
in f32 (names that end in -f32) with their fastest in f32.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import gguf
import rows
from bars import bar

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROMPT, PREFILL, SEQUENCES = 16, 512, 16
WORKS = [*(f"{work}{end}" for work in ("lora-all", "lora-quarter", "gsm8k-answers", "gsm8k-all", "prefill") for end in ("", "-f32")),
         *(f"decode-{t}-{n}" for t in ("bf16", "int8") for n in (1, SEQUENCES))]  # fmt: skip

# Environment variables that limit PyTorch, its libraries and Meshwright to a class of processors.
CPU_LIMITS = {
    "native": {},
    "amx": {"MESHWRIGHT_CPU": "amx"},  # a processor that has AMX: nothing to limit, but a class of its own in tables
    "avx512_bf16": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "MESHWRIGHT_CPU": "avx512_bf16"},
    "avx512_vnni": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI", "MKL_ENABLE_INSTRUCTIONS": "AVX512",
                    "MESHWRIGHT_CPU": "avx512_vnni"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_ENABLE_INSTRUCTIONS": "AVX512",
               "MESHWRIGHT_CPU": "avx512"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
             "MESHWRIGHT_CPU": "avx2"},
}  # fmt: skip


@dataclass
class Way:
    """A configuration that does the work: a process that prints one JSON line per measurement."""

    name: str
    command: list
    lines: list = field(default_factory=list)
    env: dict = field(default_factory=dict)

    def median(self, key):
        return statistics.median(line[key] for line in self.lines)


@dataclass
class Work:
    name: str
    title: str
    ours: Way
    peers: dict  # name: [Way, ...]
    aside: list = field(default_factory=list)  # configurations that are measured once and shown, but not compared
    ours_f32: Way = None  # the same in f32, compared with the peers' ways in f32


class Bench:
    def __init__(self, args):
        self.args = args
        self.folder = args.folder
        self.model = self.folder / "models" / f"gemma3-{args.shape}"
        self.common = ["--threads", args.threads, "--seconds", args.seconds]

    def program(self, work, *more):
        return Way("meshwright", [self.args.program, "--work", work, "--model", self.model, *self.common, *more])

    def torch(self, name, work, *more):
        return Way(name, [sys.executable, HERE / "torch_side.py", "--work", work, "--model", self.model, *self.common, *more])

    def llama(self, kind, work, *more):
        command = [sys.executable, HERE / "llama_side.py", "--work", work, "--model", self.gguf(kind), *self.common, *more]
        env = {"PYTHONPATH": str(self.args.llama)} if self.args.llama else {}
        return [Way(f"{kind}, flash attention {flash}", [*command, "--flash", flash], env=env) for flash in ("on", "off")]

    def openvino(self, weights, work, *more):
        network = self.model.with_name(f"{self.model.name}-openvino-{weights}")
        command = [sys.executable, HERE / "openvino_side.py", "--work", work, "--export", self.model, "--network", network,
                   "--weights", weights, *self.common, *more]  # fmt: skip
        label = "int8 weights, " if weights == "int8" else ""
        return [Way(f"{label}{precision}", [*command, "--precision", precision]) for precision in ("bf16", "f32")]

    # ---- input files of both sides

    def prepare_model(self):
        if not (self.model / "config.json").is_file():
            shape = f"gemma3-{self.args.shape}"
            subprocess.run([sys.executable, ROOT / "scripts/make_random_checkpoint.py", "--shape", shape, "--out", self.model],
                           check=True, stdout=sys.stderr)  # fmt: skip
        self.vocab = json.loads((self.model / "config.json").read_text(encoding="utf-8"))["vocab_size"]

    def gguf(self, kind):
        file = self.model.with_name(f"{self.model.name}-{kind}.gguf")
        if not file.is_file():
            say(f"Writing {file.name}")
            gguf.convert(self.model, file, kind)
        return file

    def rows_file(self, name, write):
        file = self.folder / "rows" / f"{name}.json"
        if not file.is_file():
            file.parent.mkdir(exist_ok=True)
            write(file)
        return file

    # ---- workloads

    def fine_tuning(self, name, title, file):
        batches = ["--batches", file]
        torch = lambda name, *more: self.torch(name, "lora", *batches, *more)  # noqa: E731
        f32, bf16, eager = ["--dtype", "f32"], ["--dtype", "bf16"], ["--attention", "eager"]
        compiled = ["--compile", "default"]
        ways = [
            torch("f32, sdpa", *f32),
            torch("f32, eager", *f32, *eager),
            torch("bf16, sdpa", *bf16),
            torch("bf16, eager", *bf16, *eager),
            torch("bf16, sdpa, bf16 adapters", *bf16, "--adapters", "as-model"),
            torch("bf16, sdpa, checkpointing", *bf16, "--checkpointing"),
            torch("f32, sdpa, compiled", *f32, *compiled),
            torch("f32, eager, compiled", *f32, *eager, *compiled),
            torch("f32, eager, compiled with max-autotune", *f32, *eager, "--compile", "max-autotune"),
            torch("bf16, eager, bf16 adapters, compiled", *bf16, *eager, "--adapters", "as-model", *compiled),
            torch("bf16, eager, bf16 adapters, compiled with max-autotune", *bf16, *eager, "--adapters", "as-model",
                  "--compile", "max-autotune"),
        ]
        aside = [torch("bf16, sdpa, logits selected manually", *bf16, "--logits", "needed")] if name == "lora-quarter" else []
        return Work(name, title, self.program("lora", *batches), {"PyTorch": ways}, aside, self.program("lora", *batches, *f32))

    def lora(self):
        title = f"LoRA step, {rows.BATCH} x 512, "
        whole = self.rows_file(f"all-{self.vocab}", lambda f: rows.equal_rows(f, self.vocab, 512, 0))
        yield self.fine_tuning("lora-all", title + "loss on every token", whole)
        part = self.rows_file(f"quarter-{self.vocab}", lambda f: rows.equal_rows(f, self.vocab, 512, 384))
        yield self.fine_tuning("lora-quarter", title + "loss on the last quarter", part)

    def gsm8k(self):
        source = ROOT.parent / "shared" / "data" / "gsm8k-train.jsonl"
        if not source.is_file():
            say(f"gsm8k: skipped, there is no {source}")
            return
        tokenizer = ROOT / "resources" / "base-model" / "tokenizer.json"
        for loss, title in (("answers", "loss on the answers"), ("all", "loss on every token")):
            file = self.rows_file(f"gsm8k-{loss}", lambda f: rows.question_rows(f, source, tokenizer, 4, loss))
            yield self.fine_tuning(f"gsm8k-{loss}", f"LoRA step, {rows.BATCH} rows of GSM8K, {title}", file)

    def prefill(self):
        length = ["--tokens", PREFILL]
        torch = [
            self.torch(f"{dtype}, {attention}{label}", "prefill", *length, "--dtype", dtype, "--attention", attention, "--compile", mode)
            for dtype in ("bf16", "f32") for attention in ("sdpa", "eager")
            for mode, label in (("no", ""), ("default", ", compiled"), ("max-autotune", ", compiled with max-autotune"))
        ]  # fmt: skip
        peers = {"llama.cpp": self.llama("bf16", "prefill", *length), "PyTorch": torch,
                 "OpenVINO": self.openvino("as-model", "prefill", *length)}  # fmt: skip
        yield Work("prefill", f"Prefill {PREFILL}, logits of the last token", self.program("prefill", *length), peers,
                   ours_f32=self.program("prefill", *length, "--dtype", "f32"))  # fmt: skip

    def decode(self):
        for kind, ours in (("bf16", "bf16"), ("q8_0", "int8")):
            for count in (1, SEQUENCES):
                shape = ["--prompt", PROMPT, "--tokens", self.args.tokens, "--rows", count]
                yield Work(f"decode-{ours}-{count}", f"Decode {self.args.tokens} after {PROMPT}, {ours}, batch {count}",
                           self.program("decode", *shape, "--dtype", ours),
                           {"llama.cpp": self.llama(kind, "decode", *shape),
                            "OpenVINO": self.openvino("int8" if ours == "int8" else "as-model", "decode", *shape)})  # fmt: skip

    # ---- measurement

    def measure(self, way):
        command = [*shlex.split(self.args.wrap), *map(str, way.command)]
        threads = str(self.args.threads)
        env = os.environ | {"OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"}
        env |= CPU_LIMITS[self.args.cpu] | way.env
        # If memory runs out, the kernel should kill the peer and no other process.
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=lambda: Path("/proc/self/oom_score_adj").write_text("1000"))  # fmt: skip
        out, errors = child.communicate()
        if child.returncode != 0:
            reason = "killed, out of memory?" if child.returncode == -9 else errors.strip().splitlines()[-1:]
            say(f"    {way.name}: failed ({child.returncode}): {reason}")
            return False
        way.lines.append(json.loads(out.strip().splitlines()[-1]))
        return True

    def wanted(self, way):
        return re.search(self.args.ways, way.name) is not None

    def run(self, work):
        say(work.title)
        for number in range(self.args.rounds):
            own = [way for way in (work.ours, work.ours_f32) if way]
            sides = [own, *work.peers.values()] + ([work.aside] if number == 0 else [])
            for ways in sides:
                for way in own if ways is own else [w for w in ways if self.wanted(w)] if number == 0 else contenders(ways):
                    if self.measure(way):
                        line = way.lines[-1]
                        say(f"    {way.name}: {line['tokens_per_s']:.1f} tokens/s, {mib(line['peak_bytes'])} MiB")
        found = [report(work.name, work.title, work.ours, work.peers, work.aside)]
        if work.ours_f32:
            peers = {name: [way for way in ways if is_f32(way)] for name, ways in work.peers.items()}
            found.append(report(work.name + "-f32", work.title + ", f32", work.ours_f32, peers, []))
        return found


def fastest(ways):
    done = [w for w in ways if w.lines]
    return max(done, key=lambda w: w.median("tokens_per_s"), default=None)


def is_f32(way):
    return way.name.startswith("f32")


def contenders(ways):
    def near(those):
        best = fastest(those)
        return [w for w in those if w.lines and w.median("tokens_per_s") > 5 / 6 * best.median("tokens_per_s")]

    kept = near(ways) + near([way for way in ways if is_f32(way)])
    return [way for way in ways if way in kept]


def mib(count):
    return round(count / 2**20)


def figures(way):
    keys = [k for k in way.lines[0] if isinstance(way.lines[0][k], (int, float))]
    return {"way": way.name, "rounds": len(way.lines)} | {k: way.median(k) for k in keys}


def report(name, title, own, peers, aside):
    if not own.lines:
        return {"work": name, "title": title, "failed": True}
    ours = figures(own)
    out = {"work": name, "title": title, "ours": ours, "peers": {}, "aside": [figures(w) for w in aside if w.lines]}
    for name, ways in peers.items():
        best = fastest(ways)
        if best is None:
            continue
        theirs = figures(best)
        out["peers"][name] = theirs | {
            "speed_ratio": ours["tokens_per_s"] / theirs["tokens_per_s"],
            "cpu_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
            "memory_ratio": ours["peak_bytes"] / theirs["peak_bytes"],
            "all_ways": [figures(w) for w in ways if w.lines],
        }
    return out


def processor():
    """Returns name, family and model of the processor: virtual machines name several generations alike."""
    found = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    if "model name" not in found:
        return "unknown"
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def machine(bench, way):
    """Returns the peak rates of the machine: the best of those measured before and after the work."""
    bench.measure(way)
    worth = way.lines[-1]["threads_worth"]
    if 0 < worth < 0.8 * bench.args.threads:
        say(f"    busy: {bench.args.threads} threads did the arithmetic of {worth:.1f}: other load makes nearby figures unreliable")
    return {"cpu": processor(), "threads": bench.args.threads} | {k: max(l[k] for l in way.lines) for k in way.lines[0]} | {
        "threads_worth": [line["threads_worth"] for line in way.lines]
    }


def versions(llama):
    """Versions of the peers that are installed."""
    found = {}
    for name in ("torch", "transformers", "peft", "openvino", "optimum-intel"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    folders = [str(llama)] if llama else sys.path
    found |= {d.metadata["Name"].replace("_", "-"): d.version for d in metadata.distributions(name="llama-cpp-python", path=folders)}
    return found


def merged(old, found):
    """Keeps the works of an earlier run of the same day, class, shape and processor that this run did not measure, or only ours."""
    same = all(old.get(key) == found[key] for key in ("date", "class", "shape")) and old["machine"]["cpu"] == found["machine"]["cpu"]
    works = {work["work"]: work for work in old["works"]} if same else {}
    works |= {work["work"]: work for work in found["works"] if "failed" in work or work.get("peers") or work["work"] not in works}
    return found | {"works": sorted(works.values(), key=lambda work: WORKS.index(work["work"]))}


def print_tables(found):
    m = found["machine"]
    bf16 = f"bf16 {m['bf16_flops'] / 1e9:.0f} GFLOP/s, " if m["bf16_flops"] else ""
    print(f"\n{m['cpu']}, {m['threads']} threads: f32 {m['f32_flops'] / 1e9:.0f} GFLOP/s, {bf16}"
          f"reads {m['cache_read_bytes_per_s'] / 1e9:.0f} GB/s from 16 MiB, {m['dram_read_bytes_per_s'] / 1e9:.0f} GB/s from DRAM")  # fmt: skip
    print(f"Processors limited to: {found['class']}. Gemma 3 {found['shape']} shape, medians of {found['rounds']} rounds\n")
    print("| work | ours, tokens/s | MiB | peer (its fastest configuration) | tokens/s | MiB | speed, ours / theirs | least | CPU time, theirs / ours | memory |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for w in found["works"]:
        if "failed" in w:
            print(f"| {w['title']} | failed | | | | | | | | |")
            continue
        for name, p in w["peers"].items():
            least = bar(found, w["work"], name) or ""
            print(f"| {w['title']} | {w['ours']['tokens_per_s']:.0f} | {mib(w['ours']['peak_bytes'])} | {name}: {p['way']} | "
                  f"{p['tokens_per_s']:.0f} | {mib(p['peak_bytes'])} | {p['speed_ratio']:.2f} | {least} | {p['cpu_ratio']:.2f} | {p['memory_ratio']:.2f} |")  # fmt: skip
    for w in found["works"]:
        if "read_share" in w.get("ours", {}):
            rate, share = w["ours"]["read_bytes_per_s"] / 1e9, w["ours"]["read_share"]
            print(f"\n{w['title']}: weights at {rate:.1f} GB/s, {100 * share:.0f} % of plain reads in turn")
        for a in w.get("aside", []):
            print(f"\n{w['title']}, aside: {a['way']}: {a['tokens_per_s']:.0f} tokens/s, {mib(a['peak_bytes'])} MiB")


def within(work, name):
    return work == name or work.startswith(name + "-")


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/peers.sh", description="Meshwright against PyTorch, llama.cpp and OpenVINO on this CPU")
    kinds = ["lora", "gsm8k", "prefill", "decode"]
    parser.add_argument("--shape", choices=["270m", "1b"], default="270m")
    parser.add_argument("--only", default=",".join(kinds), help=f"names or prefixes of {', '.join(WORKS)}")
    parser.add_argument("--ways", default="", help="measure only the peer configurations whose names match this regular expression")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8, help="minimum measuring time of each process")
    parser.add_argument("--tokens", type=int, default=128, help="tokens that decoding adds to each row")
    parser.add_argument("--cpu", choices=CPU_LIMITS, default="native", help="limit both sides to this class of processors")
    parser.add_argument("--wrap", default="", help="command prefix of every measured process, such as 'taskset -c 0,1'")
    parser.add_argument("--json", type=Path, help="write all measurements to this file, and keep those of the same day in it")
    parser.add_argument("--llama", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    wanted = args.only.split(",")
    for name in wanted:
        if not any(within(work, name) for work in WORKS):
            parser.error(f"--only: {name}: unknown; known are {', '.join(WORKS)}")
    wanted = [name.removesuffix("-f32") for name in wanted]  # ours in f32 is measured beside the same work in bf16
    bench = Bench(args)
    bench.prepare_model()
    peak = Way("peak", [args.program, "--work", "peak", "--threads", args.threads])
    found = {"date": datetime.now(timezone.utc).date().isoformat(), "class": args.cpu, "shape": args.shape, "rounds": args.rounds,
             "versions": versions(args.llama), "machine": machine(bench, peak), "works": []}  # fmt: skip
    earlier = json.loads(args.json.read_text(encoding="utf-8")) if args.json and args.json.is_file() else None
    for kind in kinds:
        if not any(within(name, kind) for name in wanted):
            continue
        for work in getattr(bench, kind)():
            if not any(within(work.name, name) for name in wanted):
                continue
            measured = bench.run(work)
            if args.ways:
                measured = [one | {"ways": args.ways} for one in measured]
            found["works"] += measured
            found["machine"] = machine(bench, peak)
            if args.json:
                everything = merged(earlier, found) if earlier else found
                args.json.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    print_tables(found)


if __name__ == "__main__":
    main()
