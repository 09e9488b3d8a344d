// What a labeling costs: the data term, pixel by pixel.
#pragma once

#include <cstdint>

#include "window.hpp"

namespace hamflow {

// 2 * Hamming distance - m of m bits, or -<phi0, phi1>, at the labels u, v in double precision;
// `outside` where the target is outside of the image.
void costs_at(const BitsPair&, const Window&, const std::int16_t* u, const std::int16_t* v,
              double outside, double* out);
void costs_at(const PhiPair&, const Window&, const std::int16_t* u, const std::int16_t* v,
              double outside, double* out);

// How much more the best label costs that is more than one away from the own one: d labels a pixel.
// Infinite where there is no such label.
void label_margins(int h, int w, int d, const std::int16_t* slack, const std::int16_t* labels,
                   float* out);
void label_margins(int h, int w, int d, const float* slack, const std::int16_t* labels,
                   float* out);

// The energy of eq. 3, unrounded, from a labeling's data costs: weights of the edges to the right
// and down, rho(|t|) for |t| = 0 .. rho_count - 1.
double energy_of(int h, int w, const float* right, const float* down, const double* rho,
                 int rho_count, const std::int16_t* u, const std::int16_t* v, const double* data);

// total += the cost of each pixel's label, d of them a pixel.
void add_label_costs(int h, int w, int d, const std::uint8_t* costs, const std::int16_t* labels,
                     double* total);
// volume += factor * values.
void add_scaled(std::size_t n, std::int16_t* volume, const std::uint8_t* values,
                std::int16_t factor);
void add_scaled(std::size_t n, float* volume, const std::uint8_t* values, float factor);

// The costs of d displacements from `first` on, where `expected` is expected:
// min(most, slope * max(0, distance - free)), rounded down.
void expected_costs(int h, int w, int d, const float* expected, const float* most, float slope,
                    float free, int first, std::uint8_t* out);

}  // namespace hamflow
