# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenVINO side of scripts/peers.sh: the network that optimum-intel exports, with logits of each row's last token only, run by
OpenVINO itself: one workload per process, whose measurements are one JSON line on standard output. Decodes given tokens."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino
from openvino import opset13 as ops

from side import Stopwatch, measure, random_ids, result


def export(model, out, weights):
    """Writes the network to the folder `out`, in a process of its own: the export needs several times the model's memory."""
    code = (
        "import sys; from optimum.intel import OVModelForCausalLM as M, OVWeightQuantizationConfig as Q\n"
        "settings = {'quantization_config': Q(bits=8)} if sys.argv[3] == 'int8' else {'load_in_8bit': False}\n"
        "M.from_pretrained(sys.argv[1], export=True, compile=False, **settings).save_pretrained(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", code, model, out, weights], check=True, stdout=sys.stderr)


def keep_last_logits(network):
    """Cuts the input of the last matrix product to each row's last token."""
    node = network.output("logits").node
    while node.get_type_name() != "MatMul":
        node = node.input_value(0).get_node()
    last = ops.slice(node.input_value(0), [-1], [np.iinfo(np.int32).max], [1], [1])
    node.input(0).replace_source_output(last.output(0))
    network.validate_nodes_and_infer_types()


class Network:
    def __init__(self, args):
        core = openvino.Core()
        network = core.read_model(Path(args.network) / "openvino_model.xml")
        keep_last_logits(network)
        settings = {"INFERENCE_PRECISION_HINT": args.precision, "INFERENCE_NUM_THREADS": args.threads, "PERFORMANCE_HINT": "LATENCY"}
        self.vocabulary = network.output("logits").partial_shape[2].get_length()
        compiled = core.compile_model(network, "CPU", settings)
        self.names = {name for port in compiled.inputs for name in port.names}
        self.request = compiled.create_infer_request()

    def clear(self):
        self.request.reset_state()

    def run(self, rows, first):
        """Appends tokens (rows x tokens) at the position `first` of each row's cache."""
        count, tokens = rows.shape
        inputs = {
            "input_ids": rows,
            "attention_mask": np.ones((count, first + tokens), dtype=np.int64),
            "position_ids": np.tile(np.arange(first, first + tokens, dtype=np.int64), (count, 1)),
            "beam_idx": np.arange(count, dtype=np.int32),
        }
        self.request.infer({name: value for name, value in inputs.items() if name in self.names})
        logits = self.request.get_tensor("logits").data
        if logits.shape != (count, 1, self.vocabulary) or not np.isfinite(logits[0, 0, 0]):
            raise SystemExit(f"OpenVINO gave logits of the shape {logits.shape}")


def prefill(args):
    network = Network(args)
    ids = np.array([random_ids(args.tokens, network.vocabulary)], dtype=np.int64)

    def once():
        network.clear()
        network.run(ids, 0)

    once()
    return result(args.tokens, measure(args.seconds, once))


def decode(args):
    network = Network(args)
    length = args.prompt + args.tokens
    rows = np.array([random_ids(length, network.vocabulary, seed) for seed in range(args.rows)], dtype=np.int64)

    def once():
        network.clear()
        network.run(rows[:, : args.prompt], 0)
        watch = Stopwatch()
        for i in range(args.prompt, length):
            network.run(rows[:, i : i + 1], i)
        return watch.elapsed()

    once()
    return result(args.tokens * args.rows, measure(args.seconds, once))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=["prefill", "decode"], required=True)
    parser.add_argument("--network", required=True, help="folder with OpenVINO's files; see --export")
    parser.add_argument("--export", help="Hugging Face folder to write the network from, where it is missing")
    parser.add_argument("--weights", choices=["as-model", "int8"], default="as-model")
    parser.add_argument("--precision", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    if args.export and not (Path(args.network) / "openvino_model.xml").is_file():
        export(args.export, args.network, args.weights)
    print(json.dumps({"prefill": prefill, "decode": decode}[args.work](args)), flush=True)
    os._exit(0)  # exits without clean-up


if __name__ == "__main__":
    main()
