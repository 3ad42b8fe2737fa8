// Hand-written. Elementary functions for guests without a C library, the same bits on every target:
//
//	#include "rl_math.h"
//
//	double height = 0.45 * rl_sin(3 * x) + 0.55;
//	float gain = rl_tanhf(0.5f * error);
//
// A C library may change a last digit from version to version, and with it every trajectory of a chaotic
// environment. Everything here is made of single IEEE operations in a written order, so WebAssembly, x86 and
// ARM agree bit for bit, whichever compiler; build with -ffp-contract=off where the target has a fused
// multiply-add, and never with -ffast-math. What is not a number comes back as one NaN, with one pattern of bits.
//
// The largest errors, in units of the last place of a double: 0.9 for sin, cos, atan, exp, ln and pow, 1.1 for
// tan, 1.4 for atan2, 2.2 for asin and acos, 2.6 for tanh, each over all of its domain; sqrt and fmod are what IEEE
// says. The float versions are the double ones, rounded: 0.501. Natively, link with -lm.
#ifndef RL_MATH_H
#define RL_MATH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "rl_math.h promises the same bits everywhere: build without -ffast-math"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RL_MATH static __attribute__((unused))
#define RL_MATH_INLINE static inline __attribute__((always_inline, unused))
#define RL_INFINITY __builtin_inf()
#define RL_NAN rl_number(0x7ff8000000000000u)
#define RL_PI 3.14159265358979311600e+00

RL_MATH_INLINE uint64_t rl_number_bits(double x)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

