// The flow of a video along its tracks: what is carried over from the pair before, and how far it
// is taken over.
#pragma once

namespace hamflow {

struct Carried {
    int h, w;
    const float* state;            // (h, w, 3) of the pair before: u, v, age
    const float* along;            // (h, w, 2), from here to there
    const unsigned char* visible;  // (h, w), whether what is here is to be seen there
    float alike;                   // pixels: neighbors that differ by more are of another surface
    float* expected;               // (h, w, 3): u, v, age; the age is 0 where nothing is known
};

void carry(const Carried& problem);

struct Blended {
    int h, w, channels;
    const float *first, *second;  // (h, w, channels): what is compared are the first three
    const float* measured;        // (h, w, 2)
    const float* expected;        // (h, w, 3): u, v, age
    int radius;                   // of the squares over which differences are averaged
    float least_share;            // of the measured flow, however old the track is
    float tolerance, relative;    // how much larger the difference may be: at most, and its share
    float cap;                    // of the differences, which is also that outside of the image
    float* state;                 // (h, w, 3): u, v, age
};

void blend(const Blended& problem);

}  // namespace hamflow
