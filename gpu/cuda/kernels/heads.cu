// Distributions of actions: sampling while acting, the loss and its gradient while learning. A thread computes a row, all
// actions of it in turn; what they are made from lies in columns of a block of rows.
#include "control.cuh"
#include "math.cuh"

enum { THREADS = 256, SUMS = 7 };
enum Kind { CHOICES, PAIRS, NORMAL, TANH_NORMAL };  // PAIRS: of each two logits the first is 0

#define ILLEGAL (-1e30f)

// Head is the distribution of one action tensor.
struct Head {
  float *params;        // [parameters][ld]: logits; or means, then logarithms of deviations. loss replaces them by their gradient
  int *index;           // [elements][ld] of choices, from 0: written by sample, read by loss
  float *raw;           // [elements][ld] of normal elements, likewise
  const int *counts;    // [elements] of choices
  const uint8_t *mask;  // [rows][choices], 0 for what is not legal; null without a mask
  int kind, elements;
  int choices;  // of all elements together
  int draw;     // the first number of the random stream that is this action's
  const float *edges;  // [3][elements] of normal elements: what means are to lie between, and how many half ranges a unit is
  float low, high;  // bounds of the logarithms of deviations, beyond which they count as the bound and have no gradient
};

// deviation returns the logarithm of that of element i of a row.
__device__ __forceinline__ float deviation(const Head &h, int r, int ld, int i) {
  return limit(h.params[(size_t)(h.elements + i) * ld + r], h.low, h.high);
}

// Choice is one categorical element of a row.
struct Choice {
  const float *logits;
  const uint8_t *mask;
  int count, ld;
  bool pair;
  float largest, sum, logSum;

  // logit returns that of choice a less the largest.
  __device__ __forceinline__ float raw(int a) const {
    if (mask && !mask[a]) return ILLEGAL;
    return !pair ? logits[(size_t)a * ld] : a == 0 ? 0.f : logits[0];
  }
  __device__ __forceinline__ float logit(int a) const { return raw(a) - largest; }
  __device__ __forceinline__ float logProb(int a) const { return logit(a) - logSum; }

  __device__ __forceinline__ void open() {
    largest = raw(0);
    for (int a = 0; a < count; a++) {
      float x = raw(a);
      largest = largest > x ? largest : x;
    }
    sum = 0.f;
#pragma unroll 1
    for (int a = 0; a < count; a++) sum = sum + exp_(logit(a));
    logSum = log_(sum);
  }

  __device__ __forceinline__ float entropy() const {
    float entropy = 0.f;
#pragma unroll 1
    for (int a = 0; a < count; a++) {
      float x = logProb(a);
      entropy = __fmaf_rn(-exp_(x), x, entropy);
    }
    return entropy;
  }

  // pick returns the first choice whose cumulated probability exceeds u, or if greedy the first of the most probable ones. Of
  // logits that are no numbers it takes the last, or with a mask the first legal one.
  __device__ __forceinline__ int pick(float u, bool greedy) const {
    float target = u * sum, cumulated = 0.f;
    int picked = count - 1;
#pragma unroll 1
    for (int a = 0; a < count; a++) {
      float x = logit(a);
      cumulated = cumulated + exp_(x);
      if (greedy ? 0.f <= x : target < cumulated) {
        picked = a;
        break;
      }
    }
    if (mask && !mask[picked])
      for (int a = count - 1; a >= 0; a--)
        if (mask[a]) picked = a;
    return picked;
  }
};

// choice returns element i of a row; at counts the choices of those before it.
__device__ __forceinline__ Choice choice(const Head &h, int r, int ld, int i, int at) {
  Choice c;
  c.pair = h.kind == PAIRS;
  c.count = h.counts[i];
  c.ld = ld;
  c.logits = h.params + (size_t)(c.pair ? i : at) * ld + r;
  c.mask = h.mask ? h.mask + (size_t)r * h.choices + at : nullptr;
  return c;
}

// weigh adds log-probability and entropy of a row's action.
__device__ __forceinline__ void weigh(const Head &h, int r, int ld, float *logProb, float *entropy) {
  if (h.kind <= PAIRS) {
    for (int i = 0, at = 0; i < h.elements; i++) {
      Choice c = choice(h, r, ld, i, at);
      c.open();
      *logProb = c.logProb(h.index[(size_t)i * ld + r]) + *logProb;
      *entropy = c.entropy() + *entropy;
      at += c.count;
    }
    return;
  }
  float sum = 0.f, own = 0.f;
#pragma unroll 1
  for (int i = 0; i < h.elements; i++) {
    float raw = h.raw[(size_t)i * ld + r], mean = h.params[(size_t)i * ld + r], l = deviation(h, r, ld, i);
    float z = (raw - mean) * exp_(-l);
    sum = sum - ((0.5f * z) * z + (l + 0.918938533204672742f));
    own = own + (l + 1.418938533204672742f);
    if (h.kind == TANH_NORMAL) {
      float soft = log_(exp_(-2.f * fabsf(raw)) + 1.f), bend = raw * -2.f;
      soft = soft + (bend > 0.f ? bend : 0.f);
      float slope = (0.693147180559945309f - raw) - soft;
      sum = sum - (slope + slope);
    }
  }
  *logProb = sum + *logProb;
  *entropy = (h.kind == TANH_NORMAL ? -sum : own) + *entropy;
}

