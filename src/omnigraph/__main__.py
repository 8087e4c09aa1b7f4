"""The `omnigraph` command: run by a starter if there is one, and else by this process."""

import sys


def run() -> None:
    """Run the command of this process, and end it."""
    try:
        # Imported here, before anything else: a starter answers sooner than the libraries load.
        from omnigraph.warm.client import run_warm

        run_warm()
        from omnigraph.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main.run()


if __name__ == "__main__":
    # `python -m` also imports from the working directory, which a starter does not.
    from omnigraph.cli.main import run as run_here

    run_here()
