#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts a Hugging Face folder of a Gemma 3 text model (one bf16 safetensors file) to GGUF version 3 without vocabulary.

    gguf.py FOLDER OUT.gguf --type bf16|q8_0

Matrices have the given type (q8_0: blocks of 32 int8 with one f16 scale, amax / 127); norms are f32 with 1 added.
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np

ALIGNMENT = 32
F32, Q8_0, BF16 = 0, 8, 30  # ggml_type
UINT32, FLOAT32, STRING = 4, 6, 8  # gguf_metadata_value_type
FILE_TYPE = {"bf16": 32, "q8_0": 7}

NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.weight"


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(config, file_type):
    rope = config["rope_parameters"]
    values = {
        "general.architecture": "gemma3",
        "general.name": "random weights",
        "general.file_type": file_type,
        "general.alignment": ALIGNMENT,
        "gemma3.context_length": config["max_position_embeddings"],
        "gemma3.embedding_length": config["hidden_size"],
        "gemma3.block_count": config["num_hidden_layers"],
        "gemma3.feed_forward_length": config["intermediate_size"],
        "gemma3.attention.head_count": config["num_attention_heads"],
        "gemma3.attention.head_count_kv": config["num_key_value_heads"],
        "gemma3.attention.key_length": config["head_dim"],
        "gemma3.attention.value_length": config["head_dim"],
        "gemma3.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "gemma3.attention.sliding_window": config["sliding_window"],
        "gemma3.rope.freq_base": float(rope["full_attention"]["rope_theta"]),
        "gemma3.rope.freq_base_swa": float(rope["sliding_attention"]["rope_theta"]),
        "gemma3.vocab_size": config["vocab_size"],
        "tokenizer.ggml.model": "none",
    }
    out = b""
    for key, value in values.items():
        out += string(key)
        if isinstance(value, str):
            out += struct.pack("<I", STRING) + string(value)
        elif isinstance(value, float):
            out += struct.pack("<If", FLOAT32, value)
        else:
            out += struct.pack("<II", UINT32, value)
    return len(values), out


def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def q8_0(values):
    blocks = values.reshape(-1, 32)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    out = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", 32)])
    out["d"] = scale[:, 0].astype(np.float16)
    out["q"] = np.rint(blocks * inverse).astype(np.int8)
    return out


def encoded(bits, ggml_type):
    if ggml_type == BF16:
        return [bits]
    if ggml_type == F32:
        return [widened(bits) + np.float32(1)]
    step = 1 << 22  # elements per chunk, a multiple of 32
    return (q8_0(widened(bits[i : i + step])) for i in range(0, len(bits), step))


def size_of(count, ggml_type):
    return {F32: 4 * count, BF16: 2 * count, Q8_0: count // 32 * 34}[ggml_type]


def padded(n):
    return -(-n // ALIGNMENT) * ALIGNMENT


def convert(folder, out, kind):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = folder / "model.safetensors"
    with open(weights, "rb") as file:
        header_size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(header_size))
    header.pop("__metadata__", None)
    data = np.memmap(weights, dtype=np.uint8, mode="r", offset=8 + header_size)
    tensors, infos, at = [], b"", 0
    for name, info in header.items():
        assert info["dtype"] == "BF16", f"{weights}: {name} is {info['dtype']}, not BF16"
        shape, ggml_type = info["shape"], F32 if len(info["shape"]) == 1 else {"bf16": BF16, "q8_0": Q8_0}[kind]
        infos += string(gguf_name(name)) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", ggml_type, at)
        tensors.append((info["data_offsets"], ggml_type))
        at = padded(at + size_of(int(np.prod(shape)), ggml_type))
    count, values = metadata(config, FILE_TYPE[kind])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + values + infos
    part = out.with_name(out.name + ".part")
    with open(part, "wb") as file:
        file.write(head.ljust(padded(len(head)), b"\0"))
        for (begin, end), ggml_type in tensors:
            for block in encoded(data[begin:end].view(np.uint16), ggml_type):
                file.write(block.tobytes())
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
    part.replace(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--type", choices=FILE_TYPE, required=True)
    args = parser.parse_args()
    convert(args.folder, args.out, args.type)


if __name__ == "__main__":
    main()
