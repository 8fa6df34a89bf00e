"""Entry point of ``llmb`` and ``python -m llmb``."""

import sys


def main() -> None:
    """Run the command line of this process and exit. Ctrl-C while modules are still imported prints no traceback."""
    try:
        from llmb.cli.app import main as run_command_line
    except KeyboardInterrupt:
        sys.stderr.write("llmb: interrupted\n")
        sys.exit(130)
    run_command_line()


if __name__ == "__main__":
    main()
