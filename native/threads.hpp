// A small fork-safe thread pool. `run_parallel` hands out indices one by one, so which thread
// computes what is not fixed; every kernel therefore makes an index's result independent of
// the thread that computes it, and outputs are the same bytes for any number of threads.
#pragma once

namespace hamflow {

// Thrown out of run_parallel when the interrupt check asked to stop.
struct Interrupted {};

// The number of threads that run_parallel uses from now on (>= 1).
void set_num_threads(int n);
int get_num_threads();

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

}  // namespace
}  // namespace hamflow
