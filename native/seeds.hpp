// From each cell of an image a match to start from.
#pragma once

#include <cstdint>

namespace hamflow {

struct SeedChoice {
    int h, w;
    const float* flow;            // h x w x 2
    const std::uint8_t* trusted;  // h x w
    int cell;                     // pixels to the side of a cell
    // Room for a seed in each cell:
    int* pixel;    // y * w + x, where the seed is: the trusted pixel next to the center of its cell
    float* place;  // x, y: the mean of the trusted pixels around it that move alike, within
    float* match;  // half a cell and one pixel, and the mean of their flows
    float* trust;  // the share of the pixels around that they are
};

// Returns how many there are, in the order of rows of cells.
int choose_seeds(const SeedChoice&);

}  // namespace hamflow
