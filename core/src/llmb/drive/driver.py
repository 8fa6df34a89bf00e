"""Brings the runs of one site forward: one poll and one read a tick, and killed at any line without harm.

Every state is in the record before what it announces is done, submitting is idempotent by id, and what runs does not
need this process. A later `Driver` goes on from the records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from llmb.drive.active import ActiveRun
from llmb.drive.finish import finish
from llmb.drive.held import HeldRuns
from llmb.drive.observe import Observer, Unhindered
from llmb.drive.orphans import BEFORE, cancel_orphaned_tasks
from llmb.drive.provenance import parse_provenance
from llmb.drive.recovery import with_recovery_hint
from llmb.drive.secrets import SubmittedSecrets, forget_secrets, missing_secrets, tell_missing_secrets
from llmb.drive.site import Site
from llmb.planning import TaskPlan
from llmb.plugins.peak_flops import peak_flops
from llmb.plugins.registry import PluginRegistry
from llmb.values.errors import LlmbError, SpecError, TargetError, UnknownOutcomeError
from llmb.values.job import Script
from llmb.values.job_status import JobHandle, JobStatus, RunState

UNDER_WAY = frozenset({"queued", "running"})
PATIENCE_S = 30.0  # how long a target that cannot be asked is asked again before people are told once more


class Driver:
    """Drives the runs of one site."""

    def __init__(self, site: Site, runs: Sequence[ActiveRun], pool: PluginRegistry, observer: Observer) -> None:
        self._site = site
        self._runs = list(runs)
        self._pool = pool
        self._observer = Unhindered(observer)
        self.reading = False
        """The last tick found something new in a log."""
        self._told_at = -PATIENCE_S
        self._handing_over = self._handed_over = False  # something is being started there, or may have been
        self._cancelled: dict[ActiveRun, int] = {}  # the request that was handed on
        self._secrets = SubmittedSecrets(site.host)
        self._details: dict[str, str] = {}
        self._held = HeldRuns()
        for run in self._runs:
            site.expect(run.planned.tasks)
            with suppress(Exception):  # it is asked for again when the run ends, and then told
                run.peak_flops = peak_flops(run.run, run.planned.target, pool)

    @property
    def ended(self) -> bool:
        """Nothing is left to do."""
        return all(run.ended for run in self._mine)

    @property
    def submitted(self) -> bool:
        """Nothing is left that needs this process."""
        return all(run.ended or run.state in UNDER_WAY for run in self._mine)

    @property
    def held(self) -> list[Exception]:
        """Why runs are left as they are by this process: one that lacks a secret, or of which something failed."""
        return self._held.reasons

    @property
    def _mine(self) -> list[ActiveRun]:
        return [run for run in self._runs if run not in self._held]

    @property
    def poll_interval_s(self) -> tuple[float, float]:
        """The pause between two polls in seconds: at first, and at most."""
        return self._site.scheduler.poll_interval_s

    def tick(self) -> bool:
        """Bring every run forward once; true when a state changed. A target that cannot be asked is waited for."""
        if self._site.refusal is not None:
            raise with_recovery_hint(self._site.refusal, self._runs)
        self._handing_over = self.reading = False
        try:
            changed = self._advance()
        except TargetError as error:
            self._handed_over |= isinstance(error, UnknownOutcomeError) and self._handing_over
            if not self._something_is_there:
                raise with_recovery_hint(error, self._runs) from error  # nothing runs there: say so at once
            self._tell_once_in_a_while(error)
            return False
        except LlmbError as error:
            raise with_recovery_hint(error, self._runs) from error
        if self._told_at > 0:
            self._told_at = -PATIENCE_S
            self._observer.message(f"{self._site.name} answers again")
        return changed

    def tell(self, text: str) -> None:
        """Something that people should know of these runs."""
        self._observer.message(text)

    @property
    def _something_is_there(self) -> bool:
        """Something was started that goes on without this process, or may have been."""
        return self._handed_over or self._site.busy or any(run.state in UNDER_WAY for run in self._runs)

    def _tell_once_in_a_while(self, error: TargetError) -> None:
        if time.monotonic() - self._told_at > PATIENCE_S:
            self._observer.message(f"{error}; asking again (what runs there goes on)")
            self._told_at = time.monotonic()

    def _advance(self) -> bool:
        mine = [run for run in self._mine if not run.ended and self._held.alone(run, self._driven_here, run)]
        unwanted = [run for run in mine if run.record.cancel_requested]
        wanted = [run for run in mine if run not in unwanted]
        changed = self._cancel(unwanted)
        under_way = [run for run in mine if run.state in UNDER_WAY]
        seen = self._site.ask([run.ticket for run in under_way])
        changed |= self._prepare([run for run in wanted if run.state in BEFORE])
        changed |= self._submit([run for run in wanted if run.state == "submitting"])
        changed |= self._follow({run: seen[run.run.id] for run in under_way})
        return changed

    def _cancel(self, runs: list[ActiveRun]) -> bool:
        """End what was submitted, once for each request; what was not will not be."""
        requested = {run: run.record.cancel_requested for run in runs if run.state not in BEFORE}
        if told := [run for run, when in requested.items() if self._cancelled.get(run) != when]:
            self._site.cancel([run.ticket for run in told])
            forget_secrets((run.planned.script for run in told), self._site.host)
            self._cancelled |= requested
        absent = self._not_submitted([run for run in runs if run.state == "submitting"])
        never = [run for run in runs if run.state in BEFORE or run in absent]
        cancel_orphaned_tasks([run for run in never if run.state in BEFORE], self._runs, self._site, self._observer)
        for run in never:
            self._finish(run, JobStatus(state="ended", cause="cancelled"))
        return bool(told or never)

    def _not_submitted(self, runs: list[ActiveRun]) -> list[ActiveRun]:
        """Those of the runs that were about to be submitted that the scheduler does not know; the others are queued."""
        seen = self._site.poll([run.ticket for run in runs])
        for run in runs:
            if seen[run.run.id].state != "absent":
                self._enter(run, "queued", job_id=seen[run.run.id].job_id)
        return [run for run in runs if run.state == "submitting"]

    def _driven_here(self, run: ActiveRun) -> bool:
        """Another process may drive this run: then only its record is watched, until that process is gone."""
        if run.record.locked:
            return True
        mine = run.record.try_lock()
        if run.catch_up(anew=mine):
            self._observer.progress(run.progress())
        if mine and run.ended:
            run.record.unlock()
        return run.record.locked

    def _prepare(self, runs: list[ActiveRun]) -> bool:
        """Bring shared tasks forward; a run whose tasks are all done is about to be submitted."""
        changed = self._site.look([task.key for run in runs if (task := self._next_task(run))])
        waiting = []
        for run in runs:
            task = self._next_task(run)
            if task is None:
                changed |= self._enter(run, "submitting")
                self._secrets.expect(run.run.id)
                continue
            found = self._site.task(task.key)
            if found.state == "failed":
                self._held.alone(run, run.keep_task_log, found.log)
                self._finish(run, JobStatus(state="ended", cause=found.cause, reason=found.reason, remedy=found.remedy))
                changed = True
            elif found.state != "missing" or self._has_secrets(run, task.script, task.task.kind):
                changed |= self._enter(run, "preparing", task=task.key, detail=task.task.kind)
                if found.reason:
                    self._observer.progress(run.progress(f"{task.task.kind}: {found.reason}"))
                waiting.append((task.key, run.run.id))
        self._handing_over = bool(waiting)
        changed |= self._site.make(waiting)
        self._handing_over = False
        return changed

    def _next_task(self, run: ActiveRun) -> TaskPlan | None:
        return next((task for task in run.planned.tasks if self._site.task(task.key).state != "done"), None)

    def _has_secrets(self, run: ActiveRun, script: Script, what: str) -> bool:
        """Whether a script's secrets are there; without them its run is left for a process that has them."""
        if lacking := tell_missing_secrets(script, what):
            told = [f"{run.run.id}: {line}; then `llmb attach {run.run.id}` goes on" for line in lacking]
            self._held.hold(run, SpecError(*told))
            self._observer.progress(run.progress("; ".join(lacking)))
        return not lacking

    def _submit(self, runs: list[ActiveRun]) -> bool:
        lacking = [run for run in runs if missing_secrets(run.planned.script)]
        for run in self._not_submitted(lacking):  # a job that is there already needs none from here
            self._has_secrets(run, run.planned.script, "job")
        runs = [run for run in runs if run not in lacking]
        if not runs:
            return any(run.state == "queued" for run in lacking)
        scripts = [run.planned.script for run in runs]
        self._handing_over = True
        with self._secrets.placed(scripts):
            tickets = self._site.submit(scripts)
        self._handing_over = False
        for run in runs:
            ticket = tickets[run.run.id]
            if ticket.refused:
                self._refuse(run, ticket)
            else:
                self._enter(run, "queued", job_id=ticket.job_id)
        return True

    def _refuse(self, run: ActiveRun, ticket: JobHandle) -> None:
        told = "; ".join(part for part in (ticket.refused, ticket.remedy) if part)
        self._observer.message(f"{run.run.id}: {told}")
        forget_secrets([run.planned.script], self._site.host)
        self._finish(run, JobStatus(state="ended", cause="refused", reason=ticket.refused, remedy=ticket.remedy))

    def _follow(self, seen: Mapping[ActiveRun, JobStatus]) -> bool:
        """Take what the scheduler said of these runs; the logs of all are read together, those of ended ones wholly."""
        told = {run: status for run, status in seen.items() if status.state not in ("unknown", "absent")}
        for run, status in told.items():
            self._held.alone(run, run.start_attempt, status.attempt)
        over = [run for run, status in seen.items() if status.state in ("ended", "absent") or status.unsatisfiable]
        self.reading = self._read_logs([run for run in told if told[run].state in ("running", "ended")])
        while self._read_logs(over):
            pass  # to the end of the logs, a few MiB at a time
        self._clear_up(over, [run for run in over if seen[run].unsatisfiable])
        changed = False
        for run, status in seen.items():
            changed |= bool(self._held.alone(run, self._take_status, run, status))
        return changed

    def _clear_up(self, over: list[ActiveRun], never: list[ActiveRun]) -> None:
        """What is to be done on the target when jobs have ended, or must not start any more."""
        if never:
            self._site.cancel([run.ticket for run in never])
        forget_secrets((run.planned.script for run in over), self._site.host)
        files = {run.planned.script.provenance: run for run in over if run.planned.script.provenance}
        if files:
            for path, data in self._site.host.read(dict.fromkeys(files, 0)).items():
                run = files[path]
                self._held.alone(run, run.record.add_provenance, parse_provenance(data, run.planned.secrets))

    def _take_status(self, run: ActiveRun, status: JobStatus) -> bool:
        if status.state == "unknown":
            return self._enter(run, run.state, detail=status.reason)
        if status.state == "running":
            return self._enter(run, "running", job_id=status.job_id)
        if status.state == "pending" and not status.unsatisfiable:
            return self._enter(run, "queued", job_id=status.job_id, detail=status.reason)
        if status.state == "absent":
            status = JobStatus(state="ended", cause="lost", reason="the scheduler does not know the job any more")
        self._finish(run, status)
        return True

    def _read_logs(self, runs: list[ActiveRun]) -> bool:
        """What is new in the logs of all these runs, in one command."""
        runs = [run for run in runs if run not in self._held]
        wanted = {run: self._held.alone(run, run.offsets) or {} for run in runs}
        owner = {path: run for run in runs for path in wanted[run]}
        offsets = {path: offset for run in runs for path, offset in wanted[run].items()}
        if not offsets:
            return False
        found = self._site.host.read(offsets)
        for path, data in found.items():
            self._held.alone(owner[path], owner[path].add_log, path, data)
        for run in {id(owner[path]): owner[path] for path in found}.values():
            self._observer.progress(run.progress())
        return bool(found)

    def _enter(self, run: ActiveRun, state: RunState, **more: Any) -> bool:
        detail = str(more.get("detail") or "")
        changed = bool(self._held.alone(run, partial(run.enter, **more), state))
        if changed or detail != self._details.get(run.run.id, ""):
            self._observer.progress(run.progress(detail))
        self._details[run.run.id] = detail
        return changed

    def release(self) -> None:
        """Let other processes (or a later session of this one) drive these runs."""
        self._held.release()
        for run in self._runs:
            run.record.unlock()

    def _finish(self, run: ActiveRun, status: JobStatus) -> None:
        self._held.alone(run, self._end, run, status)

    def _end(self, run: ActiveRun, status: JobStatus) -> None:
        run.close_logs()
        finish(run, status, self._pool)
        run.record.unlock()
        self._observer.progress(run.progress())
