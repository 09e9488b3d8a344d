// What the .inl files need: included first by every kernels_<isa>.cpp, outside of its namespace.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "kernels.hpp"
#include "simd/common.hpp"
#include "threads.hpp"

#define HAMFLOW_KERNEL_TABLE(name, ns)                                                      \
    {                                                                                       \
        name, ns::min_projection, ns::message16, ns::message32, ns::float_min_projection,   \
            ns::float_message, ns::gather, ns::scatter, ns::chain_pass16, ns::chain_pass32, \
            ns::relabel_bits16, ns::relabel_bits32, ns::relabel_phi,                        \
            ns::best_labels<std::uint8_t>, ns::best_labels<std::int16_t>,                   \
            ns::best_labels<float>, ns::rescan_bits, ns::rescan_phi, ns::pack_weights,       \
            ns::convolve_row                                                                \
    }
