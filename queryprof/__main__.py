"""`python -m queryprof`: the command, for use when its script is not on the PATH."""

from queryprof.cli.main import main

if __name__ == "__main__":
    main()
