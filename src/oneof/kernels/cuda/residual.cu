// Blocks of residual networks: convolutions of 3 x 3 with as many outputs as inputs, and what stands around them.
//
// A layer normalise(convolve(x)) needs the whole batch before it can normalise. So a convolution gives its raw
// outputs y and, from sums collected on the way, a scale and a shift for every channel; "scale y + shift", and
// what follows it, is computed where it is read. A block of threads works on tiles of whole rows: it reads a tile
// once, with its border, into shared memory, where every shift of a filter finds it, and multiplies on tensor
// cores.

// What is convolved: x; relu(p x + q); a gradient s d + p y + q; relu(p y + q + z).
enum Read { PLAIN, ACTIVATED, CORRECTED, MERGED };
// What is made of a convolution's outputs.
enum Write { STATISTICS, ACTIVATION_GRADIENT, MERGE_GRADIENT, AS_IT_IS, ADDED };

// Eight channels as they stand in memory, and what is read of them.
template <int READ>
struct Source {
    uint4 first, second;

    __device__ __forceinline__ void fetch(const uint4* from, const uint4* beside, int at, bool inside) {
        first = second = make_uint4(0, 0, 0, 0);
        if (inside) {
            first = __ldg(from + at);
            if (READ == CORRECTED || READ == MERGED) second = __ldg(beside + at);
        }
    }

    __device__ __forceinline__ uint4 value(const Octet& s, const Octet& p, const Octet& q, bool inside) const {
        if (READ == PLAIN || !inside) return first;
        Octet o = unpack(first), other = unpack(second);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (READ == ACTIVATED) o.v[i] = fmaxf(o.v[i] * p.v[i] + q.v[i], 0.f);
            if (READ == CORRECTED) o.v[i] = o.v[i] * s.v[i] + other.v[i] * p.v[i] + q.v[i];
            if (READ == MERGED) o.v[i] = fmaxf(o.v[i] * p.v[i] + q.v[i] + other.v[i], 0.f);
        }
        return pack(o);
    }
};

// --- tiles in shared memory ------------------------------------------------------------------------------

// Byte where eight channels of a slot stand: so that eight slots in a row lie in different banks.
template <int C>
__device__ __forceinline__ int at(int slot, int chunk) {
    return slot * C * 2 + ((chunk ^ (slot / (64 / C) & (C / 8 - 1))) << 4);
}

// ROWS rows of IMAGES images of H x W pixels, with the border that filters of SIZE x SIZE need.
template <int H, int W, int ROWS, int IMAGES, int SIZE>
struct Tile {
    static constexpr int IMAGE_HEIGHT = H, IMAGE_WIDTH = W, TILE_ROWS = ROWS, BORDER = SIZE / 2;
    static constexpr int WIDTH = W + 2 * BORDER, HEIGHT = ROWS + 2 * BORDER;
    static constexpr int SLOTS = IMAGES * HEIGHT * WIDTH, PIXELS = IMAGES * ROWS * W, PER_IMAGE = H / ROWS;

    // The slot of a pixel's neighbour above and to the left, from where the filter's shifts are counted.
    static __device__ __forceinline__ int slot(int pixel) {
        return (pixel / (ROWS * W) * HEIGHT + pixel / W % ROWS) * WIDTH + pixel % W;
    }
};

// A tile on its way from memory: C of ALL channels, from the octet first_chunk on. Where a thread's octets stand,
// seen from the tile's first pixel, is the same for all tiles.
template <typename T, int C, int ALL, int READ, int THREADS>
struct Window {
    static constexpr int LOADS = (T::SLOTS * (C / 8) + THREADS - 1) / THREADS, NOWHERE = -(1 << 20);
    int offsets[LOADS], rows[LOADS];  // row: within the tile, beyond any image where there is no such pixel
    Source<READ> sources[LOADS];
    u32 inside;
    int base;  // where the tile begins

