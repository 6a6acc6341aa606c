"""What two machines see of one another."""

from pathlib import Path

from machines import converge, machines

from postgres import Postgres


def test_a_memory_and_its_change_and_its_end_reach_the_other_machine(
    postgres: Postgres, database: str, folder: Path
) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        id = one.add("the build runs on Fridays", metadata={"team": "infra"})
        converge(one, two)
        assert two.texts() == {id: "the build runs on Fridays"}
        two.update(id, content="the build runs on Mondays")
        converge(one, two)
        assert one.texts() == {id: "the build runs on Mondays"}
        one.delete(id)
        converge(one, two)
        assert two.texts() == {}


def test_two_edits_of_one_memory_both_live_and_are_named(postgres: Postgres, database: str, folder: Path) -> None:
    with machines(folder, postgres.address(database=database), "one", "two") as (one, two):
        id = one.add("the port is 80")
        converge(one, two)
        one.update(id, content="the port is 8080")
        two.update(id, content="the port is 9090")
        converge(one, two)
        assert sorted(one.texts().values()) == ["the port is 8080", "the port is 9090"]
        assert one.texts()[id] == "the port is 8080"  # the first that was pushed
