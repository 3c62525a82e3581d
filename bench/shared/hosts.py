# SPDX-License-Identifier: Apache-2.0
"""Products and sorting of shared data on two machines, which are network namespaces with a link between them."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "machines"))
from launchers import ENVIRONMENT, HOSTS, ROOT, Absent, run  # noqa: E402


def seconds(program, *options):
    """With the result compared with a sequential one."""
    environment = ENVIRONMENT | {"ORRERY_HOSTS_NAME": "s24"}
    code, said, errors = run([HOSTS, "openmpi", "2", ROOT / "build/release/examples" / program, *options, "--check",
                              "--orrery-pes=1"], environment, 170)
    if code == 77:
        raise Absent("this system lets nobody make network namespaces here")
    if code != 0:
        raise Absent(f"{program} ended with {code}: {(errors or said).strip()[-300:]}")
    return float(re.search(r"([\d.]+) s\b", said)[1])


def measure(smoke):
    size, keys = ("64", "20000") if smoke else ("704", "6000000")
    return {"hosts_mm2_704_s": seconds("mm2", "--size", size, "--runs", "3", "--together"),
            "hosts_psrs_6m_s": seconds("psrs", "--keys", keys)}