    __device__ __forceinline__ Window() {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int slot = (i * THREADS + threadIdx.x) / (C / 8), image = slot / (T::HEIGHT * T::WIDTH);
            const int y = slot / T::WIDTH % T::HEIGHT - T::BORDER, x = slot % T::WIDTH - T::BORDER;
            const bool exists = slot < T::SLOTS && 0 <= x && x < T::IMAGE_WIDTH;
            offsets[i] = ((image * T::IMAGE_HEIGHT + y) * T::IMAGE_WIDTH + x) * (ALL / 8) + threadIdx.x % (C / 8);
            rows[i] = exists ? y : NOWHERE;
        }
    }

    __device__ __forceinline__ void fetch(const uint4* first, const uint4* second, int tile, int images,
                                          int first_chunk) {
        const int row = tile % T::PER_IMAGE * T::TILE_ROWS;
        base = tile * T::PIXELS * (ALL / 8) + first_chunk;
        const int end = images * T::IMAGE_HEIGHT * T::IMAGE_WIDTH * (ALL / 8);
        inside = 0;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int at = base + offsets[i];
            const bool valid = (u32)(row + rows[i]) < T::IMAGE_HEIGHT && at < end;
            sources[i].fetch(first, second, at, valid);
            inside |= (u32)valid << i;
        }
    }

    // Keep what is convolved; without the border also in memory, where it has been made of two tensors.
    __device__ __forceinline__ void store(char* shared, const float* s, const float* p, const float* q,
                                          int first_chunk, uint4* merged) const {
        const int chunk = threadIdx.x % (C / 8);
        Octet own[3];
        if (READ == CORRECTED) own[0] = channels(s, first_chunk + chunk);
        if (READ != PLAIN) own[1] = channels(p, first_chunk + chunk), own[2] = channels(q, first_chunk + chunk);
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const int slot = (i * THREADS + threadIdx.x) / (C / 8);
            const uint4 value = sources[i].value(own[0], own[1], own[2], inside >> i & 1);
            if ((i + 1) * THREADS <= T::SLOTS * (C / 8) || slot < T::SLOTS)
                *(uint4*)(shared + at<C>(slot, chunk)) = value;
            if (READ == MERGED && (inside >> i & 1) && (u32)rows[i] < T::TILE_ROWS)
                merged[base + offsets[i]] = value;
        }
    }
};

// --- convolution -----------------------------------------------------------------------------------------

// Weights as lanes of a warp need them: out[direction, tap, depth, group, lane] for 16 inputs (depth) and 16
// outputs (group); direction 1 is that of the gradient: outputs for inputs, turned by half a revolution.
template <int C, int N, int SIZE>
__global__ void __launch_bounds__(THREADS)
    arrange(const float* weight, int stride_n, int stride_c, int stride_y, int stride_x, uint4* out) {
    constexpr int TAPS = SIZE * SIZE, COUNT = TAPS * C * N / 8;
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= COUNT) return;
    const bool back = blockIdx.y;
    const int groups = (back ? C : N) / 16, depths = (back ? N : C) / 16;
    const int lane = i % 32, group = i / 32 % groups, depth = i / 32 / groups % depths,
              tap = i / 32 / groups / depths;
    const int turned = back ? TAPS - 1 - tap : tap, step_in = back ? stride_n : stride_c,
              step_out = back ? stride_c : stride_n;
    const float* w = weight + turned / SIZE * stride_y + turned % SIZE * stride_x;
    u32 words[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {  // two tiles of 8 outputs, each with inputs 0..7 and 8..15
        const int input = depth * 16 + j % 2 * 8 + lane % 4 * 2, output = group * 16 + j / 2 * 8 + lane / 4;
        words[j] = pack(w[input * step_in + output * step_out], w[(input + 1) * step_in + output * step_out]);
    }
    out[blockIdx.y * COUNT + i] = make_uint4(words[0], words[1], words[2], words[3]);
}

