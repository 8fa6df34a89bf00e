"""A run that a session drives."""

import attrs

from llmb.drive.max_jobs import JobLimit
from llmb.planning import RunPlan
from llmb.records.log_copies.copy_and_parse_logs import RunLogs
from llmb.records.record import RunRecord
from llmb.state_machine.states import State
from llmb.values.job_status import JobHandle


@attrs.define(eq=False)
class DrivenRun:
    """A run with its plan, record and logs, and the limit of jobs of its sweep."""

    plan: RunPlan
    record: RunRecord
    logs: RunLogs
    job_limit: JobLimit | None = None

    def handle(self, state: State) -> JobHandle:
        """Return the handle of the run's job."""
        return JobHandle(id=self.plan.run.id, directory=self.plan.script.directory, job_id=state.job_id)
