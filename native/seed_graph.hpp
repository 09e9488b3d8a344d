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
    const NearSeed* begin(int seed) const { return links_.data() + first_[seed]; }
    const NearSeed* end(int seed) const { return links_.data() + first_[seed + 1]; }

   private:
    void find_owners(const Interpolation&);
    void find_links(const Interpolation&);

    std::vector<int> owner_;
    std::vector<std::size_t> first_;  // links of seed s: first_[s] .. first_[s + 1]
    std::vector<NearSeed> links_;
};

// Seeds that share a model: a leader, and those beside it that are no farther than `together`, move
// alike within the tolerance, and are in no group yet.
class SeedGroups {
    static constexpr float unreached = 3e38f;

   public:
    SeedGroups(const SeedGraph&, const Interpolation&, float together);

    int count() const { return static_cast<int>(member_at_.size()) - 1; }
    int of(int seed) const { return group_[seed]; }
    int leader(int group) const { return member_[member_at_[group]].seed; }

    // Groups with seeds beside those of a group, and the ways from leader to leader.
    struct Link {
        int group;
        float length;
    };
    const Link* begin(int group) const { return links_.data() + link_at_[group]; }
    const Link* end(int group) const { return links_.data() + link_at_[group + 1]; }

    // What a search needs, kept from one to the next.
    struct Scratch {
        explicit Scratch(int groups)
            : state(static_cast<std::size_t>(groups), untouched), touched(state.size()),
              distance(state.size() + 16, unreached), group(state.size()) {}
        static constexpr int untouched = -1, done = -2;
        std::vector<int> state;       // of each group: its number in the frontier, or one of these
        std::vector<int> touched;
        std::vector<float> distance;  // of the frontier; what follows is unreached
        std::vector<int> group;       // of the frontier
    };
    // The seeds of the nearest groups, with the ways to them by their leaders, its own group first;
    // returns how many there are, at most `most`.
    int nearest(int group, int most, Scratch&, NearSeed*) const;

   private:
    std::vector<int> group_;
    std::vector<std::size_t> member_at_, link_at_;  // of group g: at[g] .. at[g + 1]
    std::vector<NearSeed> member_;                  // the leader first
    std::vector<Link> links_;
};

}  // namespace hamflow
