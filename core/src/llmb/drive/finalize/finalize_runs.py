"""Finalizing the runs of a target whose jobs are over, each with the history of its job."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import attrs

from llmb.drive.finalize.attempt_history import is_history_awaited
from llmb.drive.finalize.job_directories import SUSPECT_CAUSES, SuspectJob, explain_with_directories
from llmb.drive.finalize.write_result import EndedJob, write_result
from llmb.drive.follow_logs import LogFollower
from llmb.drive.isolate_errors import isolate
from llmb.drive.read_files import read_files
from llmb.drive.secrets import SecretFiles
from llmb.drive.session_run import SessionRun
from llmb.drive.target_group import TargetGroup
from llmb.plugins.registry import PluginRegistry
from llmb.records.last_progress import remove_progress
from llmb.records.provenance import parse_provenance
from llmb.state_machine.events import Ended
from llmb.state_machine.observations import UnitObservation
from llmb.state_machine.units import UnitStates
from llmb.values.errors import PluginError, RecordError
from llmb.values.job_history import JobHistory
from llmb.values.job_status import JobStatus


@attrs.define(eq=False)
class RunFinalizer:
    """Reads logs to their end, removes secrets and writes results.

    A run whose history is not complete yet waits for it, and the other runs continue. Only the history is then queried
    again.
    """

    _group: TargetGroup
    _runs: Mapping[str, SessionRun]
    _registry: PluginRegistry
    _secrets: SecretFiles
    _notes: list[str]
    _log_follower: LogFollower
    _statuses: dict[str, JobStatus] = attrs.field(factory=dict)

    def is_waiting(self, run_id: str) -> bool:
        """Check whether a run has no result yet, and waits only for the history of its job."""
        return run_id in self._statuses

    def is_new(self, run_id: str) -> bool:
        """Check whether the logs of a run that is over are about to be read to their end for the first time."""
        return not self.is_waiting(run_id) and run_id not in self._log_follower.unreadable

    def finalize(self, units: UnitStates) -> Iterator[UnitObservation]:
        """Finalize runs, except those whose history is not complete or whose logs cannot be read. Raise TargetError."""
        failed = self._prepare([each for each in units if not self.is_waiting(each.unit.id)])
        yield from ((unit, failed[unit.id]) for unit, _ in units if unit.id in failed)
        prepared = [each for each in units if self.is_waiting(each.unit.id)]
        histories = self._query_histories([each for each in prepared if each.state.submitted])
        ready = [each for each in prepared if not is_history_awaited(each.state, histories.get(each.unit.id))]
        files = self._read_own_files(unit.id for unit, state in ready if state.submitted)
        for unit, _ in ready:
            script = self._runs[unit.id].plan.script
            job = EndedJob(
                status=self._statuses[unit.id],
                history=histories.get(unit.id, JobHistory()),
                recorded=files.get(script.attempts_file, b""),
            )
            seen = isolate(partial(self._finalize_run, unit.id, job, files.get(script.provenance_file)))
            del self._statuses[unit.id]
            yield unit, seen

    def _prepare(self, units: UnitStates) -> Mapping[str, Exception]:
        """Complete all that needs no history. Return the runs whose logs could not be copied, with the error.

        A run whose logs cannot be read now is left for a later call.
        """
        follower, submitted = self._log_follower, [unit.id for unit, state in units if state.submitted]
        failed = follower.read_to_end(submitted)
        read = [each for each in submitted if each not in failed and each not in follower.unreadable]
        failed |= {run_id: error for run_id, error in follower.read(read, is_last=True) if error}
        self._secrets.remove(self._runs[unit.id].plan.script for unit, state in units if state.may_be_submitted)
        left = {*failed, *follower.unreadable}
        self._statuses |= self._explain_ends([each for each in units if each.unit.id not in left])
        return failed

    def _read_own_files(self, run_ids: Iterable[str]) -> Mapping[str, bytes]:
        """Return the files in which these jobs describe themselves, by path. Raise TargetError.

        A file that cannot be read is left out, with a note, because a result is complete without it.
        """
        scripts = [self._runs[run_id].plan.script for run_id in run_ids]
        paths = [path for script in scripts for path in (script.provenance_file, script.attempts_file) if path]
        found, errors = read_files(self._group.host, {path: {path: 0} for path in paths})
        self._notes += (f"{error}; the run has no data of this file" for error in errors.values())
        return found

    def _query_histories(self, units: UnitStates) -> Mapping[str, JobHistory]:
        """Return what the scheduler knows of these jobs. An error of the plugin is a note. Raise TargetError."""
        recorded = [self._runs[unit.id].handle(state) for unit, state in units]
        handles = [attrs.evolve(each, job_id=self._statuses[each.id].job_id or each.job_id) for each in recorded]
        try:
            found: Mapping[str, JobHistory] = self._group.scheduler.history(handles=handles, host=self._group.host)
        except PluginError as error:
            self._notes.append(f"the attempts of jobs are unknown: {error}")
            return {}
        return found

    def _explain_ends(self, units: UnitStates) -> dict[str, JobStatus]:
        """Return the status of each job that is over. If its directory explains its end, that is the cause."""
        statuses = {unit.id: state.job_status for unit, state in units if state.job_status}
        submitted = {
            unit.id: self._suspect_job(unit.id, statuses[unit.id])
            for unit, state in units
            if state.submitted and self._is_suspect(unit.id, statuses[unit.id])
        }
        return statuses | explain_with_directories(submitted, self._group)

    def _is_suspect(self, run_id: str, status: JobStatus) -> bool:
        """Check whether a job may have ended because it lost its directory. Some jobs then exit with 0."""
        run = self._runs[run_id]
        return status.cause in SUSPECT_CAUSES or (
            status.cause == "completed" and run.logs.series.count < run.plan.run.steps
        )

    def _suspect_job(self, run_id: str, status: JobStatus) -> SuspectJob:
        """Return a job with the files that llmb wrote to its directory or read from it.

        A completed job ran all its phases, so their logs existed. They come first, because only some files are checked.
        """
        run = self._runs[run_id]
        script = run.plan.script
        files = [*run.logs.measured_paths] if status.cause == "completed" else []
        files += script.files
        with suppress(RecordError):  # an unreadable copy of a log is reported when the run is finalized
            files += [path for path, size in run.logs.offsets().items() if size]
        in_directory = [path for path in dict.fromkeys(files) if path.startswith(f"{script.directory}/")]
        return SuspectJob(script.directory, in_directory, status)

    def _finalize_run(self, run_id: str, job: EndedJob, provenance: bytes | None) -> Ended:
        run = self._runs[run_id]
        if provenance:
            run.record.add_provenance(parse_provenance(provenance, run.plan.secrets))
        run.record.sync_logs()
        ending = write_result(run.plan, run.record, run.logs, job, self._registry)
        remove_progress(run.record)
        return ending
