# SPDX-License-Identifier: Apache-2.0
"""LoRA with transformers and PEFT, computed by JAX through TorchAX: the experiment of settings.json."""
import functools
import pathlib
import time

import experiment
from experiment import HERE, SETTINGS

ARGS = experiment.parser(__doc__, out="folder for the adapters", model="folder of the base model, or its name on the hub",
                         name=SETTINGS["model"]["hub"], smoke=": 8 forced devices").parse_args()

import events  # noqa: E402  (first: what libraries print goes to standard error)
import hosts  # noqa: E402

with events.starting():
    PROCESSES = hosts.of_jax()
    if ARGS.smoke:
        experiment.force_cpu_devices(PROCESSES.count)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import torch  # noqa: E402
import torchax  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402
from torchax import interop  # noqa: E402

import answers as answering  # noqa: E402
import base  # noqa: E402
import checkpoints  # noqa: E402
import loss as token_loss  # noqa: E402
import memory  # noqa: E402
import rows as data  # noqa: E402
import schedule  # noqa: E402
import start as starting  # noqa: E402
import tensors as files  # noqa: E402

TRAIN, LORA = SETTINGS["train"], SETTINGS["lora"]
DTYPE = {"f32": torch.float32, "bf16": torch.bfloat16}[TRAIN["dtype"]]
STATE = "training_state.safetensors"  # of a checkpoint: adapters and optimizer as they are on the devices
SHARD_OUT = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")  # their outputs over tp, their inputs over fsdp
SHARD_IN = ("o_proj", "down_proj", "embed_tokens", "lm_head")


def make_mesh():
    fsdp, tp = SETTINGS["mesh"]["fsdp"], SETTINGS["mesh"]["tp"]
    if ARGS.smoke and fsdp * tp > jax.device_count():
        fsdp, tp = jax.device_count(), 1
    if fsdp * tp > jax.device_count():
        raise SystemExit(f"the mesh fsdp {fsdp} x tp {tp} needs {fsdp * tp} devices, there are {jax.device_count()}")
    if jax.process_count() > 1 and fsdp * tp < jax.device_count():
        raise hosts.Everywhere(f"the mesh fsdp {fsdp} x tp {tp} uses {fsdp * tp} of {jax.device_count()} devices: start fewer hosts, or "
                               "export with a mesh of all devices")
    devices = jax.devices()[:fsdp * tp]
    grid = hosts.over_slices(devices, fsdp, tp, SETTINGS["slices"])
    return jax.sharding.Mesh(np.array(devices).reshape(fsdp, tp) if grid is None else grid, ("fsdp", "tp"))


def sharding(mesh, name, shape):
    """Where it divides; whole on every device otherwise, as adapters and norms are."""
    spec = [None] * len(shape)
    if len(shape) == 2 and "lora_" not in name:
        order = ("tp", "fsdp") if any(p in name for p in SHARD_OUT) else \
            ("fsdp", "tp") if any(p in name for p in SHARD_IN) else (None, None)
        spec = [a if a and n % mesh.shape[a] == 0 else None for a, n in zip(order, shape)]
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


def to_numpy(tensor):
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


def put_on(where, array):
    """Of an array that every process has, each places the parts of its devices."""
    array = np.asarray(array)
    return jax.make_array_from_callback(array.shape, where, lambda index: array[index])


def placed(mesh, tensors):
    return {n: put_on(sharding(mesh, n, t.shape), to_numpy(t)) for n, t in tensors.items()}


def masks(batch, window, dtype):
    """Additive, by kind of layer: causal, within the segment, and in local layers within the window."""
    at = jnp.arange(batch["ids"].shape[1])
    seen = (batch["segments"][:, :, None] == batch["segments"][:, None, :]) & (at[:, None] >= at[None, :])[None]
    near = seen & (at[:, None] - at[None, :] < window)[None] if window else seen
    lowest = jnp.finfo(dtype).min
    return {k: jnp.where(m, 0, lowest).astype(dtype)[:, None] for k, m in
            (("full_attention", seen), ("sliding_attention", near))}


class Dropout(torch.nn.Module):
    """PEFT's lora_dropout in a compiled step: the input of A loses each element with probability p, the rest is scaled
    by 1 / (1 - p). The random key is an argument of the step (torch's own generator would be compiled in, the same at
    every step); without one nothing is dropped, as in evaluation. Remat draws the same mask again."""

    key = None  # of the micro-batch; set only while a step is traced

    def __init__(self, p, index):
        super().__init__()
        self.p, self.index = p, index  # index: of the adapter, so that each has a mask of its own

    def forward(self, x):
        if Dropout.key is None:
            return x
        key = jax.random.fold_in(Dropout.key, self.index)

        def drop(values):
            kept = jax.random.bernoulli(key, 1 - self.p, values.shape)
            return jnp.where(kept, values / (1 - self.p), jnp.zeros_like(values))

        return interop.call_jax(drop, x)


def add_dropout(tuned):
    if LORA["dropout"] <= 0:
        return
    adapted = [m for m in tuned.modules() if hasattr(m, "lora_dropout") and "default" in m.lora_dropout]
    for index, module in enumerate(adapted):
        module.lora_dropout["default"] = Dropout(LORA["dropout"], index)


