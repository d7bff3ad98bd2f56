"""The mirror of a channel: any version that was told can be had again, whatever the owner says now.

The oracle is `Filter.matches` with the filters that the channel had at the version."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.damage import flip_bit
from tests.spark.channels import ToldChannel

from tidings import parse
from tidings.channel import Changes
from tidings.filters import Attributes
from tidings.model import TidingsError
from tidings.network import TimedOut
from tidings.spark.channel.followed_channel import FollowedChannel, open_mirror
from tidings.spark.channel.mirror import Mirror, Unknown
from tidings.spark.channel.owner import ChannelOwner, Stopped, read_waiting
from tidings.spark.tagging.worker import view_of

pytestmark = pytest.mark.usefixtures("forked")

ROWS = [{"x": x, "place": place} for x in range(0, 60, 7) for place in ("Oslo", "Rome", None)]
BATCH = pa.RecordBatch.from_pylist(
    ROWS, schema=pa.schema([("x", pa.int64()), ("place", pa.string())])
)


def draw(chance: random.Random) -> str:
    low = chance.randrange(60)
    return chance.choice(
        (
            f"x > {low}",
            f"NOT (x <= {low})",
            f"x BETWEEN {low} AND {low + 20}",
            f"x > {low} AND place = 'Oslo'",
            f"place IN ('Oslo', 'Rome') OR x = {low}",
            "place IS NULL",
        )
    )


def change(told: ToldChannel, chance: random.Random) -> None:
    living = list(told.living())
    if living and chance.random() < 0.4:
        told.end(chance.choice(living), chance.choice((1, 1, 5)))
    else:
        told.add(draw(chance), chance.choice((1, 1, 1 << 24)))


def follow(told: ToldChannel, folder: Path, rebuild_after: int = 1000) -> FollowedChannel:
    return FollowedChannel(ChannelOwner("tidings://there", folder=folder), folder, rebuild_after)


def matching(state: dict[int, str], attributes: Attributes | None = None) -> list[list[int]]:
    """For each row, the nodes that match."""
    parsed = {node: parse(text, attributes=attributes) for node, text in state.items()}
    return [sorted(node for node, one in parsed.items() if one.matches(row)) for row in ROWS]


def check(followed: FollowedChannel, version: int, state: dict[int, str]) -> None:
    view = view_of(followed.pin(version))
    wanted = matching(state, followed.attributes)
    found = [sorted(row) for row in view.subscriptions(BATCH).to_pylist()]
    assert found == wanted
    parsed = {node: parse(text, attributes=followed.attributes) for node, text in state.items()}
    for tag, all_ in zip(
        view.lowest_members(*view.match_places(BATCH)).to_pylist(), wanted, strict=True
    ):
        # every node that matches is in the tag, or covers one that is; nobody in it need not be
        assert tag == sorted(set(tag) & set(all_))
        for node in all_:
            assert node in tag or any(parsed[node].covers(parsed[low]) for low in tag)
        for node in tag:  # of those that cover each other, the lowest number is in the tag
            below = [low for low in all_ if parsed[node].covers(parsed[low])]
            assert all(parsed[low].covers(parsed[node]) for low in below)
            assert node == min(below)


@pytest.mark.parametrize("rebuild_after", [1000, 3])
def test_every_version_that_was_told(
    channel: ToldChannel,
    tmp_path: Path,
    seed: int,
    rebuild_after: int,
) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        change(channel, chance)
    followed = follow(channel, tmp_path, rebuild_after)
    told = [followed.version]
    for step in range(13):
        for _ in range(chance.randrange(4)):
            change(channel, chance)
        told.append(followed.latest())
        assert told[-1] == channel.version
        check(followed, channel.version, channel.living())
        if step % 8 == 3:  # the process is another, and the owner has moved on
            followed.close()
            change(channel, chance)
            channel.renewed = chance.choice((channel.renewed, channel.version))
            followed = follow(channel, tmp_path, rebuild_after)
            assert followed.version == told[-1]
    for version in set(told) if rebuild_after == 1000 else told[-1:]:
        check(followed, version, channel.states[version])
    followed.close()


def test_a_compilation_of_its_own_process(
    channel: ToldChannel,
    tmp_path: Path,
) -> None:
    channel.add("x > 1")
    followed = follow(channel, tmp_path, rebuild_after=2)
    nodes = [channel.add(f"x > {low}", 10) for low in range(2, 8)]
    channel.end(nodes[0])
    version = followed.latest()
    assert len(followed.pin(version).changes) == 5
    followed.close()
    assert followed.pin(version).changes == ()
    check(followed, version, channel.living())
    channel.add("x > 20")
    channel.add("x > 21")
    followed.pin(followed.latest())
    followed.close()
    mirror = open_mirror(tmp_path)
    assert mirror is not None
    assert mirror.nodes(followed.version) == channel.living()


def test_the_owner_is_down_when_a_batch_is_repeated(
    channel: ToldChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel.add("x > 1")
    followed = follow(channel, tmp_path)
    version = followed.latest()
    state = channel.living()
    channel.add("x > 2")
    channel.down = 1
    again = follow(channel, tmp_path)
    assert "does not answer" in caplog.text
    check(again, version, state)
    assert again.latest() == channel.version


def test_waiting_is_said_and_ends(
    channel: ToldChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    followed = follow(channel, tmp_path)
    channel.add("x > 1")
    channel.down = 3
    seen: list[str] = []
    ask = channel.changes

    def asked(since: int = 0, life: int = 0) -> object:
        found = read_waiting(tmp_path)
        seen.append("" if found is None else found.reason)
        return ask(since, life)

    channel.changes = asked  # type: ignore[method-assign,assignment]
    channel.describe = lambda: channel.description  # type: ignore[method-assign]
    assert followed.latest() == 1
    assert seen == ["", *["no answer from the owner"] * 3]
    assert read_waiting(tmp_path) is None
    assert caplog.text.count("waiting for the channel tidings://there") == 1
    assert caplog.text.count("answers again") == 1


def test_waiting_can_be_interrupted_or_forbidden(
    channel: ToldChannel,
    tmp_path: Path,
) -> None:
    owner = ChannelOwner("tidings://there", folder=tmp_path)
    channel.down = 1
    owner.stop.set()
    with pytest.raises(Stopped, match="ended while it waited for the channel tidings://there"):
        owner.describe()
    with pytest.raises(TimedOut):
        ChannelOwner("tidings://there", patient=False).describe()


def test_a_new_life_has_other_numbers(
    channel: ToldChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for low in (1, 2, 3):
        channel.add(f"x > {low}")
    followed = follow(channel, tmp_path)
    before = followed.latest()
    old = channel.living()
    other = ToldChannel(life=8)
    other.add("place = 'Rome'")
    channel.__dict__.update(other.__dict__)
    assert (followed.latest(), followed.life) == (1, 8)
    assert "began a new life" in caplog.text
    check(followed, 1, {1: "place = 'Rome'"})
    assert Mirror(tmp_path / "7", None).nodes(before) == old


def test_a_revised_channel_is_followed(
    channel: ToldChannel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    channel.renew(attributes={"x": "integer", "place": "string"}, extra="keep")
    channel.add("x > 1")
    channel.add("x >= 2")
    followed = follow(channel, tmp_path)
    version = followed.latest()
    check(followed, version, channel.living())
    renewed = channel.add("place = 'Rome'")
    channel.renew(attributes={"x": "double", "place": "string"})
    channel.renewed = renewed  # everybody starts over
    assert followed.latest() == renewed
    again = follow(channel, tmp_path)
    for one in (followed, again):
        check(one, renewed, channel.living())
        check(one, version, channel.states[version])  # a batch that is repeated
        assert one.attributes is not None
        assert one.attributes.type(("x",)) == "double"
    assert "the channel tidings://there was revised" in caplog.text


def test_a_revision_between_two_questions(
    channel: ToldChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description must be the one of the version, whenever the revision comes."""
    channel.renew(attributes={"x": "integer"}, extra="keep")
    channel.add("x > 1")
    followed = follow(channel, tmp_path)
    followed.latest()
    asked = channel.changes

    def revise_first(since: int = 0, life: int = 0) -> Changes:
        if channel.renewed == 0:
            channel.renewed = channel.add("x > 1.5")
            channel.renew(attributes={"x": "double"})
        return asked(since, life)

    monkeypatch.setattr(channel, "changes", revise_first)
    version = followed.latest()
    assert version == channel.version
    assert followed.description == channel.description
    check(followed, version, channel.living())


