#include "seed_graph.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "completion_kernels.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

constexpr float unreached = 3e38f;

// Pixels by their distance, in buckets that are used again and again: the next one to be expanded
// is at most one longest step farther than the present one. If no step is shorter than a bucket is
// wide, each pixel is expanded once; otherwise some are expanded again.
class Buckets {
   public:
    Buckets(float shortest, float longest) {
        const float width = std::max(shortest, longest / 4096);
        scale_ = width > 0 ? 1 / width : 1.0f;
        buckets_.resize(static_cast<std::size_t>(longest * scale_) + 3);
    }
    void push(float distance, int pixel) {
        buckets_[number(distance) % buckets_.size()].push_back({distance, pixel});
        ++count_;
    }
    template <class Expand>
    void empty(const Expand& expand) {
        for (std::size_t k = 0; count_ > 0; k = k + 1 == buckets_.size() ? 0 : k + 1) {
            std::vector<Entry>& bucket = buckets_[k];
            for (std::size_t e = 0; e < bucket.size(); ++e) {
                const Entry entry = bucket[e];
                expand(entry.distance, entry.pixel);
            }
            count_ -= bucket.size();
            bucket.clear();
        }
    }

   private:
    struct Entry {
        float distance;
        int pixel;
    };
    std::size_t number(float distance) const { return static_cast<std::size_t>(distance * scale_); }
    float scale_;
    std::vector<std::vector<Entry>> buckets_;
    std::size_t count_ = 0;
};

// Of the links between two nodes keeps the shortest, sorted by where they lead. `parts` says where
// one begins and how long it is.
template <class Link, class Parts>
void keep_shortest(int nodes, std::vector<std::size_t>& first, std::vector<Link>& links,
                   const Parts& parts) {
    std::vector<std::size_t> kept(first.size(), 0);
    parallel_pieces(nodes, 256, [&](int first_node, int last_node) {
        for (int n = first_node; n < last_node; ++n) {
            const auto begin = links.begin() + static_cast<std::ptrdiff_t>(first[n]);
            const auto end = links.begin() + static_cast<std::ptrdiff_t>(first[n + 1]);
            std::sort(begin, end,
                      [&](const Link& a, const Link& b) { return parts(a) < parts(b); });
            const auto last = std::unique(begin, end, [&](const Link& a, const Link& b) {
                return parts(a).first == parts(b).first;
            });
            kept[n + 1] = static_cast<std::size_t>(last - begin);
        }
    });
    for (int n = 0; n < nodes; ++n) {
        std::copy_n(links.begin() + static_cast<std::ptrdiff_t>(first[n]), kept[n + 1],
                    links.begin() + static_cast<std::ptrdiff_t>(kept[n]));
        kept[n + 1] += kept[n];
    }
    links.resize(kept.back());
    first.swap(kept);
}

}  // namespace

SeedGraph::SeedGraph(const Interpolation& p)
    : owner_(static_cast<std::size_t>(p.h) * p.w, -1) {
    find_owners(p);
    find_links(p);
}

// Dijkstra from all seeds at once.
void SeedGraph::find_owners(const Interpolation& p) {
    const std::size_t n = owner_.size();
    float shortest = unreached, longest = 0;
    bool good = true;
    for (const float* steps : {p.right, p.down})
        for (std::size_t i = 0; i < n; ++i) {
            // Negative steps make paths without end; infinite ones and NaN, pixels without an owner.
            good &= steps[i] >= 0 && steps[i] <= 1e20f;
            shortest = std::min(shortest, steps[i]);
            longest = std::max(longest, steps[i]);
        }
    if (!good) throw std::invalid_argument("right, down: steps from 0 to 1e20");
    std::fill_n(p.distance, n, unreached);
    Buckets queue(shortest, longest);
    for (int s = 0; s < p.seeds; ++s) {
        p.distance[p.pixel[s]] = 0;
        owner_[p.pixel[s]] = s;
        queue.push(0.0f, p.pixel[s]);
    }
    queue.empty([&](float distance, int i) {
        if (distance > p.distance[i]) return;
        const int x = i % p.w, y = i / p.w;
        const auto visit = [&](int j, float step) {
            const float there = distance + step;
            if (there < p.distance[j]) {
                p.distance[j] = there;
                owner_[j] = owner_[i];
                queue.push(there, j);
            }
        };
        if (x > 0) visit(i - 1, p.right[i - 1]);
        if (x + 1 < p.w) visit(i + 1, p.right[i]);
        if (y > 0) visit(i - p.w, p.down[i - p.w]);
        if (y + 1 < p.h) visit(i + p.w, p.down[i]);
    });
}

