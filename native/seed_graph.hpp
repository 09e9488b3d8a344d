// Which seed is nearest to each pixel along paths that avoid image edges, and which seeds are
// nearest to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpolation.hpp"

namespace hamflow {

struct NearSeed {
    int seed;
    float distance;
};

class SeedGraph {
   public:
    // Writes also the problem's distances.
    explicit SeedGraph(const Interpolation&);

    int owner(std::size_t pixel) const { return owner_[pixel]; }

    // Seeds whose regions touch that of a seed, and how far they are through that border.
    std::size_t first(int seed) const { return first_[seed]; }
    std::size_t end(int seed) const { return first_[seed + 1]; }
    int to(std::size_t link) const { return to_[link]; }
    float length(std::size_t link) const { return length_[link]; }

    // What a search needs, kept from one to the next.
    struct Scratch {
        explicit Scratch(int seeds) : distance(static_cast<std::size_t>(seeds), unreached) {}
        std::vector<float> distance;
        std::vector<int> touched;
        std::vector<std::uint64_t> queue;
    };
    // The nearest seeds, itself first; returns how many there are, at most `most`.
    int nearest(int seed, int most, Scratch&, NearSeed*) const;

   private:
    static constexpr float unreached = 3e38f;
    void find_owners(const Interpolation&);
    void find_links(const Interpolation&);

    std::vector<int> owner_;
    std::vector<std::size_t> first_;  // links of seed s: first_[s] .. first_[s + 1]
    std::vector<int> to_;
    std::vector<float> length_;
};

// Seeds that share a model: a leader, and those beside it that are no farther than `together`, move
// alike within the tolerance, and are in no group yet.
class SeedGroups {
   public:
    SeedGroups(const SeedGraph&, const Interpolation&, float together);

    int count() const { return static_cast<int>(leader_.size()); }
    int of(int seed) const { return group_[seed]; }
    int leader(int group) const { return leader_[group]; }
    // Groups with seeds beside those of a group.
    const int* begin(int group) const { return to_.data() + first_[group]; }
    const int* end(int group) const { return to_.data() + first_[group + 1]; }

   private:
    std::vector<int> group_, leader_;
    std::vector<std::size_t> first_;
    std::vector<int> to_;
};

}  // namespace hamflow
