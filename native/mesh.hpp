// Curved surfaces of synthetic scenes: grids of triangles, seen by a pinhole camera.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compositing.hpp"

namespace hamflow {

// A grid of points in space, relative to the camera. Each of its cells is two triangles, which meet
// in the diagonal from the cell's upper right to its lower left.
struct Mesh {
    const double* points;  // rows x columns x 3
    int rows, columns;     // at least 2
    double focal, center_x, center_y;
    double near;  // triangles with a corner that is nearer are not seen
};

// Where the ray through each of n places of the image first meets the surface: column and row in
// the grid, which are exact within a triangle, and 1 / distance along the axis of the camera, which
// is 0 where nothing is met.
void trace(const Mesh& mesh, std::size_t n, const float* x, const float* y, float* u, float* v,
           float* inverse_depth);

// Color and coverage of n pixels, each the mean over side x side rays; side is odd. The corners of
// the texture are those of the grid.
void mesh_lanes(const Mesh& mesh, const Texels& texels, int side, std::size_t n, const float* x,
                const float* y, std::uint16_t* lanes);

}  // namespace hamflow
