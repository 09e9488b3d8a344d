// Short vectors of fixed length, which the compiler maps to what the instruction set has. Results
// are the same on every level: nothing here is fused or reordered.

typedef float Floats HAMFLOW_VECTOR(32);
typedef std::int32_t Ints HAMFLOW_VECTOR(32);
typedef float Quad HAMFLOW_VECTOR(16);
constexpr int width = 8;

template <class Vector>
HAMFLOW_INLINE Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}
HAMFLOW_INLINE void store(float* to, const Floats& value) {
    std::memcpy(to, &value, sizeof(value));
}

template <class Vector>
HAMFLOW_INLINE Vector absolute(const Vector& a) {
    return (Vector)((decltype(a < a))a & 0x7fffffff);  // without the sign
}

HAMFLOW_INLINE float sum_of(const Floats& a) {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

// e^x for x <= 0, to about seven digits; 0 and below -87 as there.
HAMFLOW_INLINE Floats exponential(const Floats& x) {
    const Floats t = x > -87.0f ? x : Floats{} - 87.0f;
    const Floats rounder = Floats{} + 12582912.0f;  // 1.5 * 2^23: no fraction is left
    const Floats n = (t * 1.44269504f + rounder) - rounder;
    const Floats r = t - n * 0.693359375f + n * 2.12194440e-4f;
    const Floats tail =
        ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r +
          4.1665795894e-2f) * r + 1.6666665459e-1f) * r + 5.0000001201e-1f;
    const Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
    Floats scale;
    std::memcpy(&scale, &power, sizeof(scale));
    return (tail * (r * r) + r + 1.0f) * scale;
}
