"""What a missing part says: how it is installed, whatever memoryd was installed from."""

import subprocess
from pathlib import Path

from memoryd.client.extras import advise

CHECKOUT = Path(__file__).parents[2]


def test_no_message_names_a_package_of_an_index() -> None:
    assert advise("web") == "install memoryd again with the extra web: pip install 'FILE.whl[web]'"
    folders = ["client", "daemon", "models", "scheduler"]
    found = subprocess.run(
        ["grep", "-rn", "--include=*.py", r"memoryd\[", *folders], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert found.stdout == ""
