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

// How much more the best label costs that is more than one away from the own one: d labels a pixel.
// Infinite where there is no such label.
void label_margins(int h, int w, int d, const std::int16_t* slack, const std::int16_t* labels,
                   float* out);
void label_margins(int h, int w, int d, const float* slack, const std::int16_t* labels,
                   float* out);

}  // namespace hamflow
