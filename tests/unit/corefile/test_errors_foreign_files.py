"""Files that are no Corefiles and no files at all: their errors, and that nothing waits for them."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE
from tests.unit.corefile.test_arguments import ARGUMENTS, OPTIONS
from topodns.app.load import load_settings, settings_from_text
from topodns.cli.coredns_check import examine
from topodns.corefile import errors
from topodns.corefile.errors import ConfigError, shown_word
from topodns.corefile.files import load_corefile, load_nameservers, unreadable
from topodns.plugins.order import ORDER

SECRETS = {
    "a private key": (
        "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\n"
        "OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n-----END PRIVATE KEY-----\n"
    ),
    "a token": "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJl",
    "a bootstrap token": "abcdef.0123456789abcdef",
    "passwords": "root:$6$Zk0pQ1sT$Ww8HqhJ3cVYd5Q7E1bXq0:19700:0:99999:7:::\n",
    "an environment": "DATABASE_PASSWORD=correcthorsebatterystaple\n",
    "a list": "hunter2-s3cret\nhunter3-s3cret\nhunter4-s3cret\n",
    "a dotenv": "DB_PASSWORD=pl4inT3xt\n",
    "an htpasswd": "admin:hunter2\n",
    "a long line of base64": "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7VJTUt9Us8cKj\n",
    "octets": "\0\x01\x02secretsecretsecret\n",
}
CERTIFICATE_WORDS = ("BEGIN", "PRIVATE", "KEY", "END")


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[str]:
    """A pipe with a writer who says nothing: opening it for reading succeeds, and reading waits."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    before = signal.signal(signal.SIGALRM, _waited)
    signal.alarm(int(PATIENCE))
    yield str(path)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    os.close(writer)


def _waited(*_: object) -> None:
    pytest.fail("waited for a pipe")


