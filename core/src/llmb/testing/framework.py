"""The contract of a framework plugin."""

from llmb.testing.log_checks import LogContract
from llmb.testing.task_checks import TaskContract


class FrameworkContract(TaskContract, LogContract):
    """Tests that every framework passes. Set ``framework`` to its name, and put logs of real runs into ``logs/``.

    ``LLMB_UPDATE=1`` writes ``NAME.expected.toml`` beside each log. ``LLMB_ALL_POINTS=1`` builds the jobs of all
    published configurations instead of a sample.
    """

    framework: str
