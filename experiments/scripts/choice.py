"""Fit the network of hamflow.refinement.choice to rendered scenes.

    python -m experiments.scripts.choice PHOTOGRAPHS FOLDER OUT.npy [--scenes 1150] [--minutes 70]
        [--pairs ROOT] [--start OTHER.npy] [--seed 7]

Renders scenes, matches them at both scales of `balanced` (every fifth scene: of `fast`), and keeps
in FOLDER what the network knows of all candidates, with their true errors; scenes that are there
already are not made again. With --pairs, also of pairs of ``python -m experiments.blender``; the
fit takes as many examples of these as of the scenes. Then it teaches the network to prefer
candidates with a small error, and writes its numbers every five minutes. Every ninth scene and
every ninth pair is held out: the mean errors of the affine flow, of the network's choice and of
the best candidate are printed now and then.

Scenes and fit can be done at the same time, by two processes with the same FOLDER: one with
--minutes 0, and one with --scenes 0, which takes up new examples as they come.
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

import hamflow
from experiments.choice_network import ChoiceNetwork
from experiments.confidence import KINDS, write_plain
from experiments.stages import reduced
from hamflow.config import preset_config
from hamflow.datasets.folder import FolderDataset
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.io import read_flow
from hamflow.io._atomic import atomic_write
from hamflow.refinement import ChoiceCompletion, LabelingCompletion, Upsampling
from hamflow.refinement.choice import STEP, all_candidates, evidence_in_context
from hamflow.refinement.completion import interpolated
from hamflow.stages import MatchEvidence

MOST = 60.0  # errors above, in pixels, are all alike
RATE, BATCH = 2e-3, 4
HELD_OUT = 9
AVERAGED = 400  # steps over which the written network is the mean
EVERY = 5.0  # minutes between two judgments
_WIDE = {"height": 436, "width": 1024}
_BENT = {"elastic_share": 1.0, "max_strain": 0.5}
SCENES = [
    *(KINDS[name][1] for name in ("flat", "space", "wild", "small", "clean", "wild")),
    SyntheticConfig(height=384, width=512, max_displacement=100, perspective_share=1.0),
    SyntheticConfig(**_WIDE, **_BENT, max_displacement=120, camera_share=0.4, max_layers=20),
    SyntheticConfig(**_WIDE, perspective_share=1.0, curved_share=0.9, max_displacement=150),
    SyntheticConfig(height=384, width=512, **_BENT, articulated_share=0.4, motion_blur=0.5),
    SyntheticConfig(
        height=370, width=1224, perspective_share=1.0, curved_share=0.4, max_displacement=180,
        camera_share=0.8, small_share=0,
    ),
    SyntheticConfig(
        height=370, width=1224, perspective_share=1.0, curved_share=0.2, max_displacement=180,
        camera_share=0.8, small_share=0, dull_share=0.5, thin_share=0.1,
    ),
    SyntheticConfig(
        height=384, width=512, max_displacement=60, min_layers=6, max_layers=20, affine_share=1.0,
        elastic_share=0.0, camera_share=0.6, motion_blur=0.0, fog=0.0,
    ),
    SyntheticConfig(
        **_WIDE, max_displacement=150, min_displacement=3, articulated_share=0.5, camera_share=0.4,
        motion_blur=0.7, shutter=0.8, max_blur=0.2, fog=0.5, fog_strength=0.8, dull_share=0.4,
    ),
]  # fmt: skip
# Of surfaces of which most are plain, so that borders of motions have to be sought at edges.
PLAIN_SCENES = [
    SyntheticConfig(height=384, width=512, max_displacement=60, camera_share=0.4),
    SyntheticConfig(
        height=384, width=512, max_displacement=60, perspective_share=1.0, curved_share=0.2
    ),
    SyntheticConfig(**_WIDE, max_displacement=80, still_share=0.4, max_layers=8, motion_blur=0.3),
]


class Recorder(ChoiceCompletion):
    """The completion, which also remembers what it was asked."""

    seen: ClassVar[list[MatchEvidence]] = []

    def __call__(self, matches: MatchEvidence) -> Any:
        """Remember, and complete."""
        self.seen.append(matches)
        return super().__call__(matches)


def examples(estimator: hamflow.Estimator, scene: Any) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield what the network knows of a scene, for each scale and direction, and the errors."""
    Recorder.seen.clear()
    estimator.estimate(scene.image0, scene.image1)
    for number, matches in enumerate(Recorder.seen):
        flow = scene.backward_flow if number % 2 else scene.flow
        scale = round(flow.shape[0] / matches.trusted.shape[0])
        truth = reduced(flow, scale)[0][::STEP, ::STEP]
        completion = estimator.config.completion
        filled = interpolated(matches.image, matches.flow, matches.trusted, completion)
        candidates = all_candidates(matches, filled, completion)
        features, fields = evidence_in_context(matches, filled, candidates)
        error = np.linalg.norm(candidates.motion[:, ::STEP, ::STEP] - truth, axis=3) * scale
        yield {
            "features": features.astype(np.float16),
            "fields": fields.astype(np.float16),
            "error": error.astype(np.float16),
        }


