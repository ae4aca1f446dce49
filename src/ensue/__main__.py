"""`python -m ensue`: the command line."""

from ensue.cli.main import main

main()
