"""``python -m ftbc``, and ``torchrun -m ftbc``: the command line."""

from ftbc.cli import main

if __name__ == "__main__":
    main()
