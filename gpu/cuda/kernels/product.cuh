// Products of matrices, tile by tile. Whatever the tile, an element is one ascending chain of fused multiply-adds.
#pragma once
#include "control.cuh"
#include "math.cuh"

enum { TILE = 64, DEEP = 16, THREADS = 256, CHAIN = 32 };

// Matrix is float32 elements that lie where strides say.
struct Matrix {
  enum { UNROLL = 4 };
  float *data;
  int row, column;  // elements between rows, between columns

  __device__ __forceinline__ size_t at(int i, int j) const { return (size_t)i * row + (size_t)j * column; }
  __device__ __forceinline__ float get(int i, int j) const { return data[at(i, j)]; }
  __device__ __forceinline__ bool byRow() const { return column == 1; }
};

// Windows is the matrix of the windows of images [height][width][channels]: a row for each window of each image in turn, a
// column for each element of a window by row, column and channel. What lies outside of an image is 0.
struct Windows {
  enum { UNROLL = 1 };
  const float *data;
  long long image;  // elements between images
  int height, width, channels;
  int rows, columns;  // of windows in an image
  int kernelColumns;
  int stride, top, left;  // of the first window; negative within the padding

  __device__ __forceinline__ float get(int i, int j) const {
    int perImage = rows * columns, n = i / perImage, place = i - n * perImage;
    int channel = j % channels, tap = j / channels;
    int y = place / columns * stride + top + tap / kernelColumns;
    int x = place % columns * stride + left + tap % kernelColumns;
    if (y < 0 || y >= height || x < 0 || x >= width) return 0.f;
    return data[n * image + (size_t)(y * width + x) * channels + channel];
  }
  __device__ __forceinline__ bool byRow() const { return true; }
};

// Pixels is the matrix of places in images, a row for each place of each image in turn, a column for each channel.
struct Pixels {
  enum { UNROLL = 1 };
  float *data;
  long long image;    // elements between images
  int rows, columns;  // of places in an image
  int line, step;     // elements between rows of places, between places

  __device__ __forceinline__ size_t at(int i, int j) const {
    int perImage = rows * columns, n = i / perImage, place = i - n * perImage;
    return n * image + (long long)(place / columns) * line + (long long)(place % columns) * step + j;
  }
  __device__ __forceinline__ float get(int i, int j) const { return data[at(i, j)]; }
};

// load copies a part of a matrix into shared memory, with zeros behind its end: to[k][i] = from(i0 + i, k0 + k).
template <class M>
__device__ __forceinline__ void load(const M &from, int i0, int k0, int rows, int depth, float (*to)[TILE + 4]) {
#pragma unroll M::UNROLL
  for (int n = threadIdx.x; n < TILE * DEEP; n += THREADS) {
    int i = from.byRow() ? n / DEEP : n % TILE, k = from.byRow() ? n % DEEP : n / TILE;
    to[k][i] = i0 + i < rows && k0 + k < depth ? from.get(i0 + i, k0 + k) : 0.f;
  }
}

// multiply adds products to a thread's 4 by 4 elements of a tile, in the order of k.
__device__ __forceinline__ void multiply(float (&sum)[4][4], const float (*a)[TILE + 4], const float (*b)[TILE + 4], int depth, int y, int x) {
  for (int k = 0; k < depth; k++) {
    float4 u = *(const float4 *)&a[k][y], v = *(const float4 *)&b[k][x];
    float left[4] = {u.x, u.y, u.z, u.w}, right[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) sum[i][j] = __fmaf_rn(left[i], right[j], sum[i][j]);
  }
}

enum Start { ZERO, BIAS, SUM };

// Product is C(i, j) = epilogue(start + Σ_k A(i, k)·B(j, k)), with start 0, the bias of each column or what C has.
template <class A, class B, class C>
struct Product {
  A a;
  B b;
  C c;
  const float *bias;
  const float *h;  // for derivatives, with the places of C
  const Control *control;
  int rows, columns, depth;
  int start, epilogue;
  int pad;
};

