"""The contract that every framework passes."""

from llmb.testing import FrameworkContract


class Test__Name__(FrameworkContract):
    framework = "__name__"
