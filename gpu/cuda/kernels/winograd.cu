// Convolutions in tiles, with the formulas of gpu/policy/layer's Tiling and the bits of gpu/cpu.
#include "product.cuh"

enum { PARTS = 16 };

// TileFilters makes the parts of filters from a convolution's weights.
struct TileFilters {
  const float *weight;  // [kernel][kernel][channels][outputs]
  float *to;            // [PARTS][depth][outputs]
  const Control *control;
  int kernel, channels, outputs, stride, taps;
  int pad;

  // expand is G·g; of two taps the middle one is not looked at.
  __device__ __forceinline__ void expand(float (&to)[4], float first, float middle, float last) const {
    float sum = first + last, difference = first - last;
    to[0] = first;
    to[1] = (taps == 2 ? sum : sum + middle) * 0.5f;
    to[2] = (taps == 2 ? difference : sum - middle) * 0.5f;
    to[3] = last;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) tileFilters(const __grid_constant__ TileFilters p) {
  int i = blockIdx.x * THREADS + threadIdx.x, line = p.stride * p.channels, elems = p.stride * line * p.outputs;
  if (over(p.control) || i >= elems) return;
  int k = i / p.outputs, row = p.kernel * p.channels * p.outputs, step = p.stride * row;
  const float *g = p.weight + (size_t)(k / line) * row + (size_t)(k % line) * p.outputs + i % p.outputs;
  float w[3][4] = {}, u[4];
#pragma unroll
  for (int c = 0; c < 3; c++)
    if (c < p.taps) {
      const float *top = g + (size_t)c * line * p.outputs;
      p.expand(w[c], top[0], top[step], top[(p.taps - 1) * step]);
    }
#pragma unroll
  for (int r = 0; r < 4; r++) {
    p.expand(u, w[0][r], w[1][r], p.taps == 2 ? w[1][r] : w[2][r]);
#pragma unroll
    for (int c = 0; c < 4; c++) p.to[(size_t)(4 * r + c) * elems + i] = u[c];
  }
}

// TileInputs is the matrix of the tiles of images [height][width][channels], of the part that blockIdx.z says: a row for each tile of
// each image in turn, a column for each element of a pixel, which is stride² pixels of the image. What lies outside of an image is 0.
struct TileInputs {
  enum { UNROLL = 1 };
  const float *data;
  long long image;  // elements between images
  int height, width, channels;
  int rows, columns;        // of tiles in an image
  int outRows, outColumns;  // of its outputs
  int side, stride, margin;

  // Pair is the two elements of four that an element of Bᵀ·d is made of.
  struct Pair {
    int a, b;
    bool sum;
    __device__ __forceinline__ explicit Pair(int part) : a(part), b(part == 0 || part == 1 ? 2 : 1), sum(part == 1) {}
    __device__ __forceinline__ float of(float x, float y) const { return sum ? x + y : x - y; }
  };

  __device__ __forceinline__ float get(int i, int j) const {
    int n = i / (rows * columns), place = i - n * rows * columns, line = stride * channels;
    Pair down(blockIdx.z / 4), across(blockIdx.z % 4);
    int y = min(place / columns * side, outRows - side) * stride - margin + j / line;
    int x = min(place % columns * side, outColumns - side) * stride - margin + j % line / channels;
    const float *from = data + n * image + j % channels;
    int top = y + down.a * stride, bottom = y + down.b * stride, left = x + across.a * stride, right = x + across.b * stride;
    return across.of(down.of(pixel(from, top, left), pixel(from, bottom, left)), down.of(pixel(from, top, right), pixel(from, bottom, right)));
  }
  __device__ __forceinline__ float pixel(const float *from, int y, int x) const {
    return y < 0 || y >= height || x < 0 || x >= width ? 0.f : from[(size_t)(y * width + x) * channels];
  }
  __device__ __forceinline__ bool byRow() const { return true; }
};

// Parts is PARTS matrices, of which blockIdx.z says one.
struct Parts {
  enum { UNROLL = 4 };
  float *data;
  long long part;  // elements between them
  int row, column;

  __device__ __forceinline__ size_t at(int i, int j) const { return blockIdx.z * part + (size_t)i * row + (size_t)j * column; }
  __device__ __forceinline__ float get(int i, int j) const { return data[at(i, j)]; }
  __device__ __forceinline__ bool byRow() const { return column == 1; }
};

// tileProducts is the products of the parts of tiles with those of filters.
extern "C" __global__ void __launch_bounds__(THREADS, 4) tileProducts(const __grid_constant__ Product<TileInputs, Parts, Parts> p) { compute(p); }

// TileOutputs makes outputs of those products.
struct TileOutputs {
  const float *parts, *bias;  // parts [PARTS][tiles][channels]
  float *out;
  const Control *control;
  long long part, image;  // elements between parts, between images of outputs
  int images, rows, columns;  // of tiles in an image
  int outRows, outColumns, channels, taps, epilogue;

  // gather is Aᵀ·m of elements that are step apart; with three taps, the last of the three is nothing.
  __device__ __forceinline__ void gather(float (&to)[3], float m0, float m1, float m2, float m3) const {
    float sum = m1 + m2, difference = m1 - m2;
    to[0] = m0 + sum;
    to[1] = taps == 2 ? difference : difference + m3;
    to[2] = sum + m3;
  }
};

// tileOutputs has a thread for each channel of each tile. An output of several tiles is the last one's.
extern "C" __global__ void __launch_bounds__(THREADS, 4) tileOutputs(const __grid_constant__ TileOutputs p) {
  long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  int channel = (int)(i % p.channels), tile = (int)(i / p.channels), n = tile / (p.rows * p.columns), place = tile - n * p.rows * p.columns;
  if (over(p.control) || n >= p.images) return;
  float z[3][4], y[3];
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const float *m = p.parts + c * p.part + i;
    p.gather(y, m[0], m[4 * p.part], m[8 * p.part], m[12 * p.part]);
    z[0][c] = y[0], z[1][c] = y[1], z[2][c] = y[2];
  }
  int side = 5 - p.taps, row = place / p.columns, column = place % p.columns;
  int top = min(row * side, p.outRows - side), left = min(column * side, p.outColumns - side);
  bool lastRow = row == p.rows - 1, lastColumn = column == p.columns - 1;
  float bias = p.bias[channel];
#pragma unroll
  for (int r = 0; r < 3; r++) {
    p.gather(y, z[r][0], z[r][1], z[r][2], z[r][3]);
#pragma unroll
    for (int c = 0; c < 3; c++)
      if (r < side && c < side && (lastRow || top + r < p.outRows - side) && (lastColumn || left + c < p.outColumns - side))
        p.out[n * p.image + ((size_t)(top + r) * p.outColumns + left + c) * p.channels + channel] = finish(p.epilogue, y[c] + bias, 0.f);
  }
}