def recording(preset: str, scale: int = 0) -> hamflow.Estimator:
    """Return an estimator whose completions are remembered."""
    config = preset_config(preset)
    settings = {f.name: getattr(config.completion, f.name) for f in fields(LabelingCompletion)}
    return hamflow.Estimator(
        replace(config, scale=scale, refinement=Upsampling(), completion=Recorder(**settings))
    )


def gather(photographs: Path, folder: Path, count: int, seed: int) -> None:
    """Write one file for each example of each scene."""
    plain = folder / "plain"
    if not plain.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_plain(photographs, plain, seed)
    kinds = [(photographs, c) for c in SCENES] + [(plain, c) for c in PLAIN_SCENES]
    data = [SyntheticDataset(config, pictures, seed=seed, size=count) for pictures, config in kinds]
    estimators = [recording("fast"), *[recording("balanced")] * 4]
    for number in range(count):
        if not (folder / f"{number:05d}.done").exists():
            remember(estimators[number % 5], data[number % len(data)][number], folder, number)
            print(f"{number + 1} of {count} scenes", flush=True)


def gather_pairs(root: Path, folder: Path) -> None:
    """Write one file for each example of each pair, which are matched at the scales of large ones.

    A fifth of them is matched at full size, as the presets do with so small images.
    """
    estimators = [recording("fast", 4), *[recording("balanced", 2)] * 3, recording("balanced", 1)]
    folder.mkdir(parents=True, exist_ok=True)
    for number, pair in enumerate(FolderDataset(root)):
        if not (folder / f"{number:05d}.done").exists():
            back = read_flow(pair.image0_path.with_name("backward.flo"))
            scene = SimpleNamespace(
                image0=pair.image0, image1=pair.image1, flow=pair.flow, backward_flow=back
            )
            remember(estimators[number % 5], scene, folder, number)
            print(f"{number + 1} pairs", flush=True)


def remember(estimator: hamflow.Estimator, scene: Any, folder: Path, number: int) -> None:
    """Write the examples of a scene."""
    hamflow.set_num_threads(1)  # or the directions would come in any order
    for k, example in enumerate(examples(estimator, scene)):
        with atomic_write(folder / f"{number:05d}-{k}.npz") as file:
            np.savez(file, **example)
    (folder / f"{number:05d}.done").touch()


def load(path: Path) -> dict[str, torch.Tensor]:
    """Return the arrays of an example."""
    with np.load(path) as arrays:
        return {name: torch.from_numpy(arrays[name].astype(np.float32)) for name in arrays.files}


def varied(example: dict[str, torch.Tensor], network: ChoiceNetwork) -> dict[str, torch.Tensor]:
    """Cut a part out, mirror it, and hide some of what is known, so that nothing is relied on."""
    height, width = example["fields"].shape[1:]
    h, w = random.choice([(80, 80), (64, 128), (109, 109), (96, 128)])
    y = random.choice([0, max(0, height - h), random.randint(0, max(0, height - h))])
    x = random.choice([0, max(0, width - w), random.randint(0, max(0, width - w))])
    axes = [axis for axis in (-1, -2) if random.random() < 0.5]
    part = {name: field[..., y : y + h, x : x + w].flip(axes) for name, field in example.items()}
    for k in range(7, 21):
        share = {13: 0.18, 17: 0.33}.get(k, 0.04)  # agreement far away, and size, mislead most
        if random.random() < share:
            part["features"][:, k] = network.mean[k]
    labels = len(part["error"])
    if labels > 2 and random.random() < 0.25:
        kept = [0, *(k for k in range(1, labels) if random.random() < 0.8)]
        part["features"], part["error"] = part["features"][kept], part["error"][kept]
    return part