def test_filters_that_are_refused_are_left_out(
    channel: ToldChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel.renew(attributes={"x": "integer", "place": "string"}, extra="keep")
    channel.add("y > 1")
    good = {channel.add("x > 1"): "x > 1"}
    followed = follow(channel, tmp_path)
    check(followed, followed.version, good)
    late = channel.add("place LIKE")
    check(followed, followed.latest(), good)
    assert "there is no attribute 'y'" in caplog.text
    mirror = open_mirror(tmp_path)
    assert mirror is not None
    assert [one.id for one in mirror.list_set_aside()] == [1, late]
    channel.end(late)
    followed.latest()
    mirror = open_mirror(tmp_path)
    assert mirror is not None
    assert [one.id for one in mirror.list_set_aside()] == [1]


def test_damage_is_noticed_and_the_owner_is_asked(
    channel: ToldChannel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel.add("x > 1")
    followed = follow(channel, tmp_path)
    channel.add("x > 5")
    version = followed.latest()
    step = next((tmp_path / "7" / "changes").iterdir())
    flip_bit(step)
    again = follow(channel, tmp_path)
    assert "it is not used" in caplog.text
    check(again, version, channel.living())
    channel.add("x > 7")
    snapshot = max(path for path in (tmp_path / "7").glob("[0-9]*") if path.is_dir())
    flip_bit(snapshot / "nodes.arrow")
    check(follow(channel, tmp_path), channel.version, channel.living())


def test_a_version_that_nobody_has(
    channel: ToldChannel,
    tmp_path: Path,
) -> None:
    channel.add("x > 1")
    followed = follow(channel, tmp_path)
    before = followed.version
    channel.add("x > 2")
    shutil.rmtree(tmp_path / "7")
    again = follow(channel, tmp_path)
    with pytest.raises(Unknown, match=f"version {before} of the channel is not in"):
        again.pin(before)


def test_an_owner_that_went_back(
    channel: ToldChannel,
    tmp_path: Path,
) -> None:
    channel.add("x > 1")
    channel.add("x > 2")
    followed = follow(channel, tmp_path)
    channel.version = 1
    with pytest.raises(TidingsError, match="is at version 1, but it was at version 2 before"):
        followed.latest()
