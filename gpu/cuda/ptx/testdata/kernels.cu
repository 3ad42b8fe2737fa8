// Kernels as they should be: what nvcc writes for the things that kernels are made of.
#include <cuda_runtime.h>

#define KERNEL extern "C" __global__ void

KERNEL scale(float *x, float a, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) x[i] = __fmul_rn(x[i], a);
}

// c[m][n] = max(a[m][k] w[n][k] + bias[n], 0) in tiles of 16 by 16.
KERNEL dense(const float *__restrict__ a, const float *__restrict__ w, const float *__restrict__ bias, float *__restrict__ c, int m, int n, int k) {
	__shared__ float as[16][17], ws[16][17];
	int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x, from = blockIdx.x * 16 + y;
	float sum = column < n ? bias[column] : 0.f;
	for (int k0 = 0; k0 < k; k0 += 16) {
		as[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.f;
		ws[y][x] = from < n && k0 + x < k ? w[from * k + k0 + x] : 0.f;
		__syncthreads();
		for (int i = 0; i < 16 && k0 + i < k; i++) sum = __fmaf_rn(as[y][i], ws[x][i], sum);
		__syncthreads();
	}
	if (row < m && column < n) c[row * n + column] = fmaxf(sum, 0.f);
}

// Four by four sums a thread, vectors of four from dynamic shared memory: a[64][k], b[64][k], c[64][64].
KERNEL registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int k, int rounds) {
	extern __shared__ float4 dynamic[];
	float *as = (float *)dynamic, *bs = as + 64 * k;
	for (int i = threadIdx.x; i < 16 * k; i += 256) ((float4 *)as)[i] = ((const float4 *)a)[i], ((float4 *)bs)[i] = ((const float4 *)b)[i];
	__syncthreads();
	int x = threadIdx.x & 15, y = threadIdx.x >> 4;
	float sum[4][4] = {};
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < k; i += 4) {
			float4 u[4], v[4];
			for (int j = 0; j < 4; j++) u[j] = *(float4 *)(as + (y * 4 + j) * k + i), v[j] = *(float4 *)(bs + (x + 16 * j) * k + i);
			for (int p = 0; p < 4; p++)
				for (int q = 0; q < 4; q++)
					sum[p][q] = __fmaf_rn(u[p].w, v[q].w, __fmaf_rn(u[p].z, v[q].z, __fmaf_rn(u[p].y, v[q].y, __fmaf_rn(u[p].x, v[q].x, sum[p][q]))));
		}
	for (int p = 0; p < 4; p++)
		for (int q = 0; q < 4; q++) c[(y * 4 + p) * 64 + x + 16 * q] = sum[p][q];
}

// The sum of all squares: shuffles, a partial sum of each CTA, and the last CTA to come adds them in their order and tells
// the host.
KERNEL squares(const float *__restrict__ x, int n, float *partial, float *sum, unsigned *count, volatile unsigned long long *done, unsigned long long sequence) {
	__shared__ float part[32];
	__shared__ bool last;
	float s = 0.f;
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s = __fmaf_rn(x[i], x[i], s);
	for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
	if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
	__syncthreads();
	if (threadIdx.x == 0) {
		s = 0.f;
		for (int i = 0; i < blockDim.x >> 5; i++) s += part[i];
		partial[blockIdx.x] = s;
		__threadfence();
		last = atomicAdd(count, 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && threadIdx.x == 0) {
		s = 0.f;
		for (int i = 0; i < gridDim.x; i++) s += ((volatile float *)partial)[i];
		*sum = s;
		*count = 0;
		__threadfence_system();
		*done = sequence;
	}
}

// A divergent loop with breaks and an early end, behind which lanes meet again: steps of the Collatz sequence from each number.
KERNEL collatz(const unsigned *start, unsigned *steps, unsigned *longest, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	unsigned long long x = start[i];
	unsigned count = 0;
	if (x == 0) { atomicAdd(longest + 1, 1u); return; }
	while (x != 1) {
		if (count >= 1000) break;
		x = x & 1 ? 3 * x + 1 : x / 2;
		count++;
	}
	atomicMax(longest, count);
	steps[i] = count;
}

// Ten ways through a switch, which nvcc makes a table of jumps.
KERNEL ways(const int *which, int *out) {
	int i = threadIdx.x, x = i;
	switch (which[i]) {
	case 0: x = x * 7 + 1; break;
	case 1: x = x ^ 0x55; atomicAdd(out + 64, 1); break;
	case 2: x = x / 3; break;
	case 3: for (int j = 0; j < i; j++) x += j * x; break;
	case 4: x = __popc(x); break;
	case 5: x = __brev(x); break;
	case 6: x = __clz(x); atomicMax(out + 65, i); break;
	case 7: x = -x; break;
	case 8: x = x % 5; break;
	default: x = 99;
	}
	out[i] = x;
}

// Lanes above, below and at the places of others, in segments.
KERNEL shuffled(const int *x, unsigned *out) {
	int i = threadIdx.x, v = x[i];
	out[i] = __shfl_up_sync(0xffffffffu, v, 3) | __shfl_down_sync(0xffffffffu, v, 5, 8) << 8 | __shfl_sync(0xffffffffu, v, i + 1, 16) << 16;
}

// An array of the thread's own, indexed by data.
KERNEL sorted(const int *x, int *out) {
	int own[8], i = threadIdx.x;
	for (int j = 0; j < 8; j++) own[j] = x[i * 8 + j];
	for (int j = 0; j < 7; j++)
		for (int k = 0; k < 7 - j; k++)
			if (own[k] > own[k + 1]) { int t = own[k]; own[k] = own[k + 1]; own[k + 1] = t; }
	out[i] = own[x[i * 8] & 7];
}

__constant__ float table[5] = {1.f, -2.f, 3.5f, 0.25f, 1e-3f};
__device__ unsigned counter = 7;

// Variables of the module: constants, and one that stays from launch to launch.
KERNEL variables(const int *x, float *out) {
	out[threadIdx.x] = table[x[threadIdx.x]];
	if (threadIdx.x == 0) out[32] = (float)atomicAdd(&counter, 2u);
}

// One mma of bf16: a[16][16], b[8][16], d[16][8].
KERNEL tensor(const unsigned *a, const unsigned *b, float *d) {
	int g = threadIdx.x >> 2, t = threadIdx.x & 3;
	float r[4] = {};
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		: "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])
		: "r"(a[g * 8 + t]), "r"(a[(g + 8) * 8 + t]), "r"(a[g * 8 + t + 4]), "r"(a[(g + 8) * 8 + t + 4]), "r"(b[g * 8 + t]), "r"(b[g * 8 + t + 4]));
	d[g * 8 + t * 2] = r[0], d[g * 8 + t * 2 + 1] = r[1], d[(g + 8) * 8 + t * 2] = r[2], d[(g + 8) * 8 + t * 2 + 1] = r[3];
}
