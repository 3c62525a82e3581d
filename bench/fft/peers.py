#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one would write without Orrery: numpy with preadv and scipy.fft, and dask with zarr. Prints the seconds.

    peers.py numpy_pread RAW FOLDER N   two passes over a bare file, hand-written, two workers
    peers.py dask_zarr FOLDER N         one pass for each axis, chunks of 128^3, rechunked and stored
    peers.py dask_create RAW FOLDER N   the input of that
"""
import os
import shutil
import sys
import time


def numpy_pread(raw, folder, n):
    import numpy
    import scipy.fft
    source, target = os.open(raw, os.O_RDONLY), os.open(f"{folder}/numpy-out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    step = max(1, min(n, (128 << 20) // (n * n * 16)))
    begin = time.monotonic()
    for i in range(0, n, step):
        slab = numpy.empty((min(step, n - i), n, n), numpy.complex128)
        os.preadv(source, [slab], i * n * n * 16)
        slab = scipy.fft.fftn(slab, axes=(1, 2), workers=2, overwrite_x=True)
        os.pwritev(target, [slab], i * n * n * 16)
    for j in range(0, n, step):
        width = min(step, n - j)
        slab = numpy.empty((n, width, n), numpy.complex128)
        for i in range(n):
            os.preadv(target, [slab[i]], (i * n + j) * n * 16)
        slab = scipy.fft.fft(slab, axis=0, workers=2, overwrite_x=True)
        for i in range(n):
            os.pwritev(target, [slab[i]], (i * n + j) * n * 16)
    os.fdatasync(target)
    seconds = time.monotonic() - begin
    os.remove(f"{folder}/numpy-out")
    return seconds


def dask_create(raw, folder, n):
    import numpy
    import zarr
    side = min(n, 128)
    out = zarr.create_array(f"{folder}/dask-0", shape=(n, n, n), chunks=(side, side, side), dtype="complex128",
                            compressors=None, overwrite=True)
    for i in range(0, n, side):
        out[i:i + side] = numpy.fromfile(raw, numpy.complex128, side * n * n, offset=i * n * n * 16).reshape(side, n, n)
    return 0


def dask_zarr(folder, n):
    import dask
    import dask.array
    import zarr
    side = min(n, 128)
    begin = time.monotonic()
    with dask.config.set(scheduler="threads", num_workers=2):
        for step, axis in enumerate((2, 1, 0)):
            x = dask.array.from_zarr(f"{folder}/dask-{step}")
            out = zarr.create_array(f"{folder}/dask-{step + 1}", shape=(n, n, n), chunks=(side, side, side),
                                    dtype="complex128", compressors=None, overwrite=True)
            chunks = [side // 2] * 3
            chunks[axis] = n
            dask.array.store(dask.array.fft.fft(x.rechunk(chunks), axis=axis).rechunk((side, side, side)), out)
    seconds = time.monotonic() - begin
    for step in (1, 2, 3):
        shutil.rmtree(f"{folder}/dask-{step}")
    return seconds


if __name__ == "__main__":
    what, *places, side = sys.argv[1:]
    print(globals()[what](*places, int(side)))
