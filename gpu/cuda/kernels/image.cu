// Convolutions and pools of images [height][width][channels].
#include "product.cuh"

// conv is the product of a convolution: a row for each window.
extern "C" __global__ void __launch_bounds__(THREADS, 4) conv(const __grid_constant__ Product<Windows, Matrix, Pixels> p) { compute(p); }

// Taps is the matrix of the weights that the pixels of one phase meet, for the gradient of what a convolution reads: the pixels
// top, top + stride and so on of a padded image meet the rows top, top + stride and so on of the kernel, last first. It has a
// row for each channel, a column for each tap and output.
struct Taps {
  enum { UNROLL = 1 };
  const float *weight;  // [kernel][kernel][channels][row]
  int kernel, channels, outputs, row;
  int stride, top, left;
  int rows, columns;  // of the taps

  __device__ __forceinline__ float get(int channel, int k) const {
    int tap = k / outputs;
    int y = top + stride * (rows - 1 - tap / columns), x = left + stride * (columns - 1 - tap % columns);
    return weight[((size_t)(y * kernel + x) * channels + channel) * row + k % outputs];
  }
  __device__ __forceinline__ bool byRow() const { return true; }
};

// convBack is the gradient of the pixels of one phase.
extern "C" __global__ void __launch_bounds__(THREADS, 4) convBack(const __grid_constant__ Product<Windows, Taps, Pixels> p) { compute(p); }

// convOuter is the gradient of a convolution's weights, convSums that of its biases.
extern "C" __global__ void __launch_bounds__(THREADS, 2) convOuter(const __grid_constant__ Outer<Windows, Pixels> p) { partial(p); }
extern "C" __global__ void __launch_bounds__(THREADS, 4) convSums(const __grid_constant__ Sums<Pixels> p) { sum(p); }

// Pool is the largest element of each window, by channels; what lies outside of an image is in none.
struct Pool {
  const float *x;
  float *out;
  const float *d;  // gradient of out
  float *dx;       // added to
  const Control *control;
  int images, height, width, channels;
  int rows, columns, kernel, stride, margin;
  int xImage, outImage, dImage, dxImage;
  int pad;

  // largest returns the first place of the largest element of a window, as an element of the image. What is not a number is
  // larger than any.
  __device__ __forceinline__ int largest(const float *image, int row, int column, int channel) const {
    int top = row * stride - margin, left = column * stride - margin, best = -1;
    for (int y = max(top, 0); y < min(top + kernel, height); y++)
      for (int x = max(left, 0); x < min(left + kernel, width); x++) {
        int at = (y * width + x) * channels + channel;
        if (best < 0 || image[at] > image[best] || image[at] != image[at]) best = at;
      }
    return best;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 4) pool(const __grid_constant__ Pool p) {
  long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  int size = p.rows * p.columns * p.channels, n = (int)(i / size), place = (int)(i % size);
  if (over(p.control) || n >= p.images) return;
  const float *image = p.x + (size_t)n * p.xImage;
  int channel = place % p.channels, column = place / p.channels % p.columns, row = place / p.channels / p.columns;
  p.out[(size_t)n * p.outImage + place] = image[p.largest(image, row, column, channel)];
}

// poolBack adds to each pixel the gradients of the windows whose first largest element it is, in their order.
extern "C" __global__ void __launch_bounds__(THREADS, 4) poolBack(const __grid_constant__ Pool p) {
  long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  int size = p.height * p.width * p.channels, n = (int)(i / size), at = (int)(i % size);
  if (over(p.control) || n >= p.images) return;
  const float *image = p.x + (size_t)n * p.xImage, *d = p.d + (size_t)n * p.dImage;
  int channel = at % p.channels, x = at / p.channels % p.width, y = at / p.channels / p.width;
  float sum = p.dx[(size_t)n * p.dxImage + at];
  for (int row = max(0, (y + p.margin - p.kernel + p.stride) / p.stride); row < p.rows && row * p.stride - p.margin <= y; row++)
    for (int column = max(0, (x + p.margin - p.kernel + p.stride) / p.stride); column < p.columns && column * p.stride - p.margin <= x; column++)
      if (p.largest(image, row, column, channel) == at) sum = sum + d[(row * p.columns + column) * p.channels + channel];
  p.dx[(size_t)n * p.dxImage + at] = sum;
}
