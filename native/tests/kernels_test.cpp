// Every level that this machine can run, against the reference: integers byte for byte, floats to
// a tolerance, and the same bytes for any number of threads.
//
//     kernels_test [--quick] [the name of a level, or of convolutions]
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "../simd/levels.hpp"
#include "../threads.hpp"
#include "testing.hpp"

namespace hamflow::test {

const char* current_level = "";
std::string current_case;

namespace {

int passed = 0, failed = 0;

void check_levels() {
    current_level = "levels";
    current_case = "force_kernels";
    const std::vector<const Kernels*> all = available_kernels();
    check(!all.empty() && all[0] == &portable::kernels, "portable comes first");
    check(&active_kernels() == all.back(), "the best one is the default");
    for (const Kernels* k : all)
        check(force_kernels(k->name) && &active_kernels() == k, k->name);
    check(force_kernels("reference") && &active_kernels() == &reference_kernels, "reference");
    check(!force_kernels("nonsense") && &active_kernels() == &reference_kernels, "unknown name");
    check(force_kernels(nullptr) && &active_kernels() == all.back(), "back to automatic");
    check(&active_convolutions() == available_convolutions().back(), "the best convolutions");
    check(force_kernels("portable") && &active_convolutions() == &portable::convolutions,
          "those of a level");
    check(force_kernels("") && &active_kernels() == all.back(),
          "the empty name");
}

// Several threads give work at once, some of it short, while the number of callers changes.
void check_pool(const std::vector<int>& thread_counts, bool quick) {
    current_level = "pool";
    current_case = "several callers";
    const int rounds = quick ? 200 : 2000;
    for (const int count : thread_counts) {
        set_num_threads(count);
        std::atomic<int> wrong{0};
        std::vector<std::thread> callers;
        for (int caller = 0; caller < 3; ++caller)
            callers.emplace_back([&, caller] {
                for (int round = 0; round < rounds; ++round) {
                    add_caller(1);
                    const int size = 1 + (round * (caller + 3)) % 40;
                    std::vector<int> done(static_cast<std::size_t>(size), 0);
                    parallel_for(size, [&](int k) { ++done[static_cast<std::size_t>(k)]; });
                    for (const int times : done) wrong += times != 1;
                    add_caller(-1);
                }
            });
        for (std::thread& caller : callers) caller.join();
        check(wrong == 0, "every piece of work is done once");
    }
}

}  // namespace

void check(bool ok, const std::string& what) {
    if (ok) {
        ++passed;
        return;
    }
    ++failed;
    std::printf("FAILED %s: %s: %s\n", current_level, current_case.c_str(), what.c_str());
}

}  // namespace hamflow::test

int main(int argc, char** argv) {
    using namespace hamflow;
    using namespace hamflow::test;
    bool quick = false;
    const char* only = nullptr;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--quick") == 0)
            quick = true;
        else
            only = argv[i];
    }
    check_levels();

    std::vector<const Kernels*> levels;
    for (const Kernels* k : available_kernels())
        if (!only || std::strcmp(only, k->name) == 0) levels.push_back(k);
    std::vector<const Convolutions*> convolutions;
    for (const Convolutions* table : available_convolutions())
        if (!only || std::strcmp(only, table->name) == 0) convolutions.push_back(table);
    if (levels.empty() && convolutions.empty()) {
        std::printf("no such level, and no such convolutions: %s\n", only);
        return 1;
    }
    const std::vector<int> thread_counts = quick ? std::vector<int>{3} : std::vector<int>{2, 3, 8};

    const std::size_t matching = check_matching(levels, thread_counts, quick);
    const std::size_t chains = check_chains(levels, thread_counts, quick);
    check_networks(convolutions, thread_counts);
    check_pool(thread_counts, quick);

    std::printf("%zu cases of matching, %zu of chains, levels:", matching, chains);
    for (const Kernels* k : levels) std::printf(" %s", k->name);
    std::printf("; convolutions:");
    for (const Convolutions* table : convolutions) std::printf(" %s", table->name);
    std::printf("\n%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
