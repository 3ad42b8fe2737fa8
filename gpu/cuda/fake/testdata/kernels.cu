#include <cuda_runtime.h>

#define KERNEL extern "C" __global__ void

struct Args {
	const float *x;
	float *y;
	volatile unsigned long long *done;
	unsigned long long sequence;
	int n;
	float a;
};

// y = a x + y
KERNEL add(const __grid_constant__ Args k) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < k.n) k.y[i] = __fmaf_rn(k.a, k.x[i], k.y[i]);
}

// y = a x, and then the host is told; one block.
KERNEL tell(const __grid_constant__ Args k) {
	for (int i = threadIdx.x; i < k.n; i += blockDim.x) k.y[i] = __fmul_rn(k.a, k.x[i]);
	__threadfence_system();
	__syncthreads();
	if (threadIdx.x == 0) *k.done = k.sequence;
}

KERNEL large(const __grid_constant__ Args k) {
	extern __shared__ float dynamic[];
	dynamic[threadIdx.x + k.n] = k.a;
	__syncthreads();
	k.y[threadIdx.x] = dynamic[threadIdx.x + k.n];
}
