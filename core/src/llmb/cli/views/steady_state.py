"""The steady state of a run as text."""

from __future__ import annotations

import llmb
from llmb.cli.views.numbers import counted, format_number

NAMED_SPIKES = 5
"""The number of spikes whose steps are named."""


def describe_steady_state(state: llmb.SteadyState) -> str:
    """Return a text such as ``15.28 s, steps 4 to 50; no spikes, drift +0.1 %``."""
    steps = f"{format_number(state.step_time_s, 's')}, steps {state.first} to {state.last}"
    return f"{steps}; {_describe_spikes(state)}, drift {round(100 * state.drift, 1) + 0.0:+} %"


def _describe_spikes(state: llmb.SteadyState) -> str:
    if not state.spikes:
        return "no spikes"
    steps = [str(spike.step) for spike in state.spikes]
    if state.spike_period:
        place = f"every {counted(state.spike_period, 'step')} from step {steps[0]}"
    elif len(steps) <= NAMED_SPIKES:
        place = f"at {'step' if len(steps) == 1 else 'steps'} {', '.join(steps)}"
    else:
        place = f"at steps {steps[0]} to {steps[-1]}"
    return f"{counted(len(steps), 'spike')} {place} cost {100 * state.spike_share:.1f} % of the time"
