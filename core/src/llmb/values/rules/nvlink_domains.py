"""Nodes of a job that share an NVLink domain."""


def nodes_per_domain(nodes: int, gpus_per_node: int, domain_gpus: int | None) -> int | None:
    """Return how many nodes at a time must be in one domain: the most that divide the job and fit into a domain.

    ``domain_gpus`` is the number of GPUs in a domain, or None if no domain is wider than a node. The result is then
    None, too.
    """
    if domain_gpus is None:
        return None
    most = max(1, domain_gpus // gpus_per_node)
    return max(count for count in range(1, most + 1) if nodes % count == 0)
