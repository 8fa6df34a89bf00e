"""Keys of [framework] in recipes of MaxText."""

from collections.abc import Mapping
from typing import Any

import attrs

from llmb import FrozenMap, Nsys, PositiveFloat, PositiveInt


@attrs.frozen(kw_only=True)
class ConvertSettings:
    """Keys of [framework.convert]."""

    command: tuple[str, ...]
    """Command that converts a report of nsys, without its paths."""


@attrs.frozen(kw_only=True)
class PhaseSettings:
    """Keys of [framework.performance]."""

    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Environment variables of this phase."""
    xla_flags: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    """Flags of XLA in this phase, over those of all phases."""


@attrs.frozen(kw_only=True)
class ProfileSettings(PhaseSettings):
    """Keys of [framework.profile]."""

    steps: PositiveInt
    """Number of steps."""


@attrs.frozen(kw_only=True)
class MaxTextSettings:
    """Keys of [framework]."""

    command: tuple[str, ...]
    """Command of a training, without the arguments."""
    config: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    """Arguments of MaxText."""
    env: Mapping[str, str] = attrs.field(factory=FrozenMap)
    """Environment variables of all phases."""
    xla_flags: Mapping[str, Any] = attrs.field(factory=FrozenMap)
    """Flags of XLA in all phases."""
    nsys: Nsys | None = None
    """Command of nsys, which precedes that of the training."""
    profile: ProfileSettings | None = None
    """The first of two trainings, whose report the compiler of the second uses."""
    convert: ConvertSettings | None = None
    """The conversion between the two trainings."""
    performance: PhaseSettings | None = None
    """The second training."""
    mpi: str | None = None
    """Type of MPI with which the scheduler starts the ranks."""
    lock: str | None = None
    """Lock file of the Python environment, if there is no image. Without either, you prepare the environment."""
    python: str | None = None
    """Version of Python in this environment."""
    space_gb: PositiveFloat | None = None
    """Disk space of this environment in GB."""