def make_loss(tuned, env):
    config = getattr(tuned.config, "text_config", tuned.config)
    window, dtype = getattr(config, "sliding_window", None), {torch.float32: jnp.float32}.get(DTYPE, jnp.bfloat16)

    def logits_of(weights, frozen, batch, key):
        Dropout.key = key
        with env:
            out = torch.func.functional_call(
                tuned, interop.torch_view({**frozen, **weights}),
                kwargs={"input_ids": interop.torch_view(batch["ids"]), "use_cache": False,
                        "position_ids": interop.torch_view(batch["positions"]),
                        "attention_mask": interop.torch_view(masks(batch, window, dtype))})
            logits = interop.jax_view(out.logits)
        Dropout.key = None
        return logits

    whole = jax.checkpoint(logits_of) if TRAIN["remat"] != "none" else logits_of

    def loss(weights, frozen, batch, key):
        each = token_loss.in_jax(whole(weights, frozen, batch, key)[:, :-1], batch["ids"][:, 1:])
        return jnp.sum(each * batch["loss"][:, 1:]) * batch["weight"]

    def next_tokens(weights, frozen, batch, last):
        logits = logits_of(weights, frozen, batch, None)
        return jnp.argmax(jnp.take_along_axis(logits, last[:, None, None], axis=1)[:, 0], axis=-1)

    return loss, next_tokens


def optimizer(steps):
    rates = jnp.asarray(schedule.table(TRAIN, max(steps, TRAIN["steps"])), jnp.float32)
    adamw = optax.adamw(lambda count: rates[jnp.minimum(count, len(rates) - 1)], b1=TRAIN["beta1"], b2=TRAIN["beta2"],
                        eps=TRAIN["epsilon"], weight_decay=TRAIN["weight_decay"])
    return optax.chain(optax.clip_by_global_norm(TRAIN["clip"]), adamw) if TRAIN["clip"] > 0 else adamw


def save_adapter(folder, weights, tokenizer):
    modules = {}
    for name, value in weights.items():
        module, _, half = name.removeprefix("base_model.model.").partition(".lora_")
        pair = modules.setdefault(module, [None, None])
        pair[0 if half.startswith("A") else 1] = np.asarray(value, np.float32)
    starting.write_peft(folder, SETTINGS, {m: tuple(p) for m, p in modules.items()}, ARGS.model)
    answering.save_tokenizer(tokenizer, folder)


def named_leaves(tree):
    """Adapters and optimizer as {name: array}, and what makes the tree of such arrays again."""
    leaves, form = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    return dict(zip(names, (leaf for _, leaf in leaves))), lambda found: jax.tree.unflatten(form, [found[n] for n in names])


def save_checkpoint(out, step, weights, state, tokenizer, team):
    """Adapter and optimizer, of all processes; process 0 writes them. The adapter is PEFT's, too."""
    weights, state = multihost_utils.process_allgather((weights, state), tiled=True)
    if team.index != 0:
        return
    with team.writing(f"the checkpoint of step {step}", out), checkpoints.new_folder(out, step) as folder:
        save_adapter(folder, weights, tokenizer)
        found, _ = named_leaves((weights, state))
        files.write(folder / STATE, {name: np.asarray(value) for name, value in found.items()})
    checkpoints.complete(out, step, TRAIN["keep_checkpoints"])
    events.checkpoint(step, checkpoints.path(out, step))


def last_checkpoint(out, team):
    """Step (0: none) and folder of the last complete one, which process 0 has."""
    folder = checkpoints.last(out) if team.index == 0 else None
    step, name = team.of_first([int(folder.name.rpartition("-")[2]), str(folder)] if folder else [0, ""])
    return step, pathlib.Path(name)


def restored(folder, tree, where, team):
    """The tree with the values of a checkpoint; process 0 reads them and gives them to the others."""
    found, made_of = named_leaves(tree)
    values = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in found.items()}
    if team.index == 0:
        file = files.File(folder / STATE)
        for name, value in values.items():
            if name not in file or file[name].shape != value.shape or file[name].dtype != value.dtype:
                raise SystemExit(f"{file.path} is of another experiment: no {name} of {value.dtype} {value.shape}; choose another --out")
            values[name] = np.array(file[name])
    if team.count > 1:
        values = multihost_utils.broadcast_one_to_all(values)
    return made_of({name: put_on(where, values[name]) for name, leaf in found.items()})


