//! The kernels in this library, with the types of their parameters. Each is loaded by its first launch.

use std::sync::LazyLock;

use cuwheel_dispatcher::launch::{Image, Kernel, Module, Signature};

mod compiled {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

/// `kernels/saxpy.cu`
pub static SAXPY: LazyLock<Kernel> = LazyLock::new(|| {
    let parameters = [
        "int64 n",
        "float32 a",
        "const float32* x",
        "const float32* y",
        "float32* out",
    ];
    kernel(
        compiled::saxpy::FATBIN,
        compiled::saxpy::SAXPY.symbol,
        &parameters,
    )
});

/// `kernels/sum.cu`
pub static SUM_ROWS: LazyLock<Kernel> = LazyLock::new(|| {
    let parameters = [
        "int64 rows",
        "int64 columns",
        "const float32* x",
        "float32* out",
    ];
    kernel(
        compiled::sum::FATBIN,
        compiled::sum::SUM_ROWS.symbol,
        &parameters,
    )
});

/// The driver compares the sizes of the parameters with those of the kernel; the types are this file's word.
fn kernel(fatbin: &[u8], symbol: &str, parameters: &[&str]) -> Kernel {
    let image = Image::new(fatbin).expect("the build made the image");
    let signature =
        Signature::parse(parameters.iter().copied()).expect("the types above can be read");
    Module::new(image).kernel(symbol, Some(signature))
}
