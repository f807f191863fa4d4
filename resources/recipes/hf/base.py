# SPDX-License-Identifier: Apache-2.0
"""The base model of transformers with PEFT's adapters, which start with the numbers of start.py."""
import pathlib

import peft
import torch
import transformers

import events


def load(settings, name, dtype, smoke):
    if smoke and (not name or not pathlib.Path(name).is_dir()):
        return _tiny(settings, dtype)
    # eager: the reference; its scores also have what SDPA leaves out (Gemma 2's soft caps).
    model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=dtype, attn_implementation="eager")
    model.config.use_cache = False
    return model


def _tiny(settings, dtype):
    events.log("smoke: a tiny random Gemma 3 stands for the base model")
    config = transformers.Gemma3TextConfig(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=6,
                                           num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=16,
                                           query_pre_attn_scalar=16, max_position_embeddings=4096)
    torch.manual_seed(settings["train"]["seed"])
    return transformers.Gemma3ForCausalLM._from_config(config, dtype=dtype, attn_implementation="eager")


def vocab(model):
    return model.get_input_embeddings().num_embeddings


def add_lora(model, settings, start):
    lora = settings["lora"]
    config = peft.LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], lora_dropout=lora["dropout"], bias="none",
                             target_modules=lora["module_path"], use_rslora=lora["rslora"],
                             use_dora=lora["dora"],
                             rank_pattern=lora["rank_pattern"], alpha_pattern=lora["alpha_pattern"],
                             task_type="CAUSAL_LM")
    tuned = peft.get_peft_model(model, config)  # autocast_adapter_dtype: adapters are f32, as the engine's
    seen = set()
    for name, module in tuned.named_modules():
        if not hasattr(module, "lora_A") or "default" not in module.lora_A:
            continue
        parts = name.split(".")
        layer, projection = int(parts[parts.index("layers") + 1]), parts[-1]
        a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
        new_a, new_b = start(layer, projection, a.shape[1], b.shape[0])
        if new_a.shape != tuple(a.shape) or new_b.shape != tuple(b.shape):
            raise SystemExit(f"{name}: the adapter has {new_a.shape}, the experiment says {tuple(a.shape)}")
        with torch.no_grad():
            a.copy_(torch.from_numpy(new_a))
            b.copy_(torch.from_numpy(new_b))
            lengths = start.magnitudes(layer, projection) if lora["dora"] else None
            if lengths is not None:  # else those of the base model's rows, which PEFT has taken
                module.lora_magnitude_vector["default"].weight.copy_(torch.from_numpy(lengths))
        seen.add((layer, projection))
    wanted = {tuple(m) for m in lora["modules"]}
    if len(seen) != len(wanted) and vocab(model) == settings["model"]["vocab"]:
        raise SystemExit(f"PEFT adapted {len(seen)} modules, the experiment says {len(wanted)}")
    return tuned


def trainable(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def attention_masks(settings, model, inputs):
    """Additive masks by kind of layer: causal, within the segment, and in local layers within the window. Padding sees
    itself, so that no row of scores is empty."""
    config = model.config
    config = getattr(config, "text_config", config)
    ids, segments = inputs["ids"], inputs["segments"]
    at = torch.arange(ids.shape[1], device=ids.device)
    seen = (segments[:, :, None] == segments[:, None, :]) & (at[:, None] >= at[None, :])[None]
    window = getattr(config, "sliding_window", None)
    near = (at[:, None] - at[None, :] < window)[None] if window else True
    dtype = next(model.parameters()).dtype

    def additive(allowed):
        return torch.zeros(allowed.shape, dtype=dtype, device=ids.device).masked_fill(
            ~allowed, torch.finfo(dtype).min)[:, None]

    return {"full_attention": additive(seen), "sliding_attention": additive(seen & near)}


def no_tokenizer(settings):
    """The rows are tokens already; SFTTrainer needs something that knows the padding while it is constructed."""
    from tokenizers import Tokenizer, models
    return transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1},
                                                                                            unk_token="<pad>")),
                                                pad_token="<pad>", eos_token="<eos>")
