// LeNet's second block: behind its convolution relu(pool(scale y + shift)), channel by channel, and the gradient
// of the convolution's weights.
//
// 50 of 64 channels of 14 x 14 pixels become 50 x 49 features. A block has an image at a time.

typedef unsigned short bf16;

constexpr int PLANES = 50, WIDE = 64, SIDE = 14, PIXELS = SIDE * SIDE, POOLED = 7,
              FEATURES = PLANES * POOLED * POOLED;

enum Gradient { OF_VECTORS, OF_Y };

// The four pixels of a window of eight channels, and which is the largest.
struct Window {
    Octet values[4];
    float largest[8], of_best[8];
    int best[8];

    __device__ __forceinline__ Window(const uint4* image, int window, int chunk, const Octet& scale,
                                      const Octet& shift) {
        const int y = window / POOLED * 2, x = window % POOLED * 2;
#pragma unroll
        for (int i = 0; i < 4; i++)
            values[i] = unpack(__ldg(image + ((y + i / 2) * SIDE + x + i % 2) * (WIDE / 8) + chunk));
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
            const Window window(y + image * PIXELS * (WIDE / 8), i, chunk, scale_own, shift_own);
#pragma unroll
            for (int j = 0; j < 8; j++)
                if (chunk * 8 + j < PLANES)
                    features[(chunk * 8 + j) * POOLED * POOLED + i] = pack(fmaxf(window.largest[j], 0.f), 0.f);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < FEATURES / 2; i += THREADS)
            out[image * (FEATURES / 2) + i] = ((u32*)features)[i];
    }
}

// From d of the features: sums (blocks, 2, WIDE) of g y and g, with g that of scale y + shift; or s g + p y + q.
template <int GRADIENT>
__global__ void __launch_bounds__(THREADS)
    second_gradient(const u32* d, const uint4* y, const float* scale, const float* shift, const float* s,
                    const float* p, const float* q, uint4* out, float* sums, int images) {
    __shared__ bf16 features[FEATURES];
    __shared__ float shared[WARPS * 2 * WIDE];
    const int chunk = threadIdx.x % (WIDE / 8);
    const Octet scale_own = channels(scale, chunk), shift_own = channels(shift, chunk);
    Octet s_own, p_own, q_own;
    if (GRADIENT == OF_Y) s_own = channels(s, chunk), p_own = channels(p, chunk), q_own = channels(q, chunk);
    Sums<2> total;
    for (int image = blockIdx.x; image < images; image += gridDim.x) {
        __syncthreads();
        for (int i = threadIdx.x; i < FEATURES / 2; i += THREADS)
            ((u32*)features)[i] = d[image * (FEATURES / 2) + i];
        __syncthreads();
        for (int i = threadIdx.x / (WIDE / 8); i < POOLED * POOLED; i += THREADS / (WIDE / 8)) {
            const Window window(y + image * PIXELS * (WIDE / 8), i, chunk, scale_own, shift_own);
            Octet g;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const bool through = chunk * 8 + j < PLANES && window.largest[j] > 0.f;
                g.v[j] =
                    through ? __uint_as_float((u32)features[(chunk * 8 + j) * POOLED * POOLED + i] << 16) : 0.f;
                if (GRADIENT == OF_VECTORS) total.v[0][j] += g.v[j] * window.of_best[j], total.v[1][j] += g.v[j];
            }
            if (GRADIENT == OF_Y)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    Octet o;
#pragma unroll
                    for (int j = 0; j < 8; j++)
                        o.v[j] = (window.best[j] == k ? s_own.v[j] * g.v[j] : 0.f) +
                                 p_own.v[j] * window.values[k].v[j] + q_own.v[j];
                    const int pixel = (i / POOLED * 2 + k / 2) * SIDE + i % POOLED * 2 + k % 2;
                    out[(image * PIXELS + pixel) * (WIDE / 8) + chunk] = pack(o);
                }
        }
    }
    if (GRADIENT == OF_VECTORS) total.template write<WIDE>(shared, sums + blockIdx.x * 2 * WIDE);
}

// --- weights of the convolution --------------------------------------------------------------------------

// 50 filters of 5 x 5 on 20 channels, stored as 24. Tensor cores take 16 inputs of a filter at a time: two octets
// of channels, at whatever shifts. An image with its border is a tile, where slots of three octets spread over all
// banks.
constexpr int SIZE = 5, TAPS = SIZE * SIZE, INPUTS = 20, OCTETS = 3, WIDTH = SIDE + SIZE - 1,
              SLOTS = WIDTH * WIDTH;
