# SPDX-License-Identifier: Apache-2.0
"""charm4py, the Python face of Charm++, as a peer of Orrery's arrays: python -m charmrun.start +p2 charm4py_peer.py

Does what bench/arrays/main.cpp does, with arrays of two PEs, each of which is an OS process here, and prints a line "metric value" for each
figure. PEER_SECONDS is how long each is measured, about.
"""
import os
import time

from charm4py import Array, Chare, Future, Reducer, charm, threads

# charm4py 1.1 gives reductions 16 bits of a future's number, but numbers on: the results of the 65,536th and the next went to others, or to nobody,
# and the program ended with "No pending future".
threads.FIDMAXVAL = 65535

SECONDS = float(os.environ.get("PEER_SECONDS", "1"))


class Cell(Chare):
    def bounce(self, n, done):
        if n == 0:
            done.send(charm.myPe())
        else:
            self.thisProxy[1 - self.thisIndex[0]].bounce(n - 1, done)

    def where(self):
        return charm.myPe()

    def step(self, done):
        self.reduce(done, 1, Reducer.sum)

    def hop_then_tell(self, n, done):
        """Goes to the other PE, and the message that says so follows it."""
        if n == 0:
            done.send(charm.myPe())
            return
        self.thisProxy[self.thisIndex].hop_then_tell(n - 1, done)
        self.migrate((charm.myPe() + 1) % charm.numPes())


def us_each(work, first):
    """Microseconds of one operation: work(n) does n of them; n grows until they take as long as they should."""
    n = first
    while True:
        begin = time.perf_counter()
        work(n)
        passed = time.perf_counter() - begin
        if passed > SECONDS / 2:
            return passed / n * 1e6
        n *= 2


def pingpong(n):
    done = Future()
    PAIR[0].bounce(2 * n, done)
    done.get()


def migrate(n):
    done = Future()
    PAIR[0].hop_then_tell(n, done)
    done.get()


def bcast_reduce(cells, size):
    def work(n):
        for _ in range(n):
            done = Future()
            cells.step(done)
            if done.get() != size:
                raise RuntimeError("a reduction gave something else")
    return work


def main(_):
    global PAIR
    PAIR = Array(Cell, 2)
    homes = [PAIR[i].where(ret=True).get() for i in range(2)]
    if sorted(homes) != [0, 1]:
        raise RuntimeError(f"two elements are on PEs {homes}")
    print(f"charm4py_pingpong_rtt_us {us_each(pingpong, 100):.6g}", flush=True)
    for size in (2, 16, 1024):
        cells = PAIR if size == 2 else Array(Cell, size)
        print(f"charm4py_bcast_reduce_{size}_us {us_each(bcast_reduce(cells, size), 10):.6g}", flush=True)
    print(f"charm4py_migrate_us {us_each(migrate, 100):.6g}", flush=True)
    charm.exit()


PAIR = None
charm.start(main)
