# SPDX-License-Identifier: Apache-2.0
"""What the Python peers of `bench/machines` share: how a pattern is measured, as raw.cpp and main.cpp do it.

PEER_SHARE makes it shorter, to see whether a peer runs.
"""
import os
import statistics
import time

SHARE = float(os.environ.get("PEER_SHARE", "1"))


def median_us(count, batch):
    """Microseconds of one: the median over five batches of `count`."""
    count = max(1, int(count * SHARE))
    batch(max(1, count // 10))
    samples = []
    for _ in range(5):
        begin = time.perf_counter()
        batch(count)
        samples.append((time.perf_counter() - begin) / count * 1e6)
    return statistics.median(samples)


def report(metric, value):
    print(f"{metric} {value:.6g}", flush=True)
