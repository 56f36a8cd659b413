/* out = a * x + y, element by element.
 *
 * Each thread takes every gridDim.x * blockDim.x-th element, so that any grid does for any length. An element is rounded
 * once (fmaf), whatever the compiler makes of it. `out` may be `x` or `y`.
 */
extern "C" __global__ void saxpy(long long n, float a, const float *x, const float *y, float *out)
{
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        out[i] = fmaf(a, x[i], y[i]);
    }
}
