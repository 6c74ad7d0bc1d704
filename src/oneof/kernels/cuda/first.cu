// The first layer of a network: relu(pool(normalise(convolve(x)))), or without the pooling, for images of few
// channels.
//
// So few inputs make convolutions so cheap that their outputs y are never stored but computed anew where they are
// needed. A warp takes eight windows of 2 x 2 pixels at once: rows of the first tile of 16 pixels are their upper
// left and upper right pixels, those of the second the lower ones, so that a thread has all four pixels of a
// window. The inputs of a filter, k = (row, column, channel), are padded to 32, and the first beyond them is one.

enum Want { SUMS, OUTPUTS, GRADIENTS };

typedef unsigned short bf16;

constexpr int IMAGES = 2;  // of a block at a time

__device__ __forceinline__ u32 pair(bf16 low, bf16 high) {
    return low | (u32)high << 16;
}

__device__ __forceinline__ u32 transposed(u32 matrix) {
    u32 out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(matrix));
    return out;
}

// FILTERS filters of SIZE x SIZE on images of SIDE x SIDE pixels.
template <int CHANNELS, int SIDE_, int SIZE, int FILTERS_, bool POOLED_>
struct Layer {
    static constexpr int SIDE = SIDE_, FILTERS = FILTERS_, INPUTS = SIZE * SIZE * CHANNELS,
                         N_TILES = (FILTERS + 7) / 8;
    static constexpr bool POOLED = POOLED_;
    static constexpr int STORED = N_TILES * 8, BORDER = SIZE / 2, ROW = (SIDE + 2 * BORDER) * CHANNELS,
                         RIGHT = CHANNELS;
    static constexpr int IMAGE = (SIDE + 2 * BORDER) * ROW, HALF = SIDE / 2, WINDOWS = HALF * HALF;
    static constexpr int VALUES = SIDE * SIDE * CHANNELS, FOR_SUMS = 2 * STORED;

    // How far from its first input a filter's k-th stands.
    static __device__ __forceinline__ int shift(int k) {
        return k < INPUTS ? k / CHANNELS / SIZE * ROW + k / CHANNELS % SIZE * CHANNELS + k % CHANNELS : 0;
    }

    // Where the inputs of a window's upper left pixel begin.
    static __device__ __forceinline__ int start(int window) {
        return window / WINDOWS * IMAGE + window % WINDOWS / HALF * 2 * ROW + window % HALF * 2 * RIGHT;
    }

    // The number of a window's i-th pixel among all.
    static __device__ __forceinline__ int pixel(int window, int i) {
        const int y = window % WINDOWS / HALF * 2 + i / 2, x = window % HALF * 2 + i % 2;
        return (window / WINDOWS * SIDE + y) * SIDE + x;
    }
};

// Weights by filter and k, wherever they stand.
template <int CHANNELS, int SIZE>
struct Filters {
    int filter, channel, row, column;  // strides

    __device__ __forceinline__ int at(int f, int k) const {
        const int tap = k / CHANNELS;
        return f * filter + k % CHANNELS * channel + tap / SIZE * row + tap % SIZE * column;
    }
};

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

