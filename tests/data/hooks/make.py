"""Write the golden files beside the foreign ones: `FILE.fresh` and `FILE.installed`. Look at the difference then.

Of a file that is ours as a whole there is `FILE.fresh` alone."""

import sys
from pathlib import Path

from memoryd.client.programs.hooks import installing
from memoryd.client.programs.hooks.hosts import HOSTS

COMMAND = ["/opt/memory tools/bin/memctl"]
HERE = Path(__file__).parent


def main() -> None:
    for agent in HOSTS:
        for target in installing.list_targets(agent, None):
            (HERE / agent).mkdir(exist_ok=True)
            (HERE / agent / f"{target.path.name}.fresh").write_bytes(target.add(target.empty, COMMAND).encode())
            if target.is_whole:
                continue
            foreign = HERE / agent / f"{target.path.name}.foreign"
            if not foreign.exists():
                sys.exit(f"write {foreign}, as a user of the agent may have it, then run this again")
            given = installing.text_of(target, foreign.read_bytes())
            (HERE / agent / f"{target.path.name}.installed").write_bytes(target.add(given, COMMAND).encode())


if __name__ == "__main__":
    main()
