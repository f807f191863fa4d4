# SPDX-License-Identifier: GPL-3.0-or-later
"""The PyTorch side of scripts/peers.sh: one workload per process, whose measurements are one JSON line on standard output."""

import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from side import measure, random_ids, result

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def load(args):
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    return AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, attn_implementation=args.attention)


def padded(rows, last):
    """Returns input_ids, attention_mask and labels, right-padded to the longest row; labels only for the `last` columns."""
    longest = max(len(row["ids"]) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for i, row in enumerate(rows):
        n, first = len(row["ids"]), row["loss_from"]
        ids[i, :n] = torch.tensor(row["ids"])
        mask[i, :n] = 1
        labels[i, first:n] = ids[i, first:n]
    batch = {"input_ids": ids, "labels": labels[:, -last:] if last else labels, "logits_to_keep": last}
    return batch if mask.all() else batch | {"attention_mask": mask}


def compiled(model, args):
    """The model as --compile asks for: the first call compiles, so it is timed apart."""
    return model if args.compile == "no" else torch.compile(model, mode=None if args.compile == "default" else args.compile)


def lora(args):
    from peft import LoraConfig, get_peft_model

    with open(args.batches, encoding="utf-8") as file:
        rows = json.load(file)["batches"]
    last = 0
    if args.logits == "needed":  # columns from the first one that predicts a token with loss
        last = max(len(r["ids"]) for b in rows for r in b) - min(r["loss_from"] for b in rows for r in b) + 1
    batches = [padded(b, last) for b in rows]
    tokens = sum(len(row["ids"]) for batch in rows for row in batch)
    model = load(args)
    model.config.use_cache = False
    config = LoraConfig(r=16, lora_alpha=32, target_modules=PROJECTIONS, lora_dropout=0.0, task_type="CAUSAL_LM")
    model = get_peft_model(model, config, autocast_adapter_dtype=args.adapters == "f32")
    if args.checkpointing:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    run = compiled(model, args)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0.0, fused=True)
    losses = [0.0]

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = run(**batch).loss
        loss.backward()
        optimizer.step()
        losses[0] = loss.item()

    start = time.perf_counter()
    step(batches[0])
    first = time.perf_counter() - start
    times = measure(args.seconds, lambda: [step(b) for b in batches])
    return result(tokens, times) | {"first_seconds": first, "loss": losses[0]}


def prefill(args):
    model = load(args).eval()
    ids = torch.tensor([random_ids(args.tokens, model.config.vocab_size)])
    run = compiled(model, args)
    with torch.inference_mode():
        once = lambda: run(input_ids=ids, logits_to_keep=1, use_cache=True)
        start = time.perf_counter()
        once()
        first = time.perf_counter() - start
        return result(args.tokens, measure(args.seconds, once)) | {"first_seconds": first}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=["lora", "prefill"], required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batches")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--compile", choices=["no", "default", "max-autotune"], default="no", help="mode of torch.compile")
    parser.add_argument("--adapters", choices=["f32", "as-model"], default="f32", help="f32 is peft's default")
    parser.add_argument("--logits", choices=["all", "needed"], default="all", help="all: as transformers computes them from labels")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    logging.set_verbosity_error()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    print(json.dumps({"lora": lora, "prefill": prefill}[args.work](args)))


if __name__ == "__main__":
    main()