// SUMS: sums (blocks, 2, STORED) of y and y^2. OUTPUTS: out (pixels, STORED). GRADIENTS: from d of out, with g
// that of scale y + shift, sums (blocks, FOR_SUMS + 64 * 32): of g y and g; then, as lanes hold them, of g times
// the inputs of the filters, and of these inputs times each other.
template <int CHANNELS, int SIDE, int SIZE, int FILTERS, bool POOLED, int WANT>
__global__ void __launch_bounds__(THREADS, WANT == GRADIENTS ? 1 : 2)
    first_layer(const float4* x, const float* weight, int stride_n, int stride_c, int stride_y, int stride_x,
                const float* scale, const float* shift, const u32* d, u32* out, float* sums, int images) {
    using L = Layer<CHANNELS, SIDE, SIZE, FILTERS, POOLED>;
    constexpr int N_TILES = L::N_TILES, STORED = L::STORED;
    __shared__ bf16 pixels[IMAGES * L::IMAGE];
    __shared__ float shared[WANT == GRADIENTS ? WARPS / 2 * 64 * 32 : WARPS * L::FOR_SUMS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, pair_of = lane % 4 * 2;
    const Filters<CHANNELS, SIZE> filters = {stride_n, stride_c, stride_y, stride_x};

    u32 weights[2][N_TILES][2];
    int shifts[2][2][2], shifts_across[4];
#pragma unroll
    for (int depth = 0; depth < 2; depth++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = depth * 16 + half * 8 + pair_of;
            shifts[depth][half][0] = L::shift(k), shifts[depth][half][1] = L::shift(k + 1);
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                const int f = n * 8 + row;
                weights[depth][n][half] =
                    pack(f < FILTERS && k < L::INPUTS ? weight[filters.at(f, k)] : 0.f,
                         f < FILTERS && k + 1 < L::INPUTS ? weight[filters.at(f, k + 1)] : 0.f);
            }
        }
    float scales[N_TILES][2] = {}, offsets[N_TILES][2] = {};
    if (WANT != SUMS)
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                scales[n][e] = scale[n * 8 + pair_of + e], offsets[n][e] = shift[n * 8 + pair_of + e];
#pragma unroll
    for (int j = 0; j < 4; j++) shifts_across[j] = L::shift(j * 8 + row);

    float totals[2 * N_TILES * 2] = {},
                               products[64] = {};  // of filters' gradients and inputs, of inputs and inputs
    for (int i = threadIdx.x; i < IMAGES * L::IMAGE; i += THREADS) pixels[i] = 0;

    for (int first = blockIdx.x * IMAGES; first < images; first += gridDim.x * IMAGES) {
        __syncthreads();
        for (int i = threadIdx.x; i < IMAGES * L::VALUES / 4; i += THREADS) {
            const int image = i / (L::VALUES / 4), y = i * 4 % L::VALUES / (SIDE * CHANNELS),
                      at = i * 4 % (SIDE * CHANNELS);
            const float4 v = first + image < images ? x[first * (L::VALUES / 4) + i] : make_float4(0, 0, 0, 0);
            bf16* to = pixels + image * L::IMAGE + (y + L::BORDER) * L::ROW + L::BORDER * CHANNELS + at;
            const u32 low = pack(v.x, v.y), high = pack(v.z, v.w);
            to[0] = low, to[1] = low >> 16, to[2] = high, to[3] = high >> 16;
        }
        __syncthreads();
        for (int group = warp; group < IMAGES * L::WINDOWS / 8; group += WARPS) {
            const bf16* start = pixels + L::start(group * 8 + row);
            float y[2][N_TILES][4] = {};
#pragma unroll
            for (int below = 0; below < 2; below++)
#pragma unroll
                for (int depth = 0; depth < 2; depth++) {
                    u32 a[2][2];
#pragma unroll
                    for (int half = 0; half < 2; half++)
#pragma unroll
                        for (int right = 0; right < 2; right++) {
                            const bf16* from = start + below * L::ROW + right * L::RIGHT;
                            a[half][right] = pair(from[shifts[depth][half][0]], from[shifts[depth][half][1]]);
                        }
                    const uint4 inputs = make_uint4(a[0][0], a[0][1], a[1][0], a[1][1]);
#pragma unroll
                    for (int n = 0; n < N_TILES; n++)
                        multiply(y[below][n], inputs, weights[depth][n][0], weights[depth][n][1]);
                }
            const int window = first * L::WINDOWS + group * 8 + row;
            const bool exists = window < images * L::WINDOWS;
            u32 gradients[2][2][N_TILES];  // of the four pixels
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                float result[4][2], g[4][2] = {};  // with pooling, a window's first result is its only one
                constexpr int RESULTS = POOLED ? 1 : 4;
                int where[RESULTS];
#pragma unroll
                for (int i = 0; i < RESULTS; i++)
                    where[i] = (POOLED ? window : L::pixel(window, i)) * (STORED / 2) + n * 4 + lane % 4;
                if (WANT == GRADIENTS && exists)
#pragma unroll
                    for (int i = 0; i < RESULTS; i++) {
                        const u32 packed = __ldg(d + where[i]);
                        g[i][0] = __uint_as_float(packed << 16), g[i][1] = __uint_as_float(packed & 0xffff0000u);
                    }
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float values[4] = {y[0][n][e], y[0][n][2 + e], y[1][n][e], y[1][n][2 + e]};
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (WANT == SUMS)
                            totals[n * 2 + e] += values[i], totals[(N_TILES + n) * 2 + e] += values[i] * values[i];
                        result[i][e] = values[i] * scales[n][e] + offsets[n][e];
                    }
                    if (POOLED) {  // the gradient goes to the first of the largest
                        int best = 0;
#pragma unroll
                        for (int i = 1; i < 4; i++)
                            if (result[i][e] > result[0][e]) result[0][e] = result[i][e], best = i;
                        const float own = result[0][e] > 0.f ? g[0][e] : 0.f;
#pragma unroll
                        for (int i = 0; i < 4; i++) g[i][e] = best == i ? own : 0.f;
                    }
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (!POOLED && !(result[i][e] > 0.f)) g[i][e] = 0.f;
                        if (WANT == GRADIENTS)
                            totals[n * 2 + e] += g[i][e] * values[i], totals[(N_TILES + n) * 2 + e] += g[i][e];
                        result[i][e] = fmaxf(result[i][e], 0.f);
                    }
                }
                if (WANT == OUTPUTS && exists)
#pragma unroll
                    for (int i = 0; i < RESULTS; i++) out[where[i]] = pack(result[i][0], result[i][1]);
                if (WANT == GRADIENTS)
