// What the kernels have in common. Images are bfloat16, (pixels, channels) in memory; a thread reads eight
// channels of a pixel at once, always the same eight. All sums have a fixed order: the same inputs give the same
// bits.

typedef unsigned int u32;

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// --- eight channels of a pixel ---------------------------------------------------------------------------

struct Octet {
    float v[8];
};

__device__ __forceinline__ Octet unpack(uint4 packed) {
    const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
    Octet o;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        o.v[2 * i] = __uint_as_float(words[i] << 16);
        o.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
    return o;
}

__device__ __forceinline__ u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ uint4 pack(const Octet& o) {
    return make_uint4(pack(o.v[0], o.v[1]), pack(o.v[2], o.v[3]), pack(o.v[4], o.v[5]), pack(o.v[6], o.v[7]));
}

__device__ __forceinline__ Octet channels(const float* vector, int chunk) {
    const float4 low = ((const float4*)vector)[chunk * 2], high = ((const float4*)vector)[chunk * 2 + 1];
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

// --- sums over pixels, channel by channel ----------------------------------------------------------------

template <int SUMS>
struct Sums {
    float v[SUMS][8];

    __device__ __forceinline__ Sums() {
#pragma unroll
        for (int s = 0; s < SUMS; s++)
#pragma unroll
            for (int i = 0; i < 8; i++) v[s][i] = 0.f;
    }

    // Add up those of all threads of a block and write them to out (SUMS, C).
    template <int C>
    __device__ __forceinline__ void write(float* shared, float* out) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, chunk = threadIdx.x % (C / 8);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < SUMS; s++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float total = v[s][i];
#pragma unroll
                for (int step = C / 8; step < 32; step *= 2) total += __shfl_xor_sync(~0u, total, step);
                if (lane < C / 8) shared[(warp * SUMS + s) * C + chunk * 8 + i] = total;
            }
        __syncthreads();
        for (int i = threadIdx.x; i < SUMS * C; i += THREADS) {
            float total = 0.f;
            for (int w = 0; w < WARPS; w++) total += shared[w * SUMS * C + i];
            out[i] = total;
        }
    }
};

// --- tensor cores ----------------------------------------------------------------------------------------

// c (16, 8) += a (16, 16) b (16, 8)
__device__ __forceinline__ void multiply(float (&c)[4], const uint4& a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 address(const void* shared) {
    return (u32)__cvta_generic_to_shared(shared);
}

__device__ __forceinline__ uint4 load_matrices(u32 address) {
    uint4 m;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
                 : "r"(address)
                 : "memory");
    return m;
}

__device__ __forceinline__ uint4 load_transposed(u32 address) {
    uint4 m;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m.x), "=r"(m.y), "=r"(m.z), "=r"(m.w)
                 : "r"(address)
                 : "memory");
    return m;
}

// --- small sums ------------------------------------------------------------------------------------------

// Sums (blocks, 2, C) of y and y^2 over pixels.
template <int C>
__global__ void __launch_bounds__(THREADS) statistics(const uint4* y, float* sums, int octets) {
    __shared__ float shared[WARPS * 2 * C];
    Sums<2> total;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < octets; i += gridDim.x * THREADS) {
        const Octet o = unpack(__ldg(y + i));
#pragma unroll
        for (int j = 0; j < 8; j++) total.v[0][j] += o.v[j], total.v[1][j] += o.v[j] * o.v[j];
    }
    total.template write<C>(shared, sums + blockIdx.x * 2 * C);
}

constexpr int SUMMERS = 1024;  // threads, one warp for each column in the end
constexpr int AT_ONCE = 16;    // parts that a thread may ask for without waiting

// Sum over parts (count, width) of the column that this thread's lane names, the same in all warps; -1 names none.
__device__ __forceinline__ double add_up(const float* parts, int count, int width, int column) {
    __shared__ double shared[32][33];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    double total = 0.;
    for (int first = warp; first < count; first += 32 * AT_ONCE) {
        float values[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int part = min(first + 32 * i, count - 1);  // some part in any case
            values[i] = __ldg(parts + part * width + max(column, 0));
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) total += first + 32 * i < count && column >= 0 ? values[i] : 0.f;
    }
    shared[warp][lane] = total;
    __syncthreads();
    total = shared[lane][warp];
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    __syncthreads();
    if (lane == 0) shared[0][warp] = total;
    __syncthreads();
    return shared[0][lane];
}

// The same for many columns: a lane has four, and out (4 quads) is the sum over parts (count, 4 quads).
constexpr int WIDE_SUMMERS = 512;

