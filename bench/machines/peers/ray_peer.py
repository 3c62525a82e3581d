# SPDX-License-Identifier: Apache-2.0
"""Ray: calls of an actor on the other host. It has no barrier and no reduction of actors without another package, so these
are calls of both actors at once.

Runs on the first host. Starts Ray there and, with the agent that the command line names, on the second.
"""
import os
import pathlib
import socket
import subprocess
import sys

import numpy
import ray
from pattern import median_us, report
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

RAY = str(pathlib.Path(sys.executable).parent / "ray")
FIRST, PORT = "10.77.1.1", 6379
COMMON = ["--num-cpus=2", "--object-store-memory=200000000", "--disable-usage-stats"]


@ray.remote(num_cpus=0)
class Peer:
    def echo(self, data):
        return data

    def note(self, data):
        pass

    def one(self):
        return 1.0


def measure():
    here = socket.gethostname()
    nodes = {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}
    other = next(name for name in nodes if name != here)
    peers = [Peer.options(scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[name], soft=False)).remote()
             for name in (here, other)]
    there = peers[1]
    small, large = bytes(64), numpy.zeros(1 << 20, dtype=numpy.uint8)
    ray.get([peer.one.remote() for peer in peers])

    def calls(n):
        for _ in range(n):
            ray.get(there.echo.remote(small))

    def posts(data, window):
        def batch(n):
            for _ in range(max(1, n // window)):
                ray.get([there.note.remote(data) for _ in range(window)])
        return batch

    def of_both(method, then):
        def batch(n):
            for _ in range(n):
                then(ray.get([getattr(peer, method).remote() for peer in peers]))
        return batch

    report("ray_pingpong_us", median_us(200, calls))
    report("ray_rate_m", 1 / median_us(64 * 20, posts(small, 64)))
    report("ray_bulk_gbps", large.nbytes / 1e3 / median_us(40, posts(large, 8)))
    report("ray_barrier_us", median_us(100, of_both("one", len)))
    report("ray_allreduce_us", median_us(100, of_both("one", sum)))


def main():
    agent, second, folder = sys.argv[1:4]
    where = [f"--temp-dir={folder}"]
    run = dict(check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    subprocess.run([RAY, "start", "--head", f"--node-ip-address={FIRST}", f"--port={PORT}",
                    "--include-dashboard=false", *where, *COMMON], **run)
    subprocess.run([agent, second, RAY, "start", f"--address={FIRST}:{PORT}", "--node-ip-address=10.77.1.2", *COMMON],
                   **run)
    ray.init(address=f"{FIRST}:{PORT}", _node_ip_address=FIRST, log_to_driver=False, logging_level="error")
    measure()
    ray.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    main()
