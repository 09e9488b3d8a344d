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
    int most_helpers = 0;
    std::atomic<int> helpers{0};  // raised under the pool's mutex
    std::atomic<int> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr error;
    std::mutex error_mutex;

    void fail(std::exception_ptr e) {
        std::lock_guard<std::mutex> lock(error_mutex);
        if (!error) error = std::move(e);
        stop = true;
    }

    bool open() const { return !stop && next.load() < count; }

    // Computes until nothing is left, or until `enough`.
    template <class Enough>
    void run(bool is_caller, const Enough& enough) {
        // Kept from job to job: many short ones must not put the check off for ever.
        thread_local auto last_check = std::chrono::steady_clock::now();
        try {
            while (!stop && !enough()) {
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

    void run_alone() {
        run(true, [] { return false; });
    }
};

// Several threads can have a job each. Workers help where something is left to do, but never so many
// that more threads than `get_num_threads()` compute.
class Pool {
   public:
    void run(Job& job, int workers) {
        job.most_helpers = workers - 1;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            // A machine out of threads is no reason to fail: fewer workers do the same job.
            try {
                for (; made_ < workers - 1; ++made_) std::thread([this] { loop(); }).detach();
            } catch (const std::system_error&) {
            }
            jobs_.push_back(&job);
            ++job_count_;
            ++generation_;
        }
        if (most_helping() > 0) wake_.notify_all();
        job.run_alone();
        {
            std::lock_guard<std::mutex> lock(mutex_);  // from here on nobody begins to help
            jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
            --job_count_;
        }
        const auto done = [&] { return job.helpers.load() == 0; };
        if (soon(done)) return;
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, done);
    }

    void add_caller(int difference) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            callers_ += difference;
            ++generation_;
        }
        if (difference < 0) wake_.notify_all();
    }

   private:
    // How many workers may compute: the callers compute, too.
    int most_helping() const {
        return get_num_threads() - std::max(1 + callers_.load(), job_count_.load());
    }

    void loop() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            const unsigned long long seen = generation_;
            if (Job* job = job_to_help()) {
                ++job->helpers;
                ++helping_;
                lock.unlock();
                job->run(false, [this] { return helping_ > most_helping(); });
                lock.lock();
                --helping_;
                --job->helpers;  // after the last one the job may be gone
                done_.notify_all();
                continue;
            }
            lock.unlock();
            const auto called = [&] { return generation_.load() != seen; };
            soon(called);
            lock.lock();
            wake_.wait(lock, called);
        }
    }

    Job* job_to_help() const {
        if (helping_ >= most_helping()) return nullptr;
        for (Job* job : jobs_)
            if (job->open() && job->helpers < job->most_helpers) return job;
        return nullptr;
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<Job*> jobs_;
    int made_ = 0;  // threads
    // Changed under the mutex, and looked at without it.
    std::atomic<int> job_count_{0}, callers_{0}, helping_{0};
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

void add_caller(int difference) { the_pool().add_caller(difference); }

void set_interrupt_check(bool (*check)()) { interrupt_check = check; }

void run_parallel(int count, void (*body)(void*, int), void* context) {
    Job job;
    job.body = body;
    job.context = context;
    job.count = count;
    const int workers = std::min(get_num_threads(), count);
    if (workers <= 1)
        job.run_alone();
    else
        the_pool().run(job, workers);
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace hamflow
