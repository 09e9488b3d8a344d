// Connected components of a mask: see components.cpp.
#pragma once

#include <cstdint>

namespace hamflow {

// Clears the 4-connected components of `mask` (h x w, nonzero is set) that have fewer than `least`
// pixels.
void drop_small(std::uint8_t* mask, int h, int w, int least);

}  // namespace hamflow
