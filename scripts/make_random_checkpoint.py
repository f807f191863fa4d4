#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a Hugging Face folder with a Gemma 3 shape and random bf16 weights, for speed, memory and loading tests.

    make_random_checkpoint.py --shape gemma3-270m --out DIR [--seed N] [--tokenizer DIR-OR-FILE]
                              [--layers N] [--shards N] [--adapter DIR]

Needs only Python's standard library. Weights are N(0, 0.02) quantised to 256 equally likely levels; norms are 0 (they
multiply by 1 + w). The same seed gives the same bytes. --tokenizer copies a tokenizer whose vocabulary fits the model.
--shards writes this many files and their index; --adapter writes a PEFT adapter (rank 16, every projection).
"""

import argparse
import json
import os
import random
import shutil
import statistics
import struct
import sys
import time
from pathlib import Path

# transformers configuration_gemma3.py and the hub configs; "tiny" is our own, with one global layer.
SHAPES = {
    "gemma3-270m": dict(V=262144, D=640, F=2048, L=18, N=4, K=1, H=256, W=512, positions=32768),
    "gemma3-1b": dict(V=262144, D=1152, F=6912, L=26, N=4, K=1, H=256, W=512, positions=32768),
    # 4B with two more layers: 8.1 GB.
    "gemma3-8gb": dict(V=262208, D=2560, F=10240, L=36, N=8, K=4, H=256, W=1024, positions=131072),
    "tiny": dict(V=4096, D=64, F=192, L=7, N=4, K=1, H=16, W=32, positions=1024),
}
STD = 0.02
CHUNK = 1 << 20  # elements


def config(s):
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_logit_softcapping": None,
        "bos_token_id": 2,
        "dtype": "bfloat16",
        "eos_token_id": 1,
        "final_logit_softcapping": None,
        "head_dim": s["H"],
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": s["D"],
        "initializer_range": STD,
        "intermediate_size": s["F"],
        "layer_types": ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(s["L"])],
        "max_position_embeddings": s["positions"],
        "model_type": "gemma3_text",
        "num_attention_heads": s["N"],
        "num_hidden_layers": s["L"],
        "num_key_value_heads": s["K"],
        "pad_token_id": 0,
        "query_pre_attn_scalar": s["H"],
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "full_attention": {"rope_theta": 1000000.0, "rope_type": "default"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "sliding_window": s["W"],
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": s["V"],
    }


def tensors(s):
    """Returns {name: shape} in the order in which the reference writer sorts tensors of one type."""
    d, f, q, kv = s["D"], s["F"], s["N"] * s["H"], s["K"] * s["H"]
    out = {"model.embed_tokens.weight": (s["V"], d), "model.norm.weight": (d,)}
    for i in range(s["L"]):
        p = f"model.layers.{i}."
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            out[f"{p}{norm}_layernorm.weight"] = (d,)
        for name, shape in (("q_proj", (q, d)), ("k_proj", (kv, d)), ("v_proj", (kv, d)), ("o_proj", (d, q))):
            out[f"{p}self_attn.{name}.weight"] = shape
        for name in ("q_norm", "k_norm"):
            out[f"{p}self_attn.{name}.weight"] = (s["H"],)
        for name, shape in (("gate_proj", (f, d)), ("up_proj", (f, d)), ("down_proj", (d, f))):
            out[f"{p}mlp.{name}.weight"] = shape
    return dict(sorted(out.items()))


def elements(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def level_tables():
    """Returns two tables that map a random byte to the two bytes of a bf16 quantile of N(0, STD)."""
    normal = statistics.NormalDist(0.0, STD)
    low, high = bytearray(256), bytearray(256)
    for i in range(256):
        bits = struct.unpack("<I", struct.pack("<f", normal.inv_cdf((i + 0.5) / 256)))[0]
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # to nearest, ties to even
        low[i], high[i] = bits & 0xFF, bits >> 8
    return bytes(low), bytes(high)


def write_random(out, count, rng, tables):
    low, high = tables
    while count > 0:
        n = min(count, CHUNK)
        levels = rng.randbytes(n)
        values = bytearray(2 * n)
        values[0::2] = levels.translate(low)
        values[1::2] = levels.translate(high)
        out.write(values)
        count -= n


def save(path, dtype, shapes, write):
    """Writes a safetensors file; `write(out, name, count)` writes the values of one tensor."""
    size = {"BF16": 2, "F32": 4}[dtype]
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size * elements(shape)]}
        at += size * elements(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            write(out, name, elements(shape))
    os.replace(part, path)


def split(shapes, shards):
    """Splits the tensors, in order, into parts of nearly equal size."""
    parts, size, left = [{}], 0, sum(map(elements, shapes.values()))
    for name, shape in shapes.items():
        if len(parts) < shards and size >= left / (shards - len(parts) + 1):
            parts.append({})
            left, size = left - size, 0
        parts[-1][name] = shape
        size += elements(shape)
    return parts


def write_weights(folder, s, seed, shards):
    shapes = tensors(s)
    rng, tables = random.Random(seed), level_tables()

    def write(out, name, count):
        if name.endswith("norm.weight"):
            out.write(bytes(2 * count))
        else:
            write_random(out, count, rng, tables)

    if shards == 1:
        save(folder / "model.safetensors", "BF16", shapes, write)
    else:
        parts, index = split(shapes, shards), {}
        for i, part in enumerate(parts):
            file = f"model-{i + 1:05}-of-{len(parts):05}.safetensors"
            save(folder / file, "BF16", part, write)
            index.update({name: file for name in part})
        total = 2 * sum(map(elements, shapes.values()))
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2)
        (folder / "model.safetensors.index.json").write_text(text + "\n", encoding="utf-8")
    return sum(map(elements, shapes.values()))


def write_adapter(folder, s, seed, rank=16):
    modules = [n for n in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")]
    shapes = {}
    for name, shape in tensors(s).items():
        if name.split(".")[-2] in modules:
            path = "base_model.model." + name.removesuffix(".weight")
            shapes[f"{path}.lora_A.weight"] = (rank, shape[1])
            shapes[f"{path}.lora_B.weight"] = (shape[0], rank)
    rng = random.Random(seed + 1)
    levels = [struct.pack("<f", statistics.NormalDist(0.0, STD).inv_cdf((i + 0.5) / 256)) for i in range(256)]

    def write(out, name, count):
        out.write(b"".join([levels[i] for i in rng.randbytes(count)]))

    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "adapter_model.safetensors", "F32", dict(sorted(shapes.items())), write)
    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": 2 * rank, "lora_dropout": 0.0,
                "bias": "none", "target_modules": modules, "base_model_name_or_path": "random"}
    (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def copy_tokenizer(source, out, vocab):
    file = source if source.is_file() else source / "tokenizer.json"
    if file.name == "tokenizer.json":
        content = json.loads(file.read_text(encoding="utf-8"))
        ids = list(content["model"]["vocab"].values()) + [t["id"] for t in content.get("added_tokens", [])]
        if max(ids) >= vocab:
            sys.exit(f"{file}: token ids up to {max(ids)} do not fit a vocabulary of {vocab}")
    shutil.copyfile(file, out / file.name)
    extra = file.with_name("tokenizer_config.json")
    if extra.is_file():
        shutil.copyfile(extra, out / extra.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokenizer", type=Path, help="folder with a tokenizer.json, or a tokenizer file")
    parser.add_argument("--layers", type=int, help="instead of the shape's")
    parser.add_argument("--shards", type=int, default=1, help="files")
    parser.add_argument("--adapter", type=Path, help="output folder for a random adapter of the model")
    args = parser.parse_args()
    started, shape = time.monotonic(), dict(SHAPES[args.shape])
    shape["L"] = args.layers or shape["L"]
    args.out.mkdir(parents=True, exist_ok=True)
    if args.tokenizer:
        copy_tokenizer(args.tokenizer, args.out, shape["V"])
    count = write_weights(args.out, shape, args.seed, args.shards)
    if args.adapter:
        write_adapter(args.adapter, shape, args.seed)
    (args.out / "config.json").write_text(json.dumps(config(shape), indent=2) + "\n", encoding="utf-8")
    print(f"{args.out}: {count:,} parameters, {2 * count:,} bytes, {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
