"""`python -m tilp` is `tilp`."""

from tilp.cli import main

main()
