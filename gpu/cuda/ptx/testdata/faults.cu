// Kernels with one fault each. The numbers that tests give them decide whether it shows where nvcc would else see it.
#include <cuda_runtime.h>

#define KERNEL extern "C" __global__ void

KERNEL beyond(const float *x, float *out, int n) {
	int i = threadIdx.x;
	if (i <= n) out[i] = x[i];
}

KERNEL misaligned(const char *x, float *out) { out[threadIdx.x] = *(const float *)(x + threadIdx.x); }

KERNEL shared_beyond(float *out, int n) {
	extern __shared__ float dynamic[];
	dynamic[threadIdx.x + n] = 1.f;
	__syncthreads();
	out[threadIdx.x] = dynamic[threadIdx.x];
}

KERNEL local_beyond(int *out, int at) {
	int own[4];
	for (int i = 0; i < 4; i++) own[i] = out[i];
	own[at & 7] = 3;
	out[threadIdx.x] = own[at + 1 & 7];
}

// Row 3 of the tile is never written.
KERNEL unwritten_shared(const float *x, float *out) {
	__shared__ float tile[32];
	if (threadIdx.x != 3) tile[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = tile[31 - threadIdx.x] + 1.f;
}

KERNEL unwritten_branch(const int *x, int *out) {
	if (x[threadIdx.x] > 3) out[threadIdx.x] = 1;
}

KERNEL unwritten_address(const int *x, int *out) { out[x[threadIdx.x]] = 1; }

KERNEL missing_lanes(const int *x, int *out) {
	int v = x[threadIdx.x];
	if (v > 2) v = __shfl_xor_sync(0xffffffffu, v, 1);
	out[threadIdx.x] = v;
}

// Without the barrier between the store and the loads.
KERNEL no_barrier(const float *x, float *out) {
	__shared__ float tile[64];
	tile[threadIdx.x] = 0.f;
	__syncthreads();
	tile[threadIdx.x] = x[threadIdx.x];
	out[threadIdx.x] = tile[63 - threadIdx.x];
}

// Without the barrier between the loads and the next stores.
KERNEL no_second_barrier(const float *x, float *out, int rounds) {
	__shared__ float tile[64];
	float sum = 0.f;
	for (int i = 0; i < rounds; i++) {
		tile[threadIdx.x] = x[threadIdx.x] + i;
		__syncthreads();
		sum += tile[63 - threadIdx.x];
	}
	out[threadIdx.x] = sum;
}

// Lanes of one warp without __syncwarp between them.
KERNEL no_warp_barrier(const float *x, float *out) {
	__shared__ volatile float tile[32];
	__shared__ float plain[32];
	plain[threadIdx.x] = x[threadIdx.x];
	tile[threadIdx.x] = 0.f;
	out[threadIdx.x] = plain[31 - threadIdx.x] + tile[threadIdx.x];
}

// Two CTAs write other values to one word.
KERNEL both_write(int *out) { out[threadIdx.x] = blockIdx.x; }

// The last CTA adds what others have written without a fence.
KERNEL no_publication(float *partial, float *sum, unsigned *count) {
	if (threadIdx.x == 0) {
		partial[blockIdx.x] = 1.f;
		if (atomicAdd(count, 1) == gridDim.x - 1) {
			float s = 0.f;
			for (int i = 0; i < gridDim.x; i++) s += partial[i];
			*sum = s;
		}
	}
}

KERNEL half_at_barrier(int *out) {
	if (threadIdx.x < 16) __syncthreads();
	out[threadIdx.x] = 1;
}

// A whole warp does not come.
KERNEL warp_not_at_barrier(const int *x, int *out) {
	if (x[threadIdx.x] == 0) {
		out[threadIdx.x] = 1;
		__syncthreads();
		out[threadIdx.x] = 2;
	} else {
		out[threadIdx.x] = 3;
		__syncthreads();
		out[threadIdx.x] = 4;
	}
}

KERNEL no_fence(float *out, volatile unsigned *done) {
	out[threadIdx.x] = 1.f;
	__syncthreads();
	if (threadIdx.x == 0) *done = 1;
}

// A fence for the device is none for the host.
KERNEL weak_fence(float *out, volatile unsigned *done) {
	out[threadIdx.x] = 1.f;
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) *done = 1;
}

// Thread 0 does not wait for the others.
KERNEL no_wait(float *out, volatile unsigned *done) {
	out[threadIdx.x] = 1.f;
	__threadfence_system();
	if (threadIdx.x == 0) *done = 1;
}

// CTA 0 does not wait for the others.
KERNEL no_count(float *out, volatile unsigned *done) {
	out[blockIdx.x * blockDim.x + threadIdx.x] = 1.f;
	__threadfence_system();
	__syncthreads();
	if (blockIdx.x == 0 && threadIdx.x == 0) *done = 1;
}

KERNEL forever(volatile int *flag) {
	while (*flag == 0) {}
}

KERNEL stops(const int *x) {
	if (x[threadIdx.x] > 3) __trap();
}

KERNEL __launch_bounds__(64) small(int *out) { out[threadIdx.x] = 1; }

// The compiler is told that x is not written.
KERNEL read_only(const int *__restrict__ x, int *__restrict__ y) {
	y[threadIdx.x] = 7;
	__syncthreads();
	y[threadIdx.x + 32] = x[threadIdx.x];
}