RL_MATH_INLINE double rl_number(uint64_t bits)
{
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// ---- exact functions -----------------------------------------------------------------------------------------

RL_MATH_INLINE double rl_abs(double x) { return __builtin_fabs(x); }
RL_MATH_INLINE double rl_floor(double x) { return x == x ? __builtin_floor(x) : RL_NAN; }
RL_MATH_INLINE double rl_ceil(double x) { return x == x ? __builtin_ceil(x) : RL_NAN; }
RL_MATH_INLINE double rl_trunc(double x) { return x == x ? __builtin_trunc(x) : RL_NAN; }

// rl_round rounds to the nearest whole number, halves away from zero.
RL_MATH_INLINE double rl_round(double x)
{
    double whole = rl_trunc(x);
    return rl_abs(x - whole) >= 0.5 ? whole + __builtin_copysign(1.0, x) : whole;
}

RL_MATH_INLINE double rl_sqrt(double x) { return x >= 0 ? __builtin_sqrt(x) : RL_NAN; }

// rl_fmod returns x - n*y, n being x/y without its fraction, with the sign of x: a long division, each step exact.
RL_MATH double rl_fmod(double x, double y)
{
    double rest = rl_abs(x), divisor = rl_abs(y), part = divisor;
    if (!(rest < RL_INFINITY) || !(divisor > 0)) return RL_NAN;
    if (rest < divisor) return x;
    while (rest - part >= part) part += part;
    for (; part >= divisor; part *= 0.5)
        if (rest >= part) rest -= part;
    return __builtin_copysign(rest, x);
}

// ---- twice the precision -------------------------------------------------------------------------------------

// rl_twice is the number hi + lo, lo being at most half a unit of hi's last place.
typedef struct rl_twice {
    double hi, lo;
} rl_twice;

RL_MATH_INLINE rl_twice rl_pair(double hi, double lo)
{
    rl_twice r = {hi, lo};
    return r;
}

// rl_sum returns a + b without error.
RL_MATH_INLINE rl_twice rl_sum(double a, double b)
{
    double s = a + b, of_b = s - a, of_a = s - of_b;
    return rl_pair(s, (a - of_a) + (b - of_b));
}

// rl_product returns a * b without error, where a and b are below 2^900.
RL_MATH_INLINE rl_twice rl_product(double a, double b)
{
    double p = a * b, ta = a * 134217729.0, tb = b * 134217729.0; // 2^27 + 1 splits 53 bits into halves
    double ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
    return rl_pair(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl);
}

RL_MATH_INLINE rl_twice rl_twice_add(rl_twice a, rl_twice b)
{
    rl_twice s = rl_sum(a.hi, b.hi);
    return rl_sum(s.hi, s.lo + (a.lo + b.lo));
}

RL_MATH_INLINE rl_twice rl_twice_mul(rl_twice a, rl_twice b)
{
    rl_twice p = rl_product(a.hi, b.hi);
    return rl_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// rl_nearest rounds |x| < 2^51 to the nearest whole number, halves to even.
RL_MATH_INLINE double rl_nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// rl_scale returns x * 2^k for |k| < 2000, rounded once if x is near 1.
RL_MATH_INLINE double rl_scale(double x, int k)
{
    int half = k / 2;
    return x * rl_number((uint64_t)(1023 + half) << 52) * rl_number((uint64_t)(1023 + k - half) << 52);
}

// ---- angles --------------------------------------------------------------------------------------------------

#define RL_HALF_PI rl_pair(0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54)

// rl_quarter_far is rl_quarter for any x: the digits of 2/pi that matter, times the mantissa, in whole numbers.
RL_MATH uint32_t rl_quarter_far(double x, rl_twice *r)
{
    static const uint32_t two_over_pi[] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
        0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
        0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
        0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
        0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
    enum { WORDS = 7, LIMBS = WORDS + 3 };
    uint64_t bits = rl_number_bits(rl_abs(x)), mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    int exponent = (int)(bits >> 52) - 1075;
    int skip = exponent > 2 ? (exponent - 2) / 32 : 0; // words of which every bit is a multiple of four turns
    uint32_t limb[LIMBS] = {0};                        // mantissa * words, lowest first
    for (int half = 0; half < 2; half++) {
        uint64_t carry = 0, m = (uint32_t)(mantissa >> 32 * half);
        for (int i = 0; i < WORDS; i++) {
            carry += m * two_over_pi[skip + WORDS - 1 - i] + limb[i + half];
            limb[i + half] = (uint32_t)carry;
            carry >>= 32;
        }
        limb[WORDS + half] = (uint32_t)carry;
    }
    // The binary point is this many bits up; quarters lie above it, the fraction of a quarter below.
    int point = 32 * (skip + WORDS) - exponent, shift = point % 32;
    uint32_t part[5];
    for (int i = 0; i < 5; i++) {
        uint64_t two = 0;
        int at = point / 32 - i;
        if (at < LIMBS) two = limb[at];
        if (at + 1 < LIMBS) two |= (uint64_t)limb[at + 1] << 32;
        part[i] = (uint32_t)(two >> shift);
    }
    uint32_t quarter = part[0], flip = 0u - (part[1] >> 31); // beyond the half: the next quarter, and back
    uint64_t high = (uint64_t)(part[1] ^ flip) << 32 | (part[2] ^ flip), low = (uint64_t)(part[3] ^ flip) << 32 | (part[4] ^ flip);
    double hi = (double)(high >> 11) * 0x1p-53, lo = (double)((high & 0x7ff) << 53 | low >> 11) * 0x1p-117;
    double sign = (x < 0) != (flip != 0) ? -1.0 : 1.0;
    *r = rl_twice_mul(rl_pair(sign * hi, sign * lo), RL_HALF_PI);
    quarter -= flip; // flip is -1
    return (x < 0 ? 0u - quarter : quarter) & 3;
}

// rl_quarter takes the multiple of pi/2 nearest to a finite x away and returns which of four it was.
RL_MATH uint32_t rl_quarter(double x, rl_twice *r)
{
    *r = rl_pair(x, 0);
    if (rl_abs(x) <= 0.785398163397448279) return 0;
    if (rl_abs(x) < 0x1p20) { // pi/2 in three parts, of which k times the first two is exact
        double k = rl_nearest(x * 0x1.45f306dc9c883p-1), a = x - k * 0x1.921fb544p+0;
        rl_twice d = rl_sum(a, -(k * 0x1.0b4611a6p-34));
        *r = rl_sum(d.hi, d.lo - k * 0x1.3198a2e037073p-69);
        if (rl_abs(r->hi) > 0x1p-30) return (uint32_t)(int32_t)k & 3;
    }
    return rl_quarter_far(x, r);
}

// rl_sin_near and rl_cos_near are Taylor's series for |r| <= pi/4; the sum of the result is a little more exact
// than a double.
RL_MATH_INLINE rl_twice rl_sin_near(rl_twice r)
{
    double x = r.hi, z = x * x;
    double series = -1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                    z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0)))))));
    return rl_pair(x, x * z * series + r.lo * (1 - 0.5 * z));
}

