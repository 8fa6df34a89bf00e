"""The contract that every scheduler passes. The tests run jobs on this machine."""

from llmb.testing import LocalHost, SchedulerContract


class Test__Name__(SchedulerContract):
    scheduler = "__name__"
    run_on = LocalHost()
