# SPDX-License-Identifier: Apache-2.0
"""The adapter that training starts from: the experiment's own (adapter/), or new ones with the same numbers as
Meshwright's engine draws: A uniform within 1/sqrt(in) (PEFT's kaiming_uniform(a=sqrt 5)), a function of seed, layer,
projection and element; B zero."""
import json
import pathlib

import numpy as np

import tensors

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_LORA = 0x4C6F5241


def _mix(x):
    """SplitMix64's finaliser, element by element."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _key(identity):
    key = np.uint64(0x6D65736877726967)
    for part in identity:
        key = _mix(key ^ _mix(np.uint64(part)))
    return key


def new_a(seed, layer, projection, rank, inputs):
    """[rank, inputs], f32."""
    key = _key((seed, _LORA, layer, PROJECTIONS.index(projection)))
    with np.errstate(over="ignore"):
        draws = _mix(key + np.arange(rank * inputs, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95))
    uniform = (draws >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    bound = np.float32(1) / np.sqrt(np.float32(inputs))
    return (bound * (np.float32(2) * uniform - np.float32(1))).reshape(rank, inputs)


class Start:
    """A and B of a projection, [rank, in] and [out, rank], f32."""

    def __init__(self, folder, settings):
        self.lora, self.seed = settings["lora"], settings["train"]["seed"]
        adapter = pathlib.Path(folder) / "adapter" / "adapter_model.safetensors"
        self.file = tensors.File(adapter) if adapter.exists() else None
        self.names = {}
        if self.file is not None:
            for name in self.file.names():
                self.names[name.split("layers.", 1)[-1]] = name

    def __call__(self, layer, projection, inputs, outputs):
        rank = self.lora["rank"]
        if self.file is None:
            return new_a(self.seed, layer, projection, rank, inputs), np.zeros((outputs, rank), np.float32)
        block = "mlp" if projection in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        pair = []
        for half in ("lora_A", "lora_B"):
            short = f"{layer}.{block}.{projection}.{half}.weight"
            if short not in self.names:
                raise SystemExit(f"{self.file.path}: no {short}")
            pair.append(np.array(self.file[self.names[short]], np.float32))
        return tuple(pair)

    def magnitudes(self, layer, projection):
        """[out], f32, of a DoRA adapter that training starts from; None without one."""
        block = "mlp" if projection in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        name = self.names.get(f"{layer}.{block}.{projection}.lora_magnitude_vector")
        return None if name is None else np.array(self.file[name], np.float32)


def write_peft(folder, settings, modules, base=""):
    """modules: {HF module path: (A, B)}; a PEFT adapter that transformers, vLLM and Meshwright load. It appears whole: the
    configuration, without which nothing loads it, comes last."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").unlink(missing_ok=True)
    values = {}
    for module, (a, b) in modules.items():
        values[f"base_model.model.{module}.lora_A.weight"] = np.asarray(a, np.float32)
        values[f"base_model.model.{module}.lora_B.weight"] = np.asarray(b, np.float32)
    lora = settings["lora"]
    config = {"base_model_name_or_path": base, "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
              "init_lora_weights": True, "lora_alpha": lora["alpha"], "lora_dropout": lora["dropout"],
              "modules_to_save": None, "peft_type": "LORA", "r": lora["rank"],
              "target_modules": sorted({m.rsplit(".", 1)[-1] for m in modules}), "task_type": "CAUSAL_LM",
              "use_rslora": lora["rslora"]}
    tensors.write(folder / "adapter_model.safetensors", values, {"format": "pt"})
    part = folder / "adapter_config.json.part"
    part.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    part.replace(folder / "adapter_config.json")