RL_MATH_INLINE rl_twice rl_cos_near(rl_twice r)
{
    double x = r.hi, z = x * x, half = 0.5 * z, hi = 1 - half;
    double series = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600 +
                    z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0 + z * (-1.0 / 6402373705728000.0)))))));
    return rl_pair(hi, ((1 - hi) - half) + (z * z * series - x * r.lo));
}

// rl_turned returns the sine of x, or of x + turns quarters.
RL_MATH double rl_turned(double x, uint32_t turns)
{
    rl_twice r;
    if (!(rl_abs(x) < RL_INFINITY)) return RL_NAN;
    turns += rl_quarter(x, &r);
    r = turns & 1 ? rl_cos_near(r) : rl_sin_near(r);
    return turns & 2 ? -(r.hi + r.lo) : r.hi + r.lo;
}

RL_MATH_INLINE double rl_sin(double x) { return rl_abs(x) < 0x1p-27 ? x : rl_turned(x, 0); }
RL_MATH_INLINE double rl_cos(double x) { return rl_turned(x, 1); }

RL_MATH double rl_tan(double x)
{
    rl_twice r;
    if (rl_abs(x) < 0x1p-27) return x;
    if (!(rl_abs(x) < RL_INFINITY)) return RL_NAN;
    uint32_t quarter = rl_quarter(x, &r);
    rl_twice s = rl_sin_near(r), c = rl_cos_near(r);
    s = rl_sum(s.hi, s.lo);
    c = rl_sum(c.hi, c.lo);
    if (quarter & 1) {
        rl_twice swap = s;
        s = rl_pair(-c.hi, -c.lo);
        c = swap;
    }
    double q = s.hi / c.hi;
    rl_twice back = rl_product(q, c.hi);
    return q + ((s.hi - back.hi) - back.lo + (s.lo - q * c.lo)) / c.hi;
}

