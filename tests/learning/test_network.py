"""The networks: exactly the paper's layers, whatever the short cuts, and how they start."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor  # noqa: E402

from _learning import one_thread  # noqa: E402, F401
from hamflow import InputError  # noqa: E402
from hamflow.datasets import demo_scene  # noqa: E402
from hamflow.descriptors.architecture import Architecture  # noqa: E402
from hamflow.learning.network import DescriptorNetwork, PaperNetwork, _Layer2x2, build_network  # noqa: E402
from hamflow.learning.validation import constant_bits  # noqa: E402

SIZES = [(8, 12), (7, 5), (1, 1), (1, 7), (6, 1)]


@cache
def scenes() -> Tensor:
    pictures = [demo_scene(64, 80, seed=seed).image0 for seed in (0, 1)]
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2) / 255


def initialized(architecture: Architecture, seed: int = 0) -> DescriptorNetwork:
    torch.manual_seed(seed)
    network = build_network(architecture)
    network.initialize(scenes())
    return network


def plain(network: DescriptorNetwork, images: Tensor) -> Tensor:
    """The paper's network, said once more in the library's own layers."""
    around = (network.architecture.layers + 1) // 2
    x = F.pad((images - 0.5) * 4, (around,) * 4, mode="replicate")
    for number in range(network.architecture.layers):
        parameters = dict(network.named_parameters())
        weight, bias = (parameters[f"layers.{number}.{name}"] for name in ("weight", "bias"))
        x = torch.tanh(F.conv2d(x, weight, bias))
    return x.permute(0, 2, 3, 1)


def outcome(work: Any, network: DescriptorNetwork, images: Tensor) -> list[Tensor]:
    """The descriptors, and the gradients of the images and of all weights."""
    network.zero_grad()
    leaf = images.clone().requires_grad_()
    phi = work(leaf)
    coefficients = torch.linspace(-1, 1, phi.numel(), dtype=phi.dtype).reshape(phi.shape)
    (phi * coefficients).sum().backward()
    grads = [parameter.grad for parameter in network.parameters()]
    return [phi.detach(), leaf.grad, *(grad for grad in grads if grad is not None)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layers", [5, 7, 9])
def test_like_the_librarys_layers(size: tuple[int, int], layers: int) -> None:
    network = initialized(Architecture(layers=layers, channels=6, m=4)).double()
    torch.manual_seed(1)
    images = torch.rand(2, 3, *size, dtype=torch.float64)
    ours = outcome(network, network, images)
    assert ours[0].shape == (2, *size, 4)
    assert len(ours) == 2 + 2 * layers
    for one, other in zip(ours, outcome(lambda x: plain(network, x), network, images), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_like_the_librarys_layers_in_float32() -> None:
    network = initialized(Architecture(layers=7))
    torch.manual_seed(1)
    images = torch.rand(2, 3, 9, 13)
    ours = outcome(network, network, images)
    for one, other in zip(ours, outcome(lambda x: plain(network, x), network, images), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


@pytest.mark.parametrize(("rows", "stride"), [(3, 4), (2, 1), (1, 3), (1, 1)])
def test_gradient_of_a_layer(rows: int, stride: int) -> None:
    torch.manual_seed(2)
    x = torch.rand(2 * rows * stride, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(2, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.rand(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *a: _Layer2x2.apply(*a, stride), (x, weight, bias))


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture(layers=3, channels=3, m=2),
        Architecture("context", layers=3, channels=2, m=3, local=1, wide=2, scales=(1, 2), taps=3),
    ],
    ids=str,
)
def test_gradient_of_the_network(architecture: Architecture) -> None:
    network = initialized(architecture).double()
    torch.manual_seed(3)
    images = torch.rand(1, 3, 3, 4, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in network.named_parameters()]
    values = tuple(parameter.detach().requires_grad_() for parameter in network.parameters())

    def work(x: Tensor, *parameters: Tensor) -> Any:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(network, given, (x,))

    assert torch.autograd.gradcheck(work, (images, *values))


@pytest.mark.parametrize("size", [*SIZES, (33, 18)], ids=str)
@pytest.mark.parametrize("kind", ["paper", "context"])
def test_output_has_the_size_of_the_input(kind: Any, size: tuple[int, int]) -> None:
    architecture = Architecture(kind=kind, layers=3, channels=4)
    network = initialized(architecture)
    with torch.no_grad():
        phi = network(torch.rand(3, 3, *size))
    assert phi.shape == (3, *size, 64)
    assert phi.abs().max() <= 1
    assert torch.isfinite(phi).all()


def changed(network: DescriptorNetwork, size: int, y: int, x: int) -> Tensor:
    """Where the descriptors change with one pixel of a random image."""
    torch.manual_seed(4)
    images = torch.rand(1, 3, size, size, dtype=torch.float64).repeat(2, 1, 1, 1)
    images[1, :, y, x] += 0.1
    with torch.no_grad():
        first, second = network(images)
    # Products of matrices may round differently at the ends of a batch.
    return ((first - second).abs() > 1e-12).any(-1).nonzero()


@pytest.mark.parametrize("layers", [5, 7, 9])
def test_the_paper_network_sees_exactly_its_square(layers: int) -> None:
    architecture = Architecture(layers=layers, channels=5, m=8)
    seen = changed(initialized(architecture).double(), 25, 12, 12)
    assert len(seen) == (layers + 2) ** 2
    # In the middle of it: a descriptor belongs to its own pixel.
    assert seen.double().mean(0).tolist() == [12, 12]
    assert (seen - 12).abs().max() == architecture.margin == (layers + 1) // 2


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture("context", channels=5, local=20, wide=44),
        Architecture("context", layers=5, channels=5, local=20, wide=44, scales=(1,), taps=3),
        Architecture("context", channels=5, local=20, wide=44, scales=(2, 5), taps=7),
    ],
    ids=str,
)
def test_no_network_looks_beyond_its_margin(architecture: Architecture) -> None:
    network = initialized(architecture).double()
    seen = changed(network, 96, 47, 48)
    assert int((seen - torch.tensor([47, 48])).abs().max()) == architecture.margin


def test_the_far_part_starts_as_pairs_of_pixels() -> None:
    network = initialized(Architecture("context", local=24))
    taps = torch.cat([layer.weight.flatten(1) for layer in network.taps], dim=1)  # type: ignore[union-attr]
    largest = taps.abs().topk(3, dim=1).values
    # Two taps stand out, and they cancel each other.
    assert (largest[:, 1] > 10 * largest[:, 2]).all()
    assert (taps.sum(1).abs() < 0.7 * largest[:, 0]).all()
    with torch.no_grad():
        phi = network(scenes())[..., 24:]
    # Each of its bits is the sign of one such difference, nearly everywhere.
    assert constant_bits(phi) == 0
    assert phi.abs().mean() > 0.3


@pytest.mark.parametrize("layers", [5, 7, 9])
def test_few_bits_are_constant_at_the_start(layers: int) -> None:
    image = scenes()[1:, :, ::2].flip(3)  # not quite one of those it is initialized on
    usual = []
    for seed in range(2):
        network = initialized(Architecture(layers=layers, channels=32), seed)
        with torch.no_grad():
            assert constant_bits(network(image)[0]) < 0.05
            torch.manual_seed(seed)
            usual.append(constant_bits(build_network(network.architecture)(image)[0]))
    assert min(usual) > 0.2  # which is what initialize() is for


def test_layers_start_with_mean_0_and_variance_1() -> None:
    network = initialized(Architecture(layers=5, channels=16))
    with torch.no_grad():
        x = F.pad((scenes() - 0.5) * 4, (3,) * 4, mode="replicate")
        for layer in network.layers:  # type: ignore[union-attr]
            y = layer(x)
            assert y.mean((0, 2, 3)).abs().max() < 1e-3
            assert (y.std((0, 2, 3)) - 1).abs().max() < 1e-3
            x = torch.tanh(y)
    first = network.layers[0].weight  # type: ignore[union-attr, index]
    assert first.mean((2, 3)).abs().max() < 1e-6


def test_the_start_follows_from_the_seed() -> None:
    weights = [initialized(Architecture(layers=5, channels=8), s).weights() for s in (0, 0, 1)]
    for name, value in weights[0].items():
        assert np.array_equal(value, weights[1][name])
    assert not np.array_equal(weights[0]["layers.0.weight"], weights[2]["layers.0.weight"])


@pytest.mark.parametrize("kind", ["paper", "context"])
def test_weights_there_and_back(kind: Any) -> None:
    architecture = Architecture(kind=kind, layers=5, channels=6)
    network = initialized(architecture)
    weights = network.weights()
    shapes = {name: value.shape for name, value in weights.items()}
    assert list(shapes.items()) == list(architecture.parameters().items())
    assert set(shapes) == {name for name, _ in network.named_parameters()}
    other = build_network(architecture)
    other.load(weights)
    image = scenes()[:1, :, :20, :20]
    assert torch.equal(other(image), network(image))
    with torch.no_grad():  # copies, not views
        for parameter in network.parameters():
            parameter.zero_()
    assert weights["layers.0.weight" if kind == "paper" else "wide.2.weight"].any()


def test_identical_places_have_identical_descriptors() -> None:
    """No position enters: a moved image has moved descriptors, away from the border."""
    network = initialized(Architecture(layers=5, channels=8))
    images = scenes()[:1]
    with torch.no_grad():
        whole, part = network(images)[0], network(images[:, :, 3:, 5:])[0]
    torch.testing.assert_close(whole[6:-3, 8:-3], part[3:-3, 3:-3], rtol=0, atol=1e-5)


# --- the architecture ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "deep"}, "kind must be paper or context or coarse, not 'deep'"),
        ({"layers": 6}, "layers must be odd, but is 6"),
        ({"layers": 1}, "layers must be a whole number from 3 to 31, not 1"),
        ({"layers": 33}, "layers must be a whole number from 3 to 31"),
        ({"channels": 0}, "channels must be a whole number from 1 to 1024, not 0"),
        ({"m": 2000}, "m must be a whole number from 1 to 1024, not 2000"),
        ({"wide": 0}, "wide must be a whole number from 1 to 1024"),
        ({"scales": ()}, "scales must be 1 to 16 numbers from 1 to 64"),
        ({"scales": (1, 65)}, "scales must be 1 to 16 numbers from 1 to 64"),
        ({"taps": 4}, "taps must be odd, but is 4"),
        ({"kind": "context", "local": 64}, "local must be a whole number from 1 to 63, not 64"),
        ({"kind": "context", "wide": 20}, "local must be a whole number from 44 to 63, not 24"),
    ],
)
def test_impossible_architectures(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Architecture(**values)


def test_architecture_there_and_back() -> None:
    for architecture in (
        Architecture(),
        Architecture(kind="context", scales=(2, 5), m=32, local=4, channels=7, layers=9),
    ):
        assert Architecture.of(architecture.metadata()) == architecture
    lists = Architecture().metadata() | {"scales": [1, 3, 6, 10]}  # as JSON has it
    assert Architecture.of(lists) == Architecture()
    assert Architecture.of({"layers": 5}) == Architecture(layers=5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": "7"}, "layers must be of type int, not '7'"),
        ({"layers": True}, "layers must be of type int, not True"),
        ({"kind": 3}, "kind must be paper or context or coarse, not 3"),
        ({"scales": "32"}, "scales must be a list of whole numbers"),
        ({"scales": [32, 1.5]}, "scales must be a list of whole numbers"),
        ({"more": 1}, "more is unknown"),
        ({"layers": 8}, "layers must be odd"),
    ],
)
def test_descriptions_are_not_believed(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Architecture.of(Architecture().metadata() | change)


def test_cost_of_the_context_network() -> None:
    architecture = Architecture(
        "context", layers=3, channels=10, m=8, local=3, wide=6, scales=(1, 2), taps=3
    )
    near = 10 * 27 + 400 + 3 * 40
    assert architecture.cost() == near + 2 * 6 * 27 + 4 * 36 + 36 + 5 * 6


def test_cost_of_the_paper_network() -> None:
    assert Architecture(layers=5, channels=10, m=8).cost() == 10 * 27 + 3 * 400 + 8 * 40
    assert isinstance(build_network(Architecture(layers=3, channels=2)), PaperNetwork)
    # The one that is shipped must not cost more than 7 of the paper's layers.
    assert Architecture("context", layers=5, channels=64).cost() < Architecture().cost()
