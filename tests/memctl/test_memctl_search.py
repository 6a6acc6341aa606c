"""What the lines of a search say."""

import pytest

from memoryd.client.memctl.search import place_text
from memoryd.client.protocol import Memory


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((None, None, None), ""),
        (("notes.md", None, None), "notes.md"),
        (("notes.md", 3, None), "notes.md:3"),
        (("notes.md", 3, 3), "notes.md:3"),
        (("/srv/notes.md", 3, 12), "/srv/notes.md:3-12"),
    ],
)
def test_the_file_of_a_memory_is_named_as_editors_open_it(
    place: tuple[str | None, int | None, int | None], text: str
) -> None:
    path, start, end = place
    memory = Memory(
        id="0" * 32,
        namespace="",
        type="fact",
        content="x",
        created_at=0.0,
        updated_at=0.0,
        path=path,
        start_line=start,
        end_line=end,
    )
    assert place_text(memory) == text
