// Units of a linear layer, relu(normalise(y)), for columns of y (rows, 2 pairs): two neighbours are read at once.
// A block has two such pairs, with all their rows, so that it can normalise by itself.

constexpr int PAIRS_AT_ONCE = 2, ROWS_AT_ONCE = THREADS / PAIRS_AT_ONCE;

struct Pair {
    float v[2];

    __device__ __forceinline__ Pair(u32 word)
        : v{__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)} {}

    // What is left of a gradient behind the rectification to out.
    __device__ __forceinline__ Pair& where_positive(const Pair& out) {
        v[0] = out.v[0] > 0.f ? v[0] : 0.f, v[1] = out.v[1] > 0.f ? v[1] : 0.f;
        return *this;
    }
};

// Two sums for both columns of a pair, over all rows; every thread gets those of its own.
struct Totals {
    double first[2] = {}, second[2] = {};

    __device__ __forceinline__ void add_up() {
        __shared__ double shared[WARPS][PAIRS_AT_ONCE][4];
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = threadIdx.x % PAIRS_AT_ONCE;
        double* const all[] = {&first[0], &first[1], &second[0], &second[1]};
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int step = PAIRS_AT_ONCE; step < 32; step *= 2) *all[i] += __shfl_xor_sync(~0u, *all[i], step);
            if (lane < PAIRS_AT_ONCE) shared[warp][own][i] = *all[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            *all[i] = 0.;
            for (int w = 0; w < WARPS; w++) *all[i] += shared[w][own][i];
        }
    }
};

// out = relu(gamma (y - mean) deviation + beta); mean and inverse deviation; running averages.
extern "C" __global__ void __launch_bounds__(THREADS)
    units(const u32* y, int rows, int pairs, const float* gamma, const float* beta, double eps, double momentum,
          int track, float* running_mean, float* running_var, long long* batches, u32* out, float* mean,
          float* deviation) {
    const int pair = blockIdx.x * PAIRS_AT_ONCE + threadIdx.x % PAIRS_AT_ONCE, first = threadIdx.x / PAIRS_AT_ONCE;
    const bool exists = pair < pairs;
    Totals totals;  // of y and y^2
#pragma unroll 4
    for (int row = first; row < rows; row += ROWS_AT_ONCE) {
        const Pair own = exists ? y[row * pairs + pair] : 0;
#pragma unroll
        for (int i = 0; i < 2; i++) totals.first[i] += own.v[i], totals.second[i] += own.v[i] * own.v[i];
    }
    totals.add_up();
    if (!exists) return;
    float scale[2], shift[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int c = pair * 2 + i;
        const Moments moments(totals.first[i], totals.second[i], rows, eps);
        scale[i] = (float)(gamma[c] * moments.inverse);
        shift[i] = (float)(beta[c] - moments.mean * gamma[c] * moments.inverse);
        if (first) continue;
        mean[c] = (float)moments.mean;
        deviation[c] = (float)moments.inverse;
        if (track) moments.track(rows, c, momentum, running_mean, running_var, batches);
    }
#pragma unroll 4
    for (int row = first; row < rows; row += ROWS_AT_ONCE) {
        const Pair own = y[row * pairs + pair];
        out[row * pairs + pair] =
            pack(fmaxf(own.v[0] * scale[0] + shift[0], 0.f), fmaxf(own.v[1] * scale[1] + shift[1], 0.f));
    }
}

// From d of out: the gradients of y, gamma and beta.
extern "C" __global__ void __launch_bounds__(THREADS)
    units_gradient(const u32* d, const u32* y, const u32* out, int rows, int pairs, const float* gamma,
                   const float* mean, const float* deviation, u32* d_y, float* d_gamma, float* d_beta) {
    const int pair = blockIdx.x * PAIRS_AT_ONCE + threadIdx.x % PAIRS_AT_ONCE, first = threadIdx.x / PAIRS_AT_ONCE;
    const bool exists = pair < pairs;
    Totals totals;  // of g y and g, with g the gradient of what is rectified
#pragma unroll 4
    for (int row = first; row < rows; row += ROWS_AT_ONCE) {
        const int at = row * pairs + pair;
        const Pair own = exists ? y[at] : 0, g = Pair(exists ? d[at] : 0).where_positive(exists ? out[at] : 0);
#pragma unroll
        for (int i = 0; i < 2; i++) totals.first[i] += g.v[i] * own.v[i], totals.second[i] += g.v[i];
    }
    totals.add_up();
    if (!exists) return;
    float s[2], p[2], q[2];  // the gradient of y is s g + p y + q
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int c = pair * 2 + i;
        const double through = (totals.first[i] - totals.second[i] * mean[c]) * deviation[c];
        s[i] = gamma[c] * deviation[c];
        p[i] = (float)(-through * s[i] * deviation[c] / rows);
        q[i] = (float)(-totals.second[i] * s[i] / rows) - p[i] * mean[c];
        if (first == 0) d_gamma[c] = (float)through, d_beta[c] = (float)totals.second[i];
    }
#pragma unroll 4
    for (int row = first; row < rows; row += ROWS_AT_ONCE) {
        const int at = row * pairs + pair;
        const Pair own = y[at], g = Pair(d[at]).where_positive(out[at]);
        d_y[at] = pack(s[0] * g.v[0] + p[0] * own.v[0] + q[0], s[1] * g.v[1] + p[1] * own.v[1] + q[1]);
    }
}
