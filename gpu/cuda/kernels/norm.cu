// Layer norm. Sixteen threads compute a row, each every sixteenth element, and add up in halves as gpu/cpu does.
#include "control.cuh"
#include "math.cuh"

enum { THREADS = 256, LANES = 16, CHAIN = 32 };

struct Norm {
  const float *x, *weight, *bias;
  float *out;
  float *moments;  // [rows][2]: mean and 1/√(variance + 1e-5); written forward, read backward
  const float *d;  // gradient of out
  float *dx;       // added to
  const Control *control;
  int rows, n;
  int xRow, outRow, dRow, dxRow;
  int groups;  // rows of out, x, d and dx hold so many groups of n elements, each normalised by itself; rows counts groups
  int epilogue;
};

// group is where elements of group r lie in rows that hold several.
__device__ __forceinline__ size_t group(const Norm &p, int r, int row) {
  return (size_t)(r / p.groups) * row + (size_t)(r % p.groups) * p.n;
}

// average adds up the sixteen sums of a row and divides by its elements.
__device__ __forceinline__ float average(float sum, int n) {
  for (int apart = LANES / 2; apart; apart /= 2) sum = sum + __shfl_xor_sync(~0u, sum, apart);
  return __fdiv_rn(sum, (float)n);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) layerNorm(const __grid_constant__ Norm p) {
  if (over(p.control)) return;
  int r = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
  bool inside = r < p.rows;
  const float *x = p.x + (inside ? group(p, r, p.xRow) : 0);
  int n = inside ? p.n : 0;
  float sum = 0.f, squares = 0.f;
  for (int j = lane; j < n; j += LANES) sum = sum + x[j];
  float mean = average(sum, p.n);
  for (int j = lane; j < n; j += LANES) squares = __fmaf_rn(x[j] - mean, x[j] - mean, squares);
  float inverse = __fdiv_rn(1.f, __fsqrt_rn(average(squares, p.n) + 1e-5f));
  if (!inside) return;
  if (lane == 0) {
    p.moments[2 * (size_t)r] = mean;
    p.moments[2 * (size_t)r + 1] = inverse;
  }
  float *out = p.out + group(p, r, p.outRow);
  for (int j = lane; j < n; j += LANES)
    out[j] = finish(p.epilogue, __fmaf_rn((x[j] - mean) * inverse, p.weight[j], p.bias[j]), 0.f);
}

// layerNormBack adds to the gradient of what a layer norm reads.
extern "C" __global__ void __launch_bounds__(THREADS, 4) layerNormBack(const __grid_constant__ Norm p) {
  if (over(p.control)) return;
  int r = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
  bool inside = r < p.rows;
  const float *x = p.x + (inside ? group(p, r, p.xRow) : 0), *d = p.d + (inside ? group(p, r, p.dRow) : 0);
  int n = inside ? p.n : 0;
  float mean = inside ? p.moments[2 * (size_t)r] : 0.f, inverse = inside ? p.moments[2 * (size_t)r + 1] : 0.f;
  float sum = 0.f, along = 0.f;
  for (int j = lane; j < n; j += LANES) {
    float g = d[j] * p.weight[j];
    sum = sum + g;
    along = __fmaf_rn(g, (x[j] - mean) * inverse, along);
  }
  float grad = average(sum, p.n), slope = average(along, p.n);
  if (!inside) return;
  float *dx = p.dx + group(p, r, p.dxRow);
  for (int j = lane; j < n; j += LANES) {
    float z = (x[j] - mean) * inverse, g = d[j] * p.weight[j];
    dx[j] = __fmaf_rn(inverse, g - __fmaf_rn(slope, z, grad), dx[j]);
  }
}

// NormOuter is the gradient of a layer norm's parameters, in the parts and chains of Outer.
struct NormOuter {
  Norm norm;
  float *dWeight, *dBias;  // part 0
  long long part;
  int parts, run;
};

// layerNormOuter computes elements by blockIdx.x, parts by blockIdx.y.
extern "C" __global__ void __launch_bounds__(THREADS, 4) layerNormOuter(const __grid_constant__ NormOuter p) {
  const Norm &n = p.norm;
  int j = blockIdx.x * THREADS + threadIdx.x;
  if (over(n.control) || j >= n.n) return;
  float weight = 0.f, bias = 0.f;
  for (long long first = (long long)blockIdx.y * p.run; first < n.rows; first += (long long)p.parts * p.run) {
    int end = (int)min(first + p.run, (long long)n.rows);
    for (int r = (int)first; r < end; r += CHAIN) {
      float w = 0.f, b = 0.f;
      for (int k = r; k < min(r + CHAIN, end); k++) {
        float d = n.d[group(n, k, n.dRow) + j];
        w = __fmaf_rn(d, (n.x[group(n, k, n.xRow) + j] - n.moments[2 * (size_t)k]) * n.moments[2 * (size_t)k + 1], w);
        b = b + d;
      }
      weight = weight + w;
      bias = bias + b;
    }
  }
  p.dWeight[(size_t)blockIdx.y * p.part + j] = weight;
  p.dBias[(size_t)blockIdx.y * p.part + j] = bias;
}
