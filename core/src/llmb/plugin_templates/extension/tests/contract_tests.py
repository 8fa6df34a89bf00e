"""The contract that every extension passes."""

from llmb.testing import ExtensionContract


class Test__Name__(ExtensionContract):
    extension = "__name__"
