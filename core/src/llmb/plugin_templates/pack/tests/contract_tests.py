"""The contract that every pack passes."""

from llmb.testing import RecipePackContract


class Test__Name__(RecipePackContract):
    pack = "__name__"
