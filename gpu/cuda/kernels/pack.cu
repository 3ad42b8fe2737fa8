// Between canonical vectors of parameters and the device's layout, in which what is padded is 0.
#include "control.cuh"

enum { THREADS = 256 };

struct Pack {
  const float *canonical;
  float *own;
  const int *place;  // of each canonical parameter
  int count, pad;
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) pack(const __grid_constant__ Pack p) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < p.count) p.own[p.place[i]] = p.canonical[i];
}

struct Unpack {
  float *canonical;
  const float *own;
  const int *place;
  int count, pad;
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) unpack(const __grid_constant__ Unpack p) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < p.count) p.canonical[i] = p.own[p.place[i]];
}

// Rescale makes x·scale + shift of parameters of a layer's output, in float64: weights without, the bias with the shift.
struct Rescale {
  float *own;
  const int *place;
  double scale, shift;
  int weight, bias, count, pad;  // canonical: the first of count weights, and the bias
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) rescale(const __grid_constant__ Rescale p) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < p.count) {
    float *w = p.own + p.place[p.weight + i];
    *w = (float)((double)*w * p.scale);
  } else if (i == p.count) {
    float *b = p.own + p.place[p.bias];
    *b = (float)((double)*b * p.scale + p.shift);
  }
}
