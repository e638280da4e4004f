"""Guards: what they refuse, and in which order they are applied and removed."""

from __future__ import annotations

from kube_cases import asynchronous
from small_api_server import SmallApiServer

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.guards import (
    apply_manifests,
    fencing_guard,
    node_guard,
    remove_manifests,
)


def test_a_guard_against_former_leaders_compares_numbers() -> None:
    policy, binding = fencing_guard("me", "lease", "space", placed_by="x/by", fencing="x/fencing")
    given = "int(object.metadata.annotations['x/fencing'])"
    newest = "(has(params.spec.leaseTransitions) ? params.spec.leaseTransitions : 0)"
    labels = {"app.kubernetes.io/managed-by": "argosy"}
    assert policy["metadata"] == {"name": "me-fencing", "labels": labels}
    assert policy["spec"]["paramKind"] == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
    }
    assert policy["spec"]["failurePolicy"] == "Fail"
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/binding", "bindings"],
    }
    annotations = "object.metadata.annotations"
    mine = f"has({annotations}) && 'x/by' in {annotations} && {annotations}['x/by'] == 'me'"
    assert {each["name"]: each["expression"] for each in policy["spec"]["matchConditions"]} == {
        "of-this-scheduler": mine,
        "with-fencing": f"'x/fencing' in {annotations}",
    }
    [check] = policy["spec"]["validations"]
    assert check["expression"] == f"{given} >= {newest}"
    assert check["reason"] == "Forbidden"
    assert binding["metadata"] == policy["metadata"]
    assert binding["spec"] == {
        "policyName": "me-fencing",
        "paramRef": {"name": "lease", "namespace": "space", "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    }


def test_a_guard_of_nodes_lists_them_and_excepts_kubelets() -> None:
    listed, bindings, first, pods, second = node_guard("it's", ["n2", "n1"], "s", placed_by="by")
    assert list(listed["data"]) == ["n1", "n2"]
    assert listed["metadata"]["name"] == "it's-nodes"
    assert listed["metadata"]["namespace"] == "s"
    assert [each["metadata"]["name"] for each in (bindings, first, pods, second)] == [
        "it's-nodes-bindings",
        "it's-nodes-bindings",
        "it's-nodes-pods",
        "it's-nodes-pods",
    ]
    for binding in (first, second):
        assert binding["spec"]["paramRef"]["name"] == "it's-nodes"
    others, node = bindings["spec"], pods["spec"]
    assert others["matchConditions"][0]["expression"].endswith("['by'] == 'it\\'s')")
    assert others["matchConditions"][0]["expression"].startswith("!(has(")
    is_listed = "!(has(params.data) && {} in params.data)"
    assert others["validations"][0]["expression"] == is_listed.format("object.target.name")
    assert node["validations"][0]["expression"] == is_listed.format("object.spec.nodeName")
    assert node["matchConstraints"]["resourceRules"][0]["resources"] == ["pods"]
    assert [each["expression"] for each in node["matchConditions"]] == [
        "has(object.spec.nodeName) && object.spec.nodeName != ''",
        "!request.userInfo.username.startsWith('system:node:')",
    ]


def test_a_guard_of_nodes_is_these_objects_and_says_whose_nodes_they_are() -> None:
    made = node_guard("me", ["n"], "s", placed_by="by")
    version = "admissionregistration.k8s.io/v1"
    assert [(each["apiVersion"], each["kind"]) for each in made] == [
        ("v1", "ConfigMap"),
        (version, "ValidatingAdmissionPolicy"),
        (version, "ValidatingAdmissionPolicyBinding"),
        (version, "ValidatingAdmissionPolicy"),
        (version, "ValidatingAdmissionPolicyBinding"),
    ]
    labels = {"app.kubernetes.io/managed-by": "argosy"}
    assert [each["metadata"]["labels"] for each in made] == [labels] * 5
    assert made[0]["data"] == {"n": ""}
    where = {"name": "me-nodes", "namespace": "s", "parameterNotFoundAction": "Allow"}
    for policy, binding, node in (
        (*made[1:3], "object.target.name"),
        (*made[3:], "object.spec.nodeName"),
    ):
        assert "namespace" not in policy["metadata"]
        assert policy["spec"]["paramKind"] == {"apiVersion": "v1", "kind": "ConfigMap"}
        assert policy["spec"]["failurePolicy"] == "Fail"
        [check] = policy["spec"]["validations"]
        assert check["messageExpression"] == f"{node} + ' is a node of the scheduler me'"
        assert check["reason"] == "Forbidden"
        assert binding["spec"] == {
            "policyName": policy["metadata"]["name"],
            "paramRef": where,
            "validationActions": ["Deny"],
        }
    names = [
        [each["name"] for each in policy["spec"]["matchConditions"]]
        for policy in (made[1], made[3])
    ]
    assert names == [["of-another-scheduler"], ["with-a-node", "not-of-a-kubelet"]]
    rules = [policy["spec"]["matchConstraints"]["resourceRules"] for policy in (made[1], made[3])]
    assert [rule["resources"] for [rule] in rules] == [["pods/binding", "bindings"], ["pods"]]
    assert [rule["operations"] for [rule] in rules] == [["CREATE"]] * 2


def test_a_former_leader_is_told_by_whom_it_was_followed() -> None:
    policy, _ = fencing_guard("me", "lease", "space", placed_by="x/by", fencing="x/fencing")
    given = "int(object.metadata.annotations['x/fencing'])"
    newest = "(has(params.spec.leaseTransitions) ? params.spec.leaseTransitions : 0)"
    [check] = policy["spec"]["validations"]
    assert check["messageExpression"] == (
        f"'the leader with fencing number ' + string({given}) + ' of me was followed by '"
        f" + string({newest})"
    )


def test_texts_of_the_expression_language_are_quoted() -> None:
    policy, _ = fencing_guard("a", "l", "s", placed_by="b\\'c", fencing="f")
    assert "'b\\\\\\'c' in object" in policy["spec"]["matchConditions"][0]["expression"]


@asynchronous
async def test_guards_are_applied_in_order_and_removed_backwards() -> None:
    manifests = node_guard("me", ["n"], "s", placed_by="by")
    async with SmallApiServer() as api, KubernetesClient(api.connection) as client:
        await apply_manifests(client, manifests)
        paths = [path for _, path, _ in api.written]
        root = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
        assert paths == [
            "/api/v1/namespaces/s/configmaps/me-nodes",
            f"{root}ies/me-nodes-bindings",
            f"{root}ybindings/me-nodes-bindings",
            f"{root}ies/me-nodes-pods",
            f"{root}ybindings/me-nodes-pods",
        ]
        assert api.queries == 5 * [{"fieldManager": "argosy", "force": "true"}]
        assert [body for _, _, body in api.written] == manifests
        api.written.clear()
        await remove_manifests(client, manifests)
        assert [path for _, path, _ in api.written] == paths[::-1]
        assert {method for method, _, _ in api.written} == {"DELETE"}
        # What is not there need not be removed.
        await remove_manifests(client, manifests)
        assert not any(api._stores.values())
