# SPDX-License-Identifier: Apache-2.0
"""LoRA on PyTorch with TRL's SFTTrainer, PEFT and FSDP2: the experiment of settings.json. run.sh starts it."""
import os
import pathlib
import time

import experiment
from experiment import HERE, SETTINGS

ARGS = experiment.parser(__doc__, out="folder for checkpoints and the adapter",
                         model="folder of the base model, or its name on the hub",
                         name=SETTINGS["model"]["hub"]).parse_args()

import events  # noqa: E402  (first: what libraries print goes to standard error)
import hosts  # noqa: E402

with events.starting():
    PROCESSES = hosts.of_torchrun()
WORLD = PROCESSES.count
if WORLD > 1:
    # accelerate's FSDP2: weights split over all processes, gathered layer by layer. The adapters stay f32 beside bf16
    # weights, so accelerate mixes nothing.
    os.environ.update({"ACCELERATE_USE_FSDP": "true", "ACCELERATE_MIXED_PRECISION": "no", "FSDP_VERSION": "2",
                       "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
                       "FSDP_TRANSFORMER_CLS_TO_WRAP": SETTINGS["model"]["layer_class"],
                       "FSDP_RESHARD_AFTER_FORWARD": "true", "FSDP_OFFLOAD_PARAMS": "false",
                       "FSDP_CPU_RAM_EFFICIENT_LOADING": "true", "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
                       "FSDP_ACTIVATION_CHECKPOINTING": str(SETTINGS["train"]["remat"] != "none").lower()})

import accelerate  # noqa: E402
import datasets  # noqa: E402
import peft.optimizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402

import answers as answering  # noqa: E402
import base  # noqa: E402
import checkpoints  # noqa: E402
import loss as token_loss  # noqa: E402
import memory  # noqa: E402
import rows as data  # noqa: E402
import schedule  # noqa: E402
import start as starting  # noqa: E402

TRAIN, LORA = SETTINGS["train"], SETTINGS["lora"]
DTYPE = {"f32": torch.float32, "bf16": torch.bfloat16}[TRAIN["dtype"]]


class Rows(torch.utils.data.Dataset):
    """The rows of all micro-batches in order. Without shuffling, accelerate hands each process its run of every one."""

    def __init__(self, count, batches_of):
        self.count, self.batches_of = count, batches_of  # batches_of(i): those of step i
        self.last = (-1, [])

    def __len__(self):
        return self.count * TRAIN["batch"]

    def __getitem__(self, i):
        batch, row = divmod(i, TRAIN["batch"])
        step, micro = divmod(batch, TRAIN["accumulation"])
        if self.last[0] != step:
            self.last = (step, self.batches_of(step))
        b = self.last[1][micro]
        return {k: b[k][row] for k in ("ids", "loss", "positions", "segments")} | {"weight": float(b["weight"])}


def collate(rows):
    batch = {k: torch.stack([torch.from_numpy(r[k]) for r in rows]) for k in ("ids", "loss", "positions", "segments")}
    batch["weight"] = torch.tensor([r["weight"] for r in rows], dtype=torch.float32)
    return batch


