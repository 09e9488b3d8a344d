// What differs between compilers. The kernels are written with the vector types of GCC and Clang;
// on Windows the compiler is therefore clang-cl, which has them, too.
#pragma once

#if !defined(__GNUC__) && !defined(__clang__)
#error "Hamflow needs GCC or Clang; on Windows, clang-cl (the toolset ClangCL of Visual Studio)."
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Hamflow needs a little-endian machine: vectors of bytes are read as words."
#endif

#define HAMFLOW_INLINE inline __attribute__((always_inline))
#define HAMFLOW_INLINE_LAMBDA __attribute__((always_inline))
#define HAMFLOW_NOINLINE __attribute__((noinline))
// A type like float becomes a vector of it: typedef float Quad HAMFLOW_VECTOR(16).
#define HAMFLOW_VECTOR(bytes) __attribute__((vector_size(bytes)))

// Loops over rows that do not overlap are vectorized by the compiler, for each level in the same
// order of operations: results have the same bytes on all of them.
#if defined(__clang__)
#define HAMFLOW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HAMFLOW_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Whether processes are forked: what a thread holds is then lost in the child.
#if defined(__unix__) || defined(__APPLE__)
#define HAMFLOW_FORKS
#endif
