"""`python -m memoryd.client.memctl`: the same as the console script."""

from memoryd.client.memctl import main

main()
