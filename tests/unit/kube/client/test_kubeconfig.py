"""The identity of a kubeconfig. Its plugins are run in the stories."""

import asyncio
import base64
import os
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from topodns.kube.client import check_kubeconfig, connect
from topodns.kube.client.contract import ApiError, ApiSettings
from topodns.kube.client.credentials import Access, checked, tls_context
from topodns.kube.client.kubeconfig import Kubeconfig

CLUSTER = "server: https://10.0.0.1:6443"


def text_of(cluster: str = CLUSTER, user: str = "token: abc") -> str:
    """A kubeconfig of two contexts; `cluster` and `user` belong to the current one."""
    return (
        dedent("""\
        apiVersion: v1
        kind: Config
        current-context: here
        contexts:
        - {name: there, context: {cluster: b, user: b}}
        - {name: here, context: {cluster: a, user: a, namespace: x}}
        - {name: anonymous, context: {cluster: a}}
        - {name: nobody, context: {cluster: a, user: none}}
        clusters:
        - {name: b, cluster: {server: "https://b:8080"}}
        - name: a
          cluster:
        {cluster}
        users:
        - {name: b, user: {token: b}}
        - name: a
          user:
        {user}
        """)
        .replace("{cluster}", indent(cluster, " " * 4))
        .replace("{user}", indent(user, " " * 4))
    )


def load(file: Path, text: str, context: str = "") -> Access:
    file.write_text(text)
    return checked(asyncio.run(Kubeconfig(str(file), context, 1.0).load(False)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(name)
    (tmp_path / "token").write_text("from-a-file\n")
    return tmp_path / "config"


def problem_of(file: Path, text: str, context: str = "") -> str:
    with pytest.raises(ApiError) as caught:
        load(file, text, context)
    assert caught.value.status == 0
    return str(caught.value).removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("context", "server", "authorization"),
    [
        ("", "https://10.0.0.1:6443", "Bearer abc"),
        ("here", "https://10.0.0.1:6443", "Bearer abc"),
        ("there", "https://b:8080", "Bearer b"),
        ("anonymous", "https://10.0.0.1:6443", ""),
    ],
)
def test_the_context_chooses_cluster_and_user(file: Path, context: str, server: str, authorization: str) -> None:
    found = load(file, text_of(), context)
    assert (found.server, found.authorization) == (server, authorization)


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ("token: abc", "Bearer abc"),
        ("tokenFile: token", "Bearer from-a-file"),
        ("token: abc\ntokenFile: token", "Bearer from-a-file"),
        ("username: me\npassword: secret", f"Basic {base64.b64encode(b'me:secret').decode()}"),
        ("token: ''\nusername: me\npassword: secret", f"Basic {base64.b64encode(b'me:secret').decode()}"),
        ("{}", ""),
    ],
)
def test_the_user_s_entry_becomes_a_header(file: Path, user: str, authorization: str) -> None:
    assert load(file, text_of(user=user)).authorization == authorization


