# SPDX-License-Identifier: Apache-2.0
"""charm4py: a call, messages, large arguments, barriers and reductions between two PEs, one on each host."""
import numpy
from charm4py import Chare, Group, Reducer, charm, coro, threads
from pattern import median_us, report

# charm4py 1.1 gives reductions 16 bits of a future's number, but numbers on.
threads.FIDMAXVAL = 65535


class Peer(Chare):
    def __init__(self):
        self.seen = 0

    def echo(self, data):
        return data

    def note(self, data):
        self.seen += len(data)

    def so_far(self):
        return self.seen

    @coro
    def meet(self, rounds):
        for _ in range(rounds):
            self.allreduce().get()

    @coro
    def add(self, rounds):
        for _ in range(rounds):
            self.allreduce(1.0, Reducer.sum).get()


def main(_):
    peers = Group(Peer)
    there = peers[1]
    small, large = bytes(64), numpy.zeros(1 << 20, dtype=numpy.uint8)

    def calls(n):
        for _ in range(n):
            there.echo(small, ret=True).get()

    def posts(data, window):
        def batch(n):
            for _ in range(max(1, n // window)):
                for _ in range(window):
                    there.note(data)
                there.so_far(ret=True).get()
        return batch

    report("charm4py_pingpong_us", median_us(500, calls))
    report("charm4py_rate_m", 1 / median_us(64 * 100, posts(small, 64)))
    report("charm4py_bulk_gbps", large.nbytes / 1e3 / median_us(80, posts(large, 8)))
    report("charm4py_barrier_us", median_us(500, lambda n: peers.meet(n, awaitable=True).get()))
    report("charm4py_allreduce_us", median_us(500, lambda n: peers.add(n, awaitable=True).get()))
    charm.exit()


charm.start(main)
