# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the logits of a transformers model, with or without a PEFT adapter, with those of `meshwright generate --logits`
at every position of every prompt, in f32. Prints a row of check-recipes.sh's table.

    python scripts/recipes/round_trip.py NAME LOGITS.safetensors MODEL_FOLDER [--adapter FOLDER] [--bar 1e-3]
    python scripts/recipes/round_trip.py --as-f32 MODEL_FOLDER OUT    copies the model with f32 weights, so that merging does not round
"""
import argparse
import os
import pathlib
import shutil
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from safetensors import safe_open


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def as_f32(folder, out):
    load(folder).save_pretrained(out)
    for file in pathlib.Path(folder).iterdir():
        if file.name.startswith(("tokenizer", "generation_config")):
            shutil.copy(file, out)


def adapted(model, folder):
    """Returns the model and its mismatches: every tensor of the file must be loaded, none left at its initial value."""
    import peft
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(model, folder).eval()
    with safe_open(pathlib.Path(folder) / "adapter_model.safetensors", "pt") as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}
    loaded = peft.get_peft_model_state_dict(model)
    wrong = [n for n, v in stored.items() if n not in loaded or not torch.equal(loaded[n], v.float())]
    wrong += sorted(set(loaded) - set(stored)) + [str(w.message) for w in caught if "adapter" in str(w.message).lower()]
    return model, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("logits")
    parser.add_argument("model")
    parser.add_argument("--adapter")
    parser.add_argument("--bar", type=float, default=1e-3)
    a = parser.parse_args()
    model, bad = load(a.model), []
    if a.adapter:
        model, wrong = adapted(model, a.adapter)
        bad += [f"peft: {w}" for w in wrong[:3]]
    largest, positions, same, effect = 0.0, 0, 0, 0.0
    with safe_open(a.logits, "pt") as file, torch.no_grad():
        for i in range(len(file.keys()) // 2):
            ids, ours = file.get_tensor(f"{i}.ids"), file.get_tensor(f"{i}.logits")
            theirs = model(input_ids=ids[None].long(), use_cache=False).logits[0].float()
            largest = max(largest, (ours - theirs).abs().max().item())
            positions += len(ids)
            same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
            if a.adapter:
                with model.disable_adapter():
                    plain = model(input_ids=ids[None].long(), use_cache=False).logits[0].float()
                effect = max(effect, (plain - theirs).abs().max().item())
    if positions == 0 or not largest <= a.bar:
        bad.append(f"exceeds {a.bar:g}")
    if a.adapter and not effect > 100 * a.bar:
        bad.append("the adapter has almost no effect, so the comparison is meaningless")
    effect_text = f"adapter changes up to {effect:.3g}" if a.adapter else "merged"
    print("\t".join([a.name, f"{largest:.2g}", f"{same} of {positions}", effect_text, "BAD: " + "; ".join(bad) if bad else "ok"]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-f32"]:
        as_f32(*sys.argv[2:4])
    else:
        main()
