#include "temporal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

// The squared error to be expected with a confidence; a little more, as no flow is exact.
float variance(float confidence) {
    const float error = 1 / confidence - 1;
    return error * error + 0.01f;
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
            if (!locate(static_cast<float>(x) + along[0], static_cast<float>(y) + along[1], p.w, p.h,
                        place))
                continue;
            std::size_t at[4];
            float weight[4];
            offsets(place, p.w, p.h, at, weight);
            const float* nearest = p.flow + 2 * at[place.near];
            float u = 0, v = 0, certain = 0, total = 0;
            for (int k = 0; k < 4; ++k) {
                const float* other = p.flow + 2 * at[k];
                if (!(std::max(std::fabs(other[0] - nearest[0]), std::fabs(other[1] - nearest[1])) <=
                      p.alike))
                    continue;
                total += weight[k];
                u += weight[k] * other[0];
                v += weight[k] * other[1];
                certain += weight[k] * p.confidence[at[k]];
            }
            u /= total, v /= total;
            // What comes back elsewhere was hidden there.
            const float du = along[0] + u, dv = along[1] + v;
            const float lengths = along[0] * along[0] + along[1] * along[1] + u * u + v * v;
            if (!(du * du + dv * dv <= 0.01f * lengths + 0.5f)) continue;
            expected[0] = u, expected[1] = v, expected[2] = certain / total;
        }
    });
}

// Each flow counts by how certain it is, as in a Kalman filter.
void blend(const Blended& p) {
    parallel_for(p.h, [&](int y) {
        for (std::size_t i = static_cast<std::size_t>(y) * p.w, end = i + p.w; i < end; ++i) {
            const float *m = p.measured + 2 * i, *e = p.expected + 3 * i, *c = p.changes + 3 * i;
            float* flow = p.flow + 2 * i;
            flow[0] = m[0], flow[1] = m[1], p.certain[i] = p.confidence[i];
            const float u = e[0] + c[0], v = e[1] + c[1], certain = e[2] * c[2];
            if (!(certain > 0)) continue;
            const float change = p.change + p.relative * std::sqrt(u * u + v * v);
            const float old = variance(certain) + change * change;
            const float now = p.confidence[i] > 0 ? variance(p.confidence[i]) : 1e12f;
            const float du = u - m[0], dv = v - m[1];
            float share = now / (now + old), both = old * share;
            if (du * du + dv * dv >= p.apart * p.apart * (old + now)) {
                share = old < now ? 1.0f : 0.0f;
                both = std::min(old, now);
            }
            if (!(share > 0)) continue;
            flow[0] += share * du;
            flow[1] += share * dv;
            p.certain[i] = 1 / (1 + std::sqrt(std::max(both - 0.01f, 0.0f)));
        }
    });
}

}  // namespace hamflow
