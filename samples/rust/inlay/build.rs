//! Lets the examples and tests find libinlay.so where inlay-sys linked it: cargo hands no rpath on.
use std::env;

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let dir = env::var("INLAY_LIB_DIR").unwrap_or(format!("{manifest}/../../../build/capi"));
    println!("cargo:rerun-if-env-changed=INLAY_LIB_DIR");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
}