// out[pixel, n] = sum over shifts and channels of input[pixel + shift, c] weight[c, n, shift]. sums (blocks, 2,
// N): of out and out^2 (STATISTICS), or, with relu(scale x + shift) as what the gradient out is of, the gradients
// of scale and shift, and out that of scale x + shift (ACTIVATION_GRADIENT); the same for x = relu(scale raw +
// shift + shortcut) where the gradient is before + out (MERGE_GRADIENT). ADDED: before + out. What is convolved is
// written to x where it is MERGED.
template <int C, int N, int H, int W, int ROWS, int IMAGES, int SIZE, int READ, int WRITE, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS)
    convolve(const uint4* first, const uint4* second, const float* s, const float* p, const float* q,
             const uint4* weights, uint4* out, const uint4* before, const float* scale, const float* shift,
             uint4* x, const uint4* raw, float* sums, int images) {
    using T = Tile<H, W, ROWS, IMAGES, SIZE>;
    constexpr int TAPS = SIZE * SIZE, DEPTH = C / 16, WARPS_N = N / 16, WARPS_M = WARPS / WARPS_N;
    constexpr int M_TILES = T::PIXELS / 16 / WARPS_M;  // of a warp, each of 16 pixels and 16 outputs
    __shared__ __align__(128) char tile_in[T::SLOTS * C * 2];
    __shared__ __align__(128) char tile_out[T::PIXELS * N * 2];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    const int chunk = threadIdx.x % (N / 8);
    int slots[M_TILES];
#pragma unroll
    for (int m = 0; m < M_TILES; m++) slots[m] = T::slot((warp_m * M_TILES + m) * 16 + lane % 16);
    Sums<2> total;

    const int pixels = images * H * W, tiles = (pixels + T::PIXELS - 1) / T::PIXELS;
    Window<T, C, C, READ, THREADS> window;
    window.fetch(first, second, blockIdx.x, images, 0);
    window.store(tile_in, s, p, q, 0, x);
    __syncthreads();
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int next = tile + gridDim.x;
        window.fetch(first, second, next, next < tiles ? images : 0, 0);  // comes while the tile is multiplied
        float result[M_TILES][2][4] = {};
#pragma unroll(DEPTH == 1 ? TAPS : 1)
        for (int tap = 0; tap < TAPS; tap++)
#pragma unroll
            for (int depth = 0; depth < DEPTH; depth++) {
                const uint4 w = __ldg(weights + ((tap * DEPTH + depth) * WARPS_N + warp_n) * 32 + lane);
#pragma unroll
                for (int m = 0; m < M_TILES; m++) {
                    const int slot = slots[m] + tap / SIZE * T::WIDTH + tap % SIZE;
                    const uint4 a = load_matrices(address(tile_in + at<C>(slot, depth * 2 + lane / 16)));
                    multiply(result[m][0], a, w.x, w.y);
                    multiply(result[m][1], a, w.z, w.w);
                }
            }
#pragma unroll
        for (int m = 0; m < M_TILES; m++)
#pragma unroll
            for (int j = 0; j < 4; j++) {  // two tiles of 8 outputs, each with pixels 0..7 and 8..15
                const int pixel = (warp_m * M_TILES + m) * 16 + j % 2 * 8 + lane / 4;
                const float* r = &result[m][j / 2][j % 2 * 2];
                *(u32*)(tile_out + at<N>(pixel, warp_n * 2 + j / 2) + lane % 4 * 4) = pack(r[0], r[1]);
            }
        __syncthreads();
        window.store(tile_in, s, p, q, 0, x);
        Octet scale_out, shift_out;
        if (WRITE == ACTIVATION_GRADIENT) scale_out = channels(scale, chunk), shift_out = channels(shift, chunk);
#pragma unroll
        for (int i = threadIdx.x; i < T::PIXELS * (N / 8); i += THREADS) {
            const int pixel = tile * T::PIXELS + i / (N / 8), where = pixel * (N / 8) + chunk;
            if (pixel >= pixels) break;
            Octet o = unpack(*(const uint4*)(tile_out + at<N>(i / (N / 8), chunk)));
            if (WRITE == STATISTICS) {
#pragma unroll
                for (int j = 0; j < 8; j++) total.v[0][j] += o.v[j], total.v[1][j] += o.v[j] * o.v[j];
            }
            if (WRITE == ACTIVATION_GRADIENT) {
                const Octet own = unpack(__ldg(x + where));
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const float d = own.v[j] * scale_out.v[j] + shift_out.v[j] > 0.f ? o.v[j] : 0.f;
                    total.v[0][j] += d * own.v[j], total.v[1][j] += d;
                    o.v[j] = d;
                }
            }
            if (WRITE == MERGE_GRADIENT) {
                const Octet more = unpack(__ldg(before + where)), own = unpack(__ldg(x + where)),
                            y = unpack(__ldg(raw + where));
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const float d = own.v[j] > 0.f ? o.v[j] + more.v[j] : 0.f;
                    total.v[0][j] += d * y.v[j], total.v[1][j] += d;
                    o.v[j] = d;
                }
            }
            if (WRITE == ADDED) {
                const Octet more = unpack(__ldg(before + where));
#pragma unroll
                for (int j = 0; j < 8; j++) o.v[j] += more.v[j];
            }
            out[where] = pack(o);
        }
        __syncthreads();
    }
    if (WRITE != AS_IT_IS && WRITE != ADDED) total.template write<N>((float*)tile_in, sums + blockIdx.x * 2 * N);
}

