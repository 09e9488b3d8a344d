#include "temporal.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "compiler.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

constexpr int chunk = 128;  // pixels of a row at a time

// Where pixels come from: the four pixels around that place, and how far it is from the first one.
struct Places {
    int first[chunk];
    float fx[chunk], fy[chunk];
    float known[chunk];  // 1, or 0 for NaN and outside of the image
};

void locate(const float* along, int column, int row, int count, int w, int h, Places& to) {
    const float last_x = static_cast<float>(w - 1), last_y = static_cast<float>(h - 1);
    const float most_left = static_cast<float>(std::max(w - 2, 0));
    const float most_top = static_cast<float>(std::max(h - 2, 0));
    HAMFLOW_INDEPENDENT
    for (int i = 0; i < count; ++i) {
        float x = static_cast<float>(column + i) + along[2 * i];
        float y = static_cast<float>(row) + along[2 * i + 1];
        const bool in = (x >= -0.5f) & (y >= -0.5f) & (x <= last_x + 0.5f) & (y <= last_y + 0.5f);
        x = in ? x : 0, y = in ? y : 0;
        x = x < 0 ? 0 : x > last_x ? last_x : x;
        y = y < 0 ? 0 : y > last_y ? last_y : y;
        const int left = static_cast<int>(x < most_left ? x : most_left);
        const int top = static_cast<int>(y < most_top ? y : most_top);
        to.known[i] = in ? 1 : 0;
        to.fx[i] = x - static_cast<float>(left);
        to.fy[i] = y - static_cast<float>(top);
        to.first[i] = top * w + left;
    }
}

// What the four pixels around have: u, v, confidence.
struct Around {
    float u[4][chunk], v[4][chunk], certain[4][chunk];
};

void gather(const Carried& p, const Places& places, int count, Around& to) {
    const int right = p.w > 1, below = p.h > 1 ? p.w : 0;
    const int next[4] = {0, right, below, below + right};
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < 4; ++k) {
            const std::size_t at = static_cast<std::size_t>(places.first[i]) + next[k];
            to.u[k][i] = p.flow[2 * at];
            to.v[k][i] = p.flow[2 * at + 1];
            to.certain[k][i] = p.confidence[at];
        }
}

// The mean of those of the four that move like the nearest one, unless it leads elsewhere on the way
// back: then the pixel was hidden there.
void expect(const Carried& p, const float* along, const Places& places, const Around& from, int count,
            float* expected) {
    const float most = p.alike, relative = p.relative, absolute = p.absolute;
    float found[3][chunk];
    HAMFLOW_INDEPENDENT
    for (int i = 0; i < count; ++i) {
        const float fx = places.fx[i], fy = places.fy[i];
        const float upper_u = fx >= 0.5f ? from.u[1][i] : from.u[0][i];
        const float lower_u = fx >= 0.5f ? from.u[3][i] : from.u[2][i];
        const float upper_v = fx >= 0.5f ? from.v[1][i] : from.v[0][i];
        const float lower_v = fx >= 0.5f ? from.v[3][i] : from.v[2][i];
        const float like_u = fy >= 0.5f ? lower_u : upper_u, like_v = fy >= 0.5f ? lower_v : upper_v;
        float u = 0, v = 0, certain = 0, total = 0;
        const auto add = [&](int k, float weight) HAMFLOW_INLINE_LAMBDA {
            const float ku = from.u[k][i], kv = from.v[k][i];
            const float apart_u = std::fabs(ku - like_u), apart_v = std::fabs(kv - like_v);
            weight = apart_u <= most ? weight : 0;  // nor for NaN
            weight = apart_v <= most ? weight : 0;
            total += weight;
            u += weight > 0 ? weight * ku : 0;
            v += weight > 0 ? weight * kv : 0;
            certain += weight > 0 ? weight * from.certain[k][i] : 0;
        };
        add(0, (1 - fx) * (1 - fy));
        add(1, fx * (1 - fy));
        add(2, (1 - fx) * fy);
        add(3, fx * fy);
        const float share = 1 / total, au = along[2 * i], av = along[2 * i + 1];
        u *= share, v *= share, certain *= share;
        const float du = au + u, dv = av + v, lengths = au * au + av * av + u * u + v * v;
        const float known = du * du + dv * dv <= relative * lengths + absolute ? places.known[i] : 0;
        found[0][i] = known > 0 ? u : 0;
        found[1][i] = known > 0 ? v : 0;
        found[2][i] = known > 0 ? certain : 0;
    }
    for (int i = 0; i < count; ++i)
        for (int c = 0; c < 3; ++c) expected[3 * i + c] = found[c][i];
}

constexpr float least_variance = 0.01f;  // no flow is exact

// The squared error to be expected with a confidence; that of none is huge.
float variance(float confidence) {
    const float error = 1 / (confidence > 1e-6f ? confidence : 1e-6f) - 1;
    return error * error + least_variance;
}

void blend_some(const Blended& p, std::size_t at, int count) {
    const float *e = p.expected + 3 * at, *c = p.changes + 3 * at, *m = p.measured + 2 * at;
    float eu[chunk], ev[chunk], ec[chunk];
    for (int i = 0; i < count; ++i) {
        eu[i] = e[3 * i] + c[3 * i];
        ev[i] = e[3 * i + 1] + c[3 * i + 1];
        ec[i] = e[3 * i + 2] * c[3 * i + 2];
    }
    const float* confidence = p.confidence + at;
    float *flow = p.flow + 2 * at, *certain = p.certain + at;
    const float unforeseen = p.change, relative = p.relative, apart2 = p.apart * p.apart;
    HAMFLOW_INDEPENDENT
    for (int i = 0; i < count; ++i) {
        const float u = eu[i], v = ev[i], du = u - m[2 * i], dv = v - m[2 * i + 1];
        const float change = unforeseen + relative * std::sqrt(u * u + v * v);
        const float old = variance(ec[i]) + change * change, now = variance(confidence[i]);
        const float mean = now / (now + old), better = old < now ? 1.0f : 0.0f;
        const float least = old < now ? old : now, apart = du * du + dv * dv;
        float share = apart < apart2 * (old + now) ? mean : better;
        share = ec[i] > 0 ? share : 0.0f;
        float both = apart < apart2 * (old + now) ? old * mean : least;
        both = both > least_variance ? both - least_variance : 0.0f;
        const float sure = 1 / (1 + std::sqrt(both));
        flow[2 * i] = share > 0 ? m[2 * i] + share * du : m[2 * i];
        flow[2 * i + 1] = share > 0 ? m[2 * i + 1] + share * dv : m[2 * i + 1];
        certain[i] = share > 0 ? sure : confidence[i];
    }
}

}  // namespace

void carry(const Carried& p) {
    parallel_for(p.h, [&](int y) {
        Places places;
        Around around;
        for (int x = 0; x < p.w; x += chunk) {
            const std::size_t at = static_cast<std::size_t>(y) * p.w + x;
            const int count = std::min(chunk, p.w - x);
            const float* along = p.along + 2 * at;
            locate(along, x, y, count, p.w, p.h, places);
            gather(p, places, count, around);
            expect(p, along, places, around, count, p.expected + 3 * at);
        }
    });
}

// Each flow counts by how certain it is, as in a Kalman filter.
void blend(const Blended& p) {
    parallel_for(p.h, [&](int y) {
        for (int x = 0; x < p.w; x += chunk) {
            const std::size_t at = static_cast<std::size_t>(y) * p.w + x;
            blend_some(p, at, std::min(chunk, p.w - x));
        }
    });
}

}  // namespace hamflow
