// What lies between the products of recurrent nodes, a step of a block of rows at a time.
#include "control.cuh"
#include "math.cuh"

enum { THREADS = 256 };

// Cell has rows of gates of n elements each: a GRU's r, z and n, an LSTM's i, f, g and o.
struct Cell {
  float *x;  // what the input adds to each gate; then the gates; backward their gradient
  // What the state adds to each gate. Of a GRU it becomes the gradient of that. Of an LSTM it becomes the hyperbolic tangent of
  // c, c, and the gradient of c by the rows that follow, which begins at zero and to which they add.
  float *s;
  const float *h;  // the state before: h and, of an LSTM, c
  float *out;      // h
  const float *d;  // gradient of out
  float *dh;       // gradient of what the state before takes part in apart from the gates: of a GRU h, of an LSTM c
  const Control *control;
  int rows, n;
  int xRow, sRow, hRow, outRow, dRow, dhRow;
};

// Place is an element of the gates of a row.
struct Place {
  float *x, *s;
  const float *h;
  size_t out, d, dh;
  bool inside;
};

__device__ __forceinline__ Place place(const Cell &c) {
  long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  int r = (int)(i / c.n), j = (int)(i % c.n);
  Place p;
  p.inside = !over(c.control) && i < (long long)c.rows * c.n;
  p.x = c.x + (size_t)r * c.xRow + j;
  p.s = c.s + (size_t)r * c.sRow + j;
  p.h = c.h + (size_t)r * c.hRow + j;
  p.out = (size_t)r * c.outRow + j;
  p.d = (size_t)r * c.dRow + j;
  p.dh = (size_t)r * c.dhRow + j;
  return p;
}

// without is from - x².
__device__ __forceinline__ float without(float from, float x) { return __fmaf_rn(-x, x, from); }

extern "C" __global__ void __launch_bounds__(THREADS, 4) gru(const __grid_constant__ Cell c) {
  Place p = place(c);
  int n = c.n;
  if (!p.inside) return;
  float r = sigmoid_(p.x[0] + p.s[0]), z = sigmoid_(p.x[n] + p.s[n]);
  float a = tanh_(__fmaf_rn(r, p.s[2 * n], p.x[2 * n]));
  p.x[0] = r;
  p.x[n] = z;
  p.x[2 * n] = a;
  c.out[p.out] = __fmaf_rn(z, p.h[0] - a, a);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) gruBack(const __grid_constant__ Cell c) {
  Place p = place(c);
  int n = c.n;
  if (!p.inside) return;
  float r = p.x[0], z = p.x[n], a = p.x[2 * n], inner = p.s[2 * n], h = p.h[0], d = c.d[p.d];
  float da = (1.f - z) * d * without(1.f, a);
  float dz = (h - a) * d * without(z, z);
  float dr = inner * da * without(r, r);
  c.dh[p.dh] = d * z;
  p.x[0] = p.s[0] = dr;
  p.x[n] = p.s[n] = dz;
  p.x[2 * n] = da;
  p.s[2 * n] = da * r;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) lstm(const __grid_constant__ Cell c) {
  Place p = place(c);
  int n = c.n;
  if (!p.inside) return;
  float i = sigmoid_(p.x[0] + p.s[0]), f = sigmoid_(p.x[n] + p.s[n]);
  float g = tanh_(p.x[2 * n] + p.s[2 * n]), o = sigmoid_(p.x[3 * n] + p.s[3 * n]);
  float next = __fmaf_rn(f, p.h[n], i * g), t = tanh_(next);
  p.x[0] = i;
  p.x[n] = f;
  p.x[2 * n] = g;
  p.x[3 * n] = o;
  p.s[0] = t;
  p.s[n] = next;
  p.s[2 * n] = 0.f;
  c.out[p.out] = o * t;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) lstmBack(const __grid_constant__ Cell c) {
  Place p = place(c);
  int n = c.n;
  if (!p.inside) return;
  float i = p.x[0], f = p.x[n], g = p.x[2 * n], o = p.x[3 * n], t = p.s[0], d = c.d[p.d];
  float own = __fmaf_rn(without(1.f, t), d * o, p.s[2 * n]);
  c.dh[p.dh] = own * f;
  p.x[0] = own * g * without(i, i);
  p.x[n] = own * p.h[n] * without(f, f);
  p.x[2 * n] = own * i * without(1.f, g);
  p.x[3 * n] = d * t * without(o, o);
}
