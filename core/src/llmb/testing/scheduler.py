"""The contract of a scheduler plugin."""

from llmb.testing.scheduler_runs import RunContract
from llmb.testing.scheduler_scripts import ScriptContract
from llmb.testing.scheduler_states import StateContract


class SchedulerContract(RunContract, ScriptContract, StateContract):
    """Tests that every scheduler passes.

    Set ``scheduler`` to its name, and ``target`` to the keys of [target] that its jobs need. ``states.toml`` beside the
    tests lists the scheduler's own states. The tests that run jobs need a host in ``run_on``; otherwise they are
    skipped. ``LLMB_UPDATE=1`` writes the golden files.
    """

    def test_secrets_stay_secret(self) -> None:
        """No secret is in a script, in the list of processes or in a log, and its file is removed."""
        self.check_secrets_of_script()
        if self.run_on is not None:
            super().test_secrets_stay_secret()