// Key decides what a row draws: it has the fields of policy.Request.
struct Key {
  uint64_t seed, step;
  unsigned env;
  int greedy;
};

struct Sample {
  Head *heads;
  const Key *keys;  // [rows]
  float *logProb;   // [rows]
  int count, rows, ld;
  int pad;
};

__device__ __forceinline__ unsigned word(const Key &k, int draw, unsigned *second) {
  uint4 words = philox(make_uint4((unsigned)k.step, (unsigned)(k.step >> 32), k.env, draw), make_uint2((unsigned)k.seed, (unsigned)(k.seed >> 32)));
  *second = words.y;
  return words.x;
}

// choose draws the choices of an action, of which each element has a legal one.
__device__ __forceinline__ void choose(const Head &h, const Key &key, int r, int ld) {
  for (int i = 0, at = 0; i < h.elements; i++) {
    Choice c = choice(h, r, ld, i, at);
    unsigned second;
    c.open();
    h.index[(size_t)i * ld + r] = c.pick(uniform(word(key, h.draw + i, &second)), key.greedy);
    at += c.count;
  }
}

// place makes element i of a row of a standard normal number.
__device__ __forceinline__ void place(const Head &h, int r, int ld, int i, float normal) {
  h.raw[(size_t)i * ld + r] = h.params[(size_t)i * ld + r] + plain::exp(deviation(h, r, ld, i)) * normal;
}

// draw draws the normal elements of an action, two to a number of the stream.
__device__ __forceinline__ void draw(const Head &h, const Key &key, int r, int ld) {
  for (int i = 0; i < h.elements; i += 2) {
    float sine = 0.f, cosine = 0.f, radius = 0.f;
    if (!key.greedy) {
      unsigned second, first = word(key, h.draw + i / 2, &second);
      radius = __fsqrt_rn(-2.f * plain::log(uniform(first)));
      plain::turn(uniform(second), &sine, &cosine);
    }
    place(h, r, ld, i, radius * cosine);
    if (i + 1 < h.elements) place(h, r, ld, i + 1, radius * sine);
  }
}

// sample draws the actions of rows and writes their log-probabilities.
extern "C" __global__ void __launch_bounds__(THREADS, 4) sample(const __grid_constant__ Sample p) {
  int r = blockIdx.x * THREADS + threadIdx.x;
  if (r >= p.rows) return;
  Key key = p.keys[r];
  float logProb = 0.f, entropy = 0.f;
  for (int i = 0; i < p.count; i++) {
    const Head &h = p.heads[i];
    if (h.kind <= PAIRS)
      choose(h, key, r, p.ld);
    else
      draw(h, key, r, p.ld);
    weigh(h, r, p.ld, &logProb, &entropy);
  }
  p.logProb[r] = logProb;
}

struct Loss {
  Head *heads;
  float *value;  // [rows]; replaced by the gradient
  const float *oldLogProb, *oldValue, *advantage, *target;
  const double *moments;  // mean and scale of the advantages, or null
  float *logProb;         // [rows] written
  double *sums;           // [blocks][SUMS] written
  const Control *control;
  int count, rows, ld;
  int descend;  // else only the log-probabilities are computed
  float low, high, clip, mean, entropy, valueCoef, valueClip, penalty;  // as gpu/cpu/internal/kern.Loss has them
  float bounds;  // twice the coefficient of means outside of their edges, over the rows
  int pad;
};

// Terms is what a row adds to the sums; the last one is a maximum.
struct Terms {
  float surrogate, value, entropy, kl, logRatio, clipped, deviation;
};

// surrogate returns the slope of the clipped surrogate, less what the divergence costs, over the log-probability.
__device__ __forceinline__ float surrogate(const Loss &p, float logRatio, float advantage, Terms *t) {
  float ratio = exp_(logRatio);
  float bound = p.low > ratio ? p.low : ratio;
  bound = p.high < bound ? p.high : bound;
  float free = ratio * advantage, clipped = bound * advantage, change = ratio - 1.f;
  float slope = free <= clipped ? free * p.mean : 0.f;
  slope = __fmaf_rn(-(change < 3.402823466e38f ? change : 3.402823466e38f), p.penalty, slope);
  t->surrogate = free < clipped ? free : clipped;
  t->kl = change - logRatio;
  t->logRatio = logRatio;
  t->deviation = fabsf(change);
  t->clipped = p.clip < t->deviation ? 1.f : 0.f;
  return slope;
}

