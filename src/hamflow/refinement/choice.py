"""Completion as a choice: candidate motions for every pixel, judged with their surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._room import empty
from hamflow._types import Field, Flow, Mask
from hamflow.refinement._edges import smooth
from hamflow.refinement._networks import network
from hamflow.refinement.completion import Interpolated, interpolated, known_flow
from hamflow.refinement.labeling import (
    FEATURES,
    Candidates,
    LabelingCompletion,
    check_shapes,
    choose,
    gather_candidates,
    score_candidates,
)
from hamflow.stages import MatchEvidence

STEP = 2  # the network sees every second pixel
_COLOR, _MATCHED, _COARSE = FEATURES, FEATURES + 1, FEATURES + 2  # the network's other features
_ALL = FEATURES + 3
_SAME = np.float32(1e-4)  # pixels by which two candidates differ that are meant to be equal
_SQUARE = np.full(3, 1 / 3, np.float32)  # over which colors are compared


@dataclass(frozen=True)
class ChoiceCompletion(LabelingCompletion):
    """The completion that chooses for all pixels, also for trusted ones; see `scores_in_context`.

    Parameters are those of `LabelingCompletion`.
    """

    method: ClassVar[str] = "choice"

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the completed flow, and the distance of each pixel to the nearest match."""
        if matches.other is None:  # there is nothing to compare colors with
            return super().__call__(matches)
        filled = interpolated(matches.image, matches.flow, matches.trusted, self)
        check_shapes(matches)
        shape = filled.kept.shape
        offered, planes = _offered(matches, filled, self)
        candidates = Candidates(*(part[1:] for part in offered))
        scores = scores_in_context(matches, filled, candidates)
        best = enlarged(scores.argmax(axis=0), shape)
        chosen = offered.motion[0]
        pixels = chosen.shape[0] * chosen.shape[1]
        which = best.reshape(-1) * pixels + np.arange(pixels)
        chosen[:] = candidates.motion.reshape(-1, 2).take(which, axis=0).reshape(chosen.shape)
        # Pixels beside other candidates choose again, jointly.
        pixel = np.flatnonzero(_undecided(best)).astype(np.int32)
        y, x = np.divmod(pixel, shape[1])
        unary = -scores[:, y // STEP, x // STEP].T
        self._choose_again(pixel, unary, offered.motion, filled)
        # And those that leave the image: there, a plane that is a little wrong is far off, and the
        # network of the labeling was taught to be careful.
        pixel = np.flatnonzero(~filled.kept & leaves(chosen)).astype(np.int32)
        found = Candidates(*(part[: 1 + planes] for part in candidates))
        unary = np.empty((len(pixel), 1 + planes), np.float32)
        score_candidates(matches, filled, found, pixel, score=unary)
        self._choose_again(pixel, unary, offered.motion[: 2 + planes], filled)
        # Planes round: what does not move has to have the motion that was matched, which is 0.
        same = np.abs(chosen - filled.flow) < _SAME
        return np.where(same, filled.flow, chosen), filled.distance

    def warm_started(self) -> LabelingCompletion:
        """Return the labeling: in real videos the choice flickers more (docs/decisions.md)."""
        return LabelingCompletion(**vars(self))

    def _choose_again(
        self,
        pixel: NDArray[np.int32],
        unary: NDArray[np.float32],
        motion: NDArray[np.float32],
        filled: Interpolated,
    ) -> None:
        """Choose the motions of some pixels jointly, into the first of the motions.

        The other pixels count as they were chosen.
        """
        if not len(pixel):
            return
        padded = np.ascontiguousarray(np.pad(unary, ((0, 0), (1, 0)), constant_values=1e9))
        label = choose(pixel, padded, motion, filled, self)
        flat = motion.reshape(len(motion), -1, 2)
        flat[0, pixel] = flat[label[pixel], pixel]


def all_candidates(
    matches: MatchEvidence, filled: Interpolated, config: LabelingCompletion
) -> Candidates:
    """Return the candidates of the labeling, the matched flow, and that of the coarser scale."""
    return Candidates(*(part[1:] for part in _offered(matches, filled, config)[0]))


def _offered(
    matches: MatchEvidence, filled: Interpolated, config: LabelingCompletion
) -> tuple[Candidates, int]:
    """Return room for the chosen motion and all candidates, and how many of these are planes."""
    known = known_flow(matches.flow)[..., None]
    more = [np.where(known, matches.flow, filled.flow)]
    if matches.coarse is not None:
        more.append(matches.coarse)
    offered = gather_candidates(filled, config, before=1, behind=len(more))
    offered.motion[-len(more) :] = more
    offered.geodesic[-len(more) :] = filled.distance
    return offered, len(offered.motion) - 2 - len(more)


def scores_in_context(
    matches: MatchEvidence, filled: Interpolated, candidates: Candidates
) -> NDArray[np.float32]:
    """Judge all candidates of every second pixel by a network that sees their surroundings.

    All candidates pass through the same layers, which see some 60 pixels to every side of one, and
    what the other candidates look like there. The network was fitted to rendered scenes;
    ``experiments/scripts/choice.py`` fits another one.

    Parameters
    ----------
    matches : MatchEvidence
        With the image that the flow leads to.
    filled : Interpolated
        The matches, interpolated.
    candidates : Candidates
        From `all_candidates`.

    Returns
    -------
    (L, h, w) array of float32
        The higher the better; of every `STEP`-th pixel of every `STEP`-th row.
    """
    features, fields = evidence_in_context(matches, filled, candidates)
    scores = np.empty((len(features), *fields.shape[1:]), np.float32)
    _native.score_in_context(features, fields, network("choice"), scores)
    return scores


def evidence_in_context(
    matches: MatchEvidence, filled: Interpolated, candidates: Candidates
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return what the network knows of each candidate (L, N, h, w), and of each pixel (3, h, w)."""
    assert matches.other is not None
    labels, height, width = candidates.motion.shape[:3]
    number = np.arange(height * width, dtype=np.int32).reshape(height, width)
    number = number[::STEP, ::STEP]
    features = empty((labels, _ALL, *number.shape), np.float32)
    described = features.reshape(labels, _ALL, -1)
    score_candidates(matches, filled, candidates, number.reshape(-1), features=described)
    colors = [
        smooth(np.ascontiguousarray(image, np.float32), _SQUARE)
        for image in (matches.image, matches.other)
    ]
    apart = np.empty((labels, *number.shape), np.float32)
    _native.color_differences(candidates.motion, colors[0], colors[1], STEP, apart)
    features[:, _COLOR] = apart
    features[:, _MATCHED:] = 0
    last = labels - 1 if matches.coarse is None else labels - 2
    features[last, _MATCHED] = 1
    features[last + 1 :, _COARSE] = 1
    decided = filled.kept if matches.decided is None else matches.decided
    contrast = np.log(filled.edges[0] + filled.edges[1] + np.float32(0.003))
    fields = np.stack([f[::STEP, ::STEP] for f in (filled.kept, decided, contrast)])
    return features, fields.astype(np.float32)


def enlarged(field: NDArray, shape: tuple[int, int]) -> NDArray:  # type: ignore[type-arg]
    """Return a field of every `STEP`-th pixel at full size: each value for a whole square."""
    full = field.repeat(STEP, axis=-2).repeat(STEP, axis=-1)
    return full[..., : shape[0], : shape[1]]


def leaves(flow: Flow) -> Mask:
    """Return where a flow leads out of the image."""
    height, width = flow.shape[:2]
    x, y = flow[..., 0] + np.arange(width), flow[..., 1] + np.arange(height)[:, None]
    out: Mask = (x < -0.5) | (y < -0.5) | (x > width - 0.5) | (y > height - 0.5)
    return out


def _undecided(label: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return the pixels within `STEP` pixels of one with another label beside it."""
    border = np.zeros(label.shape, np.bool_)
    right, down = label[:, 1:] != label[:, :-1], label[1:] != label[:-1]
    border[:, 1:] |= right
    border[:, :-1] |= right
    border[1:] |= down
    border[:-1] |= down
    for _ in range(STEP - 1):
        wider = border.copy()
        wider[1:] |= border[:-1]
        wider[:-1] |= border[1:]
        border = wider.copy()
        border[:, 1:] |= wider[:, :-1]
        border[:, :-1] |= wider[:, 1:]
    return border
