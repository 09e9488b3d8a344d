"""Every stage, in the order of the data, on one page: from two frames to a result."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from weakref import ref

import numpy as np

from hamflow._beside import for_each, is_concurrent, side_by_side
from hamflow._types import Field, Flow, Mask
from hamflow.config import EstimatorConfig
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.cut import is_cut
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches, match_evidence
from hamflow.pipeline.route import Route
from hamflow.pipeline.scales import SearchPlan
from hamflow.pipeline.search import search
from hamflow.refinement import AffineCompletion, check, with_opposite
from hamflow.refinement.closer import closer_flow
from hamflow.result import FlowResult
from hamflow.stages import Completion, MatchEvidence, following
from hamflow.window import Window

FIELDS = frozenset({"flow", "backward", "occlusion", "confidence"})
"""What a result has for each pixel."""


def estimated(
    frames: tuple[Frame, Frame],
    config: EstimatorConfig,
    window: Window | None,
    route: Route,
    clock: Clock,
    *,
    previous: Matches | None = None,
    wanted: Collection[str] = FIELDS,
) -> tuple[FlowResult, Matches]:
    """Estimate the flow between two frames.

    Parameters
    ----------
    frames : (Frame, Frame)
        The images.
    config : EstimatorConfig
        What each stage does.
    window : Window, optional
        The displacements to search, if they are given.
    route : Route
        How the stages are run: with whole images, or tile by tile.
    clock : Clock
        Where the time goes.
    previous : Matches, optional
        Those of the pair before in a video.
    wanted : collection of str
        Which of the `FIELDS` to compute; those that take both directions are None if the settings
        say that one is matched.

    Returns
    -------
    result : FlowResult
    matches : Matches
        For the next pair of a video.
    """
    matches = matched(frames, config, window, route, clock, previous=previous)
    shape = frames[0].shape
    flows: list[Flow] = []
    hidden: Mask | None = None
    certain: Field | None = None
    if matches.cut:
        # Nothing of one frame is in the other: no motion, and nothing to be seen.
        for name in ("flow", "backward")[: 1 + ("backward" in wanted)]:
            flows.append(route.filled(name, (*shape, 2), np.float32(0)))
        if "occlusion" in wanted:
            hidden = route.filled("occlusion", shape, np.bool_(True))
        if "confidence" in wanted:
            certain = route.filled("confidence", shape, np.float32(0))
    else:
        # Refinement, from the matching scale to the full size.
        refine = following(config.refinement) if matches.warm else config.refinement
        both = len(matches.directions) == 2 and {*wanted} > {"flow"}
        assess = both and bool({"occlusion", "confidence"} & {*wanted})
        with clock.stage("refinement", 0.6):
            first, around = side_by_side(
                lambda: route.refined(refine, frames, matches, None),
                lambda: route.surroundings(frames, matches) if assess else None,
                at_once=route.at_once,
            )
        flows.append(first)
        if both:
            with clock.stage("refinement", 0.75):
                flows.append(route.refined(refine, (frames[1], frames[0]), matches, first))

        # Assessment: what is occluded, and how far each pixel can be trusted.
        if around is not None:
            route.tidy()
            with clock.stage("assessment", 0.9):
                hidden, certain = route.assessed(refine, frames, matches, flows, around)

        # Time: the tracks of the pair before go on, or new ones begin.
        if certain is not None and route.whole:
            before = None if previous is None else previous.tracks_to(frames[0])
            with clock.stage("temporal", 0.95) if before else nullcontext():
                pair = flows[0], flows[1]
                flows[0], tracks = config.temporal(frames, pair, certain, before)
            matches = replace(matches, tracks=tracks, second=ref(frames[1]))

    certificate = matches.directions[0].certificate
    result = FlowResult(
        # A field in a file becomes an array like any other.
        flow=np.asarray(flows[0]),
        backward=np.asarray(flows[1]) if len(flows) == 2 else None,
        occlusion=None if hidden is None else np.asarray(hidden),
        confidence=None if certain is None else np.asarray(certain),
        energy=certificate.energy,
        bound=certificate.bound,
        gap=certificate.gap,
        history=certificate.history,
        window=certificate.window.enlarged(matches.scale),
        scale=matches.scale,
        timings=clock.seconds,
        cut=matches.cut,
    )
    return result, matches


def matched(
    frames: tuple[Frame, Frame],
    config: EstimatorConfig,
    window: Window | None,
    route: Route,
    clock: Clock,
    *,
    previous: Matches | None = None,
) -> Matches:
    """Return the matches of two frames, before they are refined; see `estimated`."""
    # Descriptors and matching, check and completion: from coarse to fine.
    plan = SearchPlan(frames[0].shape, config, window, previous)
    matches: Matches | None = None
    while (step := plan.next_step(matches)) is not None:
        found = search(frames, step, route.matcher(config.matcher), clock)
        route.tidy()
        with clock.stage("check", step.share + 0.25):
            trusted = check([match.flow for match in found])
        with clock.stage("completion", step.share + 0.26):
            sure = trusted
            if step.coarse:  # few matches that are right serve better there than many
                sure = [
                    mask & (match.decided > 0) for mask, match in zip(trusted, found, strict=True)
                ]
            known = match_evidence(frames, found, sure, step.scale, matches)
            completion = following(config.completion) if step.warm else config.completion
            completed = _completed(known, completion, route, warm=step.warm)
            if step.closer:
                completed = [
                    (closer_flow(match, flow), distance)
                    for match, (flow, distance) in zip(known, completed, strict=True)
                ]
        matches = Matches.of(found, trusted, completed, step.scale, plan.carried_share(step))
        matches = replace(matches, warm=step.warm, completion=completion.method)
        route.tidy()
    assert matches is not None
    return replace(matches, cut=is_cut(frames, matches))


def _completed(
    known: list[MatchEvidence], completion: Completion, route: Route, *, warm: bool
) -> list[tuple[Flow, Field]]:
    """Return the completed flow of each direction, and how far each pixel is from a match."""
    stages = [completion] * len(known)
    if warm and isinstance(completion, AffineCompletion):  # the opposite tells most of the flow
        stages[1:] = [completion.beside_opposite()]
    completed = for_each(
        lambda k: stages[k](known[k]),
        range(len(known)),
        at_once=route.at_once and is_concurrent(completion),
    )
    if stages[-1] != completion:
        filled, distance = completed[1]
        completed[1] = with_opposite(known[1], filled, completed[0][0]), distance
    return completed
