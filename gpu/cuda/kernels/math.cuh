// Elementary functions, operation by operation those of gpu/cpu/internal/kern, so that a row has the same bits on both. Compiled
// with -fmad=false: what is fused says so.
#pragma once
#include <stdint.h>

// limit keeps x within bounds; what is not a number stays so.
__device__ __forceinline__ float limit(float x, float low, float high) {
  x = high < x ? high : x;
  return low > x ? low : x;
}

__device__ __forceinline__ float tanh_(float x) {
  x = limit(x, -7.90531110763549805f, 7.90531110763549805f);
  float t = x * x;
  float p = -2.76076847742355e-16f;
  p = __fmaf_rn(p, t, 2.00018790482477e-13f);
  p = __fmaf_rn(p, t, -8.60467152213735e-11f);
  p = __fmaf_rn(p, t, 5.12229709037114e-08f);
  p = __fmaf_rn(p, t, 1.48572235717979e-05f);
  p = __fmaf_rn(p, t, 6.37261928875436e-04f);
  p = __fmaf_rn(p, t, 4.89352455891786e-03f);
  float q = 1.19825839466702e-06f;
  q = __fmaf_rn(q, t, 1.18534705686654e-04f);
  q = __fmaf_rn(q, t, 2.26843463243900e-03f);
  q = __fmaf_rn(q, t, 4.89352518554385e-03f);
  return __fdiv_rn(x * p, q);
}

__device__ __forceinline__ float sigmoid_(float x) { return __fmaf_rn(tanh_(0.5f * x), 0.5f, 0.5f); }

// normal is the standard normal distribution function.
__device__ __forceinline__ float normal(float x) {
  x = limit(x * 0.70710678118654752f, -4.f, 4.f);
  float t = x * x;
  float p = -2.72614225801306e-10f;
  p = __fmaf_rn(p, t, 2.77068142495902e-08f);
  p = __fmaf_rn(p, t, -2.10102402082508e-06f);
  p = __fmaf_rn(p, t, -5.69250639462346e-05f);
  p = __fmaf_rn(p, t, -7.34990630326855e-04f);
  p = __fmaf_rn(p, t, -2.95459980854025e-03f);
  p = __fmaf_rn(p, t, -1.60960333262415e-02f);
  float q = -1.45660718464996e-05f;
  q = __fmaf_rn(q, t, -2.13374055278905e-04f);
  q = __fmaf_rn(q, t, -1.68282697438203e-03f);
  q = __fmaf_rn(q, t, -7.37332916720468e-03f);
  q = __fmaf_rn(q, t, -1.42647390514189e-02f);
  return __fmaf_rn(__fdiv_rn(x * p, q), 0.5f, 0.5f);
}

// power returns p times two to the n, |n| < 127.
__device__ __forceinline__ float power(float p, float n) { return p * __int_as_float((__float2int_rn(n) + 127) << 23); }

__device__ __forceinline__ float exp_(float x) {
  bool under = x < -87.3f;
  x = limit(x, -87.3f, 88.3f);
  float n = rintf(x * 1.44269504088896341f);
  x = __fmaf_rn(-n, 0.693359375f, x);
  x = __fmaf_rn(-n, -2.12194440e-4f, x);
  float p = 1.9875691500e-4f;
  p = __fmaf_rn(p, x, 1.3981999507e-3f);
  p = __fmaf_rn(p, x, 8.3334519073e-3f);
  p = __fmaf_rn(p, x, 4.1665795894e-2f);
  p = __fmaf_rn(p, x, 1.6666665459e-1f);
  p = __fmaf_rn(p, x, 5.0000001201e-1f);
  p = __fmaf_rn(p, x, 1.f);
  p = __fmaf_rn(p, x, 1.f);
  return under ? 0.f : power(p, n);
}

// density is the derivative of normal.
__device__ __forceinline__ float density(float x) { return exp_((x * x) * -0.5f) * 0.39894228040143268f; }

// mantissa takes x, positive and normal, apart: x = (1 + m) times two to the e.
__device__ __forceinline__ float mantissa(float x, float *e) {
  unsigned b = __float_as_uint(x);
  float m = __uint_as_float((b & 0x7fffffu) | 0x3f800000u);
  *e = (float)((int)(b >> 23) - 127);
  if (1.41421356f < m) {
    m = m * 0.5f;
    *e = *e + 1.f;
  }
  return m - 1.f;
}

