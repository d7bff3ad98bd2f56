import tempfile, time
from pathlib import Path
from tidings.channel.interests import ArrayInterests


def test_it(tmp_path):
    a = ArrayInterests(folder=tmp_path / "i")
    n = [
        a.place(t).node
        for t in (
            b"x > 1",
            b"x > 3 AND y = 2",
            b"x > 2",
            b"y = 2 OR z = 1",
            b"lower(s) = 'a'",
            b"s = 'A'",
        )
    ]
    assert n == [1, 2, 3, 4, 5, 6]
    print(a.all_placed())
    assert a.tag(b'{"x":5,"y":2}') == [2]
    assert sorted(a.tag(b'{"x":5,"y":2,"s":"A"}')) == [2, 6]
    c = a.begin_compilation()
    a.place(b"x > 10")
    a.remove(3)
    got = c.run()
    assert got is not None
    a.adopt(c, got)
    print(a.all_placed())
    assert a.tag(b'{"x":5,"y":2}') == [2]
    assert a.tag(b'{"x":11}') == [7]
    b = ArrayInterests(
        None,
        [
            (1, b"x > 1"),
            (2, b"x > 3 AND y = 2"),
            (4, b"y = 2 OR z = 1"),
            (5, b"lower(s) = 'a'"),
            (6, b"s = 'A'"),
            (7, b"x > 10"),
        ],
        7,
        folder=tmp_path / "i",
    )
    assert b.all_placed() == a.all_placed()
    assert b._nodes.compiled is not None
