"""Contract tests that run jobs on a real host."""

import contextlib
import hashlib
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

import attrs
import pytest

from llmb.testing.job_checks import CANARY
from llmb.testing.live_jobs import AWAIT_GATE, LiveJobs, live_jobs
from llmb.testing.plugin_checks import fail
from llmb.testing.scheduler_jobs import HOSTILE, SchedulerJobs
from llmb.values.environment import Environment
from llmb.values.errors import LlmbError
from llmb.values.frozen import FrozenMap
from llmb.values.job import Job, Phase

RANK_VARIABLES = ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
JOB_VARIABLES = ("LLMB_JOB_ID", "LLMB_RUN_DIR", "LLMB_ATTEMPT")

AWAIT_VARIABLES = """
for ((tenth = 0; tenth < 600; tenth++)); do
  [ "$(ls "$1" | grep -c "^variables\\.")" -lt "$LLMB_WORLD_SIZE" ] && sleep 0.1 || break
done
"""
"""Wait for the files of all ranks: a scheduler may end a job with its first rank, which another test reports."""

PRINT_VARIABLES = f"""
file=$(mktemp "$1/partial.XXXXXX")
for name in {" ".join([*RANK_VARIABLES, *(f"LLMB_{name}" for name in RANK_VARIABLES), *JOB_VARIABLES])}; do
  printf '%s=%s\\n' "$name" "${{!name-}}"
done >"$file"
mv "$file" "$1/variables.${{file##*.}}"
{AWAIT_VARIABLES}"""

LAST_RANK_ENDS_LATE = """
if [ "$LLMB_RANK" != 0 ]; then
  for ((tenth = 0; tenth < 10; tenth++)); do [ ! -e "$1/continued" ] && sleep 0.1 || break; done
fi
echo >"$1/output"
: >"$1/ended.$LLMB_RANK"
"""
COUNT_ENDED = 'ls "$1" | grep -c "^ended\\." >"$1/seen"; : >"$1/continued"'
START_SECOND = ': >"$1/continued"'
START = 'mktemp "$1/start.XXXXXX"'
COUNT_STARTS = {name: f'mktemp "$1/on-{name}.XXXXXX"' for name in ("node", "first")}
"""Scripts of phases that run once on each node, and once."""

MAX_CLOCK_DIFFERENCE_S = 86_400
"""How much the clocks of two machines may differ."""

PRINT_WORDS = 'printf "%s\\0" "${@:2}" "$WORDS" "$LINES_OF_JOB" "$LINES_OF_PHASE" >"$1/words"'
PRINT_DIGEST = """
printf %s "${HF_TOKEN-}" | sha256sum >"$1/digest"
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >"$1/processes"
"""
LOCK_AND_WAIT = """
exec 9>"$1/lock"
flock 9
sleep 600 &
: >"$1/ready"
wait
"""
TWO_LINES = "first line\nsecond 'line'"


