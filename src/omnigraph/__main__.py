"""The `omnigraph` command."""

import sys


def run() -> None:
    """Run the command of this process, and end it."""
    try:
        from omnigraph.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main.run()


if __name__ == "__main__":
    run()
