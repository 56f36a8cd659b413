//! How an exported function is written: its number of the first driver that has it, its class, its signature and its body.

/// Defines exported functions and `exports()`, which lists them.
///
/// `[version Class per_thread_symbol] fn symbol(arguments) |driver| body`, where the symbol in brackets, if there is one, is
/// the same function with the thread's own stream for stream 0.
macro_rules! exports {
    ($(
        [$version:literal $class:ident $($per_thread:ident)?] fn $symbol:ident $arguments:tt
        |$driver:ident| $body:block
    )*) => {
        mod functions {
            $(
                #[expect(non_upper_case_globals, reason = "named after the function")]
                pub(super) static $symbol: crate::edge::Function =
                    crate::edge::Function::new(stringify!($symbol), crate::driver::Class::$class);
            )*
        }
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $symbol $arguments -> u32 {
                crate::edge::call(&functions::$symbol, false, |$driver| $body)
            }
            $(
                #[unsafe(no_mangle)]
                extern "C" fn $per_thread $arguments -> u32 {
                    crate::edge::call(&functions::$symbol, true, |$driver| $body)
                }
            )?
        )*

        /// The functions of this file.
        pub(super) fn exports(found: &mut Vec<crate::edge::exports::Export>) {
            $(
                found.push(crate::edge::exports::Export {
                    symbol: stringify!($symbol),
                    version: $version,
                    address: $symbol as *const () as usize,
                });
                $(
                    found.push(crate::edge::exports::Export {
                        symbol: stringify!($per_thread),
                        version: $version,
                        address: $per_thread as *const () as usize,
                    });
                )?
            )*
        }
    };
}
pub(super) use exports;

/// An exported function, for those who ask by name.
#[derive(Clone, Copy)]
pub(super) struct Export {
    pub(super) symbol: &'static str,
    /// The first driver that had it, as `cuDriverGetVersion` counts.
    pub(super) version: i32,
    pub(super) address: usize,
}