class RunContract(SchedulerJobs):
    """Tests that submit, poll and cancel jobs on ``run_on``."""

    deadline_s: ClassVar[float] = 600.0
    """Seconds that a job of the tests may take."""

    def live_jobs(self) -> AbstractContextManager[LiveJobs]:
        """Return the jobs of a test. Skip the test if there is no host."""
        if self.run_on is None:
            pytest.skip("run_on is None; set it to a host, such as llmb.testing.LocalHost(), to run this test")
        return live_jobs(self, self.run_on, self.deadline_s)

    def test_ranks_get_their_environment(self) -> None:
        """Each rank has the variables of docs/hooks.md, and all ranks have the same master."""
        with self.live_jobs() as jobs:
            job = jobs.job("ranks", {"train": PRINT_VARIABLES}, **jobs.ranks)
            jobs.submit(job)
            jobs.await_completion(job)
            ranks = [
                dict(line.split("=", 1) for line in jobs.read(job, name).splitlines())
                for name in jobs.files(job, "variables.")
            ]
        count = job.nodes * job.tasks_per_node
        if len(ranks) != count:
            fail(f"{len(ranks)} of {count} ranks started")
        ranks.sort(key=lambda each: each["RANK"])
        if (found := [each["RANK"] for each in ranks]) != [str(rank) for rank in range(count)]:
            fail(f"the variables RANK are {', '.join(found)}; expected each of 0 to {count - 1} once")
        for rank, variables in enumerate(ranks):
            _check_variables(rank, variables, job)
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            if len(values := sorted({each[name] for each in ranks})) > 1:
                fail(f"{name} differs between ranks: {', '.join(values)}; each needs the address of rank 0")

    def test_phases_run_on_their_ranks(self) -> None:
        """A phase for nodes runs once on each node, and one for the first rank runs once."""
        with self.live_jobs() as jobs:
            job = jobs.job("places", COUNT_STARTS, **jobs.ranks)
            node, first = job.phases
            job = attrs.evolve(job, phases=(attrs.evolve(node, ranks="node"), attrs.evolve(first, ranks="first")))
            jobs.submit(job)
            jobs.await_completion(job)
            for name, count in (("node", job.nodes), ("first", 1)):
                if (starts := len(jobs.files(job, f"on-{name}."))) != count:
                    fail(f"a phase with ranks = {name!r} ran {starts} times on {job.nodes} nodes, not {count}")

    def test_phases_wait_and_stop(self) -> None:
        """A phase starts after all ranks of the previous one; the job stops after a failure or a missing output."""
        with self.live_jobs() as jobs:
            waiting = jobs.job("waits", {"first": LAST_RANK_ENDS_LATE, "second": COUNT_ENDED}, **jobs.ranks)
            first, second = waiting.phases
            first = attrs.evolve(first, outputs=(f"{waiting.directory}/output",))
            waiting = attrs.evolve(waiting, phases=(first, attrs.evolve(second, ranks="first")))
            exit_3 = {"first": '[ "$LLMB_RANK" != 1 ] || exit 3', "second": START_SECOND}
            failing = jobs.job("fails", exit_3, **jobs.ranks)
            without = jobs.job("lacks-output", {"first": "true", "second": START_SECOND})
            first = attrs.evolve(without.phases[0], outputs=(f"{without.directory}/output",))
            without = attrs.evolve(without, phases=(first, without.phases[1]))
            jobs.submit(waiting, failing, without)
            jobs.await_completion(waiting)
            count, seen = waiting.nodes * waiting.tasks_per_node, jobs.read(waiting, "seen").strip()
            if seen != str(count):
                fail(f"the second phase started when {seen} of {count} ranks of the first had ended; await all ranks")
            for job, why in ((failing, "after a rank exited with code 3"), (without, "although an output is missing")):
                status = jobs.await_end(job)
                if jobs.files(job, "continued"):
                    fail(f"the job continued {why}; end the job after a phase that failed")
                jobs.check_cause(job, status, "failed")

    def test_hostile_strings_survive(self) -> None:
        """Arguments, variables and paths reach the ranks unchanged, with quotes, blanks, $ and several lines."""
        with self.live_jobs() as jobs:
            job = jobs.job("words", {"train": PRINT_WORDS}, workdir=f"{jobs.workdir}/{HOSTILE}")
            words = ("", HOSTILE, TWO_LINES, "*")
            phase = Phase(
                name="train",
                command=(*job.phases[0].command, *words),
                env=FrozenMap({"LINES_OF_PHASE": TWO_LINES}),
                outputs=(f"{job.directory}/words",),
            )
            env = FrozenMap({"WORDS": HOSTILE, "LINES_OF_JOB": TWO_LINES})
            job = attrs.evolve(job, phases=(phase,), env=env)
            jobs.submit(job)
            jobs.await_completion(job, hint="; quote values with shlex.quote")
            found = jobs.read(job, "words").split("\0")[:-1]
        for expected, word in zip((*words, HOSTILE, TWO_LINES, TWO_LINES), found, strict=False):
            if word != expected:
                fail(f"a rank got {word!r} instead of {expected!r}; quote values with shlex.quote")
        if len(found) != len(words) + 3:
            fail(f"a rank got {len(found)} words instead of {len(words) + 3}; quote values with shlex.quote")

    def test_submitting_twice_starts_one_job(self) -> None:
        """A job that is submitted by two processes at the same time, and again after its end, runs once."""
        with self.live_jobs() as jobs:
            job = jobs.job("once", {"train": f"{START}\n{AWAIT_GATE}"})
            done = jobs.submit_twice_at_once(job)
            handles = [each[job.id] for each in done if isinstance(each, Mapping)]
            if not handles:
                raise next(each for each in done if isinstance(each, LlmbError))
            jobs.await_file(job, "start.")
            jobs.open_gate(job)
            jobs.await_end(job)
            handles.append(jobs.submit(job)[job.id])
            status = jobs.await_end(job)
            if (starts := len(jobs.files(job, "start."))) != 1:
                fail(f"the job was started {starts} times; take a lock in submit(), and return the job that is there")
            jobs.check_cause(job, status, "completed")
        if len(ids := sorted({each.job_id for each in handles if each.job_id})) > 1:
            fail(f"submit() returned the ids {', '.join(ids)} for one job; return the id of the job that is there")

    def test_incomplete_tasks_start_again(self) -> None:
        """A script with a check is started again after its end, because its result may be incomplete or deleted."""
        with self.live_jobs() as jobs:
            job = jobs.job("task", {"train": START})
            for count in (1, 2):
                jobs.submit(job, check="false")
                jobs.await_completion(job)
                if (starts := len(jobs.files(job, "start."))) != count:
                    fail(f"a script with a check was started {starts} times by {count} submissions; see Script.check")

    def test_unknown_jobs_are_absent(self) -> None:
        """poll() reports a job that was never submitted as absent: core then submits it."""
        with self.live_jobs() as jobs:
            if (state := jobs.poll(jobs.job("never", {"train": "true"})).state) != "absent":
                fail(f"poll() reports a job that was never submitted as {state}, not as absent")

    def test_history_is_plausible(self) -> None:
        """history() returns attempts with times in seconds since 1970, if the scheduler knows them."""
        with self.live_jobs() as jobs:
            job = jobs.job("history", {"train": "true"})
            jobs.submit(job)
            jobs.await_completion(job)
            for attempt in jobs.history(job).attempts:
                for name, value in (("start", attempt.start), ("end", attempt.end)):
                    if value is not None and abs(value - time.time()) > MAX_CLOCK_DIFFERENCE_S:
                        fail(
                            f"history() returns {name} = {value:g}; expected seconds since 1970, {time.time():.0f} now"
                        )

    def test_secrets_stay_secret(self) -> None:
        """Ranks get the secrets of the job, and nothing else contains them."""
        token = f"{CANARY}-{uuid.uuid4().hex}"
        with self.live_jobs() as jobs:
            secrets = Environment(secrets=("HF_TOKEN",))
            job = jobs.job("secrets", {"train": PRINT_DIGEST}, environment=secrets)
            jobs.submit(job, secrets={"HF_TOKEN": token})
            jobs.await_completion(job)
            if jobs.read(job, "digest").split()[:1] != [hashlib.sha256(token.encode()).hexdigest()]:
                fail("HF_TOKEN is not set for a rank; call read_secrets of job_functions() before its command")
            if jobs.files(job, ".secrets"):
                fail(".secrets is still in the job's directory after its end; remove it when the job ends")
            if found := jobs.find_text(job, token):
                place = "the process list" if found[0] == "processes" else found[0]
                fail(f"the value of HF_TOKEN is in {place}; pass secrets in the environment only, and print none")

    def test_cancel_affects_only_this_job(self) -> None:
        """cancel() ends all processes of a job, and no other job."""
        with self.live_jobs() as jobs:
            job, neighbour = jobs.job("cancelled", {"train": LOCK_AND_WAIT}), jobs.job("other", {"train": AWAIT_GATE})
            jobs.submit(job)
            jobs.await_file(job, "ready")  # before the other job, which may be the first one to get the machine
            jobs.submit(neighbour)
            jobs.cancel(job)
            jobs.check_cause(job, jobs.await_end(job), "cancelled")
            if not jobs.is_lock_free(job):
                fail("a process of the cancelled job still runs; end the children of its ranks too")
            jobs.open_gate(neighbour)
            with contextlib.suppress(LlmbError):
                jobs.cancel(job)  # a job that has ended is left alone
            jobs.await_completion(neighbour)


def _check_variables(rank: int, variables: Mapping[str, str], job: Job) -> None:
    """Fail the test if a variable of a rank is missing or wrong."""
    per_node = job.tasks_per_node
    expected = {
        "RANK": rank,
        "LOCAL_RANK": rank % per_node,
        "NODE_RANK": rank // per_node,
        "WORLD_SIZE": job.nodes * per_node,
        "LOCAL_WORLD_SIZE": per_node,
        "LLMB_JOB_ID": job.id,
        "LLMB_RUN_DIR": job.directory,
        "LLMB_ATTEMPT": 0,
    }
    for name in (*RANK_VARIABLES, *JOB_VARIABLES):
        found = variables[name]
        if not found:
            fail(f"{name} is not set for rank {rank}; call export_rank and export_master of job_functions()")
        if name in expected and found != str(expected[name]):
            fail(f"{name} is {found} for rank {rank}, not {expected[name]}")
        if (twin := variables.get(f"LLMB_{name}", found)) != found:
            fail(f"LLMB_{name} is {twin or 'not set'} for rank {rank}, but {name} is {found}")
