"""Objects of manifest files, and several files merged into one cluster."""

import pytest

from tests.support.manifest_text import SLICE, contents
from tests.support.model_builders import packed
from topodns.cluster.model import EndpointSlice, Kind, Node
from topodns.kube.manifests.objects import KINDS, Contents, ManifestSet

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: %s}\nspec: {clusterIP: %s}\n"


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {rack: '%s'}}\n"


ENDPOINTS = """\
apiVersion: v1
kind: Endpoints
metadata: {namespace: shop, name: %s}
subsets: [{addresses: [{ip: %s}]}]
"""


def documents(*texts: str) -> str:
    return "---\n".join(texts)


NAMESPACES = "kind: Namespace\nmetadata: {name: shop}\n---\nkind: Namespace\nmetadata: {name: data}\n"


def in_namespaces() -> ManifestSet:
    cluster = ManifestSet()
    cluster.put("0.yaml", contents(NAMESPACES, "0.yaml"))
    return cluster


def merged(**files: str) -> tuple[dict[Kind, list[str]], tuple[str, ...]]:
    """The names of each kind but Namespaces, for kinds that have any, and the problems."""
    cluster = in_namespaces()
    for file, text in files.items():
        cluster.put(file, contents(text, file))
    result = cluster.merged()
    assert tuple(result.objects) == KINDS
    names = {kind: [str(value.key.name) for value in values] for kind, values in result.objects.items() if values}
    assert names.pop("Namespace") == ["shop", "data"]
    return names, result.problems


class TestContents:
    def test_objects_of_all_kinds_are_taken_in_and_others_passed_over(self) -> None:
        text = documents(
            SERVICE % ("web", "10.96.0.1"),
            NODE % ("n1", "r1"),
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
            "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: other}\n",
        )
        assert merged(a=text) == ({"Node": ["n1"], "Service": ["web"]}, ())

    def test_a_malformed_object_is_skipped_and_named_and_the_rest_is_there(self) -> None:
        found = contents(documents(SERVICE % ("bad", "10.96.0.999"), SERVICE % ("good", "10.96.0.1"), "a: 1\n"))
        assert [entry.key.name for entry in found.entries] == ["good"]
        assert len(found.skipped) == 2
        assert found.skipped[0].problem.startswith("m.yaml:1: skipped Service shop/bad: ")
        assert found.skipped[1].problem == "m.yaml:11: skipped object (unnamed): it has no kind"

    @pytest.mark.parametrize(
        ("metadata", "problem"),
        [
            ("namespace: n1, name: yes", "Service n1/(unnamed): metadata.name is read as true, expected text"),
            ("namespace: 007, name: web", "Service web: metadata.namespace is read as 7, expected text"),
            ("namespace: n1, name: 1.5", "Service n1/(unnamed): metadata.name is read as 1.5, expected text"),
            ("namespace: n1", "Service n1/(unnamed): Object missing required field `name`"),
            ("namespace: n1, name: [a]", "Service n1/(unnamed): Expected `str`, got `array`"),
        ],
    )
    def test_a_name_that_yaml_reads_as_no_text_is_shown_as_read(self, metadata: str, problem: str) -> None:
        (skipped,) = contents(f"apiVersion: v1\nkind: Service\nmetadata: {{{metadata}}}\n").skipped
        assert skipped.problem.startswith(f"m.yaml:1: skipped {problem}")

    @pytest.mark.parametrize(
        ("text", "foreign"),
        [
            ("apiVersion: v1\nkind: Config\nclusters: []\nusers: [{name: a, user: {token: s3cret}}]\n", True),
            ('{"kind": "Config", "apiVersion": "v1", "contexts": []}', True),
            ("apiVersion: v1\nkind: Config\n", False),
            ("apiVersion: example.org/v1\nkind: Config\nclusters: []\n", False),
        ],
    )
    def test_a_kubeconfig_is_said_to_have_no_objects(self, text: str, foreign: bool) -> None:
        found = contents(text)
        line = "m.yaml:1: a kubeconfig, which has no objects; the option for it is `kubeconfig`"
        assert (found.remarks, found.skipped) == ((line,) if foreign else (), ())

    def test_an_element_that_is_unreadable_is_named_and_the_rest_of_its_object_is_there(self) -> None:
        found = contents(documents(NODE % ("n1", "r1"), SLICE % ("web-1", "web", "10.0.0.1, 999, 10.0.0.2")))
        (value,) = found.entries[1].objects
        assert isinstance(value, EndpointSlice)
        assert [each.address for each in value.endpoints] == [packed("10.0.0.1"), packed("10.0.0.2")]
        (line,) = found.left_out
        assert line == (
            "m.yaml:5: EndpointSlice shop/web-1: left out endpoints[0].addresses[1]: expected text, found 999"
        )

    def test_labels_select_services_slices_and_pods_but_not_nodes(self) -> None:
        labelled = SERVICE.replace("name: %s", "name: %s, labels: {app: web}") % ("web", "10.96.0.1")
        found = contents(documents(labelled, SERVICE % ("db", "10.96.0.2"), NODE % ("n1", "r1")), labels="app=web")
        assert [entry.key.name for entry in found.entries] == ["web", "n1"]

    @pytest.mark.parametrize("text", ["", " \n\n"])
    def test_a_file_with_nothing_in_it_is_half_written(self, text: str) -> None:
        assert contents(text) == Contents(problem="m.yaml:1: empty; is it still being written?")

    @pytest.mark.parametrize(
        "broken", ["kind: [\n", "text\n", "{kind: Pod\n", '{"kind": "Po', "a: \x07\n", "a: 1\n b: 2\n"]
    )
    def test_documents_before_an_error_count_and_the_others_keep_their_last_version(self, broken: str) -> None:
        cluster = ManifestSet()
        good = [SERVICE % (name, "10.96.0.1") for name in ("a", "b", "c")]
        first = documents(good[0], broken, good[2])
        cluster.put("a.yaml", contents(first, "a.yaml"))
        assert [value.key.name for value in cluster.merged().objects["Service"]] == ["a"]
        assert not cluster.has_all(["a.yaml"])
        cluster.put("a.yaml", contents(documents(*good), "a.yaml"))
        cluster.put("a.yaml", contents(documents(SERVICE % ("a", "10.96.0.2"), broken), "a.yaml"))
        found = {value.key.name: value for value in cluster.merged().objects["Service"]}
        addresses = {name: value.cluster_ips for name, value in found.items()}  # type: ignore[union-attr]
        one, two = (packed("10.96.0.1"),), (packed("10.96.0.2"),)
        assert addresses == {"a": two, "b": one, "c": one}
        assert cluster.has_all(["a.yaml"])

    def test_a_file_with_just_a_comment_is_meant_to_be_empty(self) -> None:
        assert contents("# nothing here any more\n") == Contents()


