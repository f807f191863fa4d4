# SPDX-License-Identifier: Apache-2.0
"""Memory events of accelerators: what JAX's Device.memory_stats() and torch.cuda.memory_stats() say, by device. Tensors
that the script holds have their categories; the rest (activations, logits, temporary buffers of the compiler) is one sum,
`workspace`. The figures are those of the allocator's peak. CPUs report nothing, so no event is sent there."""
import events


def from_jax(stats):
    """(peak bytes, limit) of Device.memory_stats(), None where the device reports none."""
    if not stats or "bytes_in_use" not in stats:
        return None
    return int(stats.get("peak_bytes_in_use", stats["bytes_in_use"])), int(stats.get("bytes_limit", 0))


def from_torch(stats):
    """Peak bytes of torch.cuda.memory_stats(); without what the CUDA context and other libraries take."""
    peak = (stats or {}).get("allocated_bytes.all.peak", 0)
    return int(peak) if peak else None


def split(peak, held):
    """{category: bytes} that sum to the peak; `held`: bytes of the script's own tensors by category."""
    known = {category: int(size) for category, size in held.items() if size > 0}
    return {**known, "workspace": max(0, peak - sum(known.values()))}


def send(device, step, phase, peak, held):
    events.emit("memory", device=int(device), step=int(step), phase=phase, bytes=split(peak, held), peak=int(peak))


class JaxMemory:
    """Of the devices of this process. The allocator's peak only rises: a step's event has the peak up to it."""

    def __init__(self, devices):
        self.devices, self.last = list(devices), {}

    def limits(self):
        """Capacity of a device in bytes, 0 where it is not known."""
        found = [from_jax(d.memory_stats()) for d in self.devices]
        return min((f[1] for f in found if f and f[1]), default=0)

    def send(self, step, phase, held):
        """`held`: {category: list of jax.Array}."""
        for device in self.devices:
            found = from_jax(device.memory_stats())
            if found is None or (self.last.get(device.id) == (phase, found[0]) and step % 10):
                continue  # an unchanged peak is repeated every tenth step
            self.last[device.id] = (phase, found[0])
            sizes = {category: sum(shard.data.nbytes for a in arrays for shard in a.addressable_shards
                                   if shard.device == device) for category, arrays in held.items()}
            send(device.id, step, phase, found[0], sizes)


class TorchMemory:
    """Of this process's GPU; the peak is reset after each event, so that every event has that of its phase."""

    def __init__(self, torch):
        self.torch = torch

    def limits(self):
        cuda = self.torch.cuda
        return cuda.get_device_properties(cuda.current_device()).total_memory if cuda.is_available() else 0

    def peaks(self, gather):
        """[peak of each process]; `gather` collects one number of every process. Empty on a CPU."""
        if not self.torch.cuda.is_available():
            return []
        peak = from_torch(self.torch.cuda.memory_stats()) or 0
        self.torch.cuda.reset_peak_memory_stats()
        return gather(peak)
