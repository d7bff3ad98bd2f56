"""Files of whole trees: what they mean, and which are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.certificates import Authority
from tests.broker.processes import write_secret

from tidings.broker.admission.listen import Address, Direct
from tidings.broker.admission.permissions import ROUTE, TokenRights
from tidings.broker.admission.signing import Signer
from tidings.broker.config import ConfigError, Tls, load_config
from tidings.broker.config.node_settings import OtherChannel
from tidings.broker.trees.node_file import WATCHER, list_arguments
from tidings.broker.trees.running_tree import RunningTree
from tidings.broker.trees.tree_file import load_tree
from tidings.broker.trees.tree_settings import Member, Tree

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "network.toml"


def tree_of(folder: Path, text: str) -> Tree:
    path = folder / "quotes.toml"
    write_secret(path, text)
    return load_tree(path)


def test_an_empty_file_is_a_rendezvous_point(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, "")
    assert tree.members == (Member("root", Address("127.0.0.1", 0), None, 0),)
    assert tree.folder == tmp_path / "quotes"


def test_the_example() -> None:
    here = "127.0.0.1"
    assert load_tree(EXAMPLE).members == (
        Member("root", Address(here, 7400), None, 0),
        Member("east", Address(here, 7401), "root", 1),
        Member("west", Address(here, 7402), "root", 1),
        Member("coast", Address(here, 0), "west", 2),
    )


def test_the_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    text = """
        [router.c]
        upstream = "b"
        [router.b]
        upstream = "a"
        listen = "[::1]:0"
        [router.a]
        listen = "0.0.0.0:7000"
        [root]
        name = "top"
    """
    tree = tree_of(tmp_path, text)
    assert [(one.name, one.upstream, one.depth) for one in tree.members] == [
        ("top", None, 0), ("a", "top", 1), ("b", "a", 2), ("c", "b", 3),
    ]  # fmt: skip
    assert [one.reached for one in tree.members] == ["127.0.0.1", "127.0.0.1", "::1", "127.0.0.1"]
    assert [one.name for one in tree.open_to_others] == ["a"]
    assert not tree_of(tmp_path, f"{text}\n[tokens]\nx = '*'").open_to_others


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "quotes.toml is not TOML"),
        ('[tokens]\nx = {name = "a", within = "b >"}', "line 2: tokens: within: "),
        ("colour = 1", "line 1: colour: there is no such setting; did you mean columns?"),
        ("[router.a]\ncolour = 1", "line 2: router.a.colour: there is no such setting"),
        ("[root]\nport = 1", "line 2: root.port: there is no such setting"),
        ("router = 1", "line 1: router: found an integer, expected a table"),
        ("[router]\na = 1", "line 2: router.a: found an integer, expected a table"),
        ('[router.a]\nupstream = "b"',
         "line 2: router.a: found the upstream 'b', expected one of root"),
        ("[direct]\nmost = 4\naddress = 'there'",
         "line 3: direct.address: found 'there', expected a host"),
        ("[channels.tea]\ncolumns = {price = 'money'}", "line 2: channels.tea.columns: 'price'"),
        ('[router.a]\nupstream = "a"', "found a cycle of upstreams: a -> a"),
        ('[router.a]\nupstream="b"\n[router.b]\nupstream="c"\n[router.c]\nupstream="b"',
         "found a cycle of upstreams: b -> c -> b"),
        ("[router.a]\nupstream = []",
         "line 2: router.a: found no upstream, expected different names of nodes"),
        ("[router.a]\nupstream = ['root', 'root']",
         "line 2: router.a: found the same upstream twice, expected different names of nodes"),
        ('[router.a]\nupstream=["root", "b"]\n[router.b]\nupstream=["root", "a"]',
         "found a cycle of upstreams: a -> b -> a"),
        ("[tls]\ncertificate = 'a.pem'", "line 1: tls.key: "),
        ("[router.root]", "router.root: found the name of the rendezvous point, expected another"),
        ('[root]\nname="a"\n[router.a]', "router.a: found the name of the rendezvous point"),
        ("[router.a]\n[router.a]", "is not TOML"),
        ('[router."../a"]', "router.../a: found the name '../a', expected at most 64"),
        ('[root]\nname = ""', "root: found the name ''"),
        ('[router.a]\nlisten = "there"', "router.a: listen: found 'there', expected a host"),
        ("[router.a]\nlisten = 70000", "router.a: listen: found '127.0.0.1:70000'"),
        ("[router.a]\nlisten = -1", "router.a: listen: found"),
        ('[router.a]\npublic = "there"', "router.a: public: found 'there', expected a host"),
        ("[router.a]\nlisten = 1\n[router.b]\nlisten = 1",
         "a and b can't both listen on 127.0.0.1:1"),
        ("[columns]\nprice = 'money'", "money"),
        ("[times]\nbeat = 'often'", "line 2: times.beat: found a string, expected a number"),
        ("[tokens]", "tokens: found an empty table"),
        ("policy = 'sometimes'", "policy"),
        ("[preprocessor.tagger]\nlisten = 7410",
         "preprocessor.tagger: found a table, expected [preprocessors.tagger] for a process"),
        ("[preprocessors.a]\nport = 1", "line 2: preprocessors.a.port: there is no such setting"),
        ("[preprocessors.a]\nlisten = 'x'",
         "line 2: preprocessors.a: listen: found 'x', expected a host and a port"),
        ("[preprocessors.a]\nlisten = '0.0.0.0:1'", "line 2: preprocessors.a: listen: found "
         "0.0.0.0, which is not a host that agents can connect to, expected `host` in addition"),
        ("[preprocessors.root]", "preprocessors.root: found the name of another node, expected a"),
        ("[preprocessors.a]\n[router.a]", "preprocessors.a: found the name of another node"),
        ("[preprocessors.'a b']", "preprocessors.a b: found the name 'a b', expected at most 64"),
        ("[preprocessors.a]\nchannel = 'tea'\n[channels.coffee]",
         "line 2: preprocessors.a: found the channel 'tea', expected one of \"\", \"coffee\""),
        ("[root]\nlisten = 1\n[preprocessors.a]\nlisten = 1",
         "root and a can't both listen on 127.0.0.1:1"),
        ("[preprocessors.a]\nkey = 'x'",
         "line 2: preprocessors.a: found key and no [tokens], expected [tokens] that say who may"),
        ("[tokens]\nx = '*'\n[preprocessors.a]\nkey = 'quotes.toml'",
         "quotes.toml: expected one token, a word of at most 4,096 characters"),
        ("[limits]\nneighbors = 1",
         "line 2: limits.neighbors: there is no such setting; did you mean neighbours?"),
        ("[limits]\nneighbours = 0", "line 2: limits.neighbours: "),
        ("[channels.tea.limits]\nnodes = 'x'",
         "line 2: channels.tea.limits.nodes: expected an integer, got a string"),
        ("[root.limits]\nnodes = 0", "line 2: root.limits.nodes: "),
        ("[tickets]\na = 'x'", "line 2: tickets: a: found other text, expected a public key"),
        ("[tickets]\nroot = 'ed25519:mTPSvKzFHoiMtUIvSrvEXDJhQuTfdbvwPrBrJQcwxn4='",
         "line 2: tickets.root: found the name of a node of this tree, expected another name"),
        ("folder = 'quotes.toml'", "is a file; expected a folder"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tree_of(tmp_path, text)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "quotes.toml"))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml can't be read: No such file"):
        load_tree(tmp_path / "none.toml")


async def _running(tree: Tree) -> RunningTree:
    return RunningTree(tree, lambda _: None)


def test_the_files_of_nodes_say_what_the_tree_says(tmp_path: Path) -> None:
    odd = 'a "b" \\ \x7f\t\u00e9'
    text = """
        channel = "quotes"
        policy = "disconnect"
        [columns]
        price = "double"
        [times]
        beat = 2
        [tokens]
        'ODD' = "*"
        [router.a]
        [router.b]
        upstream = "a"
        public = "b.example:7402"
        places = "preprocessor"
    """.replace("'ODD'", '"' + 'a \\"b\\" \\\\ \\u007f\\t\u00e9' + '"')  # fmt: skip
    running = asyncio.run(_running(tree_of(tmp_path, text)))
    running.branches["root"].port, running.branches["a"].port = 7000, 7001
    configs = {}
    for name, branch in running.branches.items():
        path = tmp_path / f"{name}.toml"
        write_secret(path, running._config(branch))
        configs[name] = load_config(path)
    root, a, b = configs["root"], configs["a"], configs["b"]
    assert (root.listen, root.journal) == ("127.0.0.1:7000", "journal.db")
    assert root.columns == {"price": "double"}
    assert (a.upstream, b.upstream, b.listen) == ("127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:0")
    assert (a.public, a.places) == (None, "upstream")
    assert (b.public, b.places) == ("b.example:7402", "preprocessor")
    for config in configs.values():
        assert (config.channel, config.policy) == ("quotes", "disconnect")
        assert config.times == {"beat": 2.0}
        assert config.tokens is not None
        assert config.tokens[odd] == "*"
    assert root.tokens is not None
    assert a.tokens is not None
    assert root.tokens[a.token] == TokenRights("a", ROUTE)
    assert a.tokens[b.token] == TokenRights("b", ROUTE)
    assert b.token not in root.tokens  # each key opens one door
    address, name, token = running.watch_address()
    assert (address, name) == ("tidings://127.0.0.1:7000/quotes", WATCHER)
    assert root.tokens[token] == TokenRights(WATCHER, frozenset({"subscribe"}))


def test_several_nodes_above(tmp_path: Path) -> None:
    """Each of them admits the router, and so does every rendezvous point if one of them is the
    root."""
    text = """
        [tokens]
        x = "*"
        [router.c]
        upstream = ["b", "root"]
        [router.d]
        upstream = ["a", "c"]
        [router.b]
        [router.a]
        upstream = ["root"]
        [channels.tea]
    """
    tree = tree_of(tmp_path, text)
    assert [(one.name, one.upstreams, one.depth) for one in tree.members] == [
        ("root", (), 0), ("root-tea", (), 0), ("b", ("root",), 1), ("a", ("root",), 1),
        ("c", ("b", "root"), 2), ("d", ("a", "c"), 3),
    ]  # fmt: skip
    running = asyncio.run(_running(tree))
    for at, branch in enumerate(running.branches.values()):
        branch.port = 7000 + at
    configs = {}
    for name, branch in running.branches.items():
        write_secret(tmp_path / f"{name}.toml", running._config(branch))
        configs[name] = load_config(tmp_path / f"{name}.toml")
    assert configs["c"].upstream == ["127.0.0.1:7002", "127.0.0.1:7000"]
    assert configs["d"].upstream == ["127.0.0.1:7003", "127.0.0.1:7004"]
    assert configs["c"].upstreams == {"root-tea": "127.0.0.1:7001"}
    assert configs["d"].channels == {"tea": ""}
    tokens = {one.token: name for name, one in configs.items() if one.token}
    admitted = {
        name: {tokens[one] for one in tokens.keys() & (node.tokens or {}).keys()}
        for name, node in configs.items()
    }
    assert admitted == {
        "root": {"a", "b", "c"}, "root-tea": {"a", "b", "c"}, "b": {"c"}, "a": {"d"},
        "c": {"d"}, "d": set(),
    }  # fmt: skip


def test_certificates_of_nodes(tmp_path: Path) -> None:
    """Each node has its own; with authorities, the nodes also have tokens, so their names need not
    be in the certificates."""
    authority = Authority(tmp_path, "ca")
    for name in ("root", "a", "p"):
        authority.sign(name)
    text = """
        [tls]
        certificate = "ca-{name}.pem"
        key = "ca-{name}.key"
        authorities = "ca.pem"
        [router.a]
        listen = "0.0.0.0:7401"
        [preprocessors.p]
    """
    tree = tree_of(tmp_path, text)
    assert not tree.open_to_others
    running = asyncio.run(_running(tree))
    running.tree.folder.mkdir()
    running.branches["root"].port = 7000
    configs = {
        name: load_config(running._write_config(one), of_preprocessor=one.member.tagger is not None)
        for name, one in running.branches.items()
    }
    for name, config in configs.items():
        assert config.tls == Tls(
            str(tmp_path / f"ca-{name}.pem"), str(tmp_path / f"ca-{name}.key"),
            str(tmp_path / "ca.pem"),
        )  # fmt: skip
    assert configs["root"].tokens is not None
    assert configs["root"].tokens[configs["a"].token] == TokenRights("a", ROUTE)
    assert {"root", "a"} == (configs["p"].tickets or {}).keys()
    assert running.watch_address()[0] == "tidings+tls://127.0.0.1:7000"
    words = list_arguments(
        tree, running.branches["p"], running.branches, running.tree.folder / "p.toml"
    )
    assert words[1] == "tidings+tls://127.0.0.1:7000"
    assert words[words.index("--authorities") + 1] == str(tmp_path / "ca.pem")


def test_certificates_that_do_not_fit(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path, "ca"), Authority(tmp_path, "other")
    authority.sign("root")
    text = """
        [router.a]
        [tls]
        certificate = "ca-{name}.pem"
        key = "ca-{name}.key"
        authorities = "ca.pem"
    """

    def refusal() -> str:
        with pytest.raises(ConfigError) as refused:
            tree_of(tmp_path, text)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert refusal().endswith("can't be used: No such file or directory")
    files, wrong = authority.sign("a"), other.sign("a")
    tree_of(tmp_path, text)
    files.key.write_bytes(wrong.key.read_bytes())
    assert "tls: the certificate" in refusal()
    files.certificate.write_bytes(wrong.certificate.read_bytes())
    assert "tls: a can't connect to root at 127.0.0.1: its certificate is not trusted" in refusal()
    authority.sign("a")
    authority.sign("root", addresses=("10.0.0.1",))
    assert "its certificate is not trusted: IP address mismatch" in refusal()
    authority.sign("root")
    expired = authority.sign("a", expired=True)
    files.certificate.write_bytes(expired.certificate.read_bytes())
    files.key.write_bytes(expired.key.read_bytes())
    assert "certificate has expired" in refusal()


def test_files_of_preprocessors_and_limits(tmp_path: Path) -> None:
    """Routers and the rendezvous point of its channel sign tickets for a preprocessor; limits of a
    channel replace those of the tree."""
    private, public = Signer.generate()
    write_secret(tmp_path / "grants.key", private)
    text = f"""
        channel = "fx"
        [limits]
        neighbours = 50
        nodes = 500
        [tokens]
        x = "*"
        [tickets]
        far = "{public}"
        [router.a]
        [root.limits]
        nodes = 400
        [channels.tea.limits]
        nodes = 7
        [preprocessors.p]
        key = "grants.key"
        [preprocessors.q]
        channel = "tea"
        listen = "0.0.0.0:7411"
        host = "q.example"
    """
    running = asyncio.run(_running(tree_of(tmp_path, text)))
    running.tree.folder.mkdir()
    configs = {}
    for at, (name, branch) in enumerate(running.branches.items()):
        branch.port = branch.port or 7000 + at
        path = running._write_config(branch)
        configs[name] = load_config(path, of_preprocessor=branch.member.tagger is not None)
    assert [*configs] == ["root", "root-tea", "a", "p", "q"]
    keys = {name: one.ticket_secret and Signer(one.ticket_secret).public
            for name, one in configs.items()}  # fmt: skip
    assert configs["p"].tickets == {"far": public, **{one: keys[one] for one in ("root", "a")}}
    assert configs["q"].tickets == {"far": public, **{one: keys[one] for one in ("root-tea", "a")}}
    assert configs["p"].tokens is None
    limits = {name: (one.limits.neighbours, one.limits.nodes) for name, one in configs.items()}
    assert limits == {
        "root": (50, 400), "root-tea": (50, 7), "a": (50, 500), "p": (50, 500), "q": (50, 7),
    }  # fmt: skip
    assert configs["a"].channels == {"tea": OtherChannel("root-tea", {"nodes": 7})}
    folder = running.tree.folder
    for name, root, other in (("p", "root", "root-tea"), ("q", "root-tea", "root")):
        token = (folder / f"{name}.token").read_text()
        tokens = configs[root].tokens
        assert tokens is not None
        assert tokens[token] == TokenRights(name, frozenset({"subscribe", "preprocess"}))
        assert token not in (configs[other].tokens or {})
        assert token not in (configs["a"].tokens or {})
    branches = running.branches
    words = list_arguments(running.tree, branches["q"], branches, folder / "q.toml")
    assert words[:2] == ["preprocessor", "tidings://127.0.0.1:7001/tea"]
    assert words[words.index("--host") + 1] == "q.example"
    words = list_arguments(running.tree, branches["p"], branches, folder / "p.toml")
    assert words[words.index("--key") + 1] == str(tmp_path / "grants.key")


def test_links_that_bypass_the_tree(tmp_path: Path) -> None:
    """All rendezvous points offer them, each at its own address; routers have no such table."""
    text = """
        [direct]
        most = 3
        address = "root.example.org:7400"
        links = 20
        [router.a]
        [channels.tea]
    """
    running = asyncio.run(_running(tree_of(tmp_path, text)))
    found: dict[str, Direct | None] = {}
    for name, branch in running.branches.items():
        branch.port = branch.port or 7000 + len(found)
        path = tmp_path / f"{name}.toml"
        write_secret(path, running._config(branch))
        found[name] = load_config(path).direct
    assert found == {
        "root": Direct(3, "root.example.org:7400", 20),
        "root-tea": Direct(3, "", 20),
        "a": None,
    }
    write_secret(tmp_path / "a.toml", (tmp_path / "a.toml").read_text() + "[direct]\nmost = 1\n")
    with pytest.raises(ConfigError, match=r"found \[direct\], which only a rendezvous point may"):
        load_config(tmp_path / "a.toml")
    for wrong, message in (
        ("most = -1", r"direct\.most"),
        ("links = 3", "most"),
        ('most = 1\naddress = "here"', "direct: found 'here', expected a host and a port"),
    ):
        path = tmp_path / "root.toml"
        head = 'name = "r"\nlisten = "127.0.0.1:0"\njournal = "j"\n[direct]\n'
        write_secret(path, head + wrong)
        with pytest.raises(ConfigError, match=message):
            load_config(path)
