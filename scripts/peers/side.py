# SPDX-License-Identifier: GPL-3.0-or-later
"""Time and memory measurement shared by the peers' sides, like that of benchmarks/peer_bench.cpp."""

import random
import resource
import statistics
import time


def measure(seconds, once):
    """Repeats `once` until enough time has been measured, at least once. `once` may return the seconds to count."""
    times = []
    while sum(times) < seconds:
        start = time.perf_counter()
        counted = once()
        took = time.perf_counter() - start
        times.append(counted if isinstance(counted, float) else took)
    return times


def result(tokens, times):
    middle = statistics.median(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"tokens_per_s": tokens / middle, "seconds": middle, "repeats": len(times), "peak_bytes": peak}


def random_ids(count, vocab, seed=1):
    return [4 + i for i in random.Random(seed).choices(range(vocab - 4), k=count)]
