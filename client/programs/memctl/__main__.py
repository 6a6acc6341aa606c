"""`python -m memoryd.client.programs.memctl`: the same as the console script."""

from memoryd.client.programs.memctl import main

main()