// compute computes the tile of a block of threads: rows by blockIdx.x, columns by blockIdx.y.
template <class A, class B, class C>
__device__ __forceinline__ void compute(const Product<A, B, C> &p) {
  if (over(p.control)) return;
  __shared__ __align__(16) float a[DEEP][TILE + 4], b[DEEP][TILE + 4];
  int i0 = blockIdx.x * TILE, j0 = blockIdx.y * TILE;
  int y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
  float sum[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      bool inside = i0 + y + i < p.rows && j0 + x + j < p.columns;
      sum[i][j] = !inside || p.start == ZERO ? 0.f : p.start == BIAS ? p.bias[j0 + x + j] : p.c.get(i0 + y + i, j0 + x + j);
    }
  for (int k = 0; k < p.depth; k += DEEP) {
    load(p.a, i0, k, p.rows, p.depth, a);
    load(p.b, j0, k, p.columns, p.depth, b);
    __syncthreads();
    multiply(sum, a, b, min(DEEP, p.depth - k), y, x);
    __syncthreads();
  }
  // Through shared memory, so that threads side by side store side by side: the rows i, 4 + i, 8 + i and so on at a time.
#pragma unroll
  for (int i = 0; i < 4; i++) {
    *(float4 *)&a[y / 4][x] = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    __syncthreads();
#pragma unroll 1
    for (int n = threadIdx.x; n < TILE * DEEP; n += THREADS) {
      int row = i0 + n / TILE * 4 + i, column = j0 + n % TILE;
      if (row < p.rows && column < p.columns) {
        size_t at = p.c.at(row, column);
        p.c.data[at] = finish(p.epilogue, a[n / TILE][n % TILE], p.epilogue >= DTANH ? p.h[at] : 0.f);
      }
    }
    if (i < 3) __syncthreads();
  }
}

// Outer is a gradient of weights in parts, part by part C(i, j) = Σ_r A(r, i)·B(r, j): part p has the runs p, p + parts and so
// on of `run` rows each, and is the sum of chains of at most 32 rows, in their order. So it depends on the rows alone.
template <class A, class B>
struct Outer {
  A a;
  B b;
  Matrix c;  // of part 0
  const Control *control;
  long long part;  // elements between parts
  int rows, height, width, parts, run;
  int pad;
};

// partial computes a tile of a part: rows of C by blockIdx.x, columns by blockIdx.y, parts by blockIdx.z.
template <class A, class B>
__device__ __forceinline__ void partial(const Outer<A, B> &p) {
  if (over(p.control)) return;
  __shared__ __align__(16) float a[CHAIN][TILE + 4], b[CHAIN][TILE + 4];
  int i0 = blockIdx.x * TILE, j0 = blockIdx.y * TILE;
  int y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
  float sum[4][4] = {};
  for (long long first = (long long)blockIdx.z * p.run; first < p.rows; first += (long long)p.parts * p.run) {
    int end = (int)min(first + p.run, (long long)p.rows);
    for (int r = (int)first; r < end; r += CHAIN) {
      int count = min(CHAIN, end - r);
#pragma unroll A::UNROLL
      for (int n = threadIdx.x; n < TILE * count; n += THREADS) {
        int k = n / TILE, i = n % TILE;
        a[k][i] = i0 + i < p.height ? p.a.get(r + k, i0 + i) : 0.f;
        b[k][i] = j0 + i < p.width ? p.b.get(r + k, j0 + i) : 0.f;
      }
      __syncthreads();
      float chain[4][4] = {};
      multiply(chain, a, b, count, y, x);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = sum[i][j] + chain[i][j];
    }
  }
  float *c = p.c.data + (size_t)blockIdx.z * p.part;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (i0 + y + i < p.height && j0 + x + j < p.width) c[p.c.at(i0 + y + i, j0 + x + j)] = sum[i][j];
}

// Sums is the gradient of biases in parts, of the same rows and chains as Outer's: C(j) = Σ_r X(r, j).
template <class X>
struct Sums {
  X x;
  float *c;  // of part 0
  const Control *control;
  long long part;
  int rows, columns, parts, run;
};

// sum computes columns by blockIdx.x, parts by blockIdx.y.
template <class X>
__device__ __forceinline__ void sum(const Sums<X> &p) {
  int j = blockIdx.x * THREADS + threadIdx.x;
  if (over(p.control) || j >= p.columns) return;
  float sum = 0.f;
  for (long long first = (long long)blockIdx.y * p.run; first < p.rows; first += (long long)p.parts * p.run) {
    int end = (int)min(first + p.run, (long long)p.rows);
    for (int r = (int)first; r < end; r += CHAIN) {
      float chain = 0.f;
#pragma unroll X::UNROLL
      for (int k = r; k < min(r + CHAIN, end); k++) chain = chain + p.x.get(k, j);
      sum = sum + chain;
    }
  }
  p.c[(size_t)blockIdx.y * p.part + j] = sum;
}
