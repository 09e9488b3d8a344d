// A small fork-safe thread pool. `run_parallel` hands out indices one by one, so which thread
// computes what is not fixed; every kernel therefore makes an index's result independent of
// the thread that computes it, and outputs are the same bytes for any number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace hamflow {

// Thrown out of run_parallel when the interrupt check asked to stop.
struct Interrupted {};

// The number of threads that run_parallel uses from now on (>= 1).
void set_num_threads(int n);
int get_num_threads();

// One more thread, or one less, is going to call run_parallel at the same time as the others. Each of
// them computes, so that many workers fewer do; those that have nothing to do help any of them.
void add_caller(int difference);

// Called now and then on the calling thread during run_parallel; returning true stops the work.
// Set once by the bindings (which look for Ctrl-C there); by default nothing is checked.
void set_interrupt_check(bool (*check)());

// body(context, index) for index = 0..count-1. Rethrows the first exception of a body
// (std::bad_alloc, for instance) after all workers have stopped.
void run_parallel(int count, void (*body)(void* context, int index), void* context);

namespace {  // internal linkage: see simd/common.hpp

template <class Body>
void parallel_for(int count, const Body& body) {
    run_parallel(
        count,
        [](void* context, int index) { (*static_cast<const Body*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&body)));
}

// body(begin, end) for each piece of [0, n), `piece` long but for the last: for work of which a single
// index would not be worth its handing out.
template <class Int, class Body>
void parallel_pieces(Int n, Int piece, const Body& body) {
    parallel_for(static_cast<int>((n + piece - 1) / piece), [&](int index) {
        const Int begin = static_cast<Int>(index) * piece;
        body(begin, std::min(n, begin + piece));
    });
}

// body(room, index), where a room, made by `make()`, is used by one thread at a time and then again.
// An index is a task of its own, so that Ctrl-C is noticed between them.
template <class Make, class Body>
void parallel_for_with(const Make& make, int count, const Body& body) {
    using Room = std::invoke_result_t<Make>;
    std::mutex mutex;
    std::vector<std::unique_ptr<Room>> unused;
    parallel_for(count, [&](int index) {
        std::unique_ptr<Room> room;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (!unused.empty()) {
                room = std::move(unused.back());
                unused.pop_back();
            }
        }
        if (!room) room.reset(new Room(make()));
        body(*room, index);
        std::lock_guard<std::mutex> lock(mutex);
        unused.push_back(std::move(room));
    });
}

}  // namespace
}  // namespace hamflow
