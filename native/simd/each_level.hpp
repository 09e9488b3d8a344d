// Every level has tables of functions of the same names, each in its own namespace.
#pragma once

// Declares the table of each level.
#define HAMFLOW_DECLARE_TABLES(Table, table)      \
    namespace portable { extern const Table table; } \
    namespace avx2 { extern const Table table; }     \
    namespace avx512 { extern const Table table; }   \
    namespace neon { extern const Table table; }

// Pointers to the tables of the levels that are compiled, worst to best.
#if defined(HAMFLOW_X86)
#define HAMFLOW_EACH_LEVEL(table) {&portable::table, &avx2::table, &avx512::table}
#elif defined(HAMFLOW_NEON)
#define HAMFLOW_EACH_LEVEL(table) {&portable::table, &neon::table}
#else
#define HAMFLOW_EACH_LEVEL(table) {&portable::table}
#endif
