"""metrics: what Prometheus reads, from memctl and from the file that the daemon writes."""

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from fake_daemon import Memctl
from figures import counted
from prometheus_client.parser import text_string_to_metric_families

from memoryd.client import exposition
from memoryd.client.errors import Invalid
from memoryd.client.protocol import MethodStats
from memoryd.daemon import config
from memoryd.daemon.config import MetricsConfig
from memoryd.daemon.server.textfile import Textfile, write
from memoryd.daemon.system.supervisor import Supervisor
from waiting import wait_until

if TYPE_CHECKING:
    from conftest import Daemon, Process

Values = dict[str, dict[tuple[tuple[str, str], ...], float]]


def parsed(text: str) -> Values:
    """Return the values by the name and labels of each sample, as Prometheus' own parser reads them."""
    found: Values = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), "a sample is there twice"
            found[sample.name][labels] = sample.value
    return found


def names(text: str) -> list[str]:
    return [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]


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


def test_each_metric_is_told_once_with_its_unit(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client() as client:
        client.add("A fact")
    text = memctl("metrics").out
    found = names(text)
    assert len(set(found)) == len(found) >= 20
    assert all(name.startswith("memoryd_") for name in found)
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert (kind == "counter") == name.endswith("_total"), name


def test_a_histogram_grows_to_its_count(memctl: Memctl, daemon: "Daemon") -> None:
    with daemon.client() as client:
        for _ in range(20):
            client.status()
    values = parsed(memctl("metrics").out)
    buckets = sorted(
        (float(dict(labels)["le"]), count)
        for labels, count in values["memoryd_call_duration_seconds_bucket"].items()
        if dict(labels)["method"] == "status"
    )
    counts = [count for _, count in buckets]
    assert counts == sorted(counts)
    assert buckets[-1] == (float("inf"), 20)
    assert counts[-2] == 20
    assert 0 < values["memoryd_call_duration_seconds_sum"][(("method", "status"),)] < 20


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


def test_metrics_start_no_daemon(memctl: Memctl) -> None:
    found = memctl("metrics")
    assert (found.code, found.out) == (3, "")
    assert "memctl up" in found.err


# The file ------------------------------------------------------------------------------------------------------------


def test_the_daemon_writes_a_file_for_the_collector_and_takes_it_away_at_its_end(
    process: "Process", folder: Path
) -> None:
    process.stop()
    path = folder / "memoryd.prom"
    config_text = process.config.read_text()
    process.constants = {"daemon.server.textfile.EVERY_S": 0.05}
    process.config.write_text(f'{config_text}\n[metrics]\ntextfile = "{path}"\n')
    process.start()
    wait_until(path.exists)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with process.client() as client:
        client.add("A fact")
        wait_until(lambda: parsed(path.read_text()).get("memoryd_memories") == {(("tier", "L1"),): 1})
    process.stop()
    assert not path.exists()
    assert list(folder.glob(".memoryd.prom*")) == []


@pytest.mark.parametrize("trouble", [OSError(errno.EIO, "Input/output error"), apsw.CantOpenError("unable to open")])
def test_whatever_keeps_the_file_from_being_written_it_is_written_later(
    folder: Path, caplog: pytest.LogCaptureFixture, quick: None, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    monkeypatch.setattr("memoryd.daemon.server.textfile.EVERY_S", 0.01)
    troubles = [trouble, trouble]

    def figures() -> str:
        if troubles:
            raise troubles.pop()
        return "a 1\n"

    supervisor = Supervisor()
    textfile = Textfile(MetricsConfig(textfile=str(folder / "m.prom")), figures, supervisor)
    textfile.start()
    wait_until((folder / "m.prom").exists)
    wait_until(lambda: supervisor.list_states()[0].works_since is not None)
    textfile.close()
    [state] = supervisor.list_states()
    assert (state.name, state.restarts) == ("textfile", 2)
    assert len([record for record in caplog.records if "textfile failed" in record.message]) == 2


def test_without_a_file_nothing_is_asked() -> None:
    textfile = Textfile(MetricsConfig(), lambda: pytest.fail("nobody wants these"), Supervisor())
    textfile.start()
    textfile.close()


def test_a_link_that_somebody_put_beside_it_is_not_written_through(folder: Path) -> None:
    (folder / "precious").write_text("kept")
    (folder / f".m.prom.{os.getpid()}").symlink_to(folder / "precious")
    write(folder / "m.prom", "a 1\n")
    assert [(folder / name).read_text() for name in ("precious", "m.prom")] == ["kept", "a 1\n"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    path = folder / "m.prom"
    write(path, "a 1\n")
    with pytest.raises(UnicodeEncodeError):
        write(path, "a \ud800\n")
    assert path.read_text() == "a 1\n"
    assert [found.name for found in folder.iterdir()] == ["m.prom"]


@pytest.mark.parametrize("name", ["metrics.txt", "relative.prom"])
def test_a_file_that_no_collector_would_read_is_refused(folder: Path, name: str) -> None:
    path = folder / "config.toml"
    path.write_text(f'[metrics]\ntextfile = "{name}"\n')
    with pytest.raises(Invalid, match=r"absolute path that ends in \.prom"):
        config.load(path)
