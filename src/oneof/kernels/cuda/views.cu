// Versions of images of bytes, C channels beside each other in memory: what image_ops.py does by tensor
// operations, to the bit. Hence arithmetic that is rounded after every operation.

typedef unsigned char u8;

// --- frames ----------------------------------------------------------------------------------------------

__device__ __forceinline__ int reflected(int position, int side) {
    return side - 1 - abs(side - 1 - abs(position));
}

// Every image mirrored where so, then its frame shifted to (top, left), then a hole of 2 half x 2 half pixels
// about a centre (row, column) made black, if half is not 0. A thread has one pixel.
template <int C, int H, int W>
__global__ void __launch_bounds__(THREADS)
    reframe(const u8* x, int flips, const bool* mirrored, const long long* top, const long long* left, int half,
            const long long* row, const long long* column, u8* out, int pixels) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x, image = pixel / (H * W);
    if (pixel >= pixels) return;
    const int i = pixel / W % H, j = pixel % W;
    const int from_row = reflected((int)top[image] + i, H), from_column = reflected((int)left[image] + j, W);
    const bool turned = flips && mirrored[image];
    const u8* from = x + ((image * H + from_row) * W + (turned ? W - 1 - from_column : from_column)) * C;
    bool black = false;
    if (half) {
        const int down = i - (int)row[image], right = j - (int)column[image];
        black = -half <= down && down < half && -half <= right && right < half;
    }
#pragma unroll
    for (int c = 0; c < C; c++) out[pixel * C + c] = black ? 0 : from[c];
}

// --- operations ------------------------------------------------------------------------------------------

// Numbered as policies.OPERATIONS has them.
enum Operation {
    ROTATE = 1,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    BRIGHTNESS,
    CONTRAST,
    COLOR,
    SHARPNESS
};

__device__ __forceinline__ float plus(float a, float b) {
    return __fadd_rn(a, b);
}

__device__ __forceinline__ float times(float a, float b) {
    return __fmul_rn(a, b);
}

template <int C>
__device__ __forceinline__ int luminance(const u8* pixel) {
    return C == 3 ? (19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[C - 1] + 32768) >> 16 : pixel[0];
}

// One image in shared memory, and what an operation makes of it.
template <int C, int H, int W>
struct Picture {
    static constexpr int PIXELS = H * W, VALUES = PIXELS * C;
    u8 values[2][VALUES];
    int counts[C][256], sums[2][C][256], low[C], high[C], total;

    // A pixel takes the byte to which an affine map brings its centre, or fill outside the image.
    __device__ __forceinline__ void transform(const u8* from, u8* to, int operation, float magnitude, int fill) {
        const float angle = operation == ROTATE ? times(magnitude, 0.017453292519943295f) : 0.f;
        const float cosine = cosf(angle), sine = sinf(angle);
        const float shear_x = operation == SHEAR_X ? magnitude : 0.f,
                    shear_y = operation == SHEAR_Y ? magnitude : 0.f;
        const float right = plus(operation == TRANSLATE_X ? times(magnitude, W) : 0.f, W / 2.f + 1.f);
        const float down = plus(operation == TRANSLATE_Y ? times(magnitude, H) : 0.f, H / 2.f + 1.f);
        for (int pixel = threadIdx.x; pixel < PIXELS; pixel += THREADS) {
            const float i = pixel / W + 0.5f, j = pixel % W + 0.5f, u = i - H / 2.f, v = j - W / 2.f;
            const float column = plus(plus(times(shear_x, i), -times(sine, u)), plus(times(cosine, v), right));
            const float row = plus(plus(times(cosine, u), down), plus(times(shear_y, j), times(sine, v)));
            const int y = (int)row - 1, x = (int)column - 1;
            const bool inside = 0 <= y && y < H && 0 <= x && x < W;
            for (int c = 0; c < C; c++) to[pixel * C + c] = inside ? from[(y * W + x) * C + c] : fill;
        }
    }

