// An array with shape and strides as a parameter of a kernel: what the type "view[float32, 2]" of a signature passes.
//
//     #include <cuwheel/array_view.cuh>
//
//     extern "C" __global__ void add_one(cuwheel::array_view<float, 2> x) {
//         long long row = blockIdx.x, column = threadIdx.x;
//         if (row < x.shape[0] && column < x.shape[1]) x(row, column) += 1;
//     }
//
// and in Python, with cuwheel.Module.from_source, or with the header on nvcc's path by `-I` and cuwheel.get_include():
//
//     module.kernel("add_one", ["view[float32, 2]"])[x.shape[0], x.shape[1]](x)
//
// "view[const float32, 2]" is array_view<const float, 2>: the same bytes, and read-only arrays are taken.
//
// Needs C++14. The layout is fixed: 8 + 16 * N bytes, aligned to 8.

#ifndef CUWHEEL_ARRAY_VIEW_CUH
#define CUWHEEL_ARRAY_VIEW_CUH

#if defined(__CUDACC__)
#define CUWHEEL_HOST_DEVICE __host__ __device__
#else
#define CUWHEEL_HOST_DEVICE
#endif

namespace cuwheel {

// An array of N dimensions. `strides` are in elements, and may be zero or negative; `data` is the first element, null if
// there are none.
template <typename T, int N>
struct array_view {
    static_assert(N > 0, "an array without dimensions is array_view<T, 0>");

    T *data;
    long long shape[N];
    long long strides[N];

    // The element with these indices, which are not checked.
    template <typename... Index>
    CUWHEEL_HOST_DEVICE T &operator()(Index... indices) const {
        static_assert(sizeof...(Index) == N, "an index for each dimension");
        const long long all[N] = {static_cast<long long>(indices)...};
        long long offset = 0;
        for (int dimension = 0; dimension < N; ++dimension) {
            offset += all[dimension] * strides[dimension];
        }
        return data[offset];
    }

    // The number of elements.
    CUWHEEL_HOST_DEVICE long long size() const {
        long long product = 1;
        for (int dimension = 0; dimension < N; ++dimension) {
            product *= shape[dimension];
        }
        return product;
    }
};

// A single element.
template <typename T>
struct array_view<T, 0> {
    T *data;

    CUWHEEL_HOST_DEVICE T &operator()() const { return *data; }
    CUWHEEL_HOST_DEVICE long long size() const { return 1; }
};

static_assert(sizeof(array_view<float, 0>) == 8, "a pointer");
static_assert(sizeof(array_view<float, 3>) == 56 && alignof(array_view<char, 1>) == 8, "a pointer, shape and strides");

}  // namespace cuwheel

#undef CUWHEEL_HOST_DEVICE

#endif
