from __future__ import annotations

from llmb.testing import RecipePackContract


class TestMI300X(RecipePackContract):
    pack = "mi300x"
