"""ONNX files written without the package onnx: as the package itself reads and checks them."""

from __future__ import annotations

import numpy as np
import pytest

from _networks import SMALL, random_image, random_weights
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import IMAGE, PHI, Graph, build_graph
from hamflow.descriptors.int8 import Scales, quantized_results
from hamflow.descriptors.onnx_writer import write_model
from hamflow.descriptors.tiles import network_input
from hamflow.descriptors.weights import Network, Variant

onnx = pytest.importorskip("onnx")

NETWORKS = pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)
VARIANTS = pytest.mark.parametrize("variant", ["float", "int8"])


def with_scales(architecture: Architecture) -> Network:
    count = len(quantized_results(build_graph(architecture)))
    scales = Scales(np.full(count, 6 / 255, np.float32), np.full(count, 128, np.uint8))
    return Network(architecture, random_weights(architecture), {"note": "λ\n"}, scales)


@NETWORKS
@VARIANTS
def test_the_package_accepts_it(network: Architecture, variant: Variant) -> None:
    model = onnx.load_from_string(with_scales(network).onnx(variant))
    onnx.checker.check_model(model, full_check=True)
    assert model.producer_name == "hamflow"
    noted = {entry.key: entry.value for entry in model.metadata_props}
    assert noted["note"] == "λ\n"
    assert noted.get("precision") == ("int8" if variant == "int8" else None)
    assert "licence" not in noted


@NETWORKS
@VARIANTS
def test_the_package_writes_the_same_bytes(network: Architecture, variant: Variant) -> None:
    data = with_scales(network).onnx(variant)
    assert onnx.load_from_string(data).SerializeToString(deterministic=True) == data


@NETWORKS
def test_the_package_computes_the_same(network: Architecture) -> None:
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    from hamflow.descriptors.session import Runner  # noqa: PLC0415

    whole, x = with_scales(network), network_input(random_image(6, 7, 3))
    expected = ReferenceEvaluator(onnx.load_from_string(whole.onnx())).run([PHI], {IMAGE: x})[0]
    found = Runner("a network", whole.onnx(), 1).run(x)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_every_kind_of_content() -> None:
    graph = Graph()
    tensors = {
        "scalar": np.float32(-1.5),
        "bytes": np.arange(256, dtype=np.uint8).reshape(2, 128),
        "signed": np.arange(-128, 128, dtype=np.int8),
        "int32": np.array([-(2**31), 2**31 - 1], np.int32),
        "int64": np.array([[[-(2**63), 2**63 - 1, 300]]], np.int64),
    }
    for name, value in tensors.items():
        graph.constant(name, value, value.dtype.type)
    graph.add("Concat", "a", "b", name="x", axis=-1, mode="edge", pads=(0, -1, 128, 2**40))
    model = onnx.load_from_string(
        write_model(graph, ("a", (1, "H", 200)), ("x", ()), {"k" * 300: "v", "": ""})
    )
    for tensor in model.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        assert value.dtype == tensors[tensor.name].dtype
        assert np.array_equal(value, tensors[tensor.name])
    (node,) = model.graph.node
    settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert settings == {"axis": -1, "mode": b"edge", "pads": [0, -1, 128, 2**40]}
    assert (node.op_type, list(node.input), list(node.output)) == ("Concat", ["a", "b"], ["x"])
    shape = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in shape] == [1, "H", 200]
    assert {e.key: e.value for e in model.metadata_props} == {"k" * 300: "v", "": ""}


def test_same_bytes_for_the_same_weights() -> None:
    network = SMALL["context"]
    weights = random_weights(network)
    reverse = dict(reversed(weights.items()))
    assert Network(network, weights).onnx() == Network(network, reverse).onnx()
