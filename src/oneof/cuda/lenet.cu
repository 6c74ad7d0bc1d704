// LeNet on gray images of 28 x 28: its two blocks relu(pool(normalise(convolve(x)))).

// --- the first block -------------------------------------------------------------------------------------------------
//
// 20 filters of 5 x 5 on one channel are so cheap that their outputs are never stored but computed anew where they are
// needed. A warp takes eight windows of the pooling at once: rows of the first tile of 16 pixels are their upper left
// and upper right pixels, those of the second the lower ones, so that a thread has all four pixels of a window. The
// inputs of a filter are padded to 32, of which number 25 is one.

enum Want { SUMS, OUTPUTS, GRADIENTS };

constexpr int SIDE = 28, BORDERED = 32, HALF = 14, FILTERS = 20, STORED = 24, SIZE = 5, TAPS = SIZE * SIZE;
constexpr int IMAGES = 2, WINDOWS = HALF * HALF, N_TILES = STORED / 8;
constexpr int FOR_SUMS = 2 * STORED;

typedef unsigned short bf16;

__device__ __forceinline__ u32 pair(bf16 low, bf16 high) { return low | (u32)high << 16; }

__device__ __forceinline__ u32 transposed(u32 matrix) {
    u32 out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(matrix));
    return out;
}

__device__ __forceinline__ int shift_of(int tap) { return tap < TAPS ? tap / SIZE * BORDERED + tap % SIZE : 0; }

// Where the inputs of a window's upper left pixel begin.
__device__ __forceinline__ int start_of(int window) {
    return window / WINDOWS * BORDERED * BORDERED + window % WINDOWS / HALF * 2 * BORDERED + window % HALF * 2;
}

// Add up what all warps hold and write it.
template <int VALUES>
__device__ __forceinline__ void write_sum(float (&values)[VALUES], float* shared, float* out) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int half = WARPS / 2; half > 0; half /= 2) {
        __syncthreads();
        float* theirs = shared + warp % half * VALUES * 32 + lane;
        if (half <= warp && warp < 2 * half)
#pragma unroll
            for (int i = 0; i < VALUES; i++) theirs[i * 32] = values[i];
        __syncthreads();
        if (warp < half)
#pragma unroll
            for (int i = 0; i < VALUES; i++) values[i] += theirs[i * 32];
    }
    if (warp == 0)
#pragma unroll
        for (int i = 0; i < VALUES; i++) out[i * 32 + lane] = values[i];
}

