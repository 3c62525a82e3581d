# SPDX-License-Identifier: Apache-2.0
"""mpi4py: the patterns of raw.cpp in Python, with buffers of NumPy. Two ranks."""
import numpy
from mpi4py import MPI
from pattern import median_us, report

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
WINDOW = 64
EMPTY = numpy.empty(0, dtype=numpy.uint8)


def pingpong(data):
    def batch(n):
        for _ in range(n):
            if RANK == 0:
                WORLD.Send(data, 1)
            WORLD.Recv(data, 1 - RANK)
            if RANK == 1:
                WORLD.Send(data, 0)
    return batch


def stream(data, window):
    """`window` messages on their way, and an empty one back."""
    def batch(n):
        for _ in range(max(1, n // window)):
            one = WORLD.Isend if RANK == 0 else WORLD.Irecv
            MPI.Request.Waitall([one(data, 1 - RANK) for _ in range(window)])
            if RANK == 0:
                WORLD.Recv(EMPTY, 1, 1)
            else:
                WORLD.Send(EMPTY, 0, 1)
    return batch


def collective(action):
    def batch(n):
        for _ in range(n):
            action()
    return batch


def main():
    small, large = numpy.zeros(64, dtype=numpy.uint8), numpy.zeros(1 << 20, dtype=numpy.uint8)
    one, total = numpy.ones(1), numpy.zeros(1)
    figures = {
        "mpi4py_pingpong_us": median_us(1000, pingpong(small)),
        "mpi4py_rate_m": 1 / median_us(WINDOW * 1000, stream(small, WINDOW)),
        "mpi4py_bulk_gbps": large.nbytes / 1e3 / median_us(160, stream(large, 8)),
        "mpi4py_barrier_us": median_us(1000, collective(WORLD.Barrier)),
        "mpi4py_allreduce_us": median_us(1000, collective(lambda: WORLD.Allreduce(one, total))),
    }
    if RANK == 0:
        for metric, value in figures.items():
            report(metric, value)


main()
