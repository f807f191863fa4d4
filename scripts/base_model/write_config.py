#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes config.json and generation_config.json of the base model: its architecture, in one place."""
import argparse
import json
import pathlib

LAYERS = 6

CONFIG = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "vocab_size": 2048,
    "hidden_size": 192,
    "intermediate_size": 640,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "query_pre_attn_scalar": 32,
    "sliding_window": 128,
    # five local layers, then a global one, as in every Gemma 3
    "layer_types": ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(LAYERS)],
    "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                        "full_attention": {"rope_type": "default", "rope_theta": 1000000.0}},
    "max_position_embeddings": 1024,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "initializer_range": 0.02,
    "tie_word_embeddings": True,
    "use_cache": True,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
    "dtype": "bfloat16",
}
# An answer ends with <eos> or, in a conversation, with <end_of_turn>.
GENERATION = {"bos_token_id": 2, "eos_token_id": [1, 6], "pad_token_id": 0, "do_sample": False}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default="resources/base-model")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION)):
        (args.out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