// SUMS: sums (blocks, 2, STORED) of y and y^2. OUTPUTS: out (images, 14, 14, STORED). GRADIENTS: from d of out, with g
// that of scale y + shift, sums (blocks, FOR_SUMS + 64 * 32): of g y and g; then, as lanes hold them, of g times the
// inputs of the filters, and of these inputs times each other.
template <int WANT>
__global__ void __launch_bounds__(THREADS, WANT == GRADIENTS ? 1 : 2)
    first_block(const float4* x, const float* weight, const float* scale, const float* shift, const u32* d, u32* out,
                float* sums, int images) {
    __shared__ bf16 pixels[IMAGES * BORDERED * BORDERED];
    __shared__ float shared[WANT == GRADIENTS ? WARPS / 2 * 64 * 32 : WARPS * FOR_SUMS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, pair_of = lane % 4 * 2;

    u32 weights[2][N_TILES][2];
    int shifts[2][2][2], shifts_across[4];
#pragma unroll
    for (int depth = 0; depth < 2; depth++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int tap = depth * 16 + half * 8 + pair_of;
            shifts[depth][half][0] = shift_of(tap), shifts[depth][half][1] = shift_of(tap + 1);
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                const int filter = n * 8 + row;
                const float* w = weight + filter * TAPS + tap;
                weights[depth][n][half] = pack(filter < FILTERS && tap < TAPS ? w[0] : 0.f,
                                               filter < FILTERS && tap + 1 < TAPS ? w[1] : 0.f);
            }
        }
    float scales[N_TILES][2] = {}, offsets[N_TILES][2] = {};
    if (WANT != SUMS)
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) scales[n][e] = scale[n * 8 + pair_of + e], offsets[n][e] = shift[n * 8 + pair_of + e];
#pragma unroll
    for (int j = 0; j < 4; j++) shifts_across[j] = shift_of(j * 8 + row);

    float totals[2 * N_TILES * 2] = {}, products[64] = {};  // of filters' gradients and inputs, of inputs and inputs
    for (int i = threadIdx.x; i < IMAGES * BORDERED * BORDERED; i += THREADS) pixels[i] = 0;

    for (int first = blockIdx.x * IMAGES; first < images; first += gridDim.x * IMAGES) {
        __syncthreads();
        for (int i = threadIdx.x; i < IMAGES * SIDE * SIDE / 4; i += THREADS) {
            const int image = i / (SIDE * SIDE / 4), y = i % (SIDE * SIDE / 4) / (SIDE / 4), at = i % (SIDE / 4) * 4;
            const float4 v = first + image < images ? x[first * (SIDE * SIDE / 4) + i] : make_float4(0, 0, 0, 0);
            u32* to = (u32*)(pixels + (image * BORDERED + y + 2) * BORDERED + at + 2);
            to[0] = pack(v.x, v.y), to[1] = pack(v.z, v.w);
        }
        __syncthreads();
        for (int group = warp; group < IMAGES * WINDOWS / 8; group += WARPS) {
            const bf16* start = pixels + start_of(group * 8 + row);
            float y[2][N_TILES][4] = {};
#pragma unroll
            for (int below = 0; below < 2; below++)
#pragma unroll
                for (int depth = 0; depth < 2; depth++) {
                    const bf16* from = start + below * BORDERED;
                    u32 a[2][2];
#pragma unroll
                    for (int half = 0; half < 2; half++)
#pragma unroll
                        for (int right = 0; right < 2; right++)
                            a[half][right] = pair(from[right + shifts[depth][half][0]], from[right + shifts[depth][half][1]]);
                    const uint4 inputs = make_uint4(a[0][0], a[0][1], a[1][0], a[1][1]);
#pragma unroll
                    for (int n = 0; n < N_TILES; n++)
                        multiply(y[below][n], inputs, weights[depth][n][0], weights[depth][n][1]);
                }
            const int window = first * WINDOWS + group * 8 + row;
            const bool exists = window < images * WINDOWS;
            u32 gradients[2][2][N_TILES];  // of the four pixels
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                float result[2], g[2] = {};
                int best[2];
                if (WANT == GRADIENTS && exists) {
                    const u32 packed = d[window * (STORED / 2) + n * 4 + lane % 4];
                    g[0] = __uint_as_float(packed << 16), g[1] = __uint_as_float(packed & 0xffff0000u);
                }
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float values[4] = {y[0][n][e], y[0][n][2 + e], y[1][n][e], y[1][n][2 + e]};
                    if (WANT == SUMS)
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            totals[n * 2 + e] += values[i], totals[(N_TILES + n) * 2 + e] += values[i] * values[i];
                    best[e] = 0;
                    result[e] = values[0] * scales[n][e] + offsets[n][e];
                    float of_best = values[0];
#pragma unroll
                    for (int i = 1; i < 4; i++) {
                        const float value = values[i] * scales[n][e] + offsets[n][e];
                        if (value > result[e]) result[e] = value, best[e] = i, of_best = values[i];
                    }
                    if (!(result[e] > 0.f)) result[e] = 0.f, g[e] = 0.f;
                    if (WANT == GRADIENTS) totals[n * 2 + e] += g[e] * of_best, totals[(N_TILES + n) * 2 + e] += g[e];
                }
                if (WANT == OUTPUTS && exists) out[window * (STORED / 2) + n * 4 + lane % 4] = pack(result[0], result[1]);
                if (WANT == GRADIENTS)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        gradients[i / 2][i % 2][n] = transposed(pack(best[0] == i ? g[0] : 0.f, best[1] == i ? g[1] : 0.f));
            }
            if (WANT == GRADIENTS) {
                const bf16* starts[2] = {pixels + start_of(group * 8 + pair_of), pixels + start_of(group * 8 + pair_of + 1)};
#pragma unroll
                for (int below = 0; below < 2; below++) {
                    u32 across[4][2];  // inputs: of 8 pixels and 8 taps each
#pragma unroll
                    for (int j = 0; j < 4; j++)
#pragma unroll
                        for (int right = 0; right < 2; right++) {
                            const int at = below * BORDERED + right + shifts_across[j], tap = j * 8 + row;
                            const u32 value = pair(starts[0][at], starts[1][at]);
                            across[j][right] = tap < TAPS ? value : tap == TAPS ? 0x3f803f80u : 0u;
                        }
                    const u32(&g)[2][N_TILES] = gradients[below];
                    const uint4 filters[2] = {make_uint4(g[0][0], g[0][1], g[1][0], g[1][1]), make_uint4(g[0][2], 0, g[1][2], 0)};
#pragma unroll
                    for (int m = 0; m < 2; m++) {
                        const uint4 inputs = make_uint4(across[2 * m][0], across[2 * m + 1][0], across[2 * m][1], across[2 * m + 1][1]);
#pragma unroll
                        for (int j = 0; j < 4; j++) {
                            multiply(*(float(*)[4])(products + (m * 4 + j) * 4), filters[m], across[j][0], across[j][1]);
                            multiply(*(float(*)[4])(products + 32 + (m * 4 + j) * 4), inputs, across[j][0], across[j][1]);
                        }
                    }
                }
            }
        }
    }

    if (WANT == OUTPUTS) return;
    const int width = WANT == SUMS ? FOR_SUMS : FOR_SUMS + 64 * 32;
