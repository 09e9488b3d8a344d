#include "convolution.hpp"
#include "level.hpp"
#include "simd/amx_dot.hpp"

namespace hamflow {
namespace amx {
namespace {
#include "convolution.inl"

// The shapes of the tiles belong to the thread, and cost little beside a row.
void convolve_with_tiles(const ConvolutionRow& r) {
    if (r.wide) return convolve_row(r);
    const TileShapes shapes(r.run_words % tile_words);
    // GCC 12 takes it that only the first eight bytes are read.
    asm volatile("" : : "r"(&shapes) : "memory");
    _tile_loadconfig(&shapes);
    convolve_row(r);
    _tile_release();
}

}  // namespace
const Convolutions convolutions = {"amx", pack_weights, convolve_with_tiles};
}  // namespace amx
}  // namespace hamflow
