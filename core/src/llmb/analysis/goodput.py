"""Goodput: the share of a job's wall time that was spent in productive steps, and where the rest went.

The definition is that of the ML Goodput Measurement library, https://docs.cloud.google.com/tpu/docs/goodput: the
proportion of the time that was spent making productive, preserved training progress. Start-up, stalls and recovery from
disruptions are lost time.
"""

import math
from collections.abc import Sequence

import attrs

from llmb.analysis.steady_state import SteadyState
from llmb.values.job_history import Attempt


@attrs.frozen(kw_only=True)
class WallTime:
    """Wall time of a job, from the start of its first attempt to the end of its last one, and its parts (s).

    ``productive_s`` is the number of steps times the mean steady step. ``requeues_s`` was lost to earlier attempts and
    to the queue between attempts, ``checkpoints_s`` to checkpoints between steps of which the log states the time,
    ``spikes_s`` to steps that took much longer than the others, for example because a checkpoint is part of them,
    ``suspended_s`` to suspensions by the scheduler, and ``other_s`` to everything else: start-up, warm-up, other
    checkpoints, and the exit.
    """

    wall_s: float
    productive_s: float
    requeues_s: float
    spikes_s: float
    other_s: float
    checkpoints_s: float = 0.0
    suspended_s: float = 0.0

    @property
    def goodput(self) -> float:
        """The productive share of the wall time."""
        return self.productive_s / self.wall_s


def divide_wall_time(
    attempts: Sequence[Attempt],
    steady: SteadyState | None,
    *,
    steps: int,
    earlier_steps: int,
    mean_of: int,
    checkpoints_s: float = 0.0,
) -> WallTime | None:
    """Return the parts of the wall time, or None if start, end or steady state are unknown.

    ``steps`` counts each step of the run once. ``earlier_steps`` of them are from attempts before the last one, which
    resumed after them. A printed step time covers ``mean_of`` steps. Schedulers round times to full seconds, so the
    wall time is never less than that of the steps.

    The scheduler states how long a job was suspended, but not when. A suspension of an earlier attempt is part of the
    time that was lost to it. The time of a step runs on while its job is suspended, so the spikes of the last attempt
    contain its suspensions, as far as there are spikes.
    """
    if not attempts or steady is None:
        return None
    begin, restart, end = attempts[0].start, attempts[-1].start, attempts[-1].end
    if begin is None or restart is None or end is None:
        return None
    productive_s = steps * steady.step_time_s
    spikes_s = mean_of * math.fsum(spike.time_s - steady.step_time_s for spike in steady.spikes)
    requeues_s = max(0.0, restart - begin - earlier_steps * steady.step_time_s)
    wall_s = max(end - begin, productive_s + spikes_s + requeues_s)
    rest_s = max(0.0, wall_s - productive_s - spikes_s - requeues_s)
    *earlier, last = (each.suspended_s or 0.0 for each in attempts)
    in_requeues_s = min(requeues_s, math.fsum(earlier))
    in_spikes_s = min(spikes_s, last)
    in_rest_s = min(rest_s, last - in_spikes_s)
    rest_s -= in_rest_s
    return WallTime(
        wall_s=wall_s,
        productive_s=productive_s,
        requeues_s=requeues_s - in_requeues_s,
        spikes_s=spikes_s - in_spikes_s,
        other_s=max(0.0, rest_s - checkpoints_s),
        checkpoints_s=min(rest_s, checkpoints_s),
        suspended_s=in_requeues_s + in_spikes_s + in_rest_s,
    )