class TestAsAnApiServer:
    """What an API server would make of an object, or refuse."""

    @pytest.mark.parametrize("text", ["labels: {a: , b: c}", "labels: {a: null, b: c}", "labels:\n    a:\n    b: c"])
    def test_a_label_without_a_value_is_the_empty_text(self, text: str) -> None:
        (found,) = contents(f"kind: Node\nmetadata:\n  name: n1\n  {text}\n").entries
        assert [each.labels for each in found.objects if isinstance(each, Node)] == [{"a": "", "b": "c"}]

    def test_so_is_one_of_an_endpoint_s_topology(self) -> None:
        topology = "deprecatedTopology: {a: , kubernetes.io/hostname: n1}"
        text = f"addressType: IPv4\nendpoints: [{{addresses: [10.0.0.1], {topology}}}]\n"
        labels = "labels: {kubernetes.io/service-name: web}"
        found = contents(f"kind: EndpointSlice\nmetadata: {{name: web-1, {labels}}}\n{text}")
        ((one,),) = (each.objects for each in found.entries)
        assert isinstance(one, EndpointSlice)
        assert ([each.node_name for each in one.endpoints], found.left_out) == (["n1"], ())

    def test_an_annotation_without_a_value_is_the_empty_text(self) -> None:
        found = contents("kind: Service\nmetadata: {name: a, annotations: {topodns.io/topology-keys: , other: }}\n")
        assert (found.skipped, found.left_out, len(found.entries)) == ((), (), 1)

    def test_namespaces_that_each_cluster_has_need_no_object(self) -> None:
        cluster = ManifestSet()
        for number, name in enumerate(("default", "kube-system", "kube-public", "kube-node-lease")):
            text = (SERVICE % ("web", "10.96.0.1")).replace("shop", name)
            cluster.put(f"{number}.yaml", contents(text))
            assert [each.key.name for each in cluster.merged().objects["Namespace"]][number] == name
        assert cluster.merged().problems == ()

    def test_another_namespace_without_an_object_is_named_once(self) -> None:
        cluster = ManifestSet()
        cluster.put("a.yaml", contents(documents(SERVICE % ("web", "10.96.0.1"), SERVICE % ("db", "10.96.0.2"))))
        assert cluster.merged().objects["Namespace"] == ()
        expected = "a.yaml:1: Service shop/web: there is no Namespace shop, so its names are NXDOMAIN"
        assert cluster.merged().problems == (expected,)
        cluster.put("b.yaml", contents(NAMESPACES))
        assert cluster.merged().problems == ()


