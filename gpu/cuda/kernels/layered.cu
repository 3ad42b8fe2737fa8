// A network layer by layer, with activations in memory of the device.
#include "product.cuh"

// dense is the product of a dense node, forward and for the gradient of what it reads.
extern "C" __global__ void __launch_bounds__(THREADS, 4) dense(const __grid_constant__ Product<Matrix, Matrix, Matrix> p) { compute(p); }

// outer is the gradient of a dense node's weights.
extern "C" __global__ void __launch_bounds__(THREADS, 2) outer(const __grid_constant__ Outer<Matrix, Matrix> p) { partial(p); }

// sums is the gradient of its biases.
extern "C" __global__ void __launch_bounds__(THREADS, 4) sums(const __grid_constant__ Sums<Matrix> p) { sum(p); }

// Projection is a dense node that a head reads, one column of a block of rows for each output, and columns behind them that
// are the same in all rows: parameters, or one number.
struct Projection {
  const float *x, *weight, *bias, *tail;  // x [rows][row], weight [outputs][depth]
  float *out;                             // [outputs + tails][ld]
  const Control *control;
  int rows, row, depth, outputs, tails, ld;  // depth is a multiple of 16, what is behind the inputs is 0
  float constant;                            // of the tails without parameters
  int pad;
};

// heads computes rows by blockIdx.x, outputs by blockIdx.y. A sum runs in eight lanes.
extern "C" __global__ void __launch_bounds__(THREADS, 4) heads(const __grid_constant__ Projection p) {
  int r = blockIdx.x * THREADS + threadIdx.x, a = blockIdx.y;
  if (over(p.control) || r >= p.rows) return;
  float *to = p.out + (size_t)a * p.ld + r;
  if (a >= p.outputs) {
    *to = p.tail ? p.tail[a - p.outputs] : p.constant;
    return;
  }
  const float *x = p.x + (size_t)r * p.row, *w = p.weight + (size_t)a * p.depth;
  float s[8] = {};
  for (int k = 0; k < p.depth; k += 8) {
    float4 x0 = *(const float4 *)(x + k), x1 = *(const float4 *)(x + k + 4);
    float4 w0 = *(const float4 *)(w + k), w1 = *(const float4 *)(w + k + 4);
    s[0] = __fmaf_rn(x0.x, w0.x, s[0]);
    s[1] = __fmaf_rn(x0.y, w0.y, s[1]);
    s[2] = __fmaf_rn(x0.z, w0.z, s[2]);
    s[3] = __fmaf_rn(x0.w, w0.w, s[3]);
    s[4] = __fmaf_rn(x1.x, w1.x, s[4]);
    s[5] = __fmaf_rn(x1.y, w1.y, s[5]);
    s[6] = __fmaf_rn(x1.z, w1.z, s[6]);
    s[7] = __fmaf_rn(x1.w, w1.w, s[7]);
  }
  *to = (((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) + p.bias[a];
}

// Move copies rows, or adds them, and applies an epilogue: activations apart from products, sums of nodes, parts of rows side
// by side. A row is runs of `run` elements; to and from are at their first.
struct Move {
  const float *from;
  float *to;
  const float *h;  // for derivatives, as to
  const int *order;  // row i comes from row order[i], or is left out where that is negative; null: from row i
  const int *target; // row i goes to row target[i], or is left out where that is negative; null: to row i
  const Control *control;
  int rows, runs, run;
  int fromRow, fromRun, fromColumn, toRow, toRun;
  int add, epilogue;
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) move(const __grid_constant__ Move p) {
  long long n = (long long)blockIdx.x * THREADS + threadIdx.x;
  int width = p.runs * p.run;
  if (over(p.control) || n >= (long long)p.rows * width) return;
  int r = (int)(n / width), run = (int)(n % width) / p.run, j = (int)(n % width) % p.run;
  int source = p.order ? p.order[r] : r, target = p.target ? p.target[r] : r;
  if (source < 0 || target < 0) return;
  float x = p.from[(size_t)source * p.fromRow + (size_t)run * p.fromRun + (size_t)j * p.fromColumn];
  size_t at = (size_t)target * p.toRow + (size_t)run * p.toRun + j;
  if (p.add) x = p.to[at] + x;
  p.to[at] = finish(p.epilogue, x, p.epilogue >= DTANH ? p.h[at] : 0.f);
}
