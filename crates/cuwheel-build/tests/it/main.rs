//! Build scripts played by processes of their own: shims, toolkits that are made up, and kernels through the real compiler.

mod headers;
mod kernels;
mod machine;
mod toolkits;