// out[block, n, shift, c] = sum over this block's pixels of gradient[pixel, n] input[pixel + shift, c], where the
// gradient is s d + p y + q. A warp has one row of the filter, up to 32 x 32 channels of it, and every other tile
// of 16 pixels, or all. A block sees PART of the C input channels: those of blockIdx.y.
constexpr int GRADIENT_WARPS = 6, GRADIENT_THREADS = 32 * GRADIENT_WARPS;

template <int C, int PART, int N, int H, int W, int ROWS, int IMAGES, int READ>
__global__ void __launch_bounds__(GRADIENT_THREADS, 2)
    weight_gradient(const uint4* x, const float* scale, const float* shift, const uint4* d, const uint4* y,
                    const float* s, const float* p, const float* q, float* out, int images) {
    constexpr int SIZE = 3;
    using T = Tile<H, W, ROWS, IMAGES, SIZE>;
    using Inner = Tile<H, W, ROWS, IMAGES, 1>;  // the same without its border
    constexpr int M_TILES = PART / 16, WARPS_N = N == 64 ? 2 : 1, N_PAIRS = N / 16 / WARPS_N;
    constexpr int WARPS_K = GRADIENT_WARPS / SIZE / WARPS_N;
    constexpr int VALUES = SIZE * M_TILES * N_PAIRS * 8;
    constexpr int FOR_TILES = T::SLOTS * PART * 2 + T::PIXELS * N * 2,
                  FOR_SUMS = WARPS_K / 2 * SIZE * VALUES * 32 * 4;
    __shared__ __align__(128) char shared[FOR_TILES > FOR_SUMS ? FOR_TILES : FOR_SUMS];
    char* tile_in = shared;
    char* tile_d = shared + T::SLOTS * PART * 2;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, down = warp % SIZE, rest = warp / SIZE;
    const int warp_n = WARPS_N == 2 ? rest : 0, warp_k = WARPS_N == 2 ? 0 : rest,
              first_chunk = blockIdx.y * (PART / 8);
    float result[SIZE][M_TILES][N_PAIRS][2][4] = {};

    const int pixels = images * H * W, tiles = (pixels + T::PIXELS - 1) / T::PIXELS;
    Window<T, PART, C, READ, GRADIENT_THREADS> window;
    Window<Inner, N, N, CORRECTED, GRADIENT_THREADS> gradient;
    window.fetch(x, x, blockIdx.x, images, first_chunk);
    gradient.fetch(d, y, blockIdx.x, images, 0);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int next = tile + gridDim.x;
        window.store(tile_in, scale, scale, shift, first_chunk, nullptr);
        gradient.store(tile_d, s, p, q, 0, nullptr);
        __syncthreads();
        window.fetch(x, x, next, next < tiles ? images : 0, first_chunk);  // comes while the tile is multiplied
        gradient.fetch(d, y, next, next < tiles ? images : 0, 0);
#pragma unroll(M_TILES == 1 ? 2 : 1)
        for (int k = warp_k; k < T::PIXELS / 16; k += WARPS_K) {
            const int row = k * 16 + lane % 16,
                      row_in = T::slot(k * 16 + lane / 16 * 8 + lane % 8) + down * T::WIDTH;
            uint4 b[N_PAIRS];  // each of two chunks with pixels 0..7, 8..15
#pragma unroll
            for (int n = 0; n < N_PAIRS; n++)
                b[n] = load_transposed(address(tile_d + at<N>(row, (warp_n * N_PAIRS + n) * 2 + lane / 16)));
#pragma unroll
            for (int right = 0; right < SIZE; right++)
#pragma unroll
                for (int m = 0; m < M_TILES; m++) {
                    const uint4 a =
                        load_transposed(address(tile_in + at<PART>(row_in + right, m * 2 + lane / 8 % 2)));
#pragma unroll
                    for (int n = 0; n < N_PAIRS; n++) {
                        multiply(result[right][m][n][0], a, b[n].x, b[n].y);
                        multiply(result[right][m][n][1], a, b[n].z, b[n].w);
                    }
                }
        }
        __syncthreads();
    }

    float* values = &result[0][0][0][0][0];
    if (WARPS_K == 2) {
        float* theirs = (float*)shared + down * VALUES * 32 + lane;
        if (warp_k == 1)
#pragma unroll
            for (int i = 0; i < VALUES; i++) theirs[i * 32] = values[i];
        __syncthreads();
        if (warp_k == 0)
#pragma unroll
            for (int i = 0; i < VALUES; i++) values[i] += theirs[i * 32];
    }
    if (warp_k == 0)