class TestMerging:
    def test_a_malformed_object_keeps_the_last_version_that_its_file_had_of_it(self) -> None:
        cluster = in_namespaces()
        good, bad = SERVICE % ("web", "10.96.0.1"), SERVICE % ("web", "10.96.0.999")
        for text in (documents(SERVICE % ("db", "10.96.0.2"), good), bad, "# moved\n" + documents(bad, bad)):
            cluster.put("a.yaml", contents(text, "a.yaml"))
        (kept,) = cluster.merged().objects["Service"]
        assert (kept.key.name, kept.cluster_ips) == ("web", (packed("10.96.0.1"),))  # type: ignore[union-attr]
        assert [line.endswith("; its last version stays") for line in cluster.undecodable] == [True, False]
        assert cluster.merged().problems == ()

    @pytest.mark.parametrize(
        "text",
        [
            "kind: Service\nmetadata: {name: web}\nspec: {clusterIP: %s}",
            "kind: Endpoints\nmetadata: {name: web, labels: {a: %s}}\nsubsets: [{addresses: [{ip: 10.0.0.1}]}]",
            "kind: Node\nmetadata: {name: web}\nspec: {podCIDR: %s/32}",
        ],
        ids=["Service", "Endpoints", "Node"],
    )
    def test_so_does_one_without_a_namespace(self, text: str) -> None:
        cluster = ManifestSet()
        cluster.put("a.yaml", contents("apiVersion: v1\n" + text % "10.96.0.1", "a.yaml"))
        good = cluster.merged().objects
        cluster.put("a.yaml", contents("apiVersion: v1\n" + text % 7, "a.yaml"))
        assert cluster.merged().objects == good
        assert any(good.values())
        assert [line.endswith("; its last version stays") for line in cluster.undecodable] == [True]

    def test_a_malformed_object_beside_a_good_one_of_its_name_counts_for_nothing(self) -> None:
        cluster = ManifestSet()
        cluster.put("a.yaml", contents(SERVICE % ("web", "10.96.0.1"), "a.yaml"))
        both = documents(SERVICE % ("web", "10.96.0.2"), SERVICE % ("web", "10.96.0.999"))
        cluster.put("a.yaml", contents(both, "a.yaml"))
        (found,) = cluster.merged().objects["Service"]
        assert found.cluster_ips == (packed("10.96.0.2"),)  # type: ignore[union-attr]
        assert not cluster.undecodable[0].endswith("stays")

    def test_the_file_whose_name_sorts_last_wins_with_one_warning_per_pair_of_files(self) -> None:
        one = documents(SERVICE % ("web", "10.96.0.1"), SERVICE % ("db", "10.96.0.1"), SERVICE % ("mail", "10.96.0.1"))
        two = documents(NODE % ("n1", "r1"), SERVICE % ("db", "10.96.0.2"), SERVICE % ("web", "10.96.0.2"))
        cluster = in_namespaces()
        cluster.put("b.yaml", contents(two, "b.yaml"))
        cluster.put("a.yaml", contents(one, "a.yaml"))
        result = cluster.merged()
        found = {value.key.name: value for value in result.objects["Service"]}
        assert {name: value.cluster_ips for name, value in found.items()} == {  # type: ignore[union-attr]
            "web": (packed("10.96.0.2"),),
            "db": (packed("10.96.0.2"),),
            "mail": (packed("10.96.0.1"),),
        }
        assert result.problems == ("a.yaml:6 and b.yaml:5 both define Service shop/db and 1 more; the latter counts",)

    def test_an_object_twice_in_one_file_is_a_conflict_too(self) -> None:
        names, conflicts = merged(a=documents(NODE % ("n1", "r1"), NODE % ("n1", "r2")))
        assert names == {"Node": ["n1"]}
        assert conflicts == ("a:1 and a:5 both define Node n1; the latter counts",)

    def test_the_same_name_in_another_namespace_or_kind_is_another_object(self) -> None:
        elsewhere = (SERVICE % ("web", "10.96.0.2")).replace("shop", "data")
        assert merged(a=documents(SERVICE % ("web", "10.96.0.1"), elsewhere, NODE % ("web", "r1")))[1] == ()

    def test_endpoints_count_only_where_the_service_has_no_slice_of_its_own(self) -> None:
        old = documents(ENDPOINTS % ("web", "10.0.0.1"), ENDPOINTS % ("legacy", "10.0.0.2"))
        names, conflicts = merged(a=old, b=SLICE % ("web-x", "web", "10.0.0.1"))
        assert (names["EndpointSlice"], conflicts) == (["legacy/0/IPv4", "web-x"], ())

    def test_endpoints_of_the_later_file_win_as_a_whole(self) -> None:
        two_subsets = ENDPOINTS % ("web", "10.0.0.1") + "- {addresses: [{ip: 10.0.0.2}]}\n"
        two_subsets = two_subsets.replace("subsets: [", "subsets:\n- ").replace("]}]\n-", "]}\n-")
        names, conflicts = merged(a=two_subsets, b=ENDPOINTS % ("web", "10.0.0.3"))
        assert names == {"EndpointSlice": ["web/0/IPv4"]}
        assert conflicts == ("a:1 and b:1 both define Endpoints shop/web; the latter counts",)


