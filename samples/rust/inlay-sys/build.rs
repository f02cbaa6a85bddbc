//! Tells cargo where libinlay.so lies: INLAY_LIB_DIR, or the CMake build folder of this repository.
use std::env;

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let dir = env::var("INLAY_LIB_DIR").unwrap_or(format!("{manifest}/../../../build/capi"));
    println!("cargo:rerun-if-env-changed=INLAY_LIB_DIR");
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-lib=dylib=inlay");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{dir}");
}