@pytest.mark.parametrize(
    ("user", "what"),
    [
        ("token: abc", "token"),
        ("tokenFile: token", "tokenFile"),
        ("username: me\npassword: secret", "username"),
        ("exec: {command: /bin/false, apiVersion: client.authentication.k8s.io/v1}", "exec"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_credentials_are_not_sent_in_the_clear(file: Path, scheme: str, user: str, what: str) -> None:
    """client-go reads none for http:// (tools/clientcmd, IsConfigTransportTLS)."""
    problem = problem_of(file, text_of(f"server: {scheme}://10.0.0.1:8080", user))
    assert problem == (
        f"the cluster's server is {scheme}://10.0.0.1:8080, expected https:// since the user has '{what}'"
    )


@pytest.mark.parametrize(
    ("cluster", "user", "server"),
    [
        ("certificate-authority: ca.crt", "token: abc", "https://10.0.0.1:6443"),
        ("insecure-skip-tls-verify: true", "token: abc", "https://10.0.0.1:6443"),
        ("insecure-skip-tls-verify: false", "{}", "http://10.0.0.1:6443"),
        ("tls-server-name: api", "{}", "http://10.0.0.1:6443"),
    ],
)
def test_a_server_without_a_scheme_is_of_https_where_anything_is_said_of_tls(
    file: Path, cluster: str, user: str, server: str
) -> None:
    """As in client-go (rest.DefaultServerURL, defaultServerUrlFor)."""
    (file.parent / "ca.crt").write_text("")
    assert load(file, text_of(f"server: 10.0.0.1:6443\n{cluster}", user)).server == server


def test_a_user_without_credentials_may_connect_without_tls(file: Path) -> None:
    assert load(file, text_of("server: http://10.0.0.1:8080", "{}")).authorization == ""


def test_a_pipe_is_no_kubeconfig_and_no_token(file: Path) -> None:
    os.mkfifo(file.parent / "fifo")
    assert problem_of(file, text_of(user="tokenFile: fifo")).endswith("fifo: is no regular file")
    with pytest.raises(ApiError, match="is no regular file"):
        asyncio.run(Kubeconfig(str(file.parent / "fifo"), "", 1.0).load(False))


def test_pipes_are_no_certificates(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    fifo = str(tmp_path / "fifo")
    for access in (Access("https://a", ca=fifo), Access("https://a", certificate=fifo, key=fifo)):
        with pytest.raises(ApiError, match="is no regular file"):
            tls_context(access)


def test_files_are_found_beside_the_kubeconfig(file: Path) -> None:
    found = load(
        file,
        text_of(f"{CLUSTER}\ncertificate-authority: ca.crt", "client-certificate: me.crt\nclient-key: ./me.key"),
    )
    names = [str(file.parent / name) for name in ("ca.crt", "me.crt", "me.key")]
    assert [found.ca, found.certificate, found.key] == names
    assert [path for path, _ in found.files][:2] == [str(file), names[0]]


def test_data_in_the_kubeconfig_comes_before_files_unless_it_is_empty(file: Path) -> None:
    data = base64.b64encode(b"in line").decode()
    cluster = f"{CLUSTER}\ncertificate-authority: ca.crt\ncertificate-authority-data: "
    assert Path(load(file, text_of(cluster + data)).ca).read_text() == "in line"
    assert Path(load(file, text_of(cluster + '""')).ca).read_text() == "ca.crt"


def test_how_the_server_is_verified(file: Path) -> None:
    cluster = f"{CLUSTER}\ntls-server-name: api.internal\ninsecure-skip-tls-verify: true\nproxy-url: http://p:3128"
    found = load(file, text_of(cluster))
    assert (found.verified, found.server_name, found.proxy) == (False, "api.internal", "http://p:3128")
    found = load(file, text_of())
    assert (found.verified, found.server_name, found.proxy) == (True, "", "")


def test_json_is_read_too(file: Path) -> None:
    text = (
        '{"kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],'
        '"clusters":[{"name":"c","cluster":{"server":"http://localhost:8080"}}],"users":null}'
    )
    assert replace(load(file, text), files=()) == Access("http://localhost:8080")


@pytest.mark.parametrize(
    ("text", "context", "problem"),
    [
        (text_of(), "elsewhere", "no 'elsewhere' among its contexts"),
        (text_of(), "nobody", "no 'none' among its users"),
        (
            text_of().replace("current-context: here", ""),
            "",
            "no current-context, expected one, or the name of a context",
        ),
        (text_of("{}"), "", "the API server is '', expected a URL such as https://10.96.0.1:443"),
        (
            text_of("server: 10.0.0.1:6443"),
            "",
            "the cluster's server is http://10.0.0.1:6443, expected https:// since the user has 'token'",
        ),
        (text_of(f"server: https://{'a' * 64}.example"), "", "the API server is 'https://aaaa"),
        (text_of("server: https://api..example"), "", "the API server is 'https://api..example', expected a URL"),
        (text_of(f"{CLUSTER}\ntls-server-name: api..example"), "", "the TLS server name is 'api..example', which is"),
        (text_of(f"{CLUSTER}\ntls-server-name: {'a' * 64}"), "", "the TLS server name is 'aaaa"),
        (text_of(f"{CLUSTER}\nproxy-url: http://p..q:1080"), "", "the proxy is no http:// or https:// URL"),
        (text_of(f"{CLUSTER}\nproxy-url: socks5://p:1080"), "", "the proxy is no http:// or https:// URL"),
        (text_of(f"{CLUSTER}\ncertificate-authority: none.crt"), "", "File does not exists: "),
        (text_of(user="as: admin"), "", "the user has 'as', which is not supported"),
        (text_of(user="auth-provider: {name: oidc}"), "", "the user has 'auth-provider', which is not supported"),
        (text_of(user="tokenFile: none"), "", "cannot read the token "),
        (text_of(user="client-key-data: a\nclient-certificate-data: a"), "", "no kubeconfig: "),
        (text_of(user="exec: {command: x}"), "", "exec: command 'x' with apiVersion None, expected one of "),
        (text_of(user="exec: [x]"), "", "the user's 'exec' is of type list, expected a mapping"),
        (text_of(user="token: [x]"), "", "the user's 'token' is of type list, expected a string"),
        (text_of(user="token: {x: y}"), "", "the user's 'token' is of type dict, expected a string"),
        (text_of(user="token: 12345"), "", "the user's 'token' is of type int, expected a string"),
        (text_of(user="{username: a, password: 5}"), "", "the user's 'password' is of type int, expected a string"),
        (text_of("server: [x]"), "", "the cluster's 'server' is of type list, expected a string"),
        (
            text_of(f"{CLUSTER}\ninsecure-skip-tls-verify: 'false'"),
            "",
            "the cluster's 'insecure-skip-tls-verify' is of type str, expected true or false",
        ),
        (
            text_of(f"{CLUSTER}\ninsecure-skip-tls-verify: true\ncertificate-authority-data: YQ=="),
            "",
            "the cluster has 'insecure-skip-tls-verify' and 'certificate-authority-data', expected one of them",
        ),
        (text_of(user="token: a\nusername: b\npassword: c"), "", "the user has 'username' and 'token', expected one"),
        (text_of(user="client-key-data: YQ=="), "", "the user has a 'client-key' without a 'client-certificate'"),
        (text_of(user="client-certificate: a"), "", "the user has a 'client-certificate' without a 'client-key'"),
        (
            text_of(user="exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: never}"),
            "",
            "exec: interactiveMode 'never', expected one of ('Never', 'IfAvailable', 'Always')",
        ),
        ("contexts: [{name: x}, {name: y}, {name: x}]", "y", "found 'x' twice among its contexts"),
        ("", "", "0 objects, expected one of kind Config"),
        ("a: [", "", "line 1: "),
        ("- a", "", "line 1: expected an object"),
        ("contexts: 7", "x", "no kubeconfig: "),
        ("contexts: [7]", "x", "no kubeconfig: "),
        ("contexts: [{name: x}]", "x", "no kubeconfig: KeyError('context')"),
    ],
)
def test_an_unusable_kubeconfig_is_refused_with_its_reason(file: Path, text: str, context: str, problem: str) -> None:
    assert problem_of(file, text, context).startswith(problem)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="No such file or directory"):
        asyncio.run(Kubeconfig(str(tmp_path / "none"), "", 1.0).load(False))
    with pytest.raises(ApiError, match="Is a directory"):
        asyncio.run(Kubeconfig(str(tmp_path), "", 1.0).load(False))


def test_it_is_read_again_when_a_file_of_it_has_changed(file: Path) -> None:
    file.write_text(text_of(user="tokenFile: token"))
    kubeconfig = Kubeconfig(str(file), "", 1.0)
    before = asyncio.run(kubeconfig.load(False))
    assert asyncio.run(kubeconfig.load(False)) is before
    (file.parent / "token").write_text("another")
    assert asyncio.run(kubeconfig.load(False)).authorization == "Bearer another"
    file.write_text(text_of(user="token: third"))
    assert asyncio.run(kubeconfig.load(False)).authorization == "Bearer third"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "a", "here", "https://a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "user", "cluster"]), inner),
    max_leaves=8,
)
SECTIONS = ["contexts", "clusters", "users", "current-context"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(SECTIONS), VALUES))
@example({"contexts": [{"name": "here", "context": {"cluster": "a"}}], "clusters": [{"name": "a", "cluster": 7}]})
def test_whatever_it_holds_it_is_used_or_refused(file: Path, content: dict[str, object]) -> None:
    try:
        load(file, repr(content).replace("None", "null").replace("True", "true").replace("False", "false"), "here")
    except ApiError as problem:
        assert str(problem)  # noqa: PT017 - either outcome will do


def checked_by_connect(settings: ApiSettings) -> str:
    """The error that `connect` raises, and `check_kubeconfig` too."""
    said = []
    for opening in (connect(settings), check_kubeconfig(settings)):
        with pytest.raises(ApiError) as caught:
            asyncio.run(opening)
        said.append(str(caught.value))
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize(
    ("text", "context", "problem"),
    [
        (text_of(), "missing", "no 'missing' among its contexts"),
        ("a: [", "", "line 1: "),
        (text_of("server: ftp://nowhere"), "", ""),
        (text_of(user="exec: {command: x}"), "", "exec: command 'x' with apiVersion None"),
    ],
)
def test_an_unusable_kubeconfig_is_reported_with_the_line_of_the_corefile(
    file: Path, text: str, context: str, problem: str
) -> None:
    file.write_text(text)
    got = checked_by_connect(ApiSettings(kubeconfig=str(file), context=context, place="Corefile:4"))
    assert got.startswith(
        f"Corefile:4: {file}: {problem}" if problem else "Corefile:4: the API server is 'ftp://nowhere'"
    )


def test_without_the_kubernetes_package_a_kubeconfig_is_refused_and_the_way_out_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(text_of())
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    for loaded in ("kubeconfig", "official_client"):
        monkeypatch.delitem(sys.modules, f"topodns.kube.client.{loaded}")
    assert checked_by_connect(ApiSettings(kubeconfig=str(file), place="Corefile:4")) == (
        "Corefile:4: 'kubeconfig' needs the Python package kubernetes, which is not installed here: in a Pod leave "
        "'kubeconfig' out, since the service account is used; elsewhere use the image topodns-tools, or topodns from "
        "its package"
    )


def test_another_missing_module_is_no_matter_of_the_kubeconfig(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "topodns.kube.client.kubeconfig", None)
    with pytest.raises(ModuleNotFoundError):
        asyncio.run(check_kubeconfig(ApiSettings(kubeconfig=str(file))))


def test_a_check_runs_no_plugin(file: Path) -> None:
    plugin = f"exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: touch\n  args: [{file.parent}/ran]"
    file.write_text(text_of(user=plugin))
    asyncio.run(check_kubeconfig(ApiSettings(kubeconfig=str(file))))
    assert not (file.parent / "ran").exists()
