# SPDX-License-Identifier: GPL-3.0-or-later
"""The llama.cpp side of scripts/peers.sh, with the low-level calls of llama-cpp-python: one workload per process, whose
measurements are one JSON line on standard output. Decodes given tokens, as llama-bench does: sampling is not measured."""

import argparse
import json
import os

import llama_cpp as llama

from side import Stopwatch, measure, random_ids, result

FLASH = {"off": 0, "on": 1}  # llama_flash_attn_type


def load(args):
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(args.model.encode(), llama.llama_model_default_params())
    if not model:
        raise SystemExit(f"{args.model}: llama.cpp cannot load the model")
    settings = llama.llama_context_default_params()
    context = args.prompt + args.tokens if args.work == "decode" else args.tokens
    settings.n_ctx = args.rows * -(-context // 256) * 256
    settings.n_batch = settings.n_ubatch = 512
    settings.n_seq_max = args.rows
    settings.n_threads = settings.n_threads_batch = args.threads
    settings.flash_attn_type = FLASH[args.flash]
    settings.no_perf = True
    context = llama.llama_init_from_model(model, settings)
    if not context:
        raise SystemExit("llama.cpp cannot create a context with these settings")
    return model, context


class Batch:
    """Creates a batch of several sequences with logits for the last token of each."""

    def __init__(self, capacity):
        self.batch = llama.llama_batch_init(capacity, 0, 1)

    def fill(self, rows, first):
        n = 0
        for row, ids in enumerate(rows):
            for i, token in enumerate(ids):
                self.batch.token[n], self.batch.pos[n] = token, first + i
                self.batch.n_seq_id[n], self.batch.seq_id[n][0] = 1, row
                self.batch.logits[n] = i + 1 == len(ids)
                n += 1
        self.batch.n_tokens = n
        return self.batch


def decode_batch(context, batch):
    if llama.llama_decode(context, batch) != 0:
        raise SystemExit("llama_decode failed")
    llama.llama_get_logits_ith(context, -1)  # waits for the result


def prefill(args):
    model, context = load(args)
    ids = random_ids(args.tokens, llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model)))
    batch = Batch(args.tokens)

    def once():
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        decode_batch(context, batch.fill([ids], 0))

    once()
    return result(args.tokens, measure(args.seconds, once))


def decode(args):
    model, context = load(args)
    vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
    rows = [random_ids(args.prompt + args.tokens, vocab, seed) for seed in range(args.rows)]
    batch = Batch(args.prompt * args.rows)

    def once():
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        decode_batch(context, batch.fill([row[: args.prompt] for row in rows], 0))
        watch = Stopwatch()
        for i in range(args.prompt, args.prompt + args.tokens):
            decode_batch(context, batch.fill([row[i : i + 1] for row in rows], i))
        return watch.elapsed()

    once()
    return result(args.tokens * args.rows, measure(args.seconds, once))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=["prefill", "decode"], required=True)
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--flash", choices=FLASH, default="on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    if "MESHWRIGHT_LLAMA_LOG" not in os.environ:
        quiet = llama.llama_log_callback(lambda level, text, data: None)
        llama.llama_log_set(quiet, None)
    print(json.dumps({"prefill": prefill, "decode": decode}[args.work](args)), flush=True)
    os._exit(0)  # exits without clean-up


if __name__ == "__main__":
    main()
