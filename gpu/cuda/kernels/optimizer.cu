// From the parts of a gradient to the next parameters.
#include "control.cuh"

enum { THREADS = 256, SUMS = 7 };

// sum adds up a number of each thread, in a fixed order, for all of them.
__device__ __forceinline__ double sum(double x) {
  __shared__ double all[THREADS / 32];
  for (int apart = 16; apart; apart /= 2) x = x + __shfl_xor_sync(~0u, x, apart);
  __syncthreads();
  if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = x;
  __syncthreads();
  x = all[0];
  for (int w = 1; w < THREADS / 32; w++) x = x + all[w];
  return x;
}

struct Reduce {
  const float *parts;
  float *grad;
  double *squares;  // [blocks]
  const Control *control;
  long long part;  // elements between parts
  int size, count;
};

// reduce adds up the parts of a gradient, in their order, and the squares of every 256 elements.
extern "C" __global__ void __launch_bounds__(THREADS, 4) reduce(const __grid_constant__ Reduce p) {
  if (over(p.control)) return;
  int i = blockIdx.x * THREADS + threadIdx.x;
  float g = 0.f;
  if (i < p.size) {
    for (int c = 0; c < p.count; c++) g = g + p.parts[(size_t)c * p.part + i];
    p.grad[i] = g;
  }
  double squares = sum((double)g * (double)g);
  if (threadIdx.x == 0) p.squares[blockIdx.x] = squares;
}

struct Decide {
  const double *squares;     // of reduce
  const uint8_t *ofActor;    // [blocks] of reduce: the block's elements are the actor's, not the critic's
  const double *sums;        // of loss
  Control *control;
  int blocks, lossBlocks, rows;
  int pad;
};

// raised returns x to the n by squaring.
__device__ __forceinline__ double raised(double x, uint64_t n) {
  double y = 1;
  for (; n; n >>= 1) {
    if (n & 1) y = y * x;
    x = x * x;
  }
  return y;
}

__device__ __forceinline__ float clipping(double norm, double most) {
  return most == 0 || norm <= most ? 1.f : (float)(most / (norm + 1e-6));
}

__device__ __forceinline__ float between(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// pace returns the learning rate of the step that is due.
__device__ __forceinline__ float pace(Control *c, double kl) {
  if (c->adaptiveKL == 0) return c->learningRate;
  if (kl > 2 * c->adaptiveKL)
    c->rate = between(__fdiv_rn(c->rate, 1.5f), (float)c->rateMin, (float)c->rateMax);
  else if (kl > 0 && kl < c->adaptiveKL / 2)
    c->rate = between(c->rate * 1.5f, (float)c->rateMin, (float)c->rateMax);
  return c->rate;
}

// settle prepares a step of adam, given the norms of the gradient and the sums of the loss.
__device__ __forceinline__ void settle(Control *c, double norm, double actor, double critic, const double *sums, double rows) {
  if (!(norm - norm == 0)) {
    c->fault = GRADIENT;
    return;
  }
  double kl = sums[3] / rows;
  c->kl = kl;
  float rate = pace(c, kl);
  c->steps = c->steps + 1;
  c->scale[0] = clipping(c->clipApart ? actor : norm, c->maxNorm);
  c->scale[1] = clipping(c->clipApart ? critic : norm, c->maxNorm);
  c->stepRate = (float)((double)rate / (1 - raised(c->beta1, c->steps)));
  c->correct2 = (float)(1 / sqrt(1 - raised(c->beta2, c->steps)));
  if (c->made == 0) {
    c->firstClipped = sums[5] / rows;
    c->firstRatioError = sums[6];
  }
  c->made = c->made + 1;
  c->policyLoss = c->policyLoss + -sums[0] / rows;
  c->valueLoss = c->valueLoss + sums[1] / 2 / rows;
  c->entropy = c->entropy + sums[2] / rows;
  c->approxKL = c->approxKL + kl;
  c->oldApproxKL = c->oldApproxKL + -sums[4] / rows;
  c->clipped = c->clipped + sums[5] / rows;
  c->norm = c->norm + norm;
  c->actorNorm = c->actorNorm + actor;
  c->criticNorm = c->criticNorm + critic;
  c->lastRate = rate;
}

// decide sums up norms and losses and prepares a step of adam. One block of threads.
extern "C" __global__ void __launch_bounds__(THREADS, 4) decide(const __grid_constant__ Decide p) {
  if (over(p.control)) return;
  double actor = 0, critic = 0, sums[SUMS];
  for (int i = threadIdx.x; i < p.blocks; i += THREADS) {
    double x = p.squares[i];
    if (p.ofActor[i])
      actor = actor + x;
    else
      critic = critic + x;
  }
  actor = sum(actor);
  critic = sum(critic);
#pragma unroll
  for (int j = 0; j < SUMS - 1; j++) {
    double x = 0;
    for (int i = threadIdx.x; i < p.lossBlocks; i += THREADS) x = x + p.sums[(size_t)i * SUMS + j];
    sums[j] = sum(x);
  }
  if (threadIdx.x) return;
  sums[SUMS - 1] = 0;
  for (int i = 0; i < p.lossBlocks; i++) {
    double x = p.sums[(size_t)i * SUMS + SUMS - 1];
    sums[SUMS - 1] = x > sums[SUMS - 1] ? x : sums[SUMS - 1];
  }
  double norm = sqrt(actor + critic);
  bool apart = p.control->apart;
  settle(p.control, norm, apart ? sqrt(actor) : norm, apart ? sqrt(critic) : norm, sums, p.rows);
}

struct Adam {
  float *params, *m, *v;
  const float *grad;
  const uint8_t *ofActor;
  Control *control;
  int size;
  float beta1, keep1, beta2, keep2, eps;  // keep is 1 - beta
};

// adam makes the step.
extern "C" __global__ void __launch_bounds__(THREADS, 4) adam(const __grid_constant__ Adam p) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (over(p.control) || i >= p.size) return;
  const Control *c = p.control;
  float g = p.grad[i] * c->scale[p.ofActor[blockIdx.x] ? 0 : 1];
  float m = __fmaf_rn(p.keep1, g, p.m[i] * p.beta1);
  float v = __fmaf_rn(p.keep2, g * g, p.v[i] * p.beta2);
  p.m[i] = m;
  p.v[i] = v;
  float step = __fdiv_rn(m, __fmaf_rn(__fsqrt_rn(v), c->correct2, p.eps));
  p.params[i] = __fmaf_rn(-c->stepRate, step, p.params[i]);
}

struct Halt {
  Control *control;
};

// halt ends the update where the step that adam has made exceeded targetKL. One thread.
extern "C" __global__ void __launch_bounds__(32) halt(const __grid_constant__ Halt p) {
  Control *c = p.control;
  if (threadIdx.x == 0 && !over(c) && c->targetKL > 0 && c->kl > c->targetKL) c->stopped = 1;
}