void SeedGraph::find_links(const Interpolation& p) {
    const auto for_each_border = [&](const auto& use) {
        for (int y = 0; y < p.h; ++y)
            for (int x = 0; x < p.w; ++x) {
                const int i = y * p.w + x;
                if (x + 1 < p.w && owner_[i] != owner_[i + 1]) use(i, i + 1, p.right[i]);
                if (y + 1 < p.h && owner_[i] != owner_[i + p.w]) use(i, i + p.w, p.down[i]);
            }
    };
    first_.assign(static_cast<std::size_t>(p.seeds) + 1, 0);
    for_each_border([&](int i, int j, float) { ++first_[owner_[i] + 1], ++first_[owner_[j] + 1]; });
    for (int s = 0; s < p.seeds; ++s) first_[s + 1] += first_[s];
    links_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for_each_border([&](int i, int j, float step) {
        const float length = p.distance[i] + step + p.distance[j];
        links_[next[owner_[i]]++] = {owner_[j], length};
        links_[next[owner_[j]]++] = {owner_[i], length};
    });
    keep_shortest(p.seeds, first_, links_, [](const NearSeed& l) {
        return std::make_pair(l.seed, l.distance);
    });
}

SeedGroups::SeedGroups(const SeedGraph& graph, const Interpolation& p, float together)
    : group_(static_cast<std::size_t>(p.seeds), -1) {
    const auto alike = [&](int s, int t) {
        return std::abs(p.match[2 * s] - p.match[2 * t]) <= p.tolerance &&
               std::abs(p.match[2 * s + 1] - p.match[2 * t + 1]) <= p.tolerance;
    };
    std::vector<float> away(static_cast<std::size_t>(p.seeds), 0.0f);  // from the leader
    member_at_.assign(1, 0);
    for (int s = 0; s < p.seeds; ++s) {
        if (group_[s] >= 0) continue;
        const int group = count();
        member_.push_back({s, 0.0f});
        for (const NearSeed* k = graph.begin(s); k != graph.end(s); ++k)
            if (group_[k->seed] < 0 && k->distance <= together && alike(s, k->seed))
                member_.push_back(*k);
        for (std::size_t k = member_at_.back(); k < member_.size(); ++k) {
            group_[member_[k].seed] = group;
            away[member_[k].seed] = member_[k].distance;
        }
        member_at_.push_back(member_.size());
    }
    link_at_.assign(1, 0);
    for (int g = 0; g < count(); ++g) {
        for (std::size_t m = member_at_[g]; m < member_at_[g + 1]; ++m) {
            const int s = member_[m].seed;
            for (const NearSeed* k = graph.begin(s); k != graph.end(s); ++k)
                if (group_[k->seed] != g)
                    links_.push_back({group_[k->seed], away[s] + k->distance + away[k->seed]});
        }
        link_at_.push_back(links_.size());
    }
    keep_shortest(count(), link_at_, links_, [](const Link& l) {
        return std::make_pair(l.group, l.length);
    });
}

// Dijkstra until enough seeds are found. The frontier is small and has no order: to look through all
// of it in vectors takes less time than the branches of a heap.
int SeedGroups::nearest(int group, int most, Scratch& scratch, NearSeed* near) const {
    constexpr int untouched = Scratch::untouched, done = Scratch::done;
    const auto nearest_of = completion_kernels().smallest;
    int *state = scratch.state.data(), *touched = scratch.touched.data();
    float* distance = scratch.distance.data();
    int* who = scratch.group.data();
    int size = 1, seen = 1, count = 0;
    touched[0] = who[0] = group;
    state[group] = 0;
    distance[0] = 0;
    while (size > 0 && count < most) {
        const int k = nearest_of(distance, size);
        const int g = who[k];
        const float d = distance[k];
        state[g] = done;
        --size;
        distance[k] = distance[size], who[k] = who[size];
        if (k != size) state[who[k]] = k;
        distance[size] = unreached;
        for (std::size_t m = member_at_[g]; m < member_at_[g + 1] && count < most; ++m)
            near[count++] = {member_[m].seed, d + member_[m].distance};
        for (const Link *l = begin(g), *last = end(g); l != last; ++l) {
            const float there = d + l->length;
            const int at = state[l->group];
            if (at == untouched) {
                touched[seen++] = l->group;
                state[l->group] = size;
                who[size] = l->group;
                distance[size++] = there;
            } else if (at != done) {
                distance[at] = std::min(distance[at], there);
            }
        }
    }
    for (int k = 0; k < seen; ++k) state[touched[k]] = untouched;
    std::fill_n(distance, size, unreached);
    return count;
}

}  // namespace hamflow