@pytest.mark.parametrize(
    "lines",
    [
        "import FIFO",
        "forward . FIFO",
        "autopath FIFO\n forward . 127.0.0.1",
        "kubernetes cluster.local {\n manifests FIFO\n }",
        "kubernetes cluster.local {\n kubeconfig FIFO\n }",
        "kubernetes cluster.local {\n endpoint https://127.0.0.1\n tls FIFO FIFO FIFO\n }",
        "forward . tls://127.0.0.1 {\n tls FIFO\n }",
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path, fifo: str, lines: str) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_text(f". {{\n {lines.replace('FIFO', fifo)}\n whoami\n}}\n")
    with pytest.raises(ConfigError, match="is no regular file"):
        load_settings(str(corefile), 53, {})


def test_a_pipe_is_no_corefile_and_no_resolv_conf(fifo: str) -> None:
    for read in (load_corefile, load_nameservers):
        with pytest.raises(ConfigError, match=r"fifo: cannot be read: is no regular file"):
            read(fifo)


def test_devices_are_refused_and_links_followed(tmp_path: Path) -> None:
    assert unreadable("/dev/zero") == "cannot read '/dev/zero': is no regular file"
    assert unreadable(str(tmp_path)) is None
    (tmp_path / "..data").mkdir()  # as the kubelet mounts a ConfigMap
    (tmp_path / "..data" / "Corefile").write_text(". {\n}\n")
    (tmp_path / "Corefile").symlink_to("..data/Corefile")
    assert load_corefile(str(tmp_path / "Corefile")) == ". {\n}\n"


@pytest.mark.parametrize(
    "around",
    [
        "import ITSELF\n.:53 {\n}\n",
        "(a) {\n import ITSELF\n}\n. {\n import a\n}\n",
        ". {\n forward . 127.0.0.1 {\n import ITSELF\n }\n}\n",
        ". {\n rewrite {\n import ITSELF\n }\n}\n",
        ". {\n rewrite name {\n import ITSELF\n }\n}\n",
        ". {\n import ITSELF\n}\n",
        ". {\n hosts {\n import ITSELF\n }\n}\n",
        ". {\n cache {\n import ITSELF\n }\n}\n",
        ". {\n acl {\n import ITSELF\n }\n}\n",
        ". {\n header {\n import ITSELF\n }\n}\n",
    ],
)
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_the_content_of_a_file_that_is_no_corefile_is_not_repeated(tmp_path: Path, secret: str, around: str) -> None:
    (tmp_path / "secret").write_text(secret)
    corefile = tmp_path / "Corefile"
    corefile.write_text(around.replace("ITSELF", "secret"))
    with pytest.raises(ConfigError) as refused:
        load_settings(str(corefile), 53, {})
    report = examine(corefile.read_text(), str(corefile), 53, {}).report(readable=False)
    for word in secret.replace(":", " ").replace("=", " ").replace(".", " ").strip("-\n").split():
        if len(word) > 5 and word not in CERTIFICATE_WORDS:
            assert word not in refused.value.problem
            assert word not in report


@pytest.mark.parametrize("around", [". {\n    import FILE\n}\n", ". {\n    hosts {\n import FILE\n}\n}\n"])
@pytest.mark.parametrize("text", ["hunter2", "\nhunter2\n", "# a comment\n hunter2"])
def test_a_word_that_is_all_of_an_imported_file_is_not_shown(tmp_path: Path, text: str, around: str) -> None:
    """It may be a password; what is wrong is said with the place of the word."""
    (tmp_path / "password").write_text(text)
    with pytest.raises(ConfigError) as refused:
        settings_from_text(around.replace("FILE", "password"), str(tmp_path / "Corefile"), 53, {})
    assert "hunter2" not in str(refused.value)
    assert "'…' (7 characters, not shown)" in refused.value.problem
    assert refused.value.file == str(tmp_path / "password")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("whoamy", "unknown directive 'whoamy', did you mean 'whoami'?"),
        ("kubernets", "unknown directive 'kubernets', did you mean 'kubernetes'?"),
        ("fanout . 10.0.0.1", "topodns has no directive 'fanout'"),
        ("forward . 10.0.0.1 {\n max_fail 2\n}", "unknown option 'max_fail' of 'forward', did you mean 'max_fails'?"),
        ("forward . 10.0.0.1 {\n max_fails x\n}", "'max_fails' has 'x'"),
        ("forward . 10.0.0.1 {\n whoami\n}", "unknown option 'whoami' of 'forward'"),
        ("hosts {\n fallthru\n}", "found '…' (8 characters, not shown), expected an address and its names"),
        ("rewrite {\n nam exact a b\n}", "unknown field 'nam' of 'rewrite', did you mean 'name'?"),
    ],
)
def test_an_imported_corefile_is_quoted_where_it_has_known_words_and_slips(
    tmp_path: Path, lines: str, expected: str
) -> None:
    (tmp_path / "custom.override").write_text(lines)
    with pytest.raises(ConfigError) as refused:
        settings_from_text(". {\n import custom.override\n}\n", str(tmp_path / "Corefile"), 53, {})
    assert refused.value.problem.startswith(expected)


@pytest.mark.parametrize("key", ["example.org:99999", "a..b", "10.0.0.0/33", "quic://example.org"])
def test_a_key_that_is_like_a_zone_is_shown_of_an_imported_file(tmp_path: Path, key: str) -> None:
    (tmp_path / "custom.server").write_text(f"{key} {{\n whoami\n}}\n")
    corefile = str(tmp_path / "Corefile")
    with pytest.raises(ConfigError) as refused:
        settings_from_text("import custom.server\n", corefile, 53, {})
    assert "not shown" not in refused.value.problem
    assert f"block {key}: " in examine("import custom.server\n", corefile, 53, {}).report(readable=False)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("example.org", True),
        ("*.example.org:53", True),
        (".", True),
        (".:53", True),
        ("consul:8600", True),
        ("10.0.0.0/8", True),
        ("fd00::/8", True),
        ("dns://example.org", True),
        ("_tcp.exämple.org.", True),
        ("hunter2", False),
        ("admin:hunter2", False),
        ("-----BEGIN", False),
        ("A=b.c", False),
    ],
)
def test_a_key_that_may_be_a_password_is_not_shown(key: str, shown: bool) -> None:
    assert errors.may_show_key(key) == shown


