# SPDX-License-Identifier: Apache-2.0
"""The base model in Tunix's form: its ModelConfig as settings.json says, weights from Hugging Face's files by a map that
names every parameter (nothing is skipped, nothing stays empty), adapters with the numbers of start.py."""
import importlib
import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.experimental import multihost_utils

import events
import tensors

ENUMS = {"query_pre_attn_norm": "QueryPreAttentionNormalisation", "attention_types": "AttentionType",
         "attention_pattern": "AttentionType"}


def _config(settings, dtype, changes):
    tunix = settings["model"]["tunix"]
    module = importlib.import_module(tunix["module"])
    values = {**tunix["config"], **changes}
    for key, enum in ENUMS.items():
        if isinstance(values.get(key), str):
            values[key] = getattr(module, enum)[values[key]]
        elif values.get(key) is not None:
            values[key] = tuple(getattr(module, enum)[v] for v in values[key])
    fields = module.ModelConfig.__dataclass_fields__
    values.update({key: dtype for key in ("param_dtype", "dtype") if key in fields})
    return module, module.ModelConfig(**values)


def largest_tp(settings, most):
    """That divides heads and keys, as Tunix's shardings need it."""
    c = settings["model"]["tunix"]["config"]
    heads = [c["num_heads"], c.get("num_global_kv_heads") or 0]
    if c["num_kv_heads"] > 1:
        heads.append(c["num_kv_heads"])
    return math.gcd(most, *heads)


def tiny_changes(settings):
    """A model of the same kind of layers, heads and sharing, small enough for a trial."""
    c = settings["model"]["tunix"]["config"]
    kind = c.get("attention_pattern") or c.get("attention_types")
    layers = min(c["num_layers"], 6 if not kind else 2 * len(kind) if c.get("frac_shared_layers") else len(kind))
    small = {"num_layers": layers, "num_embed": 512, "embed_dim": 64, "hidden_dim": 128, "head_dim": 16,
             "sliding_window_size": 16, "global_key_size": 32, "per_layer_input_dim": 8,
             "override_kv_shared_ffw_hidden": 256, "num_experts": 8, "expert_dim": 16, "moe_dense_hidden_dim": 128,
             "num_experts_per_tok": 2, "frac_shared_layers": 0.5}
    changes = {k: v for k, v in small.items() if c.get(k)}
    if "attention_types" in c:
        changes["attention_types"] = c["attention_types"][:layers]
    return changes


def _split(model, mesh):
    graph, state = nnx.split(model)
    return graph, state, nnx.get_named_sharding(state, mesh)


def create(settings, folder, mesh, dtype, smoke):
    """The model on the mesh; whether it is the tiny random one."""
    tiny = smoke and not folder
    if not folder and not smoke:
        raise SystemExit("give --model FOLDER: the base model's safetensors")
    module, config = _config(settings, dtype, tiny_changes(settings) if tiny else {})
    make = lambda: getattr(module, settings["model"]["tunix"]["class"])(config, rngs=nnx.Rngs(params=0))  # noqa: E731
    if tiny:
        events.log("smoke: a tiny random model of the family stands for the base model")
        graph, state, shardings = _split(make(), mesh)
        return nnx.merge(graph, jax.device_put(state, shardings)), True
    graph, state, shardings = _split(nnx.eval_shape(make), mesh)
    files = tensors.Folder(folder)
    by_path = {}
    for path, slot, name in settings["model"]["tensors"]:
        by_path.setdefault(path, {})[slot] = name
    flat, where = state.flat_state(), dict(shardings.flat_state())
    loaded = []
    for path, parameter in flat:
        text = ".".join(str(p) for p in path)
        if text not in by_path:
            raise SystemExit(f"Tunix's parameter {text} is not in settings.json: another version of Tunix?")
        names = by_path.pop(text)
        value = _stacked([_value(text, files[names[s]], parameter.shape, s >= 0) for s in sorted(names)], text)
        if value.size != math.prod(parameter.shape):
            raise SystemExit(f"{text}: the files have {value.shape}, Tunix expects {parameter.shape}")
        value = np.ascontiguousarray(value).reshape(parameter.shape).astype(jnp.dtype(dtype))
        place = where[path]
        place = place.get_value() if hasattr(place, "get_value") else place
        loaded.append((path, parameter.replace(jax.device_put(value, place))))
    if by_path:
        raise SystemExit(f"Tunix has no parameter {sorted(by_path)[0]}: another version of Tunix?")
    return nnx.merge(graph, nnx.State.from_flat_path(dict(loaded))), False


def _value(path, w, shape, slot):
    """From Hugging Face's [out, in] to Tunix's axes."""
    part = path.split(".")[-2]
    if part in ("q_einsum", "kv_einsum", "qkv_einsum", "k_einsum"):
        heads, dim, head = shape[-3:]
        return w.reshape(heads, head, dim).transpose(0, 2, 1)
    if part == "attn_vec_einsum":
        return w.T.reshape(shape)
    if part == "moe" and path.endswith("linear"):
        return w.transpose(0, 2, 1)
    if path.endswith((".kernel", ".w", "router_logits")):
        return w.T
    return w


