"""The contract that every pack passes."""

from llmb.testing import PackContract


class Test__Name__(PackContract):
    pack = "__name__"