@pytest.mark.parametrize(
    "word",
    ["whoamy", "k8s_external", "example.org:99999", "tls://example.org", "10.0.0.0/33", "exämple.org", "(snippet)", ""],
)
def test_a_word_that_may_be_of_a_corefile_is_shown(word: str) -> None:
    assert shown_word(word) == errors.shown(word)


@pytest.mark.parametrize("word", ["root:$6$x", "PASSWORD=x", "0123456789abcdef", "a.0123456789abcdef", "a-" * 33, "\0"])
def test_any_other_word_is_shown_as_its_length(word: str) -> None:
    assert shown_word(word) == f"'…' ({len(word)} characters, not shown)"


def test_the_owner_of_a_body_in_an_imported_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "vault.hcl").write_text("kWmQ4tXz9LbR {\n x\n}\n")
    with pytest.raises(ConfigError) as refused:
        settings_from_text(". {\n acl {\n import vault.hcl\n }\n}\n", str(tmp_path / "Corefile"), 53, {})
    assert "kWmQ4tXz9LbR" not in refused.value.problem


@pytest.mark.parametrize(("name", "shows"), [("Q4tXz9LbRpp", False), ("UPSTREAM", True)])
def test_of_an_imported_file_an_unset_variable_is_named_if_it_is_in_capitals(
    tmp_path: Path, name: str, shows: bool
) -> None:
    """What stands in braces may be a part of a password."""
    (tmp_path / "secret").write_text(f"forward . {{${name}}}")
    with pytest.raises(ConfigError) as refused:
        settings_from_text(". {\n import secret\n}\n", str(tmp_path / "Corefile"), 53, {})
    assert (name in refused.value.problem) is shows


def option_heads() -> Iterator[str]:
    """Each directive, and each option within its directive, up to where its arguments are."""
    for name in ORDER:
        yield name
        for arguments in ARGUMENTS.get(name, ("",)):
            yield from (f"{name} {arguments} {{\n{option}" for option in OPTIONS.get(name, ()))


@pytest.mark.parametrize("head", list(option_heads()))
@pytest.mark.parametrize("secret", ["root:Hunter2-s3cret", "hunter2secret", "x=Hunter2@s3cret"])
def test_arguments_that_may_be_secrets_are_not_shown_of_an_imported_file(
    tmp_path: Path, head: str, secret: str
) -> None:
    (tmp_path / "lines").write_text(f"{head} {secret}\n{'}' if '{' in head else ''}\n")
    text = ". {\n import lines\n}\n"
    shown = [examine(text, str(tmp_path / "Corefile"), 53, {}).report(readable=False)]
    try:
        settings_from_text(text, str(tmp_path / "Corefile"), 53, {}, shown.append)
    except ConfigError as problem:
        shown.append(str(problem))
    assert not re.search("hunter2|s3cret", "".join(shown), re.IGNORECASE)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("cache 99999999999", "'99999999999'"),
        ("reload 1x", "'1x'"),
        ("forward . dns..example.net", "'dns..example.net'"),
        ("bind 10.0.0.300", "'10.0.0.300'"),
        ("prometheus 9153", "':9153'"),
    ],
)
def test_numbers_addresses_and_names_are_shown_of_an_imported_file(tmp_path: Path, line: str, shown: str) -> None:
    (tmp_path / "lines").write_text(line)
    with pytest.raises(ConfigError) as refused:
        settings_from_text(". {\n import lines\n}\n", str(tmp_path / "Corefile"), 53, {})
    assert shown in str(refused.value)