def main(done):
    processes = hosts.start_jax(PROCESSES)
    if TRAIN["dtype"] == "f32":
        jax.config.update("jax_default_matmul_precision", "highest")
    team = done.team = hosts.Team(processes, hosts.gather_jax)
    team.require_same({"devices": jax.local_device_count(), "kind": jax.local_devices()[0].device_kind,
                       "the recipe's files": hosts.fingerprint(HERE)}, "give every host the same folder and devices")
    tuned = base.add_lora(base.load(SETTINGS, ARGS.model, DTYPE, ARGS.smoke), SETTINGS, starting.Start(HERE, SETTINGS))
    add_dropout(tuned)
    team.require_space(ARGS.out, 16 * base.trainable(tuned))  # adapters for PEFT; adapters and two moments
    tokenizer = answering.load_tokenizer(HERE, ARGS.model)
    rows = data.Rows(HERE, SETTINGS, base.vocab(tuned), tokenizer, smoke=ARGS.smoke, local_file=ARGS.data)
    steps, env, mesh = rows.limited(ARGS.steps), torchax.default_env(), make_mesh()
    tensors = dict(tuned.named_parameters()) | dict(tuned.named_buffers())
    weights = placed(mesh, {n: t for n, t in tensors.items() if t.requires_grad})
    frozen = placed(mesh, {n: t for n, t in tensors.items() if not t.requires_grad})
    (loss, following), adamw = make_loss(tuned, env), optimizer(steps)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    state = jax.tree.map(lambda a: put_on(whole, a), adamw.init(weights))
    gradient = jax.jit(jax.value_and_grad(loss))
    following = jax.jit(following, out_shardings=whole)
    evaluate = jax.jit(lambda weights, frozen, batch: loss(weights, frozen, batch, None))
    dropout_key = jax.random.key(TRAIN["seed"])
    add = jax.jit(lambda a, b: jax.tree.map(jnp.add, a, b))

    @functools.partial(jax.jit, out_shardings=whole)  # as adapters and optimizer are before the first step: compiled once
    def update(weights, state, gradients):
        gradients = jax.tree.map(lambda g: g / TRAIN["accumulation"], gradients)
        norm = optax.global_norm(gradients)
        changes, state = adamw.update(gradients, state, weights)
        return optax.apply_updates(weights, changes), state, norm

    split = TRAIN["batch"] % mesh.shape["fsdp"] == 0
    over = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("fsdp" if split else None))

    def put(batch):
        return {k: put_on(whole if np.ndim(v) == 0 else over, v) for k, v in batch.items()}

    held_out = rows.held_out_batches()

    def hold_out(step):
        if held_out:
            events.held_out(step, sum(float(evaluate(weights, frozen, put(b))) for b in held_out) / len(held_out))

    hbm = memory.JaxMemory(mesh.local_devices)

    def send_memory(step, phase):
        hbm.send(step, phase, {"weights": list(frozen.values()), "adapters": list(weights.values()),
                               "optimizer": [a for a in jax.tree.leaves(state) if a.ndim]})

    events.started(SETTINGS, steps, ("torchax", "jax", "optax", "torch", "transformers", "peft"), rows,
                   mesh=dict(mesh.shape), device={"id": jax.devices()[0].device_kind, "count": mesh.size}, hosts=team.names,
                   capacity_bytes=hbm.limits(),
                   predicted={} if ARGS.smoke else SETTINGS["predicted"],
                   model={"name": SETTINGS["model"]["name"], "trainable": base.trainable(tuned)})
    answers = answering.Answers(HERE, SETTINGS, tokenizer, rows,
                                lambda batch, last: following(weights, frozen, put(batch), put({"": last})[""]))
    send_memory(0, "load")
    out = pathlib.Path(ARGS.out).resolve()
    first, folder = last_checkpoint(out, team)
    if first:
        weights, state = restored(folder, (weights, state), whole, team)
        done.steps = first
        events.log(f"resumed from {folder}")
    else:
        hold_out(0)
        answers.before()
    for step in range(first + 1, steps + 1):
        begun, total, sums = time.monotonic(), 0.0, None
        step_key = jax.random.fold_in(dropout_key, step)
        for micro, batch in enumerate(rows.step(step - 1)):
            value, gradients = gradient(weights, frozen, put(batch), jax.random.fold_in(step_key, micro))
            total, sums = total + float(value), gradients if sums is None else add(sums, gradients)
        weights, state, norm = update(weights, state, sums)
        tokens = rows.tokens_of(step - 1)
        done.steps, done.tokens = step, done.tokens + tokens
        events.metric("train/loss", step, total / TRAIN["accumulation"])
        events.metric("train/grad_norm", step, norm)
        events.metric("train/learning_rate", step, schedule.learning_rate(TRAIN, step))
        events.metric("train/tokens_per_second", step, tokens / max(1e-9, time.monotonic() - begun))
        send_memory(step, "step")
        if step < steps and TRAIN["eval_every"] and step % TRAIN["eval_every"] == 0:
            hold_out(step)
        answers.after_step(step, steps)
        if step < steps and TRAIN["checkpoint_every"] and step % TRAIN["checkpoint_every"] == 0:
            save_checkpoint(out, step, weights, state, tokenizer, team)
    hold_out(steps)
    done.summary = answers.after(steps)
    trained = multihost_utils.process_allgather(weights, tiled=True)
    if team.index == 0:
        with team.writing("the adapter", out / "adapter"):
            save_adapter(out / "adapter", trained, tokenizer)
        events.checkpoint(steps, out / "adapter")


if __name__ == "__main__":
    with events.finishing() as last_word:
        main(last_word)
