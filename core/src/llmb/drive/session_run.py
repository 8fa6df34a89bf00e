"""A run of a session."""

from pathlib import Path

import attrs

from llmb.drive.max_jobs import JobLimit
from llmb.plan_runs import RunPlan
from llmb.plugins.registry import PluginRegistry
from llmb.records.log_copies.copy_and_parse_logs import LogCopies
from llmb.records.record import RunRecord
from llmb.state_machine.units import State
from llmb.values.job_status import JobHandle


@attrs.define(eq=False)
class SessionRun:
    """A run with its plan, record and logs, and the limit of jobs of its sweep."""

    plan: RunPlan
    record: RunRecord
    logs: LogCopies
    job_limit: JobLimit | None = None

    def handle(self, state: State) -> JobHandle:
        """Return the handle of the run's job."""
        return JobHandle(id=self.plan.run.id, directory=self.plan.script.directory, job_id=state.job_id)


def session_run(plan: RunPlan, record: RunRecord, registry: PluginRegistry, *, peak_flops: float | None) -> SessionRun:
    """Return a run with its record and the readers of its logs. The live view needs the peak of one GPU, if known."""
    framework, scheduler = registry.framework(plan.run.framework), registry.scheduler(plan.target.scheduler)
    logs = LogCopies(plan, record, framework, scheduler, peak_flops=peak_flops)
    return SessionRun(plan, record, logs, _job_limit(plan, record))


def _job_limit(plan: RunPlan, record: RunRecord) -> JobLimit | None:
    if plan.target.max_jobs is None:
        return None
    first_run = str(record.spec().get("provenance", {}).get("first_run", plan.run.id))
    return JobLimit(Path(first_run).name, plan.target.max_jobs)