def _stacked(values, path):
    return np.stack(values) if path.split(".")[-2] in ("kv_einsum", "qkv_einsum") else values[0]


def _modules(model):
    """(layer, module, name of the weight) of everything that Qwix adapted."""
    for path, module in nnx.iter_modules(model):
        for name in list(vars(module)):
            if name.endswith("_lora_a"):
                yield int(path[path.index("layers") + 1]), path[-1], module, name[:-len("_lora_a")]


PARTS = {"q_einsum": ["q_proj"], "kv_einsum": ["k_proj", "v_proj"], "k_einsum": ["k_proj"],
         "qkv_einsum": ["q_proj", "k_proj", "v_proj"], "attn_vec_einsum": ["o_proj"], "gate_proj": ["gate_proj"],
         "up_proj": ["up_proj"], "down_proj": ["down_proj"]}


def set_adapters(model, settings, start, mesh, tiny):
    """The numbers of start.py in Qwix's shapes, on the mesh. Returns them as PEFT has them."""
    as_peft, seen = {}, set()
    for layer, name, module, weight in _modules(model):
        a_param, b_param = getattr(module, weight + "_lora_a"), getattr(module, weight + "_lora_b")
        a_shape, b_shape, parts = a_param.shape, b_param.shape, PARTS[name]
        shared = len(parts) > 1  # one A for all of them
        rank, inputs = a_shape[-1], math.prod(a_shape[:-1])
        outputs = math.prod(b_shape[1:]) // (len(parts) if shared else 1)
        pairs = [start(layer, p, inputs, outputs) for p in parts]
        if shared and start.file is not None and any(not np.array_equal(p[0], pairs[0][0]) for p in pairs):
            raise SystemExit(f"layer {layer}: {' and '.join(parts)} start from different A, Qwix has one for both")
        a = pairs[0][0].T.reshape(a_shape)
        b = [p[1].T.reshape((rank,) + b_shape[2 if shared else 1:]) for p in pairs]
        b = np.stack(b, axis=1) if shared else b[0].reshape(b_shape)
        for parameter, value in ((a_param, a), (b_param, b)):
            place = jax.sharding.NamedSharding(mesh, _spec(parameter))
            parameter.set_value(jax.device_put(np.ascontiguousarray(value).astype(parameter.dtype), place))
        block = "mlp" if name in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        for p, pair in zip(parts, pairs):
            as_peft[f"{settings['model']['prefix']}layers.{layer}.{block}.{p}"] = (pairs[0][0], pair[1])
            seen.add((layer, p))
    wanted = {(m[0], m[1]) for m in settings["lora"]["modules"]}
    if not tiny and seen != wanted:
        missing, extra = sorted(wanted - seen), sorted(seen - wanted)
        raise SystemExit(f"Qwix did not adapt what the experiment says: missing {missing[:3]}, besides {extra[:3]}")
    return as_peft


def as_peft(model, settings):
    """What training has made of them, as PEFT has it: {module: (A [rank, in], B [out, rank])}."""
    out = {}
    for layer, name, module, weight in _modules(model):
        a, b = (np.asarray(multihost_utils.process_allgather(getattr(module, weight + half).get_value(), tiled=True), np.float32)
                for half in ("_lora_a", "_lora_b"))
        rank, parts = a.shape[-1], PARTS[name]
        block = "mlp" if name in ("gate_proj", "up_proj", "down_proj") else "self_attn"
        for slot, p in enumerate(parts):
            part = (b[:, slot] if len(parts) > 1 else b).reshape(rank, -1)
            out[f"{settings['model']['prefix']}layers.{layer}.{block}.{p}"] = (a.reshape(-1, rank).T, part.T)
    return out


def _spec(parameter):
    spec = parameter.get_metadata().get("out_sharding") or parameter.get_metadata().get("sharding_names") or ()
    return jax.sharding.PartitionSpec(*spec)


def set_remat(model, settings):
    config = settings["train"]["remat"]
    for layer in model.layers:
        enum = type(layer.config.remat_config)
        value = {"none": enum.NONE, "block": enum.BLOCK, "layer": enum.DECODER}[config]
        layer.config.remat_config = value
        for part in (layer, layer.attn, layer.mlp):
            if hasattr(part, "remat_config"):
                part.remat_config = value


def check_sharded(model, mesh):
    for path, leaf in nnx.state(model, nnx.Param).flat_state():
        value = leaf.get_value() if hasattr(leaf, "get_value") else leaf.value
        sharding = getattr(value, "sharding", None)
        if not isinstance(sharding, jax.sharding.NamedSharding) or sharding.mesh.shape != mesh.shape:
            raise SystemExit(f"{'.'.join(map(str, path))} is not on the mesh but {sharding}")
        if len(sharding.spec) > value.ndim:
            raise SystemExit(f"{'.'.join(map(str, path))}: {sharding.spec} for the shape {value.shape}")


def vocab(model):
    return int(model.embedder.input_embedding.shape[0])


def trainable(model):
    return int(sum(np.prod(v.shape) for _, v in nnx.state(model, nnx.LoRAParam).flat_state()))
