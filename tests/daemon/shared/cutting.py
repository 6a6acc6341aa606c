"""Stand between ssh and memctl, and end after some bytes of either way: `cutting.py NAME=VALUE … PROGRAM …`."""

import os
import random
import select
import subprocess
import sys


def main(words: list[str]) -> None:
    """Pass bytes on until so many have gone, then end without a word."""
    environment = dict(os.environ)
    while words and "=" in words[0] and not words[0].startswith("-"):
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert child.stdin
    assert child.stdout
    left = random.randrange(40, 8000)
    ways = {0: child.stdin.fileno(), child.stdout.fileno(): 1}
    while left > 0:
        for source in select.select(list(ways), [], [])[0]:
            data = os.read(source, left)
            left = left - len(data) if data else 0
            os.write(ways[source], data)
    child.kill()
    child.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
