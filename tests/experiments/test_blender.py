"""What the scenes of Blender need besides Blender: meshes, occlusions and files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.blender import shapes
from experiments.blender.pairs import hidden, write
from hamflow.datasets.folder import FolderDataset
from hamflow.io import read_flow


def a_square_that_moves(shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both flows of a square before a wall at rest, and what it hides of the wall."""
    flow, back = np.zeros((2, 30, 40, 2), np.float32)
    flow[10:20, 10:20, 0] = shift
    back[10:20, 10 + shift : 20 + shift, 0] = -shift
    covered = np.zeros((30, 40), bool)
    covered[10:20, 10 + shift : 20 + shift] = True
    covered[10:20, 10:20] = False
    return flow, back, covered


@pytest.mark.parametrize("shift", [3, 7, 15])
def test_hidden_is_what_another_surface_covers(shift: int) -> None:
    flow, back, covered = a_square_that_moves(shift)
    np.testing.assert_array_equal(hidden(flow, back), covered)


def test_hidden_is_what_leaves_the_image() -> None:
    flow = np.full((6, 8, 2), [2.5, 0], np.float32)
    expected = np.broadcast_to(np.arange(8) > 4, (6, 8))
    np.testing.assert_array_equal(hidden(flow, -flow), expected)


@given(zoom=st.floats(0.3, 1.0))
def test_a_surface_that_shrinks_stays_visible(zoom: float) -> None:
    y, x = np.mgrid[:20, :30].astype(np.float32)
    place = np.stack([x, y], axis=2)
    assert not hidden(place * (zoom - 1), place * (1 / zoom - 1))[:19, :29].any()


def test_a_pair_is_read_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = list(rng.integers(0, 256, (2, 30, 40, 3)).astype(np.uint8))
    flow, back, covered = a_square_that_moves(5)
    write(tmp_path / "blender" / "00000", images, [flow, back])
    (pair,) = FolderDataset(tmp_path)
    np.testing.assert_array_equal(pair.image0, images[0])
    np.testing.assert_array_equal(pair.image1, images[1])
    np.testing.assert_array_equal(pair.flow, flow)
    np.testing.assert_array_equal(pair.occluded, covered)
    written = read_flow(pair.image0_path.with_name("backward.flo"))
    np.testing.assert_array_equal(written, back)


@pytest.mark.parametrize(
    "mesh",
    [
        lambda rng: shapes.sphere(),
        lambda rng: shapes.stone(rng, np.ones(3), 0.3),
        lambda rng: shapes.box(np.array([1, 2, 3])),
        lambda rng: shapes.limb(1, 0.1),
        lambda rng: shapes.leaves(rng, 1, np.array([0.1, 0])),
        lambda rng: shapes.cloth(rng, 1, 0.1),
        lambda rng: shapes.ground(rng, 0, 1, 80),
        lambda rng: shapes.mountains(rng, 50),
        shapes.backdrop,
        lambda rng: shapes.wall(3, 2),
    ],
)
def test_meshes_are_whole(mesh) -> None:
    points, faces, *other = mesh(np.random.default_rng(1))
    assert points.shape[1:] == (3,)
    assert np.isfinite(points).all()
    assert set(faces.ravel()) == set(range(len(points)))
    assert all(len(set(face)) == 4 for face in faces.tolist())
    for moved in other:
        assert moved.shape == points.shape
        assert np.ptp(moved - points) > 0
