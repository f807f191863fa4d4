#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains the base model's tokenizer on its corpus and writes tokenizer.json and tokenizer_config.json in Gemma's format.

BPE with byte fallback: spaces become U+2581, which may only begin a piece; letters never merge with digits or
punctuation; digits stay single. Common English words are added to the counts, so that other English text needs few tokens.
"""
import argparse
import collections
import json
import pathlib
import re

SPACE = "\u2581"
CONTROL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]  # ids 0 to 4, as in every Gemma
TURNS = ["<start_of_turn>", "<end_of_turn>"]
NEWLINES = ["\n" * n for n in range(1, 5)]
UNIT = re.compile(rf"{SPACE}?[A-Za-z]+|{SPACE}?[^{SPACE}\w\s]+|.", re.DOTALL)  # the text that a piece may span: letters or punctuation

# Frequent English words that the corpus uses rarely or never.
COMMON = """the of and to in is that it for was on are as with be at by this have from or had not but what all were when we there
can an your which their said if do will each about how up out them then she many some so these would other into has more her two like him
see time could no make than first been its who now people my made over did down only way find use may water long little very after words
called just where most know get through back much before go good new write our used me man too any day same right look think also around
another came come work three word must because does part even place well such here take why things help put years different away again off
went old number great tell men say small every found still between name should home big give air line set own under read last never us left
end along while might next sound below saw something thought both few those always looked show large often together asked house don world
going want school important until form food keep children feet land side without boy once animals life enough took sometimes four head above
kind began almost live page got earth need far hand high year mother light parts country father let night following picture being study
second eyes soon times story boys since white days ever paper hard near sentence better best across during today however sure means knew try
told young miles sun ways thing whole hear example heard several change answer room sea against top turned learn point city play toward five
using himself usually money seen car morning body upon family later turn move face door cut done group true half red fish plants living black
eat short run book gave order open ground cold really table remember tree course front space inside ago sad early learned close nothing
though idea lived became add become grow draw yet less wind behind cannot letter among able dog shown mean English rest perhaps certain six
feel fire ready green yes built special ran full town complete oh person hot anything hold state list stood hundred ten fast felt kept notice
strong voice probably area horse matter stand box start class piece surface river common stop am talk whether fine round dark past ball girl
road blue instead either held already warm gone finally summer understand moon animal mind outside power problem longer winter deep heavy
carefully follow beautiful everyone leave everything game system bring watch shell dry within floor ice ship themselves begin fact third
quite carry distance although sat possible heart real simple snow rain suddenly leaves easy lay size wild weather miss pattern sky walked
main someone center field stay boat question minutes machine force eight heat building boys per cost sold total each price sell bought
dollars cents hours week month weeks months twice apples spent spend save earn pay paid buy money altogether remaining equal average percent
percentage students friends speed times as many pieces boxes bags thou thee thy hath shall doth lord king queen sir love death blood honour
noble duke brother heaven speak hence good night fear soul grace crown sweet poor gentle wife son hands pray ing ed er est ly tion ment ness
able ful less ous ive al ity ent ant ance ence ate ize ical un re dis pre con com pro ex in""".split()


def count_units(path, limit):
    counts = collections.Counter()
    read = 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"] if line.startswith('{"text"') else line.rstrip("\n")
            counts.update(UNIT.findall(text.replace(" ", SPACE)))
            read += len(text)
            if read > limit:
                break
    return counts


def train(counts, alphabet, size):
    """BPE over counted units. Returns the merges in order and the resulting pieces."""
    words = [(list(w), n) for w, n in sorted(counts.items()) if len(w) > 1 and all(c in alphabet for c in w)]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (symbols, n) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += n
            where[pair].add(i)
    merges, pieces = [], {}
    while len(pieces) < size and pairs:
        best = max(pairs, key=lambda p: (pairs[p], p))
        joined = best[0] + best[1]
        merges.append(best)
        pieces[joined] = True
        for i in sorted(where[best]):
            symbols, n = words[i]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= n
            k = 0
            while k < len(symbols) - 1:
                if (symbols[k], symbols[k + 1]) == best:
                    symbols[k:k + 2] = [joined]
                k += 1
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
                where[pair].add(i)
        pairs = +pairs  # removes pairs that no longer occur
    return merges, list(pieces)


def added(token_id, content, special):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special}


def tokenizer_json(vocab, merges):
    fixed = CONTROL + TURNS + NEWLINES
    bos = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, t, t in CONTROL + TURNS) for i, t in enumerate(fixed)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [bos, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<bos>", "type_id": 1}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": {piece: i for i, piece in enumerate(vocab)}, "merges": [list(m) for m in merges]}}


CHAT_TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] | trim + '\n\n' %}"
    "{% set turns = messages[1:] %}{% else %}{% set first = '' %}{% set turns = messages %}{% endif %}"
    "{% for message in turns %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' + (first if loop.first else '') }}"
    "{{ message['content'] | trim }}{{ '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--out", type=pathlib.Path, default="resources/base-model")
    parser.add_argument("--vocab", type=int, default=2048)
    parser.add_argument("--megabytes", type=float, default=4, help="how much of the corpus is counted")
    args = parser.parse_args()

    counts = count_units(args.corpus, int(args.megabytes * 1e6))
    weight = max(1, sum(counts.values()) // 10000)
    for word in COMMON:
        counts[SPACE + word] += weight // 2
        counts[SPACE + word.capitalize()] += weight // 16
        counts[word] += weight // 8
    alphabet = [SPACE] + [chr(c) for c in range(33, 127)]
    base = CONTROL + TURNS + NEWLINES + [f"<0x{b:02X}>" for b in range(256)] + alphabet
    runs = [SPACE * 2, SPACE * 4, SPACE * 8]  # indentation
    merges, pieces = train(counts, set(alphabet), args.vocab - len(base) - len(runs))
    merges += [(r[:len(r) // 2],) * 2 for r in runs]
    vocab = base + pieces + runs
    assert len(vocab) == len(set(vocab)) == args.vocab

    args.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(tokenizer_json(vocab, merges), ensure_ascii=False, separators=(",", ":"))
    (args.out / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, "add_eos_token": False, "bos_token": "<bos>",
              "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>", "clean_up_tokenization_spaces": False,
              "model_max_length": 1024, "chat_template": CHAT_TEMPLATE}
    (args.out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    units = sum(n * len(w) for w, n in counts.items())
    print(f"{len(vocab)} pieces, {len(merges)} merges learned from {units} characters")


if __name__ == "__main__":
    main()
