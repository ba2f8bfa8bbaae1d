"""Paths in a Corefile that is itself named by a path: an impossible one is reported with the line and the directive."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import problem

# The variable UNSET is not set, `folder` is a directory.
CASES = [
    (
        "forward . {$UNSET}",
        "2: 'forward' has an empty word, expected HOST[:PORT], tls://HOST[:PORT], https://HOST[:PORT] or a file like ",
    ),
    ("forward . tls://{$UNSET}", "2: 'forward' has 'tls://', expected HOST[:PORT]"),
    ("forward . 192.0.2.1 {\n tls {$UNSET}\n}", "3: 'tls' has an empty word, expected a path"),
    ("hosts {$UNSET}", "2: 'hosts' has an empty word, expected a path"),
    ("file {$UNSET}", "2: 'file' has an empty word, expected a path"),
    ("autopath {$UNSET}", "2: 'autopath' has an empty word, expected a path"),
    ("loadbalance weighted {$UNSET}", "2: 'loadbalance' has an empty word, expected a path"),
    ("template IN A {$UNSET}", "2: found an empty word, expected a zone"),
    ("kubernetes a {\n kubeconfig {$UNSET}\n}", "3: 'kubeconfig' has an empty word, expected a path"),
    ("kubernetes a {\n manifests {$UNSET}\n}", "3: 'manifests' has an empty word, expected a path"),
    ("import {$UNSET}", "2: 'import' has no argument, expected a snippet, a file or a pattern"),
    ("forward . folder", "2: cannot read '{}/folder': Is a directory"),
    ("forward . 192.0.2.1 {\n tls folder\n}", "3: cannot read '{}/folder': Is a directory"),
    ("autopath folder", "2: cannot read '{}/folder': Is a directory"),
    ("loadbalance weighted folder", "2: cannot read '{}/folder': Is a directory"),
    ("kubernetes a {\n kubeconfig folder\n}", "3: cannot read '{}/folder': Is a directory"),
    ("kubernetes a {\n endpoint https://a\n tls folder folder {$UNSET}\n}", "4: cannot read '{}/folder': Is a "),
    ("import folder", "2: cannot import '{}/folder': Is a directory"),
]


@pytest.mark.parametrize(("lines", "expected"), CASES, ids=[case[0] for case in CASES])
def test_an_unset_variable_and_a_directory_are_no_file(tmp_path: Path, lines: str, expected: str) -> None:
    (tmp_path / "folder").mkdir()
    found = problem(f". {{\n{lines}\n}}\n", str(tmp_path))
    assert found.startswith(f"{tmp_path}/Corefile:{expected.replace('{}', str(tmp_path))}")