#pragma unroll
        for (int i = 0; i < VALUES; i++) {
            const int j = i % 4, n_tile = warp_n * N_PAIRS * 2 + i / 4 % (2 * N_PAIRS),
                      rest_of_i = i / 8 / N_PAIRS;
            const int n = n_tile * 8 + lane % 4 * 2 + j % 2, right = rest_of_i / M_TILES;
            const int c = blockIdx.y * PART + rest_of_i % M_TILES * 16 + j / 2 * 8 + lane / 4;
            out[(((blockIdx.x * N + n) * SIZE + down) * SIZE + right) * C + c] = values[i];
        }
}

// --- between convolutions --------------------------------------------------------------------------------

enum Shortcut { NONE, IDENTITY, NORMALISED };

// out = relu(scale y + shift + shortcut), with z or z_scale z + z_shift as the shortcut.
template <int C, int SHORTCUT>
__global__ void __launch_bounds__(THREADS)
    merge(const uint4* y, const float* scale, const float* shift, const uint4* z, const float* z_scale,
          const float* z_shift, uint4* out, int octets) {
    const int chunk = threadIdx.x % (C / 8);
    const Octet s = channels(scale, chunk), t = channels(shift, chunk);
    Octet zs, zt;
    if (SHORTCUT == NORMALISED) zs = channels(z_scale, chunk), zt = channels(z_shift, chunk);
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < octets; i += gridDim.x * THREADS) {
        Octet o = unpack(y[i]), other;
        if (SHORTCUT != NONE) other = unpack(z[i]);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float value = o.v[j] * s.v[j] + t.v[j];
            if (SHORTCUT == IDENTITY) value += other.v[j];
            if (SHORTCUT == NORMALISED) value += other.v[j] * zs.v[j] + zt.v[j];
            o.v[j] = fmaxf(value, 0.f);
        }
        out[i] = pack(o);
    }
}

// Its gradient, g = d where out > 0, is that of either summand; and sums (blocks, 3, C) of g y, g and g z.
template <int C, int SHORTCUT>
__global__ void __launch_bounds__(THREADS) merge_gradient(const uint4* d, const uint4* out, const uint4* y,
                                                          const uint4* z, uint4* g, float* sums, int octets) {
    __shared__ float shared[WARPS * 3 * C];
    Sums<3> total;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < octets; i += gridDim.x * THREADS) {
        Octet own = unpack(__ldg(d + i)), other;
        const Octet o = unpack(__ldg(out + i)), value = unpack(__ldg(y + i));
        if (SHORTCUT == NORMALISED) other = unpack(__ldg(z + i));
#pragma unroll
        for (int j = 0; j < 8; j++) {
            own.v[j] = o.v[j] > 0.f ? own.v[j] : 0.f;
            total.v[0][j] += own.v[j] * value.v[j], total.v[1][j] += own.v[j];
            if (SHORTCUT == NORMALISED) total.v[2][j] += own.v[j] * other.v[j];
        }
        g[i] = pack(own);
    }
    total.template write<C>(shared, sums + blockIdx.x * 3 * C);
}

// out = s d + p y + q
template <int C>
__global__ void __launch_bounds__(THREADS) correct(const uint4* d, const uint4* y, const float* s, const float* p,
                                                   const float* q, uint4* out, int octets) {
    const int chunk = threadIdx.x % (C / 8);
    const Octet s_own = channels(s, chunk), p_own = channels(p, chunk), q_own = channels(q, chunk);
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < octets; i += gridDim.x * THREADS) {
        Source<CORRECTED> source;
        source.fetch(d, y, i, true);
        out[i] = source.value(s_own, p_own, q_own, true);
    }
}