class Trainer(trl.SFTTrainer):
    """SFTTrainer with the engine's batches, mask and mean: the loss of a step is the sum over its tokens with loss,
    divided by their number in the whole step."""

    team = None  # hosts.Team

    def _save_checkpoint(self, *arguments, **options):
        with self.team.writing(f"the checkpoint of step {self.state.global_step}", self.args.output_dir):
            super()._save_checkpoint(*arguments, **options)

    def logits_of(self, model, inputs):
        return model(input_ids=inputs["ids"].long(), position_ids=inputs["positions"].long(), use_cache=False,
                     attention_mask=base.attention_masks(SETTINGS, self.model, inputs)).logits

    def next_tokens(self, batch, last):
        """Of answers.py; every process computes all rows."""
        self.model.eval()
        with torch.no_grad():
            inputs = self._prepare_inputs({k: torch.from_numpy(v) for k, v in batch.items()})
            logits = self.logits_of(self.model_wrapped, inputs)
            tokens = logits[torch.arange(len(last)), torch.from_numpy(last).long()].float().argmax(-1)
        self.model.train()
        return tokens.cpu().numpy()

    def send_memory(self, step, phase):
        """Of all processes, from the first; sizes of parameters are those of its own shards."""
        peaks = memory.TorchMemory(torch).peaks(lambda peak: self.accelerator.gather(
            torch.tensor([peak], device=self.accelerator.device)).tolist())
        size = lambda tensors: sum(getattr(t, "to_local", lambda t=t: t)().nbytes for t in tensors)  # noqa: E731
        parameters = list(self.model_wrapped.parameters()) if peaks else []
        moments = [t for s in self.optimizer.state.values() for t in s.values()
                   if isinstance(t, torch.Tensor) and t.ndim] if peaks else []
        held = {"weights": size(p for p in parameters if not p.requires_grad),
                "adapters": size(p for p in parameters if p.requires_grad), "optimizer": size(moments)}
        for device, peak in enumerate(peaks if PROCESSES.index == 0 else []):
            memory.send(device, step, phase, peak, held)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        logits = self.logits_of(model, inputs)[:, :-1].float()
        each = token_loss.in_torch(logits, inputs["ids"][:, 1:])
        loss = (each * inputs["loss"][:, 1:] * inputs["weight"][:, None]).sum()
        # The Trainer divides by the accumulation (`weight` has it) and averages over processes.
        loss = loss * WORLD
        return (loss, logits) if return_outputs else loss

    def get_train_dataloader(self):
        loader = torch.utils.data.DataLoader(self.rows, batch_size=TRAIN["batch"] // WORLD, shuffle=False,
                                             collate_fn=collate)
        return self.accelerator.prepare(loader)

    def get_eval_dataloader(self, eval_dataset=None):
        loader = torch.utils.data.DataLoader(self.held_out, batch_size=TRAIN["batch"] // WORLD,
                                             shuffle=False, collate_fn=collate)
        return self.accelerator.prepare(loader)

    def evaluate(self, *args, **kwargs):
        self.model.eval()
        losses = []
        with torch.no_grad():
            for batch in self.get_eval_dataloader():
                loss = self.compute_loss(self.model_wrapped, self._prepare_inputs(batch))
                losses.append(self.accelerator.gather(loss.detach().reshape(1)).mean().item())
        self.model.train()
        value = sum(losses) / max(1, len(losses))
        self.log({"eval_loss": value})
        return {"eval_loss": value}


class Events(transformers.TrainerCallback):
    def __init__(self, rows, done, team):
        self.rows, self.done, self.team, self.since, self.evaluated = rows, done, team, None, None
        self.answers = self.trainer = None

    def on_log(self, args, state, control, logs=None, **kwargs):
        if not logs:
            return
        for name in ("loss", "grad_norm"):
            if name in logs:
                events.metric(f"train/{name}", state.global_step, logs[name])
        # transformers evaluates again where training ends on a step that was evaluated
        if "eval_loss" in logs and self.evaluated != state.global_step:
            self.evaluated = state.global_step
            events.held_out(state.global_step, logs["eval_loss"])

    def on_train_begin(self, args, state, control, **kwargs):
        self.trainer.send_memory(state.global_step, "load")
        if state.global_step == 0:
            self.answers.before()

    def on_step_begin(self, args, state, control, **kwargs):
        self.since = time.monotonic()

    def on_step_end(self, args, state, control, **kwargs):
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # so that the step is timed as a whole
        step, now = state.global_step, time.monotonic()
        tokens = self.rows.tokens_of(step - 1)
        self.done.steps, self.done.tokens = step, self.done.tokens + tokens
        events.metric("train/learning_rate", step, schedule.learning_rate(TRAIN, step))
        events.metric("train/tokens_per_second", step, tokens / max(1e-9, now - self.since))
        self.trainer.send_memory(step, "step")
        self.answers.after_step(step, state.max_steps)

    def on_save(self, args, state, control, **kwargs):
        folder = pathlib.Path(args.output_dir)
        self.team.barrier()  # every process has written its part
        if PROCESSES.index == 0:
            checkpoints.complete(folder, state.global_step, TRAIN["keep_checkpoints"])
        self.team.barrier()
        events.checkpoint(state.global_step, checkpoints.path(folder, state.global_step))


def config(out, steps, held_out):
    every = TRAIN["eval_every"] or steps
    return trl.SFTConfig(
        output_dir=str(out), max_steps=steps, per_device_train_batch_size=TRAIN["batch"] // WORLD,
        gradient_accumulation_steps=TRAIN["accumulation"], learning_rate=TRAIN["learning_rate"],
        max_grad_norm=TRAIN["clip"] or 1e30, weight_decay=TRAIN["weight_decay"], seed=TRAIN["seed"],
        adam_beta1=TRAIN["beta1"], adam_beta2=TRAIN["beta2"], adam_epsilon=TRAIN["epsilon"], optim="adamw_torch",
        logging_steps=1, logging_first_step=True, report_to="none", disable_tqdm=True, remove_unused_columns=False,
        eval_strategy="steps" if held_out else "no", eval_steps=every, eval_on_start=bool(held_out),
        save_strategy="steps", save_steps=TRAIN["checkpoint_every"] or steps,
        save_total_limit=None, dataset_kwargs={"skip_prepare_dataset": True}, loss_type="nll",
        gradient_checkpointing=TRAIN["remat"] != "none" and WORLD == 1, bf16=False, fp16=False, use_cpu=ARGS.smoke,
        max_length=None, dataloader_num_workers=0, average_tokens_across_devices=False)


