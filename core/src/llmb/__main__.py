"""Entry point of ``python -m llmb``."""

from llmb.cli.app import main

main()
