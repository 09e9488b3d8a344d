"""Synthetic scenes: shapes, textures, effects and photographs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from _paths import PHOTOGRAPHS
from _synthetic import EFFECTS, FIELDS, PLAIN, SMALL, bilinear, layers_of, same, scene, textures
from hamflow.datasets.synthetic import SyntheticDataset, load_textures, render_both, render_scene
from hamflow.datasets.synthetic.compose import Canvas, owners
from hamflow.datasets.synthetic.effects import draw_effects
from hamflow.datasets.synthetic.layer import FULL, Texels
from hamflow.datasets.synthetic.shapes import Part, Shape, draw_shape
from hamflow.datasets.synthetic.textures import procedural_texture
from hamflow.errors import FileError

# Shapes and textures


@pytest.mark.parametrize("thin", [False, True])
def test_all_shapes(thin: bool) -> None:
    seen = set()
    for seed in range(60):
        shape = draw_shape(np.random.default_rng(seed), 20.0, thin)
        assert shape.thin == thin
        left, top, right, bottom = shape.box
        size = (int(2 * (right - left)) + 4, int(2 * (bottom - top)) + 4)
        box = (left - 1, top - 1, left - 1 + size[0] / 2, top - 1 + size[1] / 2)
        cover = np.asarray(shape.coverage(box, size))
        assert cover.shape == size[::-1]
        assert cover.max() == 255
        # The box holds all of it.
        assert not cover[0].any()
        assert not cover[-1].any()
        assert not cover[:, 0].any()
        assert not cover[:, -1].any()
        seen.add(cover.tobytes())
    assert len(seen) == 60


def test_outlines_are_antialiased() -> None:
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    disc = Shape([Part(np.column_stack([np.cos(angles), np.sin(angles)]) * 20.3)])
    cover = np.asarray(disc.coverage((-32, -32, 32, 32), (64, 64))) / 255
    assert cover.sum() == pytest.approx(np.pi * 20.3**2, rel=0.015)
    assert 0.02 < ((cover > 0) & (cover < 1)).mean() < 0.06
    y, x = np.mgrid[:64, :64] - 31.5
    assert np.sum(x * cover) / cover.sum() == pytest.approx(0, abs=0.06)
    assert np.sum(y * cover) / cover.sum() == pytest.approx(0, abs=0.06)
    line = Shape([Part(np.array([[-40.0, 3.3], [40.0, -5.7]]), width=1.5)])
    cover = np.asarray(line.coverage((-32, -32, 32, 32), (64, 64))) / 255
    assert cover.sum() == pytest.approx(1.5 * 64 * np.hypot(1, 9 / 80), rel=0.25)


def test_thin_structures() -> None:
    config = replace(SMALL, thin_share=1.0, min_layers=6)
    shares = []
    for seed in range(4):
        owner = owners(Canvas(config.height, config.width), layers_of(config, seed, textures()), 0)
        # Not the background, which is found again within six pixels on both sides.
        near = np.zeros((2, *owner.shape), np.bool_)
        for step in range(1, 7):
            near[0, :, step:] |= owner[:, :-step] == 0
            near[1, :, :-step] |= owner[:, step:] == 0
        shares.append(((owner > 0) & near.all(axis=0)).mean())
    assert np.mean(shares) > 0.03


def test_look_up_is_bilinear() -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (9, 13, 4), np.uint8)
    texels = Texels.of(Image.fromarray(picture))
    assert np.array_equal(np.asarray(texels.picture()), picture)
    x, y = rng.uniform(0, 11.99, 500), rng.uniform(0, 7.99, 500)
    lanes = texels.look_up(x.astype(np.float32), y.astype(np.float32))
    for channel in range(4):
        expected = bilinear(picture[:, :, channel], x, y)
        assert np.abs(lanes[:, channel] / 256 - expected).max() < 3
    # At texels, and clipped beyond them.
    ends = texels.look_up(np.array([-5, 0, 3], np.float32), np.array([2, 2, 2], np.float32))
    assert np.array_equal(ends, picture[2, [0, 0, 3]].astype(int) * 256)
    white = Texels.of(Image.new("RGBA", (5, 5), (255, 255, 255, 255)))
    assert (white.look_up(x.astype(np.float32), y.astype(np.float32)) == FULL).all()


def test_scenes_are_rich() -> None:
    images = [scene(seed).image0 for seed in range(20)]
    contrast = [image.std() for image in images]
    assert np.median(contrast) > 30
    colors = np.array([image.mean(axis=(0, 1)) for image in images])
    assert colors.std(axis=0).min() > 15
    layers = [len(layers_of(SMALL, seed, textures())) for seed in range(20)]
    assert min(layers) <= 5
    assert max(layers) >= 9


# Effects


def test_no_effects_are_clean() -> None:
    for seed in range(3):
        assert same(scene(seed, PLAIN), scene(seed, SMALL))


@pytest.mark.parametrize("name", EFFECTS)
def test_each_effect(name: str) -> None:
    config = replace(PLAIN, **{name: 1.0})
    changed = 0
    for seed in range(3):
        shown, clean = scene(seed, config), scene(seed)
        for field in FIELDS[2:]:
            assert getattr(shown, field).tobytes() == getattr(clean, field).tobytes()
        changed += shown.image0.tobytes() != clean.image0.tobytes()
        changed += shown.image1.tobytes() != clean.image1.tobytes()
        # Turned off by one switch.
        assert same(scene(seed, replace(config, clean=True)), clean)
    assert changed >= 4


def test_strength() -> None:
    def change(**fields: float) -> float:
        config = replace(PLAIN, **fields)
        pairs = [(scene(seed, config), scene(seed)) for seed in range(3)]
        return float(np.mean([np.abs(a.image0 - b.image0.astype(float)).mean() for a, b in pairs]))

    for name in ("illumination", "shadow", "fog", "vignette"):
        weak, strong = (change(**{name: 1.0, f"{name}_strength": s}) for s in (0.1, 0.9))
        assert weak < 0.6 * strong, name
    assert change(noise=1, noise_strength=1) < 0.6 * change(noise=1, noise_strength=40)
    assert change(defocus=1, defocus_strength=0.3) < change(defocus=1, defocus_strength=4)


def test_fog_takes_contrast() -> None:
    foggy = replace(PLAIN, fog=1.0, fog_strength=0.9)
    ratios = [scene(s, foggy).image0.std() / scene(s).image0.std() for s in range(6)]
    assert np.mean(ratios) < 0.9


def test_noise_is_unbiased() -> None:
    config = replace(PLAIN, noise=1.0, noise_strength=5.0)
    off = scene(0, config).image0.astype(int) - scene(0).image0
    inner = (scene(0).image0 > 40) & (scene(0).image0 < 215)
    assert abs(off[inner].mean()) < 0.1
    assert 0.3 < off[inner].std() < 8
    other = scene(0, config).image1.astype(int) - scene(0).image1
    assert abs(np.corrcoef(off.ravel(), other.ravel())[0, 1]) < 0.05


def test_both_passes() -> None:
    config = replace(SMALL, clean=False)
    clean, final = render_both(config, 4, textures())
    assert same(clean, scene(4, SMALL))
    assert same(final, scene(4, config))


# Photographs


def save(path: Path, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    noise = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).convert(mode).save(path)
    return path


def test_photographs(tmp_path: Path) -> None:
    save(tmp_path / "b.png")
    save(tmp_path / "below/further/a.JPG")
    save(tmp_path / "c.jpeg", mode="L")
    save(tmp_path / "d.png", mode="RGBA")
    Image.fromarray(np.full((20, 24), 40000, np.uint16)).save(tmp_path / "e.png")
    save(tmp_path / "large.jpg", (3000, 700))
    for other in ("INDEX.tsv", "LICENCES", "film.gif"):
        (tmp_path / other).write_text("no photograph")
    (tmp_path / "folder.png").mkdir()
    found = load_textures(tmp_path)
    names = [texture.name for texture in found.photographs]
    assert names == ["b.png", "a.JPG", "c.jpeg", "d.png", "e.png", "large.jpg"]
    sizes = [texture.levels[0].shape for texture in found.photographs]
    assert sizes[0] == (30, 40, 3)
    assert sizes[-1] == (298, 1280, 3)
    assert (found.photographs[4].levels[0] == 156).all()
    for texture in found.photographs:
        assert all(level.dtype == np.uint8 for level in texture.levels)
        for fine, coarse in zip(texture.levels, texture.levels[1:], strict=False):
            assert coarse.shape == ((fine.shape[0] + 1) // 2, (fine.shape[1] + 1) // 2, 3)
    config = replace(SMALL, procedural_share=0.0)
    shown = render_scene(config, 0, found)
    assert not np.array_equal(shown.image0, scene(0, config).image0)
    # What moves how does not depend on the photographs.
    assert shown.flow.shape == scene(0, config).flow.shape
    assert same(SyntheticDataset(config, tmp_path, seed=3)[0], render_scene(config, [3, 0], found))
    assert found.fingerprint() == load_textures(str(tmp_path)).fingerprint()
    (tmp_path / "b.png").unlink()
    assert found.fingerprint() != load_textures(tmp_path).fingerprint()


def test_bad_photographs(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no photograph"):
        load_textures(tmp_path)
    with pytest.raises(FileError, match="absent: does not exist"):
        load_textures(tmp_path / "absent")
    save(tmp_path / "good.png")
    with pytest.raises(FileError, match="is not a folder"):
        load_textures(tmp_path / "good.png")
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"\xff\xd8\xff\xe0 this is no photograph")
    with pytest.raises(FileError, match=r"bad\.jpg"):
        SyntheticDataset(SMALL, tmp_path)
    bad.unlink()
    save(tmp_path / "tiny.png", (8, 9))
    with pytest.raises(FileError, match=r"tiny\.png: has only 8 × 9"):
        load_textures(tmp_path)


def test_pieces_of_a_picture() -> None:
    texture = procedural_texture(2)
    assert texture.cut((100, 50), 1.0, (0.5, 0.5)).size == (100, 50)
    # Coarser levels where the picture is made smaller.
    assert texture.cut((100, 50), 0.4, (0.0, 0.0)).size == (125, 63)
    wide = np.asarray(texture.cut((1200, 20), 1.0, (0.0, 0.0)))
    assert np.array_equal(wide[:, :512], texture.levels[0][:20])
    assert np.array_equal(wide[:, 512:1024], texture.levels[0][:20, ::-1])
    assert texture.covering((1024, 100)) == 2.0
    assert texture.cut((40, 40), 1e-6, (0.0, 0.0)).size == (50, 50)  # as coarse as there is


@pytest.mark.skipif(not PHOTOGRAPHS.is_dir(), reason="the photographs are not here")
def test_real_photographs(tmp_path: Path) -> None:
    for path in sorted(PHOTOGRAPHS.glob("*.jpg"))[:8]:
        (tmp_path / path.name).symlink_to(path)
    found = load_textures(tmp_path)
    assert len(found.photographs) == 8
    shown = render_scene(replace(SMALL, procedural_share=0), 1, found)
    assert shown.image0.std() > 10


def test_long_motion_blur() -> None:
    config = replace(PLAIN, motion_blur=1.0, shutter=1.0, small_share=0.0, camera_share=1.0)
    layers = [layers_of(config, seed, textures()) for seed in range(6)]
    longest = []
    for share in (0.0, 0.1, 0.4):
        blurry = replace(config, max_blur=share)
        effects = [draw_effects(np.random.default_rng(k), blurry, layers[k]) for k in range(6)]
        longest.append(max(effect.blur for effect in effects))
        for effect in effects:
            times = np.array(effect.times)
            assert times[-1] - times[0] == pytest.approx(effect.shutter if effect.blur else 0)
            assert effect.blur / max(1, len(times) - 1) <= 3
            assert 0.0 in times
    assert longest[0] == 0
    assert longest[1] == pytest.approx(0.1 * 112)
    assert 1.3 * longest[1] < longest[2] <= 0.4 * 112
    wide = replace(effects[0], blur=1000.0)
    assert len(wide.times) <= 65


def test_what_passes_the_camera_is_not_blurred(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = layers_of(PLAIN, 0, textures())
    monkeypatch.setattr(type(layers[0]), "displacement", lambda *_: np.inf)
    for share in (0.0, 1.0):
        config = replace(PLAIN, motion_blur=share, shutter=1.0)
        effects = draw_effects(np.random.default_rng(0), config, layers)
        assert (effects.blur, effects.times) == (0, [0])