// valueLoss returns the gradient over the value.
__device__ __forceinline__ float valueLoss(const Loss &p, float value, float old, float target, Terms *t) {
  float change = value - old, free = value - target;
  float bound = p.valueClip < change ? p.valueClip : change;
  bound = -p.valueClip > bound ? -p.valueClip : bound;
  float clipped = (bound + old) - target;
  float square = free * free, limited = clipped * clipped;
  bool clips = p.valueClip < fabsf(change) && square < limited;
  t->value = clips ? limited : square;
  return clips ? 0.f : free * p.valueCoef;
}

// descend replaces what an action is made from by its gradient; weight is that of an entropy which the action estimates.
__device__ __forceinline__ void descend(const Head &h, const Loss &p, int r, float slope, float weight) {
  int ld = p.ld;
  if (h.kind <= PAIRS) {
    for (int i = 0, at = 0; i < h.elements; i++) {
      Choice c = choice(h, r, ld, i, at);
      c.open();
      float own = c.entropy();
      int taken = h.index[(size_t)i * ld + r];
      float *to = h.params + (size_t)(c.pair ? i : at) * ld + r;
#pragma unroll 1
      for (int a = c.pair ? 1 : 0; a < c.count; a++) {
        float x = c.logProb(a), d = ((x + own) * p.entropy + slope) * exp_(x);
        d = d - (a == taken ? slope : 0.f);
        to[c.pair ? 0 : (size_t)a * ld] = d;
      }
      at += c.count;
    }
    return;
  }
  for (int i = 0; i < h.elements; i++) {
    float *mean = h.params + (size_t)i * ld + r, *l = h.params + (size_t)(h.elements + i) * ld + r;
    float log = deviation(h, r, ld, i);
    float raw = h.raw[(size_t)i * ld + r], apart = raw - *mean, inverse = exp_(-log), z = apart * inverse;
    float coef = p.entropy, dMean = -((slope * z) * inverse), dLog = slope * (1.f - z * z);
    if (h.kind == TANH_NORMAL) {  // the entropy's gradient moves what was drawn with the parameters
      coef = coef * weight;
      float bend = tanh_(raw) * coef;
      bend = bend + bend;
      dMean = dMean + bend;
      dLog = bend * apart + dLog;
    }
    if (p.bounds > 0.f) {
      float least = h.edges[i], most = h.edges[h.elements + i], scale = h.edges[2 * h.elements + i];
      float beyond = *mean < least ? *mean - least : most < *mean ? *mean - most : 0.f;
      dMean = dMean + (p.bounds * scale * scale) * beyond;
    }
    *mean = dMean;
    *l = *l < h.low || h.high < *l ? 0.f : dLog - coef;
  }
}

// total adds up the terms of a block of threads, in a fixed order.
__device__ __forceinline__ void total(const Terms &t, double *to) {
  __shared__ double all[SUMS][THREADS / 32];
  double x[SUMS] = {t.surrogate, t.value, t.entropy, t.kl, t.logRatio, t.clipped, t.deviation};
#pragma unroll
  for (int i = 0; i < SUMS; i++) {
    for (int apart = 16; apart; apart /= 2) {
      double other = __shfl_xor_sync(~0u, x[i], apart);
      x[i] = i == SUMS - 1 ? (x[i] > other ? x[i] : other) : x[i] + other;
    }
    if (threadIdx.x % 32 == 0) all[i][threadIdx.x / 32] = x[i];
  }
  __syncthreads();
  if (threadIdx.x >= SUMS) return;
  double sum = all[threadIdx.x][0];
  for (int w = 1; w < THREADS / 32; w++) {
    double other = all[threadIdx.x][w];
    sum = threadIdx.x == SUMS - 1 ? (sum > other ? sum : other) : sum + other;
  }
  to[threadIdx.x] = sum;
}

// loss computes the clipped surrogate, the value's loss and their gradients.
extern "C" __global__ void __launch_bounds__(THREADS, 4) loss(const __grid_constant__ Loss p) {
  if (over(p.control)) return;
  int r = blockIdx.x * THREADS + threadIdx.x;
  Terms t = {};
  if (r < p.rows) {
    float logProb = 0.f;
    for (int i = 0; i < p.count; i++) weigh(p.heads[i], r, p.ld, &logProb, &t.entropy);
    p.logProb[r] = logProb;
    if (p.descend) {
      float advantage = p.advantage[r];
      if (p.moments) advantage = (float)(((double)advantage - p.moments[0]) * p.moments[1]);
      float logRatio = logProb - p.oldLogProb[r], slope = surrogate(p, logRatio, advantage, &t), ratio = exp_(logRatio);
      p.value[r] = valueLoss(p, p.value[r], p.oldValue[r], p.target[r], &t);
      for (int i = 0; i < p.count; i++) descend(p.heads[i], p, r, slope, p.high < ratio ? p.high : ratio);
    }
  }
  if (p.descend) total(t, p.sums + (size_t)blockIdx.x * SUMS);
}