// rl_atan2 returns the angle of the point (x, y), from -pi to pi. The smaller coordinate n over the larger d is
// brought near the next sixteenth c, as atan(n/d) = atan(c) + atan((n - c*d) / (d + c*n)).
RL_MATH double rl_atan2(double y, double x)
{
    static const double sixteenths[][2] = {
        {0, 0}, {0, 0},
        {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59}, {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
        {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57}, {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
        {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56}, {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
        {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56}, {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
        {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58}, {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
        {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56}, {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
        {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56}, {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
        {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
    };
    double ax = rl_abs(x), ay = rl_abs(y), n = ay < ax ? ay : ax, d = ay < ax ? ax : ay;
    if (!(ax >= 0) || !(ay >= 0)) return RL_NAN;
    if (d == RL_INFINITY) {
        n = n == d;
        d = 1;
    }
    if (d == 0) d = 1; // both are zero
    if (d > 0x1p900 || d < 0x1p-900) {
        double scale = d > 1 ? 0x1p-200 : 0x1p200;
        n *= scale;
        d *= scale;
    }
    int i = (int)(16 * n / d + 0.5);
    double t = n / d, c = 0.0625 * i;
    if (i < 2) {
        i = 0;
    } else {
        double top = rl_number(rl_number_bits(d) & ~(uint64_t)0x7ffffff); // c times this is exact
        t = ((n - c * top) - c * (d - top)) / (d + c * n);
    }
    double z = t * t;
    double tail = t * z * (-1.0 / 3 + z * (1.0 / 5 + z * (-1.0 / 7 + z * (1.0 / 9 + z * (-1.0 / 11 + z * (1.0 / 13 +
                  z * (-1.0 / 15 + z * (1.0 / 17))))))));
    rl_twice angle = rl_sum(sixteenths[i][0], t), base = RL_HALF_PI;
    angle.lo += sixteenths[i][1] + tail;
    bool behind = rl_number_bits(x) >> 63, steep = ay > ax;
    double turns = steep ? 1 : behind ? 2 : 0, sign = steep == behind ? 1 : -1; // from the axis that is nearest
    if (turns > 0) {
        base = rl_sum(turns * base.hi, sign * angle.hi);
        angle = rl_pair(base.hi, base.lo + (turns * RL_HALF_PI.lo + sign * angle.lo));
    }
    return __builtin_copysign(angle.hi + angle.lo, y);
}

RL_MATH_INLINE double rl_atan(double x) { return rl_atan2(x, 1); }
RL_MATH_INLINE double rl_asin(double x) { return rl_atan2(x, rl_sqrt((1 - x) * (1 + x))); }
RL_MATH_INLINE double rl_acos(double x) { return rl_atan2(rl_sqrt((1 - x) * (1 + x)), x); }

// ---- exponentials --------------------------------------------------------------------------------------------

#define RL_LN2_HI 0x1.62e42fefa38p-1 // 42 bits: times an exponent it is exact
#define RL_LN2_LO 0x1.ef35793c7673p-45

// rl_exp_parts returns q and k with e^(hi+lo) = 2^k * (1 + q), for |hi| < 800.
RL_MATH_INLINE double rl_exp_parts(double hi, double lo, int *k)
{
    double n = rl_nearest(hi * 0x1.71547652b82fep+0);
    rl_twice r = rl_sum(hi - n * RL_LN2_HI, lo - n * RL_LN2_LO);
    double x = r.hi, z = x * x;
    double series = 0.5 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x * (1.0 / 720 + x * (1.0 / 5040 +
                    x * (1.0 / 40320 + x * (1.0 / 362880 + x * (1.0 / 3628800 + x * (1.0 / 39916800 +
                    x * (1.0 / 479001600 + x * (1.0 / 6227020800.0)))))))))));
    *k = (int)n;
    return x + (z * series + r.lo);
}

// rl_exp_twice returns e^(hi+lo).
RL_MATH double rl_exp_twice(double hi, double lo)
{
    int k;
    if (hi > 710) return RL_INFINITY;
    if (hi < -746) return 0;
    double q = rl_exp_parts(hi, lo, &k);
    return rl_scale(1 + q, k);
}

RL_MATH_INLINE double rl_exp(double x) { return x == x ? rl_exp_twice(x, 0) : RL_NAN; }

RL_MATH double rl_tanh(double x)
{
    int k;
    double a = rl_abs(x);
    if (x != x) return RL_NAN;
    if (a < 0x1p-27) return x;
    if (a > 20) return __builtin_copysign(1.0, x);
    double q = rl_exp_parts(2 * a, 0, &k), two = rl_scale(1, k), less = two * q + (two - 1); // e^2a - 1
    return __builtin_copysign(a < 0.5 ? less / (less + 2) : 1 - 2 / (less + 2), x);
}

// rl_ln_parts returns f and k with x = 2^k * (1 + f) and 1 + f near 1, for a finite x above zero.
RL_MATH_INLINE double rl_ln_parts(double x, int *k)
{
    int lift = x < 0x1p-1022 ? 54 : 0;
    uint64_t bits = rl_number_bits(lift ? x * 0x1p54 : x), mantissa = bits & 0xfffffffffffffu;
    int over = mantissa > 0x6a09e667f3bcdu; // above the root of two
    *k = (int)(bits >> 52) - 1023 - lift + over;
    return rl_number(mantissa | (uint64_t)(1023 - over) << 52) - 1;
}

// rl_ln is the natural logarithm (rl_log writes to the log). It uses log(1+f) = 2*atanh(s) with s = f / (2+f), where 2*s = f - s*f.
RL_MATH double rl_ln(double x)
{
    int k;
    if (!(x >= 0)) return RL_NAN;
    if (x == 0) return -RL_INFINITY;
    if (x == RL_INFINITY) return x;
    double f = rl_ln_parts(x, &k), s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double series = z * (2.0 / 3 + z * (2.0 / 5 + z * (2.0 / 7 + z * (2.0 / 9 + z * (2.0 / 11 + z * (2.0 / 13 +
                    z * (2.0 / 15 + z * (2.0 / 17 + z * (2.0 / 19 + z * (2.0 / 21))))))))));
    return k * RL_LN2_HI + (f - (half - (s * (half + series) + k * RL_LN2_LO)));
}

// rl_ln_twice is the logarithm to some 100 bits, for pow.
RL_MATH rl_twice rl_ln_twice(double x)
{
    int k;
    double f = rl_ln_parts(x, &k);
    rl_twice below = rl_sum(2, f);
    double q = f / below.hi;
    rl_twice back = rl_product(q, below.hi);
    rl_twice s = rl_sum(q, ((f - back.hi) - back.lo - q * below.lo) / below.hi), z = rl_twice_mul(s, s);
    double t = z.hi, tail = 1.0 / 7 + t * (1.0 / 9 + t * (1.0 / 11 + t * (1.0 / 13 + t * (1.0 / 15 + t * (1.0 / 17 +
                            t * (1.0 / 19 + t * (1.0 / 21 + t * (1.0 / 23))))))));
    rl_twice series = rl_twice_add(rl_pair(0x1.999999999999ap-3, -0x1.999999999999ap-57), rl_twice_mul(z, rl_pair(tail, 0)));
    series = rl_twice_add(rl_pair(0x1.5555555555555p-2, 0x1.5555555555555p-56), rl_twice_mul(z, series));
    rl_twice rest = rl_twice_mul(rl_twice_mul(s, z), series);
    rl_twice log = rl_twice_add(rl_pair(2 * s.hi, 2 * s.lo), rl_pair(2 * rest.hi, 2 * rest.lo));
    return rl_twice_add(rl_sum(k * RL_LN2_HI, k * RL_LN2_LO), log);
}

// rl_pow returns x to the power of y, with the special cases of C.
RL_MATH double rl_pow(double x, double y)
{
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return RL_NAN;
    double a = rl_abs(x), ay = rl_abs(y);
    bool negative = rl_number_bits(x) >> 63, whole = ay >= 0x1p53 || rl_trunc(y) == y;
    double sign = negative && ay < 0x1p53 && whole && (int64_t)y & 1 ? -1 : 1;
    if (a == 1 && (whole || ay == RL_INFINITY)) return sign;
    if (a == 0 || a == RL_INFINITY || ay == RL_INFINITY) {
        bool large = (a > 1) == (y > 0);
        return large ? sign * RL_INFINITY : sign * 0.0;
    }
    if (negative && !whole) return RL_NAN;
    rl_twice log = rl_ln_twice(a);
    double t = y * log.hi;
    if (!(rl_abs(t) < 800)) return t > 0 ? sign * RL_INFINITY : sign * 0.0;
    rl_twice p = rl_product(y, log.hi);
    return sign * rl_exp_twice(p.hi, p.lo + y * log.lo);
}

// ---- float ---------------------------------------------------------------------------------------------------

RL_MATH_INLINE float rl_absf(float x) { return __builtin_fabsf(x); }
RL_MATH_INLINE float rl_floorf(float x) { return (float)rl_floor(x); }
RL_MATH_INLINE float rl_ceilf(float x) { return (float)rl_ceil(x); }
RL_MATH_INLINE float rl_truncf(float x) { return (float)rl_trunc(x); }
RL_MATH_INLINE float rl_roundf(float x) { return (float)rl_round(x); }
RL_MATH_INLINE float rl_sqrtf(float x) { return (float)rl_sqrt(x); }
RL_MATH_INLINE float rl_fmodf(float x, float y) { return (float)rl_fmod(x, y); }
RL_MATH_INLINE float rl_sinf(float x) { return (float)rl_sin(x); }
RL_MATH_INLINE float rl_cosf(float x) { return (float)rl_cos(x); }
RL_MATH_INLINE float rl_tanf(float x) { return (float)rl_tan(x); }
RL_MATH_INLINE float rl_asinf(float x) { return (float)rl_asin(x); }
RL_MATH_INLINE float rl_acosf(float x) { return (float)rl_acos(x); }
RL_MATH_INLINE float rl_atanf(float x) { return (float)rl_atan(x); }
RL_MATH_INLINE float rl_atan2f(float y, float x) { return (float)rl_atan2(y, x); }
RL_MATH_INLINE float rl_expf(float x) { return (float)rl_exp(x); }
RL_MATH_INLINE float rl_lnf(float x) { return (float)rl_ln(x); }
RL_MATH_INLINE float rl_powf(float x, float y) { return (float)rl_pow(x, y); }
RL_MATH_INLINE float rl_tanhf(float x) { return (float)rl_tanh(x); }

#ifdef __cplusplus
}
#endif

#endif
