// The network that scores candidate motions with a view of their surroundings: see choice.cpp.
#pragma once

#include <cstddef>

namespace hamflow {

constexpr int choice_features = 23, choice_fields = 3;

// Channels of the four resolutions, from fine to coarse.
constexpr int choice_units[4] = {16, 24, 48, 48};
static_assert(choice_units[2] == choice_units[3], "what is joined has the units of the finer one");

struct Choice {
    int labels, h, w;
    const float* features;  // labels x choice_features x h x w: of each candidate
    const float* fields;    // choice_fields x h x w: of each pixel
    const float* network;   // bounds of the features (low, high), then the layers in their order
    float* score;           // labels x h x w: the higher the better
};

// How much the colors at both ends of each candidate differ, on every `step`th pixel: the logarithm
// of the mean over the channels. Targets outside of the image count as its nearest pixels.
struct ColorDifference {
    int labels, h, w, channels, step;
    const float* motion;           // labels x h x w x 2
    const float *first, *second;   // h x w x channels
    float* out;                    // labels x rows x columns, each h or w / step, rounded up
};
void compare_colors(const ColorDifference&);

// How many numbers a network has.
std::size_t choice_weights();
void score_choices(const Choice&);

// Some channels of one size, each with a border of zeros and room for whole vectors.
struct FeatureMaps {
    int h, w;
    float* data;

    static constexpr int border = 16;
    static std::size_t row_of(int w) {
        return (static_cast<std::size_t>(w) + 15) / 16 * 16 + 2 * border;
    }
    std::size_t row() const { return row_of(w); }
    std::size_t plane() const { return row() * static_cast<std::size_t>(h + 2); }
    float* at(int channel, int y) const {
        return data + plane() * static_cast<std::size_t>(channel) +
               row() * static_cast<std::size_t>(y + 1) + border;
    }
};

// out = in * weights + start, rectified if that is asked for.
struct ChoiceLayer {
    int inputs, outputs, side;  // side 1 or 3
    const float* weights;       // inputs x side x side x outputs
    const float* bias;          // outputs, or null
    FeatureMaps in, out;
    const FeatureMaps* start;        // outputs channels of this size or of half of it, or null
    bool rectified;
};

}  // namespace hamflow
