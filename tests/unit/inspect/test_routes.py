"""The routes about the state of clusters, which a server serves beside its own."""

import asyncio

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import assembly
from topodns.app.admin_endpoints import Admin
from topodns.app.metrics import Metrics
from topodns.corefile.arguments import Address
from topodns.inspect.http import JobQueue
from topodns.inspect.routes import inspection
from topodns.metrics.registry import Reading
from topodns.net.http_server.messages import HttpReply, HttpRequest

BLOCK = "{name}.org {{\n kubernetes {name}.org {{\n manifests .\n }}\n topology {{\n {page}\n }}\n}}\n"


def test_the_page_is_served_at_its_address_and_shows_the_clusters_of_all_blocks() -> None:
    async def story() -> None:
        admin = Admin(Metrics(list, ()), more=inspection(list))
        generation = assembly().build(
            settings(
                "".join(BLOCK.format(name=name, page=page) for name, page in (("a", "page"), ("b", "on_invalid deny")))
            )
        )
        ((at, routes),) = admin._routes(generation).items()
        assert at == Address("127.0.0.1", 8182)
        paths = {
            "/",
            "/topology",
            *(f"/topology/{name}" for name in ("state", "events", "service", "what-if", "explain")),
        }
        assert set(routes) == paths
        reply = routes["/topology/state"](HttpRequest("/topology/state", {"cluster": "1"}, "127.0.0.1"))
        assert isinstance(reply, asyncio.Future)
        assert b'"clusters": ["a.org.", "b.org."]' in (await reply).body
        admin.close()

    asyncio.run(story())


def test_without_the_option_there_is_no_page() -> None:
    generation = assembly().build(settings(BLOCK.format(name="a", page="on_invalid deny")))
    assert Admin(Metrics(list, ()), more=inspection(list))._routes(generation) == {}


def test_the_rejects_of_the_page_are_a_metric_from_the_start_and_outlive_a_reload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        monkeypatch.setattr(JobQueue, "full", True)
        admin = Admin(Metrics(list, ()), more=inspection(list))
        (rejects,) = (each for each in admin.readings() if each.name == "topodns_topology_page_rejects")
        assert isinstance(rejects, Reading)
        assert dict(rejects.read()) == {("queue",): 0, ("streams",): 0}
        for count in (1, 2):
            generation = assembly().build(settings(BLOCK.format(name="a", page="page")))
            (routes,) = admin._routes(generation).values()
            asked = HttpRequest("/topology/service", {"service": "shop/cache"}, "127.0.0.1")
            reply = routes["/topology/service"](asked)
            assert isinstance(reply, HttpReply)
            assert reply.status == 503
            assert dict(rejects.read()) == {("queue",): count, ("streams",): 0}
        admin.close()

    asyncio.run(story())


ADDRESSES = """\
a.org {
    health :8080
    prometheus :9153
    ready %s
    kubernetes a.org {
        manifests .
    }
    topology {
        page
    }
}
"""


@pytest.mark.parametrize(("ready", "at"), [(":8181", "port 8181"), ("127.0.0.1:81", "127.0.0.1:81")])
def test_other_addresses_of_the_server_say_at_which_one_its_state_is_explained(ready: str, at: str) -> None:
    async def story() -> None:
        admin = Admin(Metrics(list, ()), more=inspection(list))
        by_address = admin._routes(assembly().build(settings(ADDRESSES % ready)))
        admin.close()
        for port in (8080, 9153, 8182):
            (routes,) = (each for address, each in by_address.items() if address.port == port)
            for path in ("/explain", "/who", "/top", "/audit"):
                text = f"{path} is not at this address, but at that of `ready`: {at}\n"
                assert routes[path](HttpRequest(path, {}, "127.0.0.1")) == HttpReply(404, text.encode())
                foreign = routes[path](HttpRequest(path, {}, "10.0.0.9"))
                assert isinstance(foreign, HttpReply)
                assert foreign.status == 403

    asyncio.run(story())


def test_an_address_that_has_several_routes_explains_if_it_is_that_of_ready() -> None:
    admin = Admin(Metrics(list, ()), more=inspection(list))
    (routes,) = admin._routes(assembly().build(settings("a.org {\n health :8181\n ready :8181\n whoami\n}\n"))).values()
    reply = routes["/who"](HttpRequest("/who", {"client": "10.0.0.1"}, "127.0.0.1"))
    assert isinstance(reply, HttpReply)
    assert reply.body.startswith(b"no server block has a kubernetes directive")
