"""``python -m llmb`` is ``llmb``."""

from llmb.cli.main import main

main()