def main(done):
    if TRAIN["batch"] % WORLD:
        raise SystemExit(f"train.batch {TRAIN['batch']} is not a multiple of the {WORLD} processes")
    if ARGS.smoke:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    accelerate.PartialState(cpu=ARGS.smoke)  # connects the processes
    team = done.team = hosts.Team(PROCESSES, hosts.gather_torch)
    team.require_same({"processes": os.environ.get("LOCAL_WORLD_SIZE"), "the recipe's files": hosts.fingerprint(HERE),
                       "device": "cpu" if ARGS.smoke else torch.cuda.get_device_name()}, "give every host the same folder and GPUs")
    model = base.load(SETTINGS, ARGS.model, DTYPE, ARGS.smoke)
    tuned = base.add_lora(model, SETTINGS, starting.Start(HERE, SETTINGS))
    team.require_space(ARGS.out, 12 * base.trainable(tuned))  # adapters and two moments, f32
    if text := team.not_sharing(ARGS.out):
        if team.index == 0:
            events.log(f"{text}: no checkpoint of this run can be resumed; put --out on a shared disk", "warning")
    tokenizer = answering.load_tokenizer(HERE, ARGS.model)
    rows = data.Rows(HERE, SETTINGS, base.vocab(model), tokenizer, smoke=ARGS.smoke, local_file=ARGS.data)
    steps = rows.limited(ARGS.steps)
    events.started(SETTINGS, steps, ("trl", "peft", "transformers", "torch", "accelerate"), rows, mesh={"fsdp": WORLD},
                   device={"id": "cpu" if ARGS.smoke else torch.cuda.get_device_name(), "count": WORLD}, hosts=team.names,
                   capacity_bytes=memory.TorchMemory(torch).limits(),
                   predicted={} if ARGS.smoke else SETTINGS["predicted"],
                   model={"name": SETTINGS["model"]["name"], "trainable": base.trainable(tuned)})
    batches = rows.held_out_batches()
    per_step = TRAIN["accumulation"]
    held_out = Rows(len(batches), lambda step: batches[step * per_step:(step + 1) * per_step])
    out = pathlib.Path(ARGS.out).resolve()
    formal = datasets.Dataset.from_dict({"input_ids": [[0]]})  # SFTTrainer wants one; the loaders below give the rows
    reporter = Events(rows, done, team)
    trainer = Trainer(model=tuned, args=config(out, steps, batches), train_dataset=formal,
                      eval_dataset=formal if batches else None, data_collator=collate,
                      processing_class=base.no_tokenizer(SETTINGS), callbacks=[reporter])
    trainer.processing_class = tokenizer  # saved with every checkpoint and with the adapter
    reporter.trainer, trainer.team = trainer, team
    reporter.answers = answering.Answers(HERE, SETTINGS, tokenizer, rows, trainer.next_tokens)
    trainer.rows, trainer.held_out = Rows(steps * per_step, rows.step), held_out
    if LORA["plus_ratio"] == 1:
        trainer.create_optimizer()
    else:  # LoRA+
        trainer.optimizer = peft.optimizers.create_loraplus_optimizer(
            tuned, torch.optim.AdamW, lr=TRAIN["learning_rate"], loraplus_lr_ratio=LORA["plus_ratio"],
            loraplus_weight_decay=TRAIN["weight_decay"], betas=(TRAIN["beta1"], TRAIN["beta2"]), eps=TRAIN["epsilon"])
    rates = schedule.table(TRAIN, max(steps, TRAIN["steps"]))
    trainer.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
        trainer.optimizer, lambda s: rates[min(s, len(rates) - 1)] / max(TRAIN["learning_rate"], 1e-30))
    last = checkpoints.last(out)
    team.require_same({"the last complete checkpoint": last.name if last else "none"}, "--out must be one folder that all hosts see")
    if last:
        events.log(f"resumed from {last}")
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    if batches and trainer.state.global_step % (TRAIN["eval_every"] or steps):
        trainer.evaluate()
    done.summary = reporter.answers.after(trainer.state.global_step)
    with team.writing("the adapter", out / "adapter"):
        trainer.save_model(str(out / "adapter"))
    events.checkpoint(trainer.state.global_step, out / "adapter")


if __name__ == "__main__":
    with events.finishing() as last_word:
        main(last_word)