__device__ __forceinline__ float log_(float x) {
  float e, m = mantissa(x, &e), z = m * m;
  float p = 7.0376836292e-2f;
  p = __fmaf_rn(p, m, -1.1514610310e-1f);
  p = __fmaf_rn(p, m, 1.1676998740e-1f);
  p = __fmaf_rn(p, m, -1.2420140846e-1f);
  p = __fmaf_rn(p, m, 1.4249322787e-1f);
  p = __fmaf_rn(p, m, -1.6668057665e-1f);
  p = __fmaf_rn(p, m, 2.0000714765e-1f);
  p = __fmaf_rn(p, m, -2.4999993993e-1f);
  p = __fmaf_rn(p, m, 3.3333331174e-1f);
  p = p * (m * z);
  p = __fmaf_rn(-2.12194440e-4f, e, p);
  p = __fmaf_rn(-0.5f, z, p);
  return __fmaf_rn(0.693359375f, e, m + p);
}

// What draws normal numbers, without fused operations: on the processor no vector kernel does it.
namespace plain {
__device__ __forceinline__ float exp(float x) {
  if (x < -87.3f) return 0.f;
  x = 88.3f < x ? 88.3f : x;
  float n = rintf(x * 1.44269504088896341f);
  x = x - n * 0.693359375f;
  x = x - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * x + 1.3981999507e-3f;
  p = p * x + 8.3334519073e-3f;
  p = p * x + 4.1665795894e-2f;
  p = p * x + 1.6666665459e-1f;
  p = p * x + 5.0000001201e-1f;
  p = p * x + 1.f;
  p = p * x + 1.f;
  return power(p, n);
}

__device__ __forceinline__ float log(float x) {
  float e, m = mantissa(x, &e), z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m + -1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m + -1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m + -1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m + -2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  p = (m * z) * p;
  p = p + e * -2.12194440e-4f;
  p = p - 0.5f * z;
  return (m + p) + e * 0.693359375f;
}

// turn returns sine and cosine of t whole turns, 0 < t < 1.
__device__ __forceinline__ void turn(float t, float *sine, float *cosine) {
  int quarter = (int)(t * 4.f + 0.5f);
  float x = (t - (float)quarter * 0.25f) * 6.28318530717958648f, z = x * x;
  float s = -1.9515295891e-4f;
  s = s * z + 8.3321608736e-3f;
  s = s * z + -1.6666654611e-1f;
  s = (s * z) * x + x;
  float c = 2.443315711809948e-5f;
  c = c * z + -1.388731625493765e-3f;
  c = c * z + 4.166664568298827e-2f;
  c = (c * z) * z + (1.f - 0.5f * z);
  *sine = quarter & 1 ? (quarter & 2 ? -c : c) : (quarter & 2 ? -s : s);
  *cosine = quarter & 1 ? (quarter & 2 ? s : -s) : (quarter & 2 ? -c : c);
}
}  // namespace plain

// Philox4x32 with 10 rounds.
__device__ __forceinline__ uint4 philox(uint4 c, uint2 key) {
#pragma unroll
  for (int i = 0; i < 10; i++) {
    unsigned high0 = __umulhi(0xd2511f53u, c.x), low0 = 0xd2511f53u * c.x;
    unsigned high1 = __umulhi(0xcd9e8d57u, c.z), low1 = 0xcd9e8d57u * c.z;
    c = make_uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return c;
}

// uniform makes a number in (0, 1) of a word.
__device__ __forceinline__ float uniform(unsigned word) { return ((float)(word >> 9) + 0.5f) * 0x1p-23f; }

// What happens to an element before it is stored; the last five multiply with the derivative of an activation whose result is h or,
// of GELU and SILU, which was computed from h.
enum Epilogue { NONE, TANH, RELU, ELU, GELU, SILU, DTANH, DRELU, DELU, DGELU, DSILU };

__device__ __forceinline__ float finish(int epilogue, float x, float h) {
  switch (epilogue) {
    case TANH: return tanh_(x);
    case RELU: return 0.f > x ? 0.f : x;
    case ELU: return x > 0.f ? x : exp_(x) - 1.f;
    case GELU: return x * normal(x);
    case SILU: return x * sigmoid_(x);
    case DTANH: return x * __fmaf_rn(-h, h, 1.f);
    case DRELU: return h > 0.f ? x : 0.f;
    case DELU: return x * ((h < 0.f ? h : 0.f) + 1.f);
    case DGELU: return x * __fmaf_rn(density(h), h, normal(h));
    case DSILU: {
      float s = sigmoid_(h);
      return x * (s * __fmaf_rn(1.f - s, h, 1.f));
    }
  }
  return x;
}
