//! Which library this is.

use std::ffi::{CStr, c_char};

/// Major version of this header: it changes where programs must be changed.
pub const VELLUM_VERSION_MAJOR: u32 = 0;
/// Minor version of this header: it changes where something is added.
pub const VELLUM_VERSION_MINOR: u32 = 1;
/// Patch level of this header.
pub const VELLUM_VERSION_PATCH: u32 = 0;
/// Version of the binary interface, the number in libvellum.so.0: it changes where programs must be
/// compiled anew.
pub const VELLUM_ABI_VERSION: u32 = 0;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version without NUL"),
    };

/// The version of the library that is loaded, as "0.1.0".
///
/// The text is static. The header's own version is VELLUM_VERSION_MAJOR and so on.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The version of the binary interface of the library that is loaded.
///
/// A program that loads the library by dlopen compares it with its VELLUM_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_abi_version() -> u32 {
    VELLUM_ABI_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_s_version_is_that_of_the_package() {
        let macros =
            format!("{VELLUM_VERSION_MAJOR}.{VELLUM_VERSION_MINOR}.{VELLUM_VERSION_PATCH}");
        assert_eq!(macros, env!("CARGO_PKG_VERSION"));
    }
}