    // Count the levels of every channel, and find its lowest and its highest.
    __device__ __forceinline__ void survey(const u8* from) {
        const int level = threadIdx.x;
        for (int c = 0; c < C; c++) counts[c][level] = 0;
        if (level < C) low[level] = 255, high[level] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < VALUES; i += THREADS) atomicAdd(&counts[i % C][from[i]], 1);
        __syncthreads();
        for (int c = 0; c < C; c++)
            if (counts[c][level]) atomicMin(&low[c], level), atomicMax(&high[c], level);
        __syncthreads();
    }

    // Add up the counts of all levels to each: leaves them in sums[0].
    __device__ __forceinline__ void accumulate() {
        const int level = threadIdx.x;
        for (int c = 0; c < C; c++) sums[0][c][level] = counts[c][level];
        for (int step = 1, now = 0; step < 256; step *= 2, now = 1 - now) {
            __syncthreads();
            for (int c = 0; c < C; c++)
                sums[1 - now][c][level] = sums[now][c][level] + (level >= step ? sums[now][c][level - step] : 0);
        }
        __syncthreads();
    }

    // What becomes of a level, all counts being known.
    __device__ __forceinline__ int replaced(int level, int c, int operation, float magnitude) const {
        if (operation == POSTERIZE) {
            const int shift = 8 - (int)magnitude;
            return level >> shift << shift;
        }
        if (operation == SOLARIZE) return level < magnitude ? level : 255 - level;
        if (operation == AUTOCONTRAST) {
            const int range = high[c] - low[c];
            return range > 0 ? min(max(level - low[c], 0) * 255 / range, 255) : level;
        }
        const int step = (PIXELS - counts[c][high[c]]) / 255, below = sums[0][c][level] - counts[c][level];
        return step > 0 ? min((step / 2 + below) / step, 255) : level;
    }

    // The image without what the operation is to strengthen: black, one gray, gray, or smooth.
    __device__ __forceinline__ float degenerate(const u8* from, int pixel, int c, int operation) const {
        if (operation == BRIGHTNESS) return 0.f;
        if (operation == CONTRAST) return floorf(plus(times(total, 1.f / PIXELS), 0.5f));
        if (operation == COLOR) return luminance<C>(from + pixel * C);
        const int i = pixel / W, j = pixel % W, at = pixel * C + c;
        if (i == 0 || i == H - 1 || j == 0 || j == W - 1) return from[at];
        int box = 4 * from[at];
        for (int down = -1; down <= 1; down++)
            for (int right = -1; right <= 1; right++) box += from[at + (down * W + right) * C];
        return floorf(plus(times(box, 1.f / 13.f), 0.5f));
    }

    __device__ __forceinline__ void operate(const u8* from, u8* to, int operation, float magnitude, int fill) {
        if (operation <= TRANSLATE_Y) {
            transform(from, to, operation, magnitude, fill);
        } else if (operation <= EQUALIZE) {
            if (operation >= AUTOCONTRAST) survey(from);
            if (operation == EQUALIZE) accumulate();
            for (int i = threadIdx.x; i < VALUES; i += THREADS)
                to[i] = replaced(from[i], i % C, operation, magnitude);
        } else {
            if (operation == CONTRAST) {
                if (threadIdx.x == 0) total = 0;
                __syncthreads();
                int own = 0;
                for (int pixel = threadIdx.x; pixel < PIXELS; pixel += THREADS)
                    own += luminance<C>(from + pixel * C);
                atomicAdd(&total, own);
                __syncthreads();
            }
            for (int i = threadIdx.x; i < VALUES; i += THREADS) {
                const float less = degenerate(from, i / C, i % C, operation);
                const float value = plus(less, times(magnitude, plus(from[i], -less)));
                to[i] = (int)fminf(fmaxf(value, 0.f), 255.f);
            }
        }
    }
};

// Every image after its operations (images, steps) with their magnitudes, one after the other; a block has one
// image.
template <int C, int H, int W>
__global__ void __launch_bounds__(THREADS)
    operate(const u8* x, const float* operations, const float* magnitudes, int steps, int fill, u8* out) {
    using P = Picture<C, H, W>;
    __shared__ P picture;
    int now = 0;
    for (int i = threadIdx.x; i < P::VALUES; i += THREADS) picture.values[0][i] = x[blockIdx.x * P::VALUES + i];
    for (int step = 0; step < steps; step++) {
        const int which = blockIdx.x * steps + step, operation = (int)operations[which];
        __syncthreads();
        if (operation == 0) continue;
        picture.operate(picture.values[now], picture.values[1 - now], operation, magnitudes[which], fill);
        now = 1 - now;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < P::VALUES; i += THREADS)
        out[blockIdx.x * P::VALUES + i] = picture.values[now][i];
}
