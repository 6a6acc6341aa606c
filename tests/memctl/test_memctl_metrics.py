"""metrics: what Prometheus reads."""

import json
import re

import pytest
from fake_daemon import Memctl
from figures import counted

from memoryd.client import exposition
from memoryd.client.protocol import MethodStats
from workbench import Daemon

Values = dict[str, dict[tuple[tuple[str, str], ...], float]]


def parsed(text: str) -> Values:
    """Return the values by the name and labels of each sample; each family has its help and type before its samples."""
    found: Values = {}
    family = ""
    for line in text.splitlines():
        if described := re.fullmatch(r"# (HELP|TYPE) (\w+) (.+)", line):
            assert described[1] == "HELP" or described[2] == family
            family = described[2]
            continue
        name, _, block, value = re.fullmatch(r"(\w+)(\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
        assert name in {family, *(family + end for end in ("_bucket", "_sum", "_count"))}
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)",?', block or "")
        assert "".join(f'{key}="{text}",' for key, text in pairs).rstrip(",") == (block or "")
        labels = tuple(sorted((key, json.loads(f'"{text}"')) for key, text in pairs))  # escaped as in JSON
        assert labels not in found.setdefault(name, {}), "a sample is there twice"
        found[name][labels] = float(value)
    return found


def test_metrics_are_what_prometheus_reads(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client("acme/api") as client:
        client.add("We use Valkey")
        for _ in range(3):
            client.search("Valkey")
        with pytest.raises(Exception, match="ffffffff"):
            client.get("ffffffff")
    text = memctl("metrics").out
    values = parsed(text)
    assert values["memoryd_memories"] == {(("tier", "L1"),): 1}
    assert values["memoryd_call_duration_seconds_count"][(("method", "search"),)] == 3
    assert values["memoryd_call_errors_total"][(("method", "get"),)] == 1
    assert values["memoryd_resident_memory_bytes"][()] > 10**7
    assert values["memoryd_model_state"][(("state", "ready"),)] == 1
    assert sum(values["memoryd_model_state"].values()) == 1
    assert values["memoryd_queue_length"][(("queue", "vectors"),)] == 0
    assert values["memoryd_job_state"][(("job", "sweep"), ("state", "waiting"))] == 1
    assert values["memoryd_clients"][()] >= 1
    assert text.endswith("\n")


def test_labels_are_escaped() -> None:
    odd = 'a "b"\\c\nd'
    method = MethodStats(calls=1, errors=1, p50_ms=1.0, p95_ms=1.0, p99_ms=1.0, total_s=0.001, at_most=[1] * 18)
    values = parsed(exposition.format_stats(counted(by_tier={odd: 3}, methods={odd: method})))
    assert values["memoryd_memories"] == {(("tier", odd),): 3}
    assert values["memoryd_call_errors_total"] == {(("method", odd),): 1}
    assert "memoryd_info" not in values  # a token's caller is told nothing of the daemon


def test_no_namespace_and_no_text_is_among_the_metrics(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client("wagtail/zyzzyva") as client:
        client.add("quokka", type="numbat", source="xylitol")
    text = memctl("metrics").out
    assert not any(word in text for word in ("wagtail", "zyzzyva", "quokka", "numbat", "xylitol"))