#pragma unroll
                    for (int i = 0; i < 4; i++) gradients[i / 2][i % 2][n] = transposed(pack(g[i][0], g[i][1]));
            }
            if (WANT == GRADIENTS) {
                const bf16* starts[2] = {pixels + L::start(group * 8 + pair_of),
                                         pixels + L::start(group * 8 + pair_of + 1)};
#pragma unroll
                for (int below = 0; below < 2; below++) {
                    u32 across[4][2];  // inputs: of 8 pixels and 8 of a filter's inputs each
#pragma unroll
                    for (int j = 0; j < 4; j++)
#pragma unroll
                        for (int right = 0; right < 2; right++) {
                            const int at = below * L::ROW + right * L::RIGHT + shifts_across[j], k = j * 8 + row;
                            const u32 value = pair(starts[0][at], starts[1][at]);
                            across[j][right] = k < L::INPUTS ? value : k == L::INPUTS ? 0x3f803f80u : 0u;
                        }
#pragma unroll
                    for (int m = 0; m < 2; m++) {
                        const u32 none = 0, *upper = gradients[below][0], *lower = gradients[below][1];
                        const bool second = 2 * m + 1 < N_TILES;
                        const uint4 of_filters =
                            make_uint4(upper[2 * m % N_TILES], second ? upper[(2 * m + 1) % N_TILES] : none,
                                       lower[2 * m % N_TILES], second ? lower[(2 * m + 1) % N_TILES] : none);
                        const uint4 of_inputs = make_uint4(across[2 * m][0], across[2 * m + 1][0],
                                                           across[2 * m][1], across[2 * m + 1][1]);
#pragma unroll
                        for (int j = 0; j < 4; j++) {
                            float (&filter_products)[4] = *(float (*)[4])(products + (m * 4 + j) * 4);
                            float (&input_products)[4] = *(float (*)[4])(products + 32 + (m * 4 + j) * 4);
                            if (2 * m < N_TILES) multiply(filter_products, of_filters, across[j][0], across[j][1]);
                            multiply(input_products, of_inputs, across[j][0], across[j][1]);
                        }
                    }
                }
            }
        }
    }

    if (WANT == OUTPUTS) return;
    const int width = WANT == SUMS ? L::FOR_SUMS : L::FOR_SUMS + 64 * 32;
#pragma unroll
    for (int i = 0; i < 4 * N_TILES; i++) {
        for (int step = 4; step < 32; step *= 2) totals[i] += __shfl_xor_sync(~0u, totals[i], step);
        const int channel = i / 2 % N_TILES * 8 + pair_of + i % 2;
        if (row == 0) shared[warp * L::FOR_SUMS + i / (2 * N_TILES) * STORED + channel] = totals[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < L::FOR_SUMS; i += THREADS) {
        float total = 0.f;
        for (int w = 0; w < WARPS; w++) total += shared[w * L::FOR_SUMS + i];
        sums[blockIdx.x * width + i] = total;
    }
    if (WANT == GRADIENTS) write_sum(products, shared, sums + blockIdx.x * width + L::FOR_SUMS);
}

// The weights' gradient, sum over pixels of (s g + p y + q) x, from the sums above: y is made of the inputs, so
// that products of inputs with each other say all about it.
template <int CHANNELS, int SIDE, int SIZE, int FILTERS, bool POOLED>
__global__ void __launch_bounds__(THREADS)
    first_weight_gradient(const float* sums, const float* weight, int stride_n, int stride_c, int stride_y,
                          int stride_x, const float* s, const float* p, const float* q, float* out) {
    using L = Layer<CHANNELS, SIDE, SIZE, FILTERS, POOLED>;
    const Filters<CHANNELS, SIZE> filters = {stride_n, stride_c, stride_y, stride_x};
    const float *of_filters = sums + L::FOR_SUMS, *of_inputs = of_filters + 32 * 32;
    const auto value = [](const float* of, int r,
                          int c) {  // rows 8..15 of a tile of 16 x 8 are in a lane's last values
        return of[(((r / 16 * 4 + c / 8) * 4) + r % 16 / 8 * 2 + c % 2) * 32 + r % 8 * 4 + c % 8 / 2];
    };
    for (int i = threadIdx.x; i < FILTERS * L::INPUTS; i += THREADS) {
        const int f = i / L::INPUTS, k = i % L::INPUTS;
        float through_y = 0.f;
        for (int other = 0; other < L::INPUTS; other++) {
            const float rounded = __uint_as_float(pack(0.f, weight[filters.at(f, other)]) & 0xffff0000u);
            through_y += value(of_inputs, k, other) * rounded;
        }
        out[filters.at(f, k)] =
            s[f] * value(of_filters, f, k) + p[f] * through_y + q[f] * value(of_inputs, k, L::INPUTS);
    }
}
