// What a labeling costs: the data term, pixel by pixel.
#pragma once

#include <cstdint>

#include "window.hpp"

namespace hamflow {

// Hamming distances at the labels u, v; -1 where the target is outside of the image.
void distances_at(const BitsPair&, const Window&, const std::int16_t* u, const std::int16_t* v,
                  std::int16_t* out);
// -<phi0, phi1> at the labels u, v in double precision; NaN where the target is outside.
void costs_at(const PhiPair&, const Window&, const std::int16_t* u, const std::int16_t* v,
              double* out);

}  // namespace hamflow