#pragma unroll
    for (int i = 0; i < 4 * N_TILES; i++) {
        for (int step = 4; step < 32; step *= 2) totals[i] += __shfl_xor_sync(~0u, totals[i], step);
        const int channel = i / 2 % N_TILES * 8 + pair_of + i % 2;
        if (row == 0) shared[warp * FOR_SUMS + i / (2 * N_TILES) * STORED + channel] = totals[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < FOR_SUMS; i += THREADS) {
        float total = 0.f;
        for (int w = 0; w < WARPS; w++) total += shared[w * FOR_SUMS + i];
        sums[blockIdx.x * width + i] = total;
    }
    if (WANT == GRADIENTS) write_sum(products, shared, sums + blockIdx.x * width + FOR_SUMS);
}

// The weights' gradient, sum over pixels of (s g + p y + q) x, from the sums above: y is made of the inputs, so that
// products of inputs with each other say all about it.
extern "C" __global__ void first_weight_gradient(const float* sums, const float* weight, const float* s, const float* p,
                                                 const float* q, float* out) {
    const float *of_filters = sums + FOR_SUMS, *of_inputs = sums + FOR_SUMS + 32 * 32;
    for (int i = threadIdx.x; i < FILTERS * TAPS; i += blockDim.x) {
        const int filter = i / TAPS, tap = i % TAPS;
        // Rows 0..7 and 8..15 of a tile of 16 x 8 are in a lane's first two and last two values.
        const auto value = [](const float* of, int r, int c) {
            return of[(((r / 16 * 4 + c / 8) * 4) + r % 16 / 8 * 2 + c % 2) * 32 + r % 8 * 4 + c % 8 / 2];
        };
        float through_y = 0.f;
        for (int k = 0; k < TAPS; k++) {
            const float rounded = __uint_as_float(pack(0.f, weight[filter * TAPS + k]) & 0xffff0000u);
            through_y += value(of_inputs, tap, k) * rounded;
        }
        out[i] = s[filter] * value(of_filters, filter, tap) + p[filter] * through_y + q[filter] * value(of_inputs, tap, TAPS);
    }
}

// --- the second block, behind its convolution ------------------------------------------------------------------------
//
// 50 of 64 channels of 14 x 14 become 50 x 49 features, channel by channel. A block has an image at a time.

constexpr int PLANES = 50, WIDE = 64, POOLED = 7, FEATURES = PLANES * POOLED * POOLED;

enum Gradient { OF_VECTORS, OF_Y };

// The four pixels of a window of eight channels, and which is the largest.
struct Window {
    Octet values[4];
    float largest[8], of_best[8];
    int best[8];

