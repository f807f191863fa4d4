# SPDX-License-Identifier: Apache-2.0
"""The loss of every token, as the engine computes it: the cross-entropy of f32 logits [rows, len, vocabulary] with targets
[rows, len], of which train.label_smoothing is spread evenly over the vocabulary."""
from experiment import SETTINGS

SMOOTHING = SETTINGS["train"]["label_smoothing"]


def in_jax(logits, targets):
    import jax
    import jax.numpy as jnp
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    if SMOOTHING > 0:
        picked = (1 - SMOOTHING) * picked + SMOOTHING * jnp.mean(logits, axis=-1)
    return jax.nn.logsumexp(logits, axis=-1) - picked


def in_torch(logits, targets):
    import torch
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.long().flatten(), reduction="none",
                                             label_smoothing=SMOOTHING).view_as(targets)
