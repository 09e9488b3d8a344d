// Synthetic scenes: which texels pixels show, and how surfaces are drawn over each other.
//
// All of it is single-threaded, because scenes are rendered in one process per core, and every
// operation rounds as the same one in numpy does: the tests hold the kernels to that.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hamflow {

// Red, green, blue and coverage of a texel, four 16-bit lanes in a word, of which 8 bits are used:
// weights that sum to 256 can so be applied to all four at once.
struct Texels {
    const std::uint64_t* words;
    int width, height;  // at least 2
};

// A texture and its smaller copies in one grid of texels.
struct Atlas {
    const float* places;  // levels x 4: left, top, right and bottom texel of each copy
    int levels;
    float nowhere_x, nowhere_y;  // where nothing is covered
    bool solid;                  // whether places outside are clipped to the grid
};

// Interpolates at n places, which are clipped to the grid: n x 4 lanes from 0 to 255 * 256.
void look_up(const Texels& texels, std::size_t n, const float* x, const float* y,
             std::uint16_t* lanes);

// Where in its atlas a textured plane is at n pixels. `m` takes a pixel to (column, row, 1) /
// distance; the copy is chosen by how many texels a pixel covers.
void plane_texels(const float* m, const Atlas& atlas, std::size_t n, const float* x,
                  const float* y, float* at_x, float* at_y);

// The pixels of a box (left, top, right, bottom; the last two are outside) of an image of width w
// that are above `least`, row by row. Returns how many; there is room for all pixels of the box.
std::size_t pixels_above(const float* image, int w, const int* box, float least,
                         std::int64_t* index, float* x, float* y);

// Fog in front of n pixels, or the same in front of all.
struct Fog {
    const float* rest;   // 1 - share of the fog
    const float* thick;  // 256 * share
    bool same;           // whether there is only one number of each
    const float* color;
};

// Draws a surface behind what is drawn already: `index` says where in the image the n pixels are,
// `lanes` what the surface looks like there. `light` is the share that still comes through, and
// `total` the sum of what has come, in three channels. `fog` may be null.
void paint(std::size_t n, const std::int64_t* index, const std::uint16_t* lanes, const Fog* fog,
           float* light, float* total);

// Means of 2x2 texels: (2 h) x (2 w) of a grid that is `stride` wide, to h x w.
void halve(const std::uint64_t* fine, int stride, int h, int w, std::uint64_t* coarse);

}  // namespace hamflow
