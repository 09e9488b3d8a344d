// The filters of PNG files: see png.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hamflow {

// Undoes the filters of `rows` lines, each the number of its filter and `bytes` filtered bytes, with
// `depth` bytes per pixel. `out` gets rows x bytes. False if a line has a filter that PNG does not
// define; then `out` holds nothing of use.
bool png_unfilter(const std::uint8_t* lines, std::size_t rows, std::size_t bytes, std::size_t depth,
                  std::uint8_t* out);

}  // namespace hamflow
