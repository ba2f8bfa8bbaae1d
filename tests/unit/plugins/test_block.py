"""Settings of a server block, and the labels that metrics have of it."""

from tests.support.corefile_settings import settings
from topodns.plugins.acl import PLUGIN as ACL
from topodns.plugins.bufsize import PLUGIN as BUFSIZE

COREFILE = """example.org example.net:1053 {
    view v {
        expr do()
    }
    bufsize 512
    bind ::1 127.0.0.1
    bind ::1
}
. {
    whoami
}
"""


def test_settings_are_found_by_plugin_in_the_order_of_plugins() -> None:
    first, _ = settings(COREFILE).blocks
    assert (BUFSIZE.settings_of(first), ACL.settings_of(first)) == (512, None)
    assert first.directives == ("bufsize", "bind", "view")


def test_labels_are_those_of_coredns() -> None:
    first, second = settings(COREFILE).blocks
    assert first.servers == ("dns://[::1]:53", "dns://[::1]:1053", "dns://127.0.0.1:53", "dns://127.0.0.1:1053")
    assert (first.view_name, second.view_name) == ("v", "")
    assert (second.servers, second.bound_hosts) == (("dns://:53",), ("",))
