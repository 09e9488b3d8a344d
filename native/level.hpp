// What the .inl files need: included first by every UNIT_LEVEL.cpp, outside of its namespace.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "simd/common.hpp"
#include "threads.hpp"
