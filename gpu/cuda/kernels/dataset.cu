// From the blocks of a dataset to the rows of a minibatch. A dataset has T steps of E environments, those of its blocks side by
// side; its row t·E + e is step t of environment e.
#include "control.cuh"

enum { THREADS = 256, WIDE = 1024 };

// Block is the columns of a block [steps][environments], as the rollout left them; the value has one step more.
struct Block {
  const void *obs;
  const float *reward, *value, *bootstrap, *logProb;
  const float *discount;  // null: gamma
  const uint8_t *terminated, *truncated, *valid;
  const uint8_t *active;  // null: every agent acts in every step
};

struct Gather {
  const Block *blocks;
  const unsigned *order;       // rows of the dataset; null: all of them
  float *x;                    // [rows][row], zero behind the elements
  const float *mean, *scale;   // null: observations are not normalised
  const Control *control;
  int rows, row, width;  // width: elements of an observation
  int envs, blockEnvs;
  int stepStride, envStride, elemStride;  // elements
  int bytes;                              // observations are bytes and enter as `factor` times what they are
  float factor;
};

// gather copies and normalises observations.
extern "C" __global__ void __launch_bounds__(THREADS, 4) gather(const __grid_constant__ Gather p) {
  long long n = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (over(p.control) || n >= (long long)p.rows * p.row) return;
  int i = (int)(n / p.row), j = (int)(n % p.row);
  float x = 0.f;
  if (j < p.width) {
    unsigned r = p.order ? p.order[i] : i, step = r / p.envs, env = r - step * p.envs, block = env / p.blockEnvs;
    size_t at = (size_t)step * p.stepStride + (size_t)(env - block * p.blockEnvs) * p.envStride + (size_t)j * p.elemStride;
    const void *obs = p.blocks[block].obs;
    x = p.bytes ? (float)((const uint8_t *)obs)[at] * p.factor : ((const float *)obs)[at];
    if (p.mean) {
      x = (x - p.mean[j]) * p.scale[j];
      x = x > 10.f ? 10.f : x;
      x = x < -10.f ? -10.f : x;
    }
  }
  p.x[n] = x;
}

// Pick is a column of the dataset's rows that a minibatch takes: to[i·row + e·column] = from[order[i]·size + e].
struct Pick {
  const void *from;
  void *to;
  int size, bytes;  // of an element: 1 or 4
  int row, column;
};

struct Picks {
  const Pick *picks;
  const unsigned *order;
  const Control *control;
  int rows, pad;
};

// picks copies the columns of blockIdx.y.
extern "C" __global__ void __launch_bounds__(THREADS, 4) picks(const __grid_constant__ Picks p) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (over(p.control) || i >= p.rows) return;
  Pick c = p.picks[blockIdx.y];
  for (int e = 0; e < c.size; e++) {
    size_t from = (size_t)p.order[i] * c.size + e, to = (size_t)i * c.row + (size_t)e * c.column;
    if (c.bytes == 4)
      ((unsigned *)c.to)[to] = ((const unsigned *)c.from)[from];
    else
      ((uint8_t *)c.to)[to] = ((const uint8_t *)c.from)[from];
  }
}

struct Targets {
  const Block *blocks;
  float *advantage, *target;  // [rows]; both are 0 in rows that belong to no episode
  const float *newLogProb;    // [rows], for V-trace; null: GAE
  Control *control;
  double gamma, lambda, rhoBar, cBar;
  int steps, envs, blockEnvs;
  int multiply;  // an environment's discount is multiplied with gamma; otherwise it takes gamma's place
};

// targets computes advantages and returns as ppo.Targets does, a thread an environment, from the last step back. The place
// of a target that is not finite goes to faultPlace, the lowest of several; returns makes it a fault.
extern "C" __global__ void __launch_bounds__(THREADS, 4) targets(const __grid_constant__ Targets p) {
  int env = blockIdx.x * THREADS + threadIdx.x;
  if (over(p.control) || env >= p.envs) return;
  int n = p.blockEnvs, e = env % n;
  Block b = p.blocks[env / n];
  double carry = 0;
  float following = b.value[(size_t)p.steps * n + e];  // of the row after in which the agent acts
  for (int step = p.steps - 1; step >= 0; step--) {
    size_t i = (size_t)step * n + e, row = (size_t)step * p.envs + env;
    p.advantage[row] = 0.f;
    p.target[row] = 0.f;
    if (b.active && !b.active[i]) continue;
    double next = following, value = b.value[i], reward = b.reward[i], discount = b.discount ? (double)b.discount[i] : p.gamma;
    following = b.value[i];
    if (!b.valid[i]) {
      carry = 0;
      continue;
    }
    bool truncated = b.truncated[i];
    if (b.terminated[i]) {
      next = 0;
      carry = 0;
    } else if (truncated) {
      next = b.bootstrap[i];
      carry = 0;
    }
    double sum = reward + next;
    bool discounts = discount >= 0 && discount <= 1;
    if (!(sum - sum == 0) || !discounts) {
      int column = !(reward - reward == 0) ? REWARD : !discounts ? DISCOUNT : truncated ? BOOTSTRAP : VALUE;
      uint64_t place = ((uint64_t)(env / n) * p.steps + (p.steps - 1 - step)) * n + e;
      atomicMin((unsigned long long *)&p.control->faultPlace, (unsigned long long)(place * 4 + column));
      return;
    }
    if (b.discount && p.multiply) discount *= p.gamma;
    double advantage, target;
    if (!p.newLogProb) {
      advantage = reward + discount * next - value + discount * p.lambda * carry;
      target = advantage + value;
      carry = advantage;
    } else {
      double ratio = exp((double)p.newLogProb[row] - (double)b.logProb[i]);
      double excess = min(p.rhoBar, ratio) * (reward + discount * next - value) + discount * p.lambda * min(p.cBar, ratio) * carry;
      advantage = reward + discount * (next + carry) - value;
      target = value + excess;
      carry = excess;
    }
    p.advantage[row] = (float)advantage;
    p.target[row] = (float)target;
  }
}

