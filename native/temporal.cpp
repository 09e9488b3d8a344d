#include "temporal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "threads.hpp"

namespace hamflow {
namespace {

struct Place {
    int x, y;        // the upper left of the four pixels around
    float fx, fy;    // how far it is from it
    int near;        // which of the four is nearest: bit 0 to the right, bit 1 below
};

// False for NaN and for places outside of the image.
bool locate(float x, float y, int w, int h, Place& place) {
    const float last_x = static_cast<float>(w - 1), last_y = static_cast<float>(h - 1);
    if (!(x >= -0.5f && y >= -0.5f && x <= last_x + 0.5f && y <= last_y + 0.5f)) return false;
    x = std::min(std::max(x, 0.0f), last_x);
    y = std::min(std::max(y, 0.0f), last_y);
    place.x = std::min(static_cast<int>(x), std::max(w - 2, 0));
    place.y = std::min(static_cast<int>(y), std::max(h - 2, 0));
    place.fx = x - static_cast<float>(place.x);
    place.fy = y - static_cast<float>(place.y);
    place.near = (place.fx >= 0.5f) + 2 * (place.fy >= 0.5f);
    return true;
}

void offsets(const Place& place, int w, int h, std::size_t (&at)[4], float (&weight)[4]) {
    const int right = std::min(place.x + 1, w - 1), below = std::min(place.y + 1, h - 1);
    for (int k = 0; k < 4; ++k) {
        const int x = k & 1 ? right : place.x, y = k & 2 ? below : place.y;
        at[k] = static_cast<std::size_t>(y) * w + x;
        weight[k] = (k & 1 ? place.fx : 1 - place.fx) * (k & 2 ? place.fy : 1 - place.fy);
    }
}

// The mean difference of the first three channels between a pixel and the place where it goes.
float difference(const Blended& p, int x, int y, float u, float v) {
    Place place;
    if (!locate(static_cast<float>(x) + u, static_cast<float>(y) + v, p.w, p.h, place)) return p.cap;
    std::size_t at[4];
    float weight[4];
    offsets(place, p.w, p.h, at, weight);
    const float* here = p.first + (static_cast<std::size_t>(y) * p.w + x) * p.channels;
    float sum = 0;
    for (int c = 0; c < 3; ++c) {
        float there = 0;
        for (int k = 0; k < 4; ++k) there += weight[k] * p.second[at[k] * p.channels + c];
        sum += std::fabs(here[c] - there);
    }
    return std::min(sum / 3, p.cap);
}

// How much of the measured flow is replaced by the expected one if the images do not object.
float share(const Blended& p, float age) {
    return age > 0 ? 1 - std::max(1 / (age + 1), p.least_share) : 0.0f;
}

}  // namespace

void carry(const Carried& p) {
    parallel_for(p.h, [&](int y) {
        const std::size_t start = static_cast<std::size_t>(y) * p.w;
        for (int x = 0; x < p.w; ++x) {
            const float* along = p.along + 2 * (start + x);
            float* expected = p.expected + 3 * (start + x);
            expected[0] = expected[1] = expected[2] = 0;
            Place place;
            if (!p.visible[start + x] || !locate(static_cast<float>(x) + along[0],
                                                 static_cast<float>(y) + along[1], p.w, p.h, place))
                continue;
            std::size_t at[4];
            float weight[4];
            offsets(place, p.w, p.h, at, weight);
            const float* nearest = p.state + 3 * at[place.near];
            float sum[3] = {0, 0, 0}, total = 0;
            for (int k = 0; k < 4; ++k) {
                const float* other = p.state + 3 * at[k];
                if (!(std::max(std::fabs(other[0] - nearest[0]), std::fabs(other[1] - nearest[1])) <=
                      p.alike))
                    continue;
                total += weight[k];
                for (int c = 0; c < 3; ++c) sum[c] += weight[k] * other[c];
            }
            for (int c = 0; c < 3; ++c) expected[c] = sum[c] / total;
        }
    });
}

void blend(const Blended& p) {
    const std::size_t size = static_cast<std::size_t>(p.h) * p.w;
    std::vector<float> before(size), after(size);
    parallel_for(p.h, [&](int y) {
        for (int x = 0; x < p.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
            const float *m = p.measured + 2 * i, *e = p.expected + 3 * i;
            const float part = share(p, e[2]);
            before[i] = difference(p, x, y, m[0], m[1]);
            after[i] = part == 0 ? before[i]
                                 : difference(p, x, y, m[0] + part * (e[0] - m[0]),
                                              m[1] + part * (e[1] - m[1]));
        }
    });
    parallel_for(p.h, [&](int y) {
        const int top = std::max(y - p.radius, 0), bottom = std::min(y + p.radius, p.h - 1);
        for (int x = 0; x < p.w; ++x) {
            const std::size_t i = static_cast<std::size_t>(y) * p.w + x;
            const float *m = p.measured + 2 * i, *e = p.expected + 3 * i;
            float* state = p.state + 3 * i;
            float part = share(p, e[2]), kept = 0;
            if (part > 0) {
                const int left = std::max(x - p.radius, 0), right = std::min(x + p.radius, p.w - 1);
                float sum_before = 0, sum_after = 0;
                for (int row = top; row <= bottom; ++row)
                    for (int column = left; column <= right; ++column) {
                        const std::size_t k = static_cast<std::size_t>(row) * p.w + column;
                        sum_before += before[k];
                        sum_after += after[k];
                    }
                const float count = static_cast<float>((bottom - top + 1) * (right - left + 1));
                const float old = sum_before / count, rise = sum_after / count - old;
                kept = std::min(std::max(1 - rise / (p.tolerance + p.relative * old), 0.0f), 1.0f);
            }
            part *= kept;
            state[0] = m[0] + part * (e[0] - m[0]);
            state[1] = m[1] + part * (e[1] - m[1]);
            state[2] = 1 + kept * e[2];
        }
    });
}

}  // namespace hamflow