extern "C" __global__ void __launch_bounds__(WIDE_SUMMERS)
    add_up_parts(const float4* parts, float* out, int count, int quads) {
    constexpr int ROWS = WIDE_SUMMERS / 32, AT_ONCE = 8;
    __shared__ double shared[ROWS][4][33];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = blockIdx.x * 32 + lane;
    double total[4] = {};
    for (int first = warp; first < count; first += ROWS * AT_ONCE) {
        float4 values[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const int part = min(first + ROWS * i, count - 1);
            values[i] = __ldg(parts + part * quads + min(quad, quads - 1));
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + ROWS * i < count)
                total[0] += values[i].x, total[1] += values[i].y, total[2] += values[i].z, total[3] += values[i].w;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) shared[warp][i][lane] = total[i];
    __syncthreads();
    const int column = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x >= 128 || column >= 4 * quads) return;
    double sum = 0.;
#pragma unroll
    for (int row = 0; row < ROWS; row++) sum += shared[row][threadIdx.x % 4][threadIdx.x / 4];
    out[column] = (float)sum;
}

// Mean, variance and inverse deviation of n values, from their sum and that of their squares.
struct Moments {
    double mean, variance, inverse;

    __device__ __forceinline__ Moments(double sum, double squares, int n, double eps)
        : mean(sum / n), variance(fmax(squares / n - mean * mean, 0.)), inverse(rsqrt(variance + eps)) {}

    // Move the running averages of channel c.
    __device__ __forceinline__ void track(int n, int c, double momentum, float* running_mean, float* running_var,
                                          long long* batches) const {
        running_mean[c] += (float)(momentum * (mean - running_mean[c]));
        running_var[c] += (float)(momentum * (variance * n / max(n - 1, 1) - running_var[c]));
        if (c == 0) *batches += 1;
    }
};

// What normalises y, norm (4, width): scale, shift, mean and inverse deviation, from parts (count, 2, width) of
// the sums of y and y^2 over n pixels; and the running averages. Entries beyond C channels are zero. A block has
// 16 channels, and its lanes the sums of y, then those of y^2.
extern "C" __global__ void __launch_bounds__(SUMMERS)
    normalisation(const float* parts, int count, int n, int C, int width, const float* gamma, const float* beta,
                  double eps, double momentum, int track, float* running_mean, float* running_var,
                  long long* batches, float* norm) {
    const int lane = threadIdx.x % 32, c = blockIdx.x * 16 + lane % 16;
    const double sum = add_up(parts, count, 2 * width, c < C ? lane / 16 * width + c : -1);
    const double squares = __shfl_xor_sync(~0u, sum, 16);
    if (threadIdx.x >= 16 || c >= width) return;
    float* own = norm + c;
    if (c >= C) {
        for (int i = 0; i < 4; i++) own[i * width] = 0.f;
        return;
    }
    const Moments moments(sum, squares, n, eps);
    own[0] = (float)(gamma[c] * moments.inverse);
    own[width] = (float)(beta[c] - moments.mean * gamma[c] * moments.inverse);
    own[2 * width] = (float)moments.mean;
    own[3 * width] = (float)moments.inverse;
    if (track) moments.track(n, c, momentum, running_mean, running_var, batches);
}

// The gradient of y from d, that of scale y + shift, is scale d + p y + q, as scale and shift are made of y too.
// Gives correction (4, width): p, q and the gradients of gamma and beta, from the norm and from parts (count,
// stride) of the gradients of scale and shift, which begin at columns of their own.
extern "C" __global__ void __launch_bounds__(SUMMERS)
    correction(const float* parts, int count, int stride, int scales, int shifts, int n, int width,
               const float* norm, float* correction) {
    const int lane = threadIdx.x % 32, c = blockIdx.x * 16 + lane % 16;
    const double sum = add_up(parts, count, stride, c < width ? (lane < 16 ? scales : shifts) + c : -1);
    const float d_scale = (float)sum, d_shift = (float)__shfl_xor_sync(~0u, sum, 16);
    if (threadIdx.x >= 16 || c >= width) return;
    const float scale = norm[c], mean = norm[2 * width + c], inverse = norm[3 * width + c];
    const float through = d_scale - d_shift * mean, p = -through * scale * inverse * inverse / n;
    float* own = correction + c;
    own[0] = p;
    own[width] = -p * mean - d_shift * scale / n;
    own[2 * width] = through * inverse;
    own[3 * width] = d_shift;
}
