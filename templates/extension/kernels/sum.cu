/* The sum of each row of a matrix.
 *
 * A block adds up a row, in double precision and always in the same order: the same row gives the same bits on every GPU. The
 * number of threads of a block is a power of two, and each has a double of dynamic shared memory.
 */
extern "C" __global__ void sum_rows(long long rows, long long columns, const float *x, float *out)
{
    extern __shared__ double partial[];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        double sum = 0.0;
        for (long long column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += x[row * columns + column];
        }
        partial[threadIdx.x] = sum;
        __syncthreads();
        for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
            if (threadIdx.x < width) {
                partial[threadIdx.x] += partial[threadIdx.x + width];
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            out[row] = (float)partial[0];
        }
        // The next row must not come before this one was read.
        __syncthreads();
    }
}
