"""A real Ray cluster of two nodes on this machine, until stdin ends: `python -m tests.ray_cluster`. Prints its address.

A process of its own, because Ray's nodes take their environment from the process that starts them.
"""

from __future__ import annotations

import sys
from typing import Any

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100_000_000, "node_ip_address": "127.0.0.2"}
"""Ray takes 127.0.0.1 for the address of the machine, so this is another address of the loopback interface."""


def main() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    cluster.add_node(**NODE)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
