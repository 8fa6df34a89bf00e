"""Targets that share a scheduler, a host and a work directory. One effect runner serves all of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from llmb.hookspecs import SchedulerHooks
from llmb.hosts.host_connections import HostConnections
from llmb.plugins.registry import PluginRegistry
from llmb.values.frozen import FrozenMap
from llmb.values.host import Host
from llmb.values.run import Target
from llmb.values.workload import RunSpec

PROBE_TIMEOUT_S = 120


class TargetGroup:
    """Targets that differ in their options only. Each has the facts that its own probe finds."""

    def __init__(self, scheduler: SchedulerHooks[Any], host: Host, targets: Sequence[Target[Any]]) -> None:
        self.scheduler = scheduler
        self.host = host
        self.workdir = targets[0].workdir
        self.name = targets[0].host or "this machine"
        self.shared = all(target.shared for target in targets)
        self.remote = targets[0].host is not None
        self.error: Exception | None = None
        """Why the targets could not be probed, if runs of other targets continue nevertheless."""
        self._targets = targets
        self._gpu_types = tuple(dict.fromkeys(name for target in targets for name in target.gpu_types))
        self._images = any(target.uses_images for target in targets)
        self._facts: dict[str, Mapping[str, str]] = {}  # by the probe that found them

    def describe_probe(self) -> str:
        """Return what the first command on the target does, so that users see the reason of a pause."""
        return f"connecting to {self.name}" if self.remote else f"checking {self.name}"

    def probe(self) -> tuple[str, ...]:
        """Run each distinct probe once and keep its facts. Return warnings for the user. Raise TargetError."""
        warnings = []
        for script in filter(None, dict.fromkeys(map(self._probe_script, self._targets))):
            result = self.host.run(script, timeout_s=PROBE_TIMEOUT_S)
            pairs = (line.partition("=") for line in result.stdout.splitlines() if "=" in line)
            self._facts[script] = FrozenMap({key: value for key, _, value in pairs})
            if result.exit_code:
                lines = result.stderr.strip().splitlines() or ["the probe of the target failed"]
                warnings.append(f"warning: {lines[-1]}")
        return tuple(dict.fromkeys(warnings))

    def with_facts(self, target: Target[Any]) -> Target[Any]:
        """Return one of the targets with the facts of its probe. It has none if the probe was not possible."""
        facts = self._facts.get(self._probe_script(target)) if self._facts else None
        return attrs.evolve(target, facts=facts) if facts else target

    def _probe_script(self, target: Target[Any]) -> str:
        """Return the bash of the target's probe. Targets that differ in their GPU types or images share one probe."""
        return self.scheduler.probe(target=attrs.evolve(target, gpu_types=self._gpu_types, uses_images=self._images))


def group_key(target: Target[Any]) -> tuple[str, ...]:
    """Return what all targets of a group share."""
    return (target.scheduler, target.host or "", target.workdir)


Groups = dict[tuple[str, ...], TargetGroup]
"""The targets by `group_key`."""


def with_facts(spec: RunSpec, groups: Groups) -> RunSpec:
    """Return the run's spec with the facts that the probe of its target found."""
    group = groups.get(group_key(spec.target))
    target = group.with_facts(spec.target) if group else spec.target
    return spec if target is spec.target else attrs.evolve(spec, target=target)


def group_targets(targets: Iterable[Target[Any]], registry: PluginRegistry, hosts: HostConnections) -> Groups:
    """Return one group per scheduler, host and work directory, by `group_key`."""
    grouped: dict[tuple[str, ...], list[Target[Any]]] = {}
    for target in targets:
        grouped.setdefault(group_key(target), []).append(target)
    return {
        key: TargetGroup(registry.scheduler(group[0].scheduler), hosts.host_of(group[0]), group)
        for key, group in grouped.items()
    }
