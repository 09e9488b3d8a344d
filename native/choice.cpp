// How well candidate motions suit each pixel, by a network that sees their surroundings. All
// candidates pass through the same layers, at four resolutions down and up again; at each of them
// they also see mean and maximum over all candidates, so that their order does not matter.
#include "choice.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "completion_kernels.hpp"
#include "simd/common.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

// Where the numbers of a layer begin among those of the network.
struct Weights {
    std::size_t bias, weights;
    bool biased;
};

// A layer over one candidate, and one over what all of them share.
struct Mixed {
    Weights own, shared;
};

struct Network {
    Weights first, down[3], deep, join_coarse[2], join_fine[2], up[2], last_coarse, last_fine, score;
    Mixed mix[5];
    std::size_t size;

    Network() {
        size = 2 * choice_features;
        const auto layer = [&](int inputs, int outputs, int side, bool biased = true) {
            const std::size_t bias = size;
            if (biased) size += static_cast<std::size_t>(outputs);
            const Weights w{bias, size, biased};
            size += static_cast<std::size_t>(inputs) * side * side * outputs;
            return w;
        };
        const int* n = choice_units;
        const auto mixed = [&](int units, int more) {
            Mixed m;
            m.own = layer(units, units, 1);
            m.shared = layer(2 * units + more, units, 1, false);
            return m;
        };
        first = layer(choice_features, n[0], 1);
        mix[0] = mixed(n[0], choice_fields);
        for (int level = 0; level < 3; ++level) {
            down[level] = layer(n[level], n[level + 1], 3);
            mix[level + 1] = mixed(n[level + 1], 0);
        }
        deep = layer(n[3], n[3], 3);
        for (int k = 0; k < 2; ++k) {
            const int coarse = k == 0 ? n[3] : n[2], fine = k == 0 ? n[2] : n[1];
            join_coarse[k] = layer(coarse, fine, 1);
            join_fine[k] = layer(fine, fine, 1, false);
            up[k] = layer(fine, fine, 3);
        }
        mix[4] = mixed(n[1], 0);
        last_coarse = layer(n[1], n[0], 1);
        last_fine = layer(n[0], n[0], 1, false);
        score = layer(n[0], 1, 1, false);
    }
};

// FeatureMaps that own their memory. The border is cleared, and what is between the width and a whole
// number of vectors.
class OwnMaps {
   public:
    OwnMaps() = default;
    OwnMaps(int channels, int h, int w)
        : planes_{h, w, nullptr}, data_(planes_.plane() * static_cast<std::size_t>(channels)) {
        planes_.data = data_.data();
        const std::size_t row = planes_.row();
        const std::size_t right = FeatureMaps::border + static_cast<std::size_t>(w);
        for (int c = 0; c < channels; ++c)
            for (int y = -1; y <= h; ++y) {
                float* from = planes_.at(c, y) - FeatureMaps::border;
                if (y < 0 || y == h)
                    std::fill_n(from, row, 0.0f);
                else
                    std::fill_n(from, FeatureMaps::border, 0.0f),
                        std::fill_n(from + right, row - right, 0.0f);
            }
    }
    const FeatureMaps& get() const { return planes_; }

   private:
    FeatureMaps planes_{0, 0, nullptr};
    Buffer<float> data_;
};

int half(int side) { return (side + 1) / 2; }

class ContextScorer {
   public:
    explicit ContextScorer(const Choice& p) : p_(p), k_(completion_kernels()) {
        h_[0] = p.h, w_[0] = p.w;
        for (int level = 1; level < 4; ++level)
            h_[level] = half(h_[level - 1]), w_[level] = half(w_[level - 1]);
    }

    void solve() {
        const int labels = p_.labels;
        std::vector<OwnMaps> raw(static_cast<std::size_t>(labels)), kept[3];
        for (auto& level : kept) level.resize(raw.size());
        parallel_for(labels, [&](int k) {
            OwnMaps bounded(choice_features, p_.h, p_.w);
            k_.choice_bounded(p_, k, bounded.get());
            raw[k] = make(0);
            run(layer_of(choice_features, choice_units[0], 1, net_.first, bounded, raw[k]));
        });
        for (int level = 0; level < 3; ++level) {
            const OwnMaps shared = share(raw, level, net_.mix[level]);
            parallel_for(labels, [&](int k) {
                kept[level][k] = mixed(raw[k], level, net_.mix[level], shared);
                const int units = choice_units[level];
                OwnMaps small(units, h_[level + 1], w_[level + 1]);
                k_.choice_halved(kept[level][k].get(), small.get(), units, 0, h_[level + 1]);
                raw[k] = make(level + 1);
                run(layer_of(units, choice_units[level + 1], 3, net_.down[level], small, raw[k]));
            });
        }
        const OwnMaps shared = share(raw, 3, net_.mix[3]);
        parallel_for(labels, [&](int k) {
            OwnMaps coarse = mixed(raw[k], 3, net_.mix[3], shared), deep = make(3);
            run(layer_of(choice_units[3], choice_units[3], 3, net_.deep, coarse, deep));
            for (int up = 0; up < 2; ++up) {
                const int level = 2 - up, units = choice_units[level];
                OwnMaps joined = join(deep, level + 1, kept[level][k], level, net_.join_coarse[up],
                                        net_.join_fine[up]);
                deep = make(level);
                run(layer_of(units, units, 3, net_.up[up], joined, deep));
                kept[level][k] = OwnMaps();
            }
            raw[k] = std::move(deep);
        });
        const OwnMaps last = share(raw, 1, net_.mix[4]);
        parallel_for(labels, [&](int k) {
            const OwnMaps coarse = mixed(raw[k], 1, net_.mix[4], last);
            raw[k] = OwnMaps();
            write_score(join(coarse, 1, kept[0][k], 0, net_.last_coarse, net_.last_fine).get(), k);
            kept[0][k] = OwnMaps();
        });
    }

