# SPDX-License-Identifier: Apache-2.0
"""LoRA on JAX with Tunix and Qwix: the experiment of settings.json. `python train.py --help`; README.md says more."""
import dataclasses
import functools
import pathlib
import time

import experiment
from experiment import HERE, SETTINGS

PARSER = experiment.parser(__doc__, out="folder for checkpoints and TensorBoard; training resumes",
                           model="folder with the base model's safetensors", smoke=": 8 forced devices")
PARSER.add_argument("--write-start", metavar="DIR", help="write the adapter that training starts from (PEFT), and end")
ARGS = PARSER.parse_args()

import events  # noqa: E402  (first: what libraries print goes to standard error)
import hosts  # noqa: E402

with events.starting():
    PROCESSES = hosts.of_jax()
    if ARGS.smoke:
        experiment.force_cpu_devices(PROCESSES.count)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import orbax.checkpoint as ocp  # noqa: E402
import qwix  # noqa: E402
from flax import nnx  # noqa: E402
import flax  # noqa: E402
from tunix.sft import hooks, metrics_logger, peft_trainer  # noqa: E402

import answers as answering  # noqa: E402
import model as models  # noqa: E402
import loss as token_loss  # noqa: E402
import memory  # noqa: E402
import rows as data  # noqa: E402
import schedule  # noqa: E402
import start as starting  # noqa: E402

TRAIN, LORA = SETTINGS["train"], SETTINGS["lora"]
DTYPE = {"f32": jnp.float32, "bf16": jnp.bfloat16}[TRAIN["dtype"]]


@flax.struct.dataclass(frozen=True)
class Batch:
    ids: np.ndarray  # [rows, len]
    loss: np.ndarray  # 1 where a token is a target
    positions: np.ndarray  # from 0 again for each packed example
    segments: np.ndarray  # example within the row, -1: padding
    weight: np.ndarray  # see rows.py