def test_a_misspelt_field_is_a_remark_with_its_line_and_the_object_counts() -> None:
    found = contents(
        documents(NODE % ("n1", "r1"), SERVICE.replace("spec:", "annotations: {}\nspec:") % ("db", "None"))
    )
    assert found.remarks == (
        "m.yaml:5: Service shop/db: unknown field annotations, did you mean metadata.annotations?",
    )
    assert (len(found.entries), found.skipped, found.left_out, found.problem) == (2, (), (), "")


def test_of_many_misspelt_words_of_an_object_the_first_three_are_named() -> None:
    text = "kind: Service\nmetadata: {name: db, label: {}, annotation: {}}\nspec: {port: [], clusterip: None}\n"
    (remark,) = contents(text).remarks
    assert remark == (
        "m.yaml:1: Service db: unknown field metadata.label, did you mean metadata.labels?; "
        "unknown field metadata.annotation, did you mean metadata.annotations?; "
        "unknown field spec.port, did you mean spec.ports?; and 1 more"
    )


def test_an_object_of_a_misspelt_kind_is_a_remark() -> None:
    (remark,) = contents(SLICE.replace("EndpointSlice", "Endpointslice") % ("db-1", "db", "10.0.0.1")).remarks
    assert remark == (
        "m.yaml:1: Endpointslice shop/db-1: kind 'Endpointslice' is unknown and the object ignored, "
        "did you mean 'EndpointSlice'?"
    )


def test_a_missing_separator_between_documents_is_a_remark() -> None:
    found = contents(SERVICE % ("db", "None") + SERVICE % ("web", "None"))
    assert found.remarks == (
        "m.yaml:5: the key 'apiVersion' is there again in one mapping, and its last value counts: "
        "is `---` missing before it?; and 3 more",
    )
    assert [str(entry.key) for entry in found.entries] == ["shop/web"]


def test_a_repeated_key_is_a_remark() -> None:
    text = "kind: Service\nmetadata:\n  name: db\n  labels:\n    a: b\n    c: d\n    a: c\nspec: {clusterIP: None}\n"
    assert contents(text).remarks == ("m.yaml:7: the key 'a' is there again in one mapping, and its last value counts",)
    assert contents("a: {b: 1}\nc: {b: 1}\nkind: Service\nmetadata: {name: db}\n").remarks == ()