   private:
    OwnMaps make(int level) const {
        return OwnMaps(choice_units[level], h_[level], w_[level]);
    }

    ChoiceLayer layer_of(int inputs, int outputs, int side, const Weights& w, const OwnMaps& in,
                         const OwnMaps& out, const FeatureMaps* start = nullptr,
                         bool rectified = true) const {
        const float* bias = w.biased ? p_.network + w.bias : nullptr;
        return {inputs,   outputs,   side,  p_.network + w.weights, bias,
                in.get(), out.get(), start, rectified};
    }

    void run(const ChoiceLayer& layer) const { k_.choice_layer(layer, 0, layer.out.h); }

    // What all candidates have in common, as the start of the layer that mixes it in.
    OwnMaps share(const std::vector<OwnMaps>& all, int level, const Mixed& mix) const {
        const int units = choice_units[level], more = &mix == &net_.mix[0] ? choice_fields : 0;
        const int h = h_[level], w = w_[level];
        std::vector<FeatureMaps> planes;
        for (const OwnMaps& own : all) planes.push_back(own.get());
        OwnMaps both(2 * units + more, h, w), out = make(level);
        for (int c = 0; c < more; ++c)
            for (int y = 0; y < h; ++y)
                std::memcpy(both.get().at(2 * units + c, y),
                            p_.fields + (static_cast<std::size_t>(c) * h + y) * w, sizeof(float) * w);
        parallel_pieces(h, 8, [&](int begin, int end) {
            k_.choice_shared(planes.data(), p_.labels, units, both.get(), begin, end);
            k_.choice_layer(
                layer_of(2 * units + more, units, 1, mix.shared, both, out, nullptr, false), begin,
                end);
        });
        return out;
    }

    OwnMaps mixed(const OwnMaps& own, int level, const Mixed& mix, const OwnMaps& shared) const {
        OwnMaps out = make(level);
        run(layer_of(choice_units[level], choice_units[level], 1, mix.own, own, out, &shared.get()));
        return out;
    }

    // A layer over the channels of two levels, whose coarse half is done at its own size.
    OwnMaps join(const OwnMaps& coarse, int coarse_level, const OwnMaps& fine, int level,
                   const Weights& of_coarse, const Weights& of_fine) const {
        const int units = choice_units[level];
        OwnMaps start(units, h_[coarse_level], w_[coarse_level]), out = make(level);
        run(layer_of(choice_units[coarse_level], units, 1, of_coarse, coarse, start, nullptr, false));
        run(layer_of(units, units, 1, of_fine, fine, out, &start.get()));
        return out;
    }

    void write_score(const FeatureMaps& last, int label) const {
        for (int y = 0; y < p_.h; ++y) {
            float* to = p_.score + (static_cast<std::size_t>(label) * p_.h + y) * p_.w;
            std::fill_n(to, p_.w, 0.0f);
            for (int c = 0; c < choice_units[0]; ++c) {
                const float weight = p_.network[net_.score.weights + static_cast<std::size_t>(c)];
                const float* from = last.at(c, y);
                for (int x = 0; x < p_.w; ++x) to[x] += weight * from[x];
            }
        }
    }

    const Choice& p_;
    const Network net_;
    const CompletionKernels& k_;
    int h_[4], w_[4];
};

}  // namespace

void compare_colors(const ColorDifference& p) {
    const int rows = (p.h + p.step - 1) / p.step;
    const CompletionKernels& kernels = completion_kernels();
    parallel_for(p.labels * rows, [&](int k) {
        kernels.compare_colors_row(p, k / rows, k % rows);
    });
}

std::size_t choice_weights() { return Network().size; }

void score_choices(const Choice& problem) { ContextScorer(problem).solve(); }

}  // namespace hamflow
