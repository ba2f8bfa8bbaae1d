"""The option of a reply that says for which clients an answer to a node cache is."""

import pytest

from topodns.query.client_scope import ClientScope, client_scope, read_client_scope


@pytest.mark.parametrize(
    ("scope", "namespace"), [(ClientScope.NODE, ""), (ClientScope.NAMESPACE, "shop"), (ClientScope.CLIENT, "")]
)
def test_a_scope_is_read_as_it_was_written(scope: ClientScope, namespace: str) -> None:
    _, data = client_scope(scope, namespace)
    assert read_client_scope([data]) == (scope, namespace.encode())


@pytest.mark.parametrize(
    "found",
    [
        [],
        [b""],
        [b"\x00", b"\x00"],
        [b"\x00shop"],
        [b"\x02shop"],
        [b"\x03"],
        [b"\x01"],
        [b"\x01a.b"],
        [b"\x01Shop"],
        [b"\x01" + b"a" * 64],
        [b"\x01\xff"],
    ],
)
def test_any_other_data_is_no_scope(found: list[bytes]) -> None:
    assert read_client_scope(found) == (None, b"")
