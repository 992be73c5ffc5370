"""`python -m regard` is the same as `regard`."""

from regard.cli.app import main

main()
