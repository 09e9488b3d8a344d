#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "compiler.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if defined(HAMFLOW_FORKS)
#include <pthread.h>
#endif

namespace hamflow {
namespace {

std::atomic<int> thread_count{0};
std::atomic<bool (*)()> interrupt_check{nullptr};

// How often the calling thread looks for Ctrl-C: soon enough for a person, rare enough to cost
// nothing (the check takes the GIL).
constexpr auto check_interval = std::chrono::milliseconds(50);

// Many parallel sections are short and follow each other at once: a thread looks for the next one
// this often, some ten microseconds, before it sleeps. Being woken takes as long.
constexpr int looks = 1000;

template <class Condition>
bool soon(const Condition& condition) {
    for (int k = 0; k < looks; ++k) {
        if (condition()) return true;
#if defined(__x86_64__) || defined(_M_X64)
        _mm_pause();
#elif defined(__aarch64__)
        asm volatile("isb");
#endif
    }
    return false;
}

struct Job {
    void (*body)(void*, int);
    void* context;
    int count;
    std::atomic<int> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr error;
    std::mutex error_mutex;

    void fail(std::exception_ptr e) {
        std::lock_guard<std::mutex> lock(error_mutex);
        if (!error) error = std::move(e);
        stop = true;
    }

    void run(bool is_caller) {
        // Kept from job to job: many short ones must not put the check off for ever.
        thread_local auto last_check = std::chrono::steady_clock::now();
        try {
            while (!stop) {
                const int index = next.fetch_add(1);
                if (index >= count) break;
                body(context, index);
                if (!is_caller) continue;
                const auto now = std::chrono::steady_clock::now();
                if (now - last_check < check_interval) continue;
                last_check = now;
                bool (*check)() = interrupt_check.load();
                if (check && check()) throw Interrupted{};
            }
        } catch (...) {
            fail(std::current_exception());
        }
    }
};

class Pool {
   public:
    // False when another thread is using the pool: the caller then works alone.
    bool run(Job& job, int workers) {
        std::unique_lock<std::mutex> busy(busy_mutex_, std::try_to_lock);
        if (!busy.owns_lock()) return false;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (static_cast<int>(threads_.size()) < workers - 1) {
                const int id = static_cast<int>(threads_.size()) + 1;
                // A machine out of threads is no reason to fail: fewer workers do the same job.
                try {
                    threads_.emplace_back([this, id] { loop(id); });
                } catch (const std::system_error&) {
                    workers = static_cast<int>(threads_.size()) + 1;
                    break;
                }
                threads_.back().detach();
            }
            job_ = &job;
            active_ = workers;
            running_ = workers - 1;
            ++generation_;
        }
        wake_.notify_all();
        job.run(true);
        const auto done = [this] { return running_.load() == 0; };
        if (!soon(done)) {
            std::unique_lock<std::mutex> lock(mutex_);
            done_.wait(lock, done);
        }
        return true;
    }

   private:
    void loop(int id) {
        unsigned long long seen = 0;
        const auto called = [&] { return generation_.load() != seen; };
        for (;;) {
            soon(called);
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, called);
            seen = generation_;
            if (id >= active_) continue;
            Job* job = job_;
            lock.unlock();
            job->run(false);
            if (running_.fetch_sub(1) > 1) continue;
            lock.lock();  // the caller is not between its look and its sleep
            done_.notify_one();
        }
    }

    std::mutex busy_mutex_, mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    Job* job_ = nullptr;
    int active_ = 0;
    std::atomic<int> running_{0};
    std::atomic<unsigned long long> generation_{0};
};

// Never destroyed: its detached threads sleep on its members until the process ends. After a
// fork the child has none of the threads and perhaps locked mutexes, so it gets a new pool.
Pool* pool = nullptr;
std::mutex* pool_mutex = new std::mutex;

#if defined(HAMFLOW_FORKS)
void forget_pool_after_fork() {
    pool = nullptr;
    pool_mutex = new std::mutex;
}
[[maybe_unused]] const int fork_handler =
    pthread_atfork(nullptr, nullptr, forget_pool_after_fork);
#endif

Pool& the_pool() {
    std::lock_guard<std::mutex> lock(*pool_mutex);
    if (!pool) pool = new Pool;
    return *pool;
}

}  // namespace

void set_num_threads(int n) { thread_count = n < 1 ? 1 : n; }

int get_num_threads() {
    const int n = thread_count.load();
    if (n > 0) return n;
    const unsigned hardware = std::thread::hardware_concurrency();
    return hardware ? static_cast<int>(hardware) : 1;
}

void set_interrupt_check(bool (*check)()) { interrupt_check = check; }

void run_parallel(int count, void (*body)(void*, int), void* context) {
    Job job;
    job.body = body;
    job.context = context;
    job.count = count;
    const int workers = std::min(get_num_threads(), count);
    if (workers <= 1 || !the_pool().run(job, workers)) job.run(true);
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace hamflow