// sum adds up a number of each thread of a block, in a fixed order, for all of them.
__device__ __forceinline__ double sum(double x) {
  __shared__ double all[WIDE / 32];
  for (int apart = 16; apart; apart /= 2) x = x + __shfl_xor_sync(~0u, x, apart);
  __syncthreads();
  if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = x;
  __syncthreads();
  x = all[0];
  for (int w = 1; w < WIDE / 32; w++) x = x + all[w];
  return x;
}

struct Advantages {
  const float *advantage;  // [rows of the dataset]
  const unsigned *order;
  const int *ends;   // [minibatches] of the order
  double *moments;   // [minibatches][2]: mean, and what the difference from it is multiplied with
  const Control *control;
};

// advantages computes the moments that a minibatch's advantages are normalised with, minibatches by blockIdx.x.
extern "C" __global__ void __launch_bounds__(WIDE, 1) advantages(const __grid_constant__ Advantages p) {
  if (over(p.control)) return;
  int lo = blockIdx.x ? p.ends[blockIdx.x - 1] : 0, hi = p.ends[blockIdx.x];
  double n = hi - lo, x = 0;
  for (int i = lo + threadIdx.x; i < hi; i += WIDE) x = x + (double)p.advantage[p.order[i]];
  double mean = sum(x) / n;
  x = 0;
  for (int i = lo + threadIdx.x; i < hi; i += WIDE) {
    double d = (double)p.advantage[p.order[i]] - mean;
    x = x + d * d;
  }
  double squares = sum(x);
  if (threadIdx.x) return;
  p.moments[2 * blockIdx.x] = n < 2 ? 0 : mean;
  p.moments[2 * blockIdx.x + 1] = n < 2 ? 1 : 1 / (sqrt(squares / (n - 1)) + 1e-8);
}

struct Returns {
  float *target;          // [rows of the dataset]; put into the unit
  const float *value;     // [rows], in the unit
  const unsigned *valid;  // [count]
  Control *control;
  double mean, deviation;  // of the unit; deviation 0: every return is 0
  int count;
  int first;  // the control's statistics are written
};

// returns takes the statistics of the valid rows' returns, puts those into the unit that they are learned in and compares them
// with the values; unless targets has found a fault. One block of threads.
extern "C" __global__ void __launch_bounds__(WIDE, 1) returns(const __grid_constant__ Returns p) {
  if (p.control->faultPlace != ~0ull) {  // only the thread that writes the fault looks at it
    if (threadIdx.x == 0 && !over(p.control)) p.control->fault = TARGET;
    return;
  }
  if (over(p.control)) return;
  double n = p.count, x = 0, y = 0;
  for (int i = threadIdx.x; i < p.count; i += WIDE) x = x + (double)p.target[p.valid[i]];
  double mean = sum(x) / n;
  x = 0;
  for (int i = threadIdx.x; i < p.count; i += WIDE) {
    float *target = p.target + p.valid[i];
    double d = (double)*target - mean;
    x = x + d * d;
    bool raw = p.mean == 0 && p.deviation == 1;
    if (!raw) *target = p.deviation == 0 ? 0.f : (float)(((double)*target - p.mean) / p.deviation);
  }
  double m2 = sum(x);
  x = 0;
  for (int i = threadIdx.x; i < p.count; i += WIDE) {
    double target = p.target[p.valid[i]];
    x = x + target;
    y = y + (target - (double)p.value[p.valid[i]]);
  }
  double meanTarget = sum(x) / n, meanError = sum(y) / n;
  x = y = 0;
  for (int i = threadIdx.x; i < p.count; i += WIDE) {
    double target = p.target[p.valid[i]], error = target - (double)p.value[p.valid[i]] - meanError;
    x = x + (target - meanTarget) * (target - meanTarget);
    y = y + error * error;
  }
  double spread = sum(x), error = sum(y);
  if (threadIdx.x || !p.first) return;
  p.control->returnsMean = mean;
  p.control->returnsM2 = m2;
  p.control->explained = spread == 0 ? 0 : 1 - error / spread;
}
