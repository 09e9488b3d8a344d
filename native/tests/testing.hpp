// What the tests of the kernels share: counting checks, random numbers, guarded outputs.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../convolution.hpp"
#include "../kernels.hpp"

namespace hamflow::test {

// Counts, and prints a failure with the level and the case at hand.
void check(bool ok, const std::string& what);
extern const char* current_level;
extern std::string current_case;

struct Random {
    std::uint64_t state;
    std::uint64_t next() {  // splitmix64
        std::uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
    float signed_unit() { return static_cast<float>(below(1 << 24)) / (1 << 23) - 1.0f; }
};

// An output between guards, full of garbage before the kernel runs.
template <class T>
class Output {
   public:
    explicit Output(std::size_t n) : n_(n), bytes_(n * sizeof(T) + 2 * guard, 0xa5) {}
    T* data() { return reinterpret_cast<T*>(bytes_.data() + guard); }
    const T& operator[](std::size_t i) const {
        return reinterpret_cast<const T*>(bytes_.data() + guard)[i];
    }
    std::size_t size() const { return n_; }
    bool guards_intact() const {
        for (std::size_t i = 0; i < guard; ++i)
            if (bytes_[i] != 0xa5 || bytes_[bytes_.size() - 1 - i] != 0xa5) return false;
        return true;
    }
    bool same_bytes(const Output& other) const { return bytes_ == other.bytes_; }

   private:
    static constexpr std::size_t guard = 128;
    std::size_t n_;
    std::vector<std::uint8_t> bytes_;
};

template <class T>
std::string at(const Output<T>& got, const Output<T>& want, std::size_t i) {
    return " [" + std::to_string(i) + "] is " + std::to_string(got[i]) + ", not " +
           std::to_string(want[i]);
}

template <class T>
void check_same(const Output<T>& got, const Output<T>& want, const std::string& what) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0)
            return check(false, what + at(got, want, i));
    check(got.guards_intact(), what + " writes outside of the array");
}

inline bool near(double got, double want, double abs_tol = 1e-4) {
    return got == want || std::fabs(got - want) <= abs_tol + 1e-5 * std::fabs(want);
}

inline void check_near(const Output<float>& got, const Output<float>& want,
                       const std::string& what, double abs_tol = 1e-4) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!near(got[i], want[i], abs_tol)) return check(false, what + at(got, want, i));
    check(got.guards_intact(), what + " writes outside of the array");
}

// Every kernel of matching, and the passes along chains, at these levels against the reference.
// Both return the number of cases.
std::size_t check_matching(const std::vector<const Kernels*>& levels,
                           const std::vector<int>& thread_counts, bool quick);
std::size_t check_chains(const std::vector<const Kernels*>& levels,
                         const std::vector<int>& thread_counts, bool quick);
void check_networks(const std::vector<const Convolutions*>& tables,
                    const std::vector<int>& thread_counts);

}  // namespace hamflow::test
