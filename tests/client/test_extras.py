"""What a missing part says: how it is installed, whatever memoryd was installed from."""

import subprocess
import sys
from pathlib import Path

import pytest

from each import each
from memoryd.client.extras import advise, named_extra

CHECKOUT = Path(__file__).parents[2]


def test_no_message_names_a_package_of_an_index() -> None:
    assert advise("web") == "install memoryd again with the extra web: pip install 'FILE.whl[web]'"
    folders = ["client", "daemon", "models", "scheduler"]
    found = subprocess.run(
        ["grep", "-rn", "--include=*.py", r"memoryd\[", *folders], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert found.stdout == ""


def test_an_import_that_needs_an_extra_names_it() -> None:
    said = r"^No module named 'herons'; install memoryd again with the extra birds: "
    with pytest.raises(ModuleNotFoundError, match=said) as raised, named_extra("birds"):
        import herons  # type: ignore[import-not-found]  # noqa: F401
    assert raised.value.name == "herons"


@each(
    ("adapter", "extra"),
    [("langgraph", "langgraph"), ("anthropic", "anthropic"), ("openai_agents", "openai-agents")],
)
def test_an_adapter_without_its_package_names_its_extra(adapter: str, extra: str) -> None:
    hidden = {"langgraph": "langgraph", "anthropic": "anthropic", "openai_agents": "agents"}[adapter]
    program = f"import sys; sys.modules[{hidden!r}] = None; import memoryd.client.integrations.{adapter}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"install memoryd again with the extra {extra}:" in done.stderr.splitlines()[-1]
