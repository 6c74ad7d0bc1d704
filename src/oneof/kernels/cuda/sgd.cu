// The update of a large parameter in one pass over memory, rounded as torch rounds it.

extern "C" __global__ void __launch_bounds__(THREADS)
    descend(float4* parameters, const float4* gradients, float4* moments, double rate, double momentum,
            double decay, int quads) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < quads; i += gridDim.x * THREADS) {
        float4 p = parameters[i], m = moments[i];
        const float4 g = gradients[i];
        float* const own[] = {&p.x, &p.y, &p.z, &p.w};
        float* const moment[] = {&m.x, &m.y, &m.z, &m.w};
        const float gradient[] = {g.x, g.y, g.z, g.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float d = fmaf((float)decay, *own[j], gradient[j]);
            *moment[j] = __fadd_rn(__fmul_rn((float)momentum, *moment[j]), d);
            *own[j] = fmaf((float)-rate, *moment[j], *own[j]);
        }
        parameters[i] = p, moments[i] = m;
    }
}
