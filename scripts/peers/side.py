# SPDX-License-Identifier: GPL-3.0-or-later
"""Time and memory measurement shared by the peers' sides, like that of benchmarks/peer_bench.cpp."""

import random
import resource
import statistics
import time


class Stopwatch:
    """Measures wall time and CPU time of all threads."""

    def __init__(self):
        self.start = time.perf_counter(), time.process_time()

    def elapsed(self):
        return time.perf_counter() - self.start[0], time.process_time() - self.start[1]


def measure(seconds, once):
    """Repeats `once` until enough time has been measured, at least once. `once` may return the Stopwatch.elapsed() to count."""
    times = []
    while sum(wall for wall, _ in times) < seconds:
        watch = Stopwatch()
        counted = once()
        took = watch.elapsed()
        times.append(counted if isinstance(counted, tuple) else took)
    return times


def result(tokens, times):
    wall, cpu = (statistics.median(column) for column in zip(*times))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_s": tokens / wall, "seconds": wall, "cpu_seconds": cpu, "repeats": len(times), "peak_bytes": peak}


def random_ids(count, vocab, seed=1):
    return [4 + i for i in random.Random(seed).choices(range(vocab - 4), k=count)]