def make_mesh():
    fsdp, tp = SETTINGS["mesh"]["fsdp"], SETTINGS["mesh"]["tp"]
    if ARGS.smoke and fsdp * tp > jax.device_count():
        tp = models.largest_tp(SETTINGS, min(tp, jax.device_count()))
        fsdp = min(fsdp, jax.device_count() // tp)
        events.log(f"smoke: mesh fsdp {fsdp}, tp {tp} on {jax.device_count()} forced devices")
    if fsdp * tp > jax.device_count():
        raise SystemExit(f"the mesh fsdp {fsdp} x tp {tp} needs {fsdp * tp} devices, there are {jax.device_count()}")
    if jax.process_count() > 1 and fsdp * tp < jax.device_count():
        raise hosts.Everywhere(f"the mesh fsdp {fsdp} x tp {tp} uses {fsdp * tp} of {jax.device_count()} devices: start fewer hosts, or "
                               "export with a mesh of all devices")
    devices = jax.devices()[:fsdp * tp]
    if (grid := hosts.over_slices(devices, fsdp, tp, SETTINGS["slices"])) is not None:
        return jax.sharding.Mesh(grid, ("fsdp", "tp"))
    if len(devices) == jax.device_count():
        return jax.make_mesh((fsdp, tp), ("fsdp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return jax.sharding.Mesh(np.array(devices).reshape(fsdp, tp), ("fsdp", "tp"))


class LoraProvider(qwix.LoraProvider):
    """Qwix drops out whenever the model is called; held-out rows are read without dropout, as the engine reads them."""

    evaluating = False  # while the evaluation is traced

    def _get_current_rule_and_op_id(self, *args, **kwargs):
        rule, op = super()._get_current_rule_and_op_id(*args, **kwargs)
        if self.evaluating and getattr(rule, "dropout", 0) > 0:
            rule = dataclasses.replace(rule, dropout=0.0)
        return rule, op


def add_lora(model, mesh):
    """Remat has to be off while Qwix looks on; what it adds has to lie on the mesh and to be complete."""
    provider = LoraProvider(module_path=LORA["module_path"], rank=LORA["rank"], alpha=LORA["qwix_alpha"],
                            dropout=LORA["dropout"])

    @nnx.jit  # Qwix calls the model; outside a compiled function no process can read arrays of several processes
    def adapted(model):
        return qwix.apply_lora_to_model(model, provider, **model.get_model_input(), rngs=nnx.Rngs(TRAIN["seed"]))

    with mesh:
        model = adapted(model)
    if LORA["dropout"] > 0:
        model.set_attributes(qwix_rngs=nnx.Rngs(dropout=TRAIN["seed"]))  # of every module, one stream
    return model, provider


def attention_mask(segments):
    """[rows, len, len]: causal, within the segment; padding sees itself, so that no row of scores is empty."""
    same = segments[:, :, None] == segments[:, None, :]
    causal = jnp.tril(jnp.ones(segments.shape[-1:] * 2, bool))
    return same & causal[None]


def model_inputs(batch):
    return {"ids": batch.ids, "loss": batch.loss, "positions": batch.positions, "weight": batch.weight,
            "mask": attention_mask(batch.segments)}


def loss_fn(model, ids, loss, positions, weight, mask):
    logits, _ = model(ids, positions, None, mask)
    return jnp.sum(token_loss.in_jax(logits[:, :-1], ids[:, 1:]) * loss[:, 1:]) * weight


@functools.partial(nnx.jit, static_argnums=1)
def following(model, mesh, ids, positions, segments, last):
    """The most likely token after position `last` of each row, on every process."""
    logits, _ = model(ids, positions, None, attention_mask(segments))
    tokens = jnp.argmax(jnp.take_along_axis(logits, last[:, None, None], axis=1)[:, 0], axis=-1)
    return jax.lax.with_sharding_constraint(tokens, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


class Events(metrics_logger.MetricsLogger):
    """Tunix's own logger (TensorBoard under out/logs) that prints event lines, too."""

    def log(self, metrics_prefix, metric_name, scalar_value, mode, step):
        super().log(metrics_prefix, metric_name, scalar_value, mode, step)
        if metric_name in ("perplexity", "learning_rate"):
            return
        if str(mode) == "eval" and metric_name == "loss":
            events.held_out(step, float(scalar_value))
        else:
            events.metric(f"{mode}/{metric_name}", step, scalar_value)


class Hooks(hooks.TrainingHooks):
    def __init__(self, rows, done, answers, held_out, require_space):
        self.rows, self.done, self.answers, self.held_out, self.since = rows, done, answers, held_out, None
        self.require_space = require_space

    def on_train_step_end(self, trainer, train_step, train_loss):
        now, tokens = time.monotonic(), self.rows.tokens_of(train_step - 1)
        if self.since is not None:
            events.metric("train/tokens_per_second", train_step, tokens / max(1e-9, now - self.since))
        self.since = now
        events.metric("train/learning_rate", train_step, schedule.learning_rate(TRAIN, train_step))
        self.done.steps = train_step
        self.done.tokens += tokens

    def on_train_start(self, trainer):
        trainer.send_memory("load")
        if trainer.train_steps == 0:
            self.answers.before()

    def on_train_end(self, trainer):
        if self.held_out and trainer.train_steps % trainer.config.eval_every_n_steps:
            trainer._run_eval(self.held_out, trainer.jit_train_and_eval_step(cache_nnx_graph=True)[1])
        self.done.summary = self.answers.after(trainer.train_steps)

    def on_train_step_start(self, trainer):
        """Where one process cannot write its part of a checkpoint, Orbax lets the others wait for it."""
        if TRAIN["checkpoint_every"] and (trainer.train_steps + 1) % TRAIN["checkpoint_every"] == 0:
            self.require_space()

    def on_eval_step_start(self, trainer):
        pass

    def on_eval_step_end(self, trainer, eval_loss):
        self.since = None  # the next step's time would include the evaluation


class Trainer(peft_trainer.PeftTrainer):
    def __init__(self, model, optimizer, config, logger, mesh, provider, steps):
        super().__init__(model, optimizer, config, metrics_logger=logger)
        self.mesh, self.provider, self.steps, self.sampled = mesh, provider, steps, 0
        self.memory = memory.JaxMemory(mesh.local_devices)

    def _write_train_metrics(self):  # after each step, and at the end once more
        super()._write_train_metrics()
        if self.sampled != self._train_steps:
            self.sampled = self._train_steps
            self.send_memory("step")
            self.training_hooks.answers.after_step(self._train_steps, self.steps)

    def send_memory(self, phase):
        leaves = lambda *filters: [x for x in jax.tree.leaves(nnx.state(*filters)) if x.ndim]  # noqa: E731
        adapters = leaves(self.model, nnx.LoRAParam)
        ids = {id(a) for a in adapters}
        self.memory.send(self._train_steps, phase, {
            "weights": [a for a in leaves(self.model, nnx.Param) if id(a) not in ids], "adapters": adapters,
            "optimizer": leaves(self.optimizer, nnx.optimizer.OptState)})

    def next_tokens(self, batch, last):
        """Of answers.py."""
        self.provider.evaluating = True
        try:
            inputs = jax.tree.map(self._placed, {**batch, "last": last})
            return np.asarray(following(self.model, self.mesh, **inputs))
        finally:
            self.provider.evaluating = False

    def _eval_step(self, model, inputs):
        self.provider.evaluating = True
        try:
            return super()._eval_step(model, inputs)
        finally:
            self.provider.evaluating = False

    def _train_step(self, model, optimizer, inputs):
        """Tunix's, but for the norm: its own is of the micro-batch, this is of the mean gradient up to it."""
        grad = nnx.value_and_grad(self.loss_fn, argnums=nnx.DiffState(0, nnx.LoRAParam))
        loss, grads = grad(model, **self.gen_model_input_fn(inputs))
        before = nnx.as_pure(optimizer.opt_state)  # of optax.MultiSteps
        mean = jax.tree.map(lambda m, g: m + (g - m) / (before.mini_step + 1), before.acc_grads, nnx.as_pure(grads))
        optimizer.update(model, grads)
        return loss, None, optax.global_norm(mean)

    def _post_process_train_step(self, aux):
        """Tunix takes the mean of a step's norms: only the last is of the step's gradient."""
        norms, _ = self._buffered_train_metrics.additional_metrics["grad_norm"]
        del norms[:-1]

    def custom_checkpoint_metadata(self):  # Qwix writes neither: who merges needs both
        return {"lora_alpha": LORA["qwix_alpha"], "lora_rank": LORA["rank"]}

    def _save_last_checkpoint(self):  # Tunix 0.1.7 leaves the metadata out here
        manager = self.checkpoint_manager
        if (manager.latest_step() or 0) < self._train_steps:
            manager.save(self._train_steps, self.model, self.optimizer, save_only_lora_params=True, force=True,
                         custom_metadata=self.custom_checkpoint_metadata())

    def _prepare_inputs(self, batch):
        if jax.process_count() == 1:
            return batch  # Tunix splits it over fsdp
        return jax.tree.map(self._placed, batch)

    def _placed(self, x):
        whole = x.ndim == 0 or x.shape[0] % self.mesh.shape["fsdp"] != 0
        spec = jax.sharding.PartitionSpec() if whole else jax.sharding.PartitionSpec("fsdp")
        return jax.make_array_from_callback(x.shape, jax.sharding.NamedSharding(self.mesh, spec), lambda i: x[i])


def optimizer(steps):
    rates = jnp.asarray(schedule.table(TRAIN, max(steps, TRAIN["steps"])), jnp.float32)
    adamw = optax.adamw(lambda count: rates[jnp.minimum(count, len(rates) - 1)], b1=TRAIN["beta1"], b2=TRAIN["beta2"],
                        eps=TRAIN["epsilon"], weight_decay=TRAIN["weight_decay"], mu_dtype=jnp.float32)
    return optax.chain(optax.clip_by_global_norm(TRAIN["clip"]), adamw) if TRAIN["clip"] > 0 else adamw


def batches(stream):
    for b in stream:
        yield Batch(**{k: np.asarray(v) for k, v in b.items()})


def main(done):
    processes = hosts.start_jax(PROCESSES)
    if TRAIN["dtype"] == "f32":
        jax.config.update("jax_default_matmul_precision", "highest")
    team = hosts.Team(processes, hosts.gather_jax)
    if done:
        done.team = team
    team.require_same({"devices": jax.local_device_count(), "kind": jax.local_devices()[0].device_kind,
                       "the recipe's files": hosts.fingerprint(HERE)}, "give every host the same folder and devices")
    mesh = make_mesh()
    base, tiny = models.create(SETTINGS, ARGS.model, mesh, DTYPE, smoke=ARGS.smoke)
    tuned, provider = add_lora(base, mesh)
    start = starting.Start(HERE, SETTINGS)
    modules = models.set_adapters(tuned, SETTINGS, start, mesh, tiny)
    if ARGS.write_start:
        if processes.index == 0:
            starting.write_peft(ARGS.write_start, SETTINGS, modules, ARGS.model)
        return
    need = 12 * models.trainable(tuned)  # adapters and two moments, f32
    team.require_space(ARGS.out, need)
    team.require_shared(ARGS.out)
    models.set_remat(tuned, SETTINGS)
    models.check_sharded(tuned, mesh)
    tokenizer = answering.load_tokenizer(HERE, ARGS.model)
    rows = data.Rows(HERE, SETTINGS, models.vocab(tuned), tokenizer, smoke=ARGS.smoke, local_file=ARGS.data)
    steps = rows.limited(ARGS.steps)
    events.started(SETTINGS, steps, ("google-tunix", "qwix", "jax", "flax", "optax"), rows, mesh=dict(mesh.shape),
                   device={"id": jax.devices()[0].device_kind, "count": mesh.size}, hosts=team.names,
                   capacity_bytes=memory.JaxMemory(mesh.local_devices).limits(),
                   predicted={} if ARGS.smoke else SETTINGS["predicted"],
                   model={"name": SETTINGS["model"]["name"], "trainable": models.trainable(tuned)})
    held_out = list(batches(rows.held_out_batches()))
    out = pathlib.Path(ARGS.out).resolve()
    config = peft_trainer.TrainingConfig(
        eval_every_n_steps=TRAIN["eval_every"] or steps, gradient_accumulation_steps=TRAIN["accumulation"],
        checkpoint_root_directory=str(out / "checkpoints"),
        checkpointing_options=ocp.CheckpointManagerOptions(save_interval_steps=TRAIN["checkpoint_every"] or steps,
                                                           max_to_keep=TRAIN["keep_checkpoints"]))
    logger = Events(metrics_logger.MetricsLoggerOptions(log_dir=str(out / "logs"), project_name="meshwright"))
    trainer = Trainer(tuned, optimizer(steps), config, logger, mesh, provider, steps)
    trainer = trainer.with_loss_fn(loss_fn)
    trainer.with_gen_model_input_fn(model_inputs)
    answers = answering.Answers(HERE, SETTINGS, tokenizer, rows, trainer.next_tokens)
    trainer.with_training_hooks(Hooks(rows, done, answers, held_out,
                                      functools.partial(team.end_without_space, ARGS.out, need)))
    team.require_same({"the last checkpoint": f"step {trainer.train_steps}"}, "--out must be one folder that all hosts see")
    if trainer.train_steps:
        events.log(f"resumed from step {trainer.train_steps} in {out / 'checkpoints'}")
    team.watch_space(out)
    with mesh, team.writing("a checkpoint", out):
        trainer.train(batches(rows.micro_batches(steps)), held_out or None)
    trained = models.as_peft(tuned, SETTINGS)  # of all processes
    if processes.index == 0:
        events.checkpoint(trainer.train_steps, out / "checkpoints" / str(trainer.train_steps))
        with team.writing("the adapter", out / "adapter"):
            starting.write_peft(out / "adapter", SETTINGS, trained, ARGS.model)
            answering.save_tokenizer(tokenizer, out / "adapter")
    done.steps = trainer.train_steps


if __name__ == "__main__":
    if ARGS.write_start:
        main(None)
    else:
        with events.finishing() as last_word:
            main(last_word)
