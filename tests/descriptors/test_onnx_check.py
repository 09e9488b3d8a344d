"""ONNX files from strangers: descriptors of Hamflow, or refused before onnxruntime sees them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from _networks import SMALL, random_image, random_weights
from hamflow import load_model
from hamflow.descriptors import onnx_check
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import OPERATIONS, build_graph, build_model
from hamflow.descriptors.model import NetworkModel
from hamflow.descriptors.onnx_check import check_onnx, read_onnx
from hamflow.descriptors.quantize import quantize
from hamflow.errors import FileError

NETWORK = SMALL["context"]
DATA = build_model(NETWORK, random_weights(NETWORK), {"note": "x"})
QUANTIZED = quantize(check_onnx("a network", DATA), [random_image(16, 16)]).data
Edit = Callable[[Any], object]


def refuses(data: bytes, what: str | None = None) -> None:
    with pytest.raises(FileError, match=what) as caught:
        check_onnx("net.onnx", data)
    text = str(caught.value)
    assert text.startswith("net.onnx: ")
    assert text.endswith(".")
    assert text.count(". ") == 0


def edited(edit: Edit, data: bytes = DATA) -> bytes:
    model = onnx.load_from_string(data)
    edit(model)
    result: bytes = model.SerializeToString()
    return result


def node(model: Any, op: str, number: int = 0) -> Any:
    return [node for node in model.graph.node if node.op_type == op][number]


def tensor(model: Any, name: str) -> Any:
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


def replace(model: Any, name: str, values: Any) -> None:
    tensor(model, name).CopyFrom(numpy_helper.from_array(np.asarray(values), name))


@pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)
def test_accepted(network: Architecture, tmp_path: Path) -> None:
    data = build_model(network, random_weights(network), {"note": "x"})
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    checked = read_onnx(path)
    assert checked.data == data
    assert checked.architecture == network
    assert checked.metadata["note"] == "x"
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)


def test_quantized_is_accepted() -> None:
    checked = check_onnx("net.onnx", QUANTIZED)
    assert checked.metadata["precision"] == "int8"
    onnx.checker.check_model(onnx.load_from_string(QUANTIZED), full_check=True)


def test_every_operation_is_used() -> None:
    used = {node.op for network in SMALL.values() for node in build_graph(network).nodes.values()}
    assert used | {"QuantizeLinear", "DequantizeLinear"} == OPERATIONS


# --- what is refused -----------------------------------------------------------------------------


def external(model: Any) -> None:
    weight = tensor(model, "wide.2.weight")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="/etc/passwd")


def located_elsewhere(model: Any) -> None:
    tensor(model, "wide.2.weight").data_location = TensorProto.DEFAULT


def foreign_operation(model: Any) -> None:
    node(model, "Tanh").op_type = "Sinh"


def foreign_domain(model: Any) -> None:
    node(model, "Tanh").domain = "com.microsoft"


def foreign_opset(model: Any) -> None:
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def function(model: Any) -> None:
    body = [helper.make_node("Tanh", ["x"], ["y"])]
    model.functions.append(
        helper.make_function("own", "Tanh", ["x"], ["y"], body, [helper.make_opsetid("", 17)])
    )


def subgraph(model: Any) -> None:
    attribute = node(model, "Tanh").attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
    attribute.g.name = "another"


def subgraphs(model: Any) -> None:
    attribute = node(model, "Tanh").attribute.add(name="body", type=onnx.AttributeProto.GRAPHS)
    attribute.graphs.add(name="another")


def condition(model: Any) -> None:
    model.graph.node.append(helper.make_node("If", ["image"], ["y"]))


def huge_dimensions(model: Any) -> None:
    tensor(model, "wide.2.weight").dims[:] = [2**31, 2**31, 1, 1]


def negative_dimensions(model: Any) -> None:
    tensor(model, "wide.2.weight").dims[:] = [-56, -56, 1, 1]


def no_data(model: Any) -> None:
    tensor(model, "wide.2.weight").raw_data = b""


def data_in_another_field(model: Any) -> None:
    bias = tensor(model, "wide.2.bias")
    values = numpy_helper.to_array(bias)
    bias.ClearField("raw_data")
    bias.float_data.extend(values)


def another_shape(model: Any) -> None:
    tensor(model, "wide.2.weight").dims[:] = [28, 112, 1, 1]


def another_type(model: Any) -> None:
    replace(model, "wide.2.bias", np.zeros(56, np.float64))


def other_numbers(model: Any) -> None:
    replace(model, "wide.2.bias", np.zeros(56, np.int32))


def more_gain(model: Any) -> None:
    replace(model, "gain", np.float32(1000))


def wide_border(model: Any) -> None:
    replace(model, "border.2", np.array([0, 0, 2, 2, 0, 0, 10**6, 2], np.int64))


def more_weights(model: Any) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "more"))


def weights_twice(model: Any) -> None:
    model.graph.initializer.append(tensor(model, "wide.2.bias"))


def fewer_weights(model: Any) -> None:
    model.graph.initializer.remove(tensor(model, "wide.2.bias"))


def not_finite(model: Any) -> None:
    replace(model, "wide.2.bias", np.full(56, np.nan, np.float32))


def more_nodes(model: Any) -> None:
    model.graph.node.append(helper.make_node("Tanh", ["image"], ["more"]))


def fewer_nodes(model: Any) -> None:
    model.graph.node.remove(node(model, "Tanh"))


def other_wires(model: Any) -> None:
    node(model, "Tanh", 2).input[0] = "local.0"


def another_setting(model: Any) -> None:
    node(model, "Conv").attribute.append(helper.make_attribute("pads", [1000] * 4))


def setting_twice(model: Any) -> None:
    node(model, "Concat").attribute.append(helper.make_attribute("axis", 1))


def setting_of_another_type(model: Any) -> None:
    node(model, "Concat").attribute[0].CopyFrom(helper.make_attribute("axis", "x"))


def setting_with_two_values(model: Any) -> None:
    node(model, "Concat").attribute[0].f = 3


def several_results(model: Any) -> None:
    node(model, "Tanh").output.append("more")


def computed_twice(model: Any) -> None:
    model.graph.node.append(node(model, "Tanh"))


def another_input(model: Any) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))


def another_output(model: Any) -> None:
    model.graph.output[0].name = "tanh.51"


def sparse(model: Any) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "s")
    places = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2**40]))


def training(model: Any) -> None:
    model.training_info.add()


def older(model: Any) -> None:
    model.opset_import[0].version = 9


def newer_format(model: Any) -> None:
    model.ir_version = 10


def no_metadata(model: Any) -> None:
    del model.metadata_props[:]


def metadata_twice(model: Any) -> None:
    model.metadata_props.append(model.metadata_props[0])


def another_network(model: Any) -> None:
    other = NETWORK.metadata() | {"scales": [1, 4]}
    next(p for p in model.metadata_props if p.key == "architecture").value = json.dumps(other)


EDITS: dict[Edit, str] = {
    external: "refers to data in other files",
    located_elsewhere: "refers to data in other files",
    foreign_operation: "uses the operation 'Sinh'",
    foreign_domain: "uses the operation 'Tanh', which is not one of ONNX itself",
    foreign_opset: "uses operations beyond those of ONNX itself",
    function: "defines functions of its own",
    subgraph: "holds a graph within its graph",
    subgraphs: "holds a graph within its graph",
    condition: "uses the operation 'If'",
    huge_dimensions: "announces weights of another size than it holds",
    negative_dimensions: "announces weights of another size than it holds",
    no_data: "announces weights of another size than it holds",
    data_in_another_field: "has an unexpected field 4 in a tensor",
    another_shape: "holds something unexpected as 'wide.2.weight'",
    another_type: "holds weights of another type",
    other_numbers: "holds something unexpected as 'wide.2.bias'",
    more_gain: "holds something unexpected as 'gain'",
    wide_border: "holds something unexpected as 'border.2'",
    more_weights: "holds other weights than its network has",
    weights_twice: "holds some weights twice",
    fewer_weights: "holds other weights than its network has",
    not_finite: "holds values that are not finite as 'wide.2.bias'",
    more_nodes: "computes something else than its network",
    fewer_nodes: "computes something else than its network",
    other_wires: "computes something else than its network",
    another_setting: "computes something else than its network",
    setting_twice: "has a setting twice",
    setting_of_another_type: "computes something else than its network",
    setting_with_two_values: "has a setting of another type",
    several_results: "has an operation with several results",
    computed_twice: "computes something twice",
    another_input: "has other inputs or outputs than image and phi",
    another_output: "has other inputs or outputs than image and phi",
    sparse: "holds sparse weights",
    training: "holds instructions for training",
    older: "uses another version of ONNX's operations",
    newer_format: "has another version of ONNX's format",
    no_metadata: "does not say that it is a descriptor of Hamflow",
    metadata_twice: "says something twice in its metadata",
    another_network: "computes something else than its network",
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_refused(edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = edited(edit)
    refuses(data, EDITS[edit])
    # And nothing of it gets to onnxruntime.
    monkeypatch.setattr("hamflow.descriptors.model.open_session", None)
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    with pytest.raises(FileError, match=EDITS[edit]):
        load_model(path)


def scale_of_zero(model: Any) -> None:
    replace(model, "wide.2_scale", np.float32(0))


def scale_that_is_not_finite(model: Any) -> None:
    replace(model, "wide.2_scale", np.float32(np.inf))


def many_scales(model: Any) -> None:
    replace(model, "wide.2_scale", np.ones(7, np.float32))


def computed_scale(model: Any) -> None:
    node(model, "QuantizeLinear").input[1] = "image"


def no_zero_point(model: Any) -> None:
    node(model, "QuantizeLinear").input.pop()


def circle(model: Any) -> None:
    first = node(model, "QuantizeLinear")
    second = next(other for other in model.graph.node if first.output[0] in other.input)
    first.input[0] = second.output[0]


def larger_weights(model: Any) -> None:
    replace(model, "wide.2.weight_quantized", np.zeros((56, 56, 2, 1), np.int8))


def both_weights(model: Any) -> None:
    weight = random_weights(NETWORK)["wide.2.weight"]
    model.graph.initializer.append(numpy_helper.from_array(weight, "wide.2.weight"))


IN_QUANTIZED: dict[Edit, str] = {
    scale_of_zero: "quantizes by impossible numbers",
    scale_that_is_not_finite: "quantizes by impossible numbers",
    many_scales: "quantizes by impossible numbers",
    computed_scale: "quantizes by numbers that it computes",
    no_zero_point: "quantizes in an unexpected way",
    circle: "goes round in circles",
    larger_weights: "holds something unexpected as 'wide.2.weight_quantized'",
    both_weights: "holds other weights than its network has",
    more_nodes: "computes something else than its network",
    other_wires: "computes something else than its network",
}


@pytest.mark.parametrize("edit", IN_QUANTIZED, ids=lambda edit: edit.__name__)
def test_refused_if_quantized(edit: Edit) -> None:
    refuses(edited(edit, QUANTIZED), IN_QUANTIZED[edit])


def test_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(DATA)
    os.truncate(path, 2**40)  # takes no space
    monkeypatch.setattr(onnx_check, "MAX_BYTES", 100_000)
    with pytest.raises(FileError, match=r"net\.onnx: has more than the 100000 bytes"):
        read_onnx(path)


def test_graph_twice() -> None:
    # Readers put the two together.
    twice = onnx.ModelProto()
    twice.graph.node.append(helper.make_node("Tanh", ["a"], ["b"]))
    refuses(DATA + twice.SerializeToString(), "has graph twice in a model")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08",
        b"\x08\x08",
        b"\x0b\x0c",  # a group
        b"\x08" + b"\xff" * 9 + b"\x02",  # 65 bits
        b"\x08" + b"\xff" * 12,
        b"\x0d\x00\x00\x00\x00",  # a version of four bytes
        b"\x09" + b"\x00" * 8,
        b"\x3a\xff\xff\xff\xff\x0f",
        b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x72\x04\x0a\x02\xff\xfe",  # no text
        b"hello, world",
        b"\xff" * 100,
    ],
)
def test_malformed(data: bytes) -> None:
    refuses(data)


def test_packed_numbers() -> None:
    # protobuf has two ways to write lists, and readers take both.
    model = onnx.load_from_string(DATA)
    bias = tensor(model, "wide.2.bias")
    plain = bias.SerializeToString()
    assert plain[:2] == b"\x08\x38"  # dims: 56
    packed = b"\x0a\x01\x38" + plain[2:]
    index = list(model.graph.initializer).index(bias)
    del model.graph.initializer[index]
    graph = model.graph.SerializeToString() + _field(5, packed)
    model.ClearField("graph")
    data = model.SerializeToString() + _field(7, graph)
    assert check_onnx("net.onnx", data).architecture == NETWORK


def _field(number: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


# --- anything at all -----------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(length=st.integers(0, len(DATA) - 1))
def test_truncations(length: int) -> None:
    refuses(DATA[:length])


@settings(max_examples=250, deadline=None)
@given(data=st.data(), source=st.sampled_from([DATA, QUANTIZED]))
def test_changed_bytes(data: st.DataObject, source: bytes) -> None:
    content = bytearray(source)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FileError):
        checked = check_onnx("net.onnx", bytes(content))
        # What is accepted can be run, or is refused with a sentence.
        assert NetworkModel("net", checked, 1, None).bits(random_image(8, 8)).shape == (8, 8)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    refuses(data)