    __device__ __forceinline__ Window(const uint4* image, int window, int chunk, const Octet& scale, const Octet& shift) {
        const int y = window / POOLED * 2, x = window % POOLED * 2;
#pragma unroll
        for (int i = 0; i < 4; i++) values[i] = unpack(__ldg(image + ((y + i / 2) * HALF + x + i % 2) * (WIDE / 8) + chunk));
#pragma unroll
        for (int j = 0; j < 8; j++) {
            largest[j] = values[0].v[j] * scale.v[j] + shift.v[j], of_best[j] = values[0].v[j], best[j] = 0;
#pragma unroll
            for (int i = 1; i < 4; i++) {
                const float value = values[i].v[j] * scale.v[j] + shift.v[j];
                if (value > largest[j]) largest[j] = value, of_best[j] = values[i].v[j], best[j] = i;
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    second_block(const uint4* y, const float* scale, const float* shift, u32* out, int images) {
    __shared__ bf16 features[FEATURES];
    const int chunk = threadIdx.x % (WIDE / 8);
    const Octet scale_own = channels(scale, chunk), shift_own = channels(shift, chunk);
    for (int image = blockIdx.x; image < images; image += gridDim.x) {
        __syncthreads();
        for (int i = threadIdx.x / (WIDE / 8); i < POOLED * POOLED; i += THREADS / (WIDE / 8)) {
            const Window window(y + image * WINDOWS * (WIDE / 8), i, chunk, scale_own, shift_own);
#pragma unroll
            for (int j = 0; j < 8; j++)
                if (chunk * 8 + j < PLANES)
                    features[(chunk * 8 + j) * POOLED * POOLED + i] = pack(fmaxf(window.largest[j], 0.f), 0.f);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < FEATURES / 2; i += THREADS) out[image * (FEATURES / 2) + i] = ((u32*)features)[i];
    }
}

// From d of the features: sums (blocks, 2, WIDE) of g y and g, with g that of scale y + shift; or s g + p y + q.
template <int GRADIENT>
__global__ void __launch_bounds__(THREADS)
    second_gradient(const u32* d, const uint4* y, const float* scale, const float* shift, const float* s, const float* p,
                    const float* q, uint4* out, float* sums, int images) {
    __shared__ bf16 features[FEATURES];
    __shared__ float shared[WARPS * 2 * WIDE];
    const int chunk = threadIdx.x % (WIDE / 8);
    const Octet scale_own = channels(scale, chunk), shift_own = channels(shift, chunk);
    Octet s_own, p_own, q_own;
    if (GRADIENT == OF_Y) s_own = channels(s, chunk), p_own = channels(p, chunk), q_own = channels(q, chunk);
    Sums<2> total;
    for (int image = blockIdx.x; image < images; image += gridDim.x) {
        __syncthreads();
        for (int i = threadIdx.x; i < FEATURES / 2; i += THREADS) ((u32*)features)[i] = d[image * (FEATURES / 2) + i];
        __syncthreads();
        for (int i = threadIdx.x / (WIDE / 8); i < POOLED * POOLED; i += THREADS / (WIDE / 8)) {
            const Window window(y + image * WINDOWS * (WIDE / 8), i, chunk, scale_own, shift_own);
            Octet g;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const bool through = chunk * 8 + j < PLANES && window.largest[j] > 0.f;
                g.v[j] = through ? __uint_as_float((u32)features[(chunk * 8 + j) * POOLED * POOLED + i] << 16) : 0.f;
                if (GRADIENT == OF_VECTORS) total.v[0][j] += g.v[j] * window.of_best[j], total.v[1][j] += g.v[j];
            }
            if (GRADIENT == OF_Y)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    Octet o;
#pragma unroll
                    for (int j = 0; j < 8; j++)
                        o.v[j] = (window.best[j] == k ? s_own.v[j] * g.v[j] : 0.f) + p_own.v[j] * window.values[k].v[j] + q_own.v[j];
                    const int pixel = (i / POOLED * 2 + k / 2) * HALF + i % POOLED * 2 + k % 2;
                    out[(image * WINDOWS + pixel) * (WIDE / 8) + chunk] = pack(o);
                }
        }
    }
    if (GRADIENT == OF_VECTORS) total.template write<WIDE>(shared, sums + blockIdx.x * 2 * WIDE);
}
