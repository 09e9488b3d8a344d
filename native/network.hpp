// Descriptor networks in whole numbers: from an image to the bits, or to the numbers that become
// the descriptor. The Python side (hamflow.descriptors.integer) makes the layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "convolution.hpp"

namespace hamflow {

// The units of the 16-bit inputs of the first layers.
constexpr float units_of_color = 4096;
constexpr float units_of_contrast = 2048;

// A layer: weights (outputs x runs x what a run holds), and what its sums begin with and are
// multiplied by. Several threads may use it.
class IntegerLayer {
   public:
    IntegerLayer(std::vector<std::int16_t> weights, std::vector<std::int32_t> first,
                 std::vector<float> scale, int runs, bool wide);

    int outputs() const { return static_cast<int>(first_.size()); }
    int runs() const { return runs_; }
    bool wide() const { return wide_; }
    int run_words() const;

    // The weights as the convolutions in use need them; packed when they are first asked for.
    using Packed = std::shared_ptr<const std::vector<std::uint8_t>>;
    Packed packed() const;

    // A row with all that follows from the layer; the weights must stay alive.
    ConvolutionRow row(const Packed& weights) const;

   private:
    std::vector<std::int16_t> weights_;
    std::vector<std::int32_t> first_;
    std::vector<float> scale_;
    int runs_;
    bool wide_, pairs_fit_;
    mutable std::mutex mutex_;
    mutable const Convolutions* packed_for_ = nullptr;
    mutable Packed packed_;
};

// h x w x 3, from 0 to 1.
struct ColorImage {
    const float* pixels;
    int h, w;
};

// Where a run of the first layer begins, relative to the pixel; on the blurred image or not.
struct InputRun {
    int dy, dx;
    bool blurred;
};

// `out`: the bits (uint32, h x w x outputs / 32), or the sums times their scale (float, h x w x
// outputs). `threads`: at most so many, 0 for all.
struct NetworkOutput {
    Finish finish;  // signs or values
    void* out;
    int threads;
};

// Layers with a tanh after each, all of 1x1 or 2x2 but the first, without padding.
void run_chain(const std::vector<const IntegerLayer*>& layers, const std::vector<InputRun>& input,
               const ColorImage& image, const NetworkOutput& out);

// The coarse network; sides are multiples of 8, and `out` has those of the cells. `levels`: whole
// numbers per unit of each activation, in the order of the layers.
struct CoarseLayers {
    const IntegerLayer *half, *quarter, *near_first, *near_second, *eighth;
    std::vector<const IntegerLayer*> blocks;  // first and second of each
    const IntegerLayer *far, *near_last, *head;
    std::vector<int> dilations;
    std::vector<float> levels;
    int local_radius;
};
void run_coarse(const CoarseLayers& layers, const ColorImage& image, const NetworkOutput& out);

}  // namespace hamflow
