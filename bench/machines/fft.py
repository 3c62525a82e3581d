# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of an array on the drives of two machines, which are network namespaces, beside one machine."""
import json
import pathlib
import re
import shutil

from launchers import ENVIRONMENT, HOST_NAMES, HOSTS, ROOT, Absent, run


def output_of(command, timeout=600):
    code, said, errors = run(command, ENVIRONMENT, timeout)
    if code == 77:
        raise Absent("this system lets nobody make network namespaces here")
    if code != 0:
        raise Absent(f"{pathlib.Path(str(command[0])).name} ended with {code}: {(errors or said).strip()[-300:]}")
    return said


def on_hosts(program, *options):
    return output_of([HOSTS, "openmpi", "2", program, *options])


def report_of(text):
    """The JSON object in what a launcher passes on."""
    return json.loads(text[text.index("{"):text.rindex("}") + 1])


def transform(built, folder, name, start, *options):
    return report_of(start(built / "apps/fft3d", "forward", folder / name, folder / f"{name}-y", "--passes", "2",
                           "--memory", "1G", "-q", "--json", "-", "--orrery-pes=1", *options))


def measure(side, built):
    """{metric: value}: seconds on one machine of two nodes, on two machines, and what these may take.

    `built`: the folder of the programs.
    """
    folder = ROOT / "build/bench/machines-fft"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        local = [folder / "l0", folder / "l1"]
        there = [f"{host}:{folder}/m{i}" for i, host in enumerate(HOST_NAMES)]
        pages = "16,64,128" if side >= 512 else "16,32,32"
        output_of([built / "bench_fft", "volume", folder / "one", f"{side},{side},{side}", pages, "complex128"])
        on_hosts(built / "orrery", "data", "copy", folder / "one", folder / "two",
                 *[word for place in there for word in ("--folder", place)])
        one = transform(built, folder, "one", lambda *words: output_of(words), "--orrery-nodes=2",
                        *[f"--folder={place}" for place in local])
        output_of([built / "orrery", "data", "remove", folder / "one-y"])
        bulk = float(re.search(r"machine_bulk_gbps ([0-9.]+)",
                               on_hosts(built / "bench_machines", "--orrery-pes=1", "bulk"))[1])
        two = transform(built, folder, "two", on_hosts)
        on_hosts(built / "orrery", "data", "remove", folder / "two-y")
        crossing = (two["bytes_read"] + two["bytes_written"]) / 2  # a page is on either machine, and so is who uses it
        return {"fft_one_s": one["seconds"], "fft_machines_s": two["seconds"],
                "fft_machines_limit_s": one["seconds"] + crossing / bulk / 1e9}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
