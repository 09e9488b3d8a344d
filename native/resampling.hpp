// Images at a fraction of their size.
#pragma once

namespace hamflow {

// Means of boxes of factor x factor pixels, out_h x out_w x channels. Boxes beyond the border are
// completed by the outermost pixels.
void reduce_image(const float* image, int h, int w, int channels, int factor, int out_h, int out_w,
                  float* out);

}  // namespace hamflow
