# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of an array on the drives of two machines, which are network namespaces, beside one machine."""
import json
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILT = ROOT / "build/release"
FFT3D = BUILT / "apps/fft3d"
HOSTS = ["f23a", "f23b"]  # as tests/machines/hosts calls them
ENVIRONMENT = os.environ | {"ORRERY_HOSTS_NAME": "f23", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Absent(Exception):
    """It cannot be measured here."""


def output_of(command, timeout=170):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=False,
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL)
    if done.returncode == 77:
        raise Absent("this system lets nobody make network namespaces here")
    if done.returncode != 0:
        raise Absent(f"{pathlib.Path(str(command[0])).name} ended with {done.returncode}: "
                     f"{(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def on_hosts(program, *options):
    return output_of([ROOT / "tests/machines/hosts", "openmpi", "2", program, *options])


def report_of(text):
    """The JSON object in what a launcher passes on."""
    return json.loads(text[text.index("{"):text.rindex("}") + 1])


def transform(folder, name, start, *options):
    report = report_of(start(FFT3D, "forward", folder / name, folder / f"{name}-y", "--passes", "2", "--memory", "1G",
                             "-q", "--json", "-", "--orrery-pes=1", *options))
    return report


def measure(side, rounds):
    """{metric: [values]}: seconds on one machine of two nodes, on two machines, and what these may take."""
    folder = ROOT / "build/bench/machines-fft"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    samples = {"fft_one_s": [], "fft_machines_s": [], "fft_machines_limit_s": []}
    try:
        local = [folder / "l0", folder / "l1"]
        there = [f"{host}:{folder}/m{i}" for i, host in enumerate(HOSTS)]
        pages = "16,64,128" if side >= 512 else "16,32,32"
        output_of([BUILT / "bench_fft", "volume", folder / "one", f"{side},{side},{side}", pages, "complex128"])
        on_hosts(BUILT / "orrery", "data", "copy", folder / "one", folder / "two",
                 *[word for place in there for word in ("--folder", place)])
        for _ in range(rounds):
            one = transform(folder, "one", lambda *words: output_of(words), "--orrery-nodes=2",
                            *[f"--folder={place}" for place in local])
            output_of([BUILT / "orrery", "data", "remove", folder / "one-y"])
            bulk = float(re.search(r"machine_bulk_gbps ([0-9.]+)", on_hosts(BUILT / "bench_machines", "--orrery-pes=1",
                                                                           "bulk"))[1])
            two = transform(folder, "two", on_hosts)
            on_hosts(BUILT / "orrery", "data", "remove", folder / "two-y")
            crossing = (two["bytes_read"] + two["bytes_written"]) / 2  # a page is on either machine, and so is who uses it
            samples["fft_one_s"].append(one["seconds"])
            samples["fft_machines_s"].append(two["seconds"])
            samples["fft_machines_limit_s"].append(one["seconds"] + crossing / bulk / 1e9)
        return samples
    finally:
        shutil.rmtree(folder, ignore_errors=True)