def loss_of(network: ChoiceNetwork, example: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the expected error, relative and absolute, and the entropy to the best candidates."""
    scores = network(example["features"], example["fields"])
    error = example["error"].clamp(max=MOST)
    expected, best = (scores.softmax(0) * error).sum(0), error.amin(0)
    relative = torch.log(0.25 + expected) - torch.log(0.25 + best)
    absolute = 0.1 * (expected - best) + 0.1 * torch.relu(expected - error[0])
    wanted = torch.softmax(-error / (0.3 + 0.3 * best), 0)
    entropy = (wanted * (torch.log(wanted + 1e-9) - scores.log_softmax(0))).sum(0)
    return (relative + absolute + 0.3 * entropy).mean()


@torch.no_grad()
def judge(network: ChoiceNetwork, paths: list[Path]) -> str:
    """Return the mean errors of the affine flow, of the choice and of the best candidate."""
    rows = []
    for path in paths:
        example = load(path)
        error = example["error"]
        chosen = network(example["features"], example["fields"]).argmax(0, keepdim=True)
        rows.append([error[0].mean(), error.gather(0, chosen).mean(), error.amin(0).mean()])
    affine, chosen, best = np.mean(rows, axis=0)
    return f"affine {affine:.3f}, chosen {chosen:.3f}, best {best:.3f}"


def fit(folders: list[Path], out: Path, minutes: float, start: Path | None) -> None:
    """Teach a network for some time, and write the mean of its last states now and then.

    As many examples are taken of each folder.
    """
    paths = [sorted(folder.glob("*.npz")) for folder in folders]
    network = ChoiceNetwork()
    some = [load(p)["features"] for part in paths for p in random.sample(part, min(40, len(part)))]
    rows = [x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]) for x in some]
    network.normalize(torch.cat([x[torch.randint(len(x), (3000,))] for x in rows]))
    if start is not None:
        network.load(np.load(start, allow_pickle=False))
    mean = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-3)
    begin, step, written = time.monotonic(), 0, 0.0
    while (passed := (time.monotonic() - begin) / 60) < minutes:
        falling = 0.5 + 0.5 * math.cos(math.pi * passed / minutes)
        rate = RATE * min(1, (step + 1) / 100) * falling + 1e-5
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        for part in random.choices(paths, k=BATCH):
            path = random.choice([p for p in part if not held_out(p)])
            (loss_of(network, varied(load(path), network)) / BATCH).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            share = max(1 / (step + 1), 1 / AVERAGED)
            for slow, fast in zip(mean.parameters(), network.parameters(), strict=True):
                slow.lerp_(fast, share)
        step += 1
        if passed - written >= EVERY:
            written, paths = passed, [sorted(folder.glob("*.npz")) for folder in folders]
            for folder, part in zip(folders, paths, strict=True):
                held = [path for path in part if held_out(path)][:160:2]
                print(f"{passed:.0f} min, {folder.name}: {judge(mean, held)}", flush=True)
            write(out, mean)
    write(out, mean)


def held_out(path: Path) -> bool:
    """Return whether an example is of a scene that is not learned from."""
    return int(path.name[:5]) % HELD_OUT == 0


def write(out: Path, network: ChoiceNetwork) -> None:
    """Write the numbers of a network."""
    with atomic_write(out) as file:
        np.save(file, network.numbers())


def main(
    photographs: tyro.conf.Positional[Path],
    folder: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    *,
    scenes: int = 1150,
    minutes: float = 70,
    pairs: Path | None = None,
    start: Path | None = None,
    seed: int = 7,
) -> None:
    """Gather, fit, write."""
    random.seed(0)
    torch.manual_seed(0)
    folders = [folder / "scenes"]
    if scenes:
        gather(photographs, folders[0], scenes, seed)
    if pairs is not None:
        folders.append(folder / "pairs")
        gather_pairs(pairs, folders[1])
    if minutes:
        fit(folders, out, minutes, start)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