constexpr int FILTER_OCTETS = (PLANES + 7) / 8, STEPS = (PIXELS + 15) / 16;  // of 16 pixels

// parts (blocks, 50, 25, 20): sums over a block's images of gradient[pixel, n] x[pixel + shift, c]. A warp has
// some of the pairs of octets; blockIdx.y has one half of them.
constexpr int GRADIENT_WARPS = 10, GRADIENT_THREADS = 32 * GRADIENT_WARPS;

extern "C" __global__ void __launch_bounds__(GRADIENT_THREADS, 2)
    second_weight_gradient(const uint4* x, const uint4* d, float* parts, int images) {
    constexpr int PAIRS = (TAPS * OCTETS + 1) / 2, HALF = (PAIRS + 1) / 2,
                  OWN = (HALF + GRADIENT_WARPS - 1) / GRADIENT_WARPS;
    constexpr int COUNT_IN = PIXELS * OCTETS, COUNT_D = PIXELS * (WIDE / 8);
    __shared__ __align__(128) uint4 tile_in[SLOTS * OCTETS];
    __shared__ __align__(128) uint4 tile_d[STEPS * 16 * (WIDE / 8)];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int shifts[OWN];  // in bytes
#pragma unroll
    for (int m = 0; m < OWN; m++) {
        const int octet = (blockIdx.y * HALF + m * GRADIENT_WARPS + warp) * 2 + lane / 8 % 2, tap = octet / OCTETS;
        shifts[m] = tap < TAPS ? ((tap / SIZE * WIDTH + tap % SIZE) * OCTETS + octet % OCTETS) * 16 : 0;
    }
    float result[OWN][FILTER_OCTETS][4] = {};
    for (int i = threadIdx.x; i < SLOTS * OCTETS; i += GRADIENT_THREADS) tile_in[i] = make_uint4(0, 0, 0, 0);
    for (int i = threadIdx.x; i < STEPS * 16 * (WIDE / 8); i += GRADIENT_THREADS)
        tile_d[i] = make_uint4(0, 0, 0, 0);
    for (int image = blockIdx.x; image < images; image += gridDim.x) {
        __syncthreads();
        for (int i = threadIdx.x; i < COUNT_IN; i += GRADIENT_THREADS) {
            const int pixel = i / OCTETS, slot = (pixel / SIDE + SIZE / 2) * WIDTH + pixel % SIDE + SIZE / 2;
            tile_in[slot * OCTETS + i % OCTETS] = __ldg(x + image * COUNT_IN + i);
        }
        for (int i = threadIdx.x; i < COUNT_D; i += GRADIENT_THREADS)
            tile_d[i ^ i / (WIDE / 8) % 8] = __ldg(d + image * COUNT_D + i);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < STEPS; k++) {
            const int pixel = k * 16 + lane % 16, own = min(k * 16 + lane / 16 * 8 + lane % 8, PIXELS - 1);
            const u32 slot = address(tile_in + (own / SIDE * WIDTH + own % SIDE) * OCTETS);
            uint4 a[OWN];
#pragma unroll
            for (int m = 0; m < OWN; m++) a[m] = load_transposed(slot + shifts[m]);
#pragma unroll
            for (int n = 0; n < FILTER_OCTETS; n += 2) {  // two octets of filters, each with pixels 0..7 and 8..15
                const uint4 b =
                    load_transposed(address(tile_d + pixel * (WIDE / 8) + ((n + lane / 16) ^ pixel % 8)));
#pragma unroll
                for (int m = 0; m < OWN; m++) {
                    multiply(result[m][n], a[m], b.x, b.y);
                    if (n + 1 < FILTER_OCTETS) multiply(result[m][n + 1], a[m], b.z, b.w);
                }
            }
        }
    }
#pragma unroll
    for (int m = 0; m < OWN; m++)
#pragma unroll
        for (int i = 0; i < FILTER_OCTETS * 4; i++) {
            const int octet = (blockIdx.y * HALF + m * GRADIENT_WARPS + warp) * 2 + i % 4 / 2,
                      tap = octet / OCTETS;
            const int n = i / 4 * 8 + lane % 4 * 2 + i % 2, c = octet % OCTETS * 8 + lane / 4;
            if (m * GRADIENT_WARPS + warp < HALF && tap < TAPS && c < INPUTS && n < PLANES)
                parts[((blockIdx.x * PLANES + n) * TAPS + tap) * INPUTS + c] = result[m][i / 4][i % 4];
        }
}
