//! What bindgen cannot see: the header's inline functions have their Rust counterparts.
use std::collections::BTreeSet;
use std::fs;

fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_init_function_of_the_header_is_a_default() {
    let header = read("../../../include/inlay/llm.h");
    let inits: BTreeSet<&str> = header
        .split("static inline void ")
        .skip(1)
        .filter_map(|rest| rest.split_once("_init("))
        .map(|(name, _)| name)
        .collect();
    let source = read("src/lib.rs");
    let list = source.rsplit("versioned! {").next().unwrap_or("");
    let defaults: BTreeSet<&str> = list.split_whitespace().filter(|word| word.starts_with("llm_")).collect();
    assert_eq!(inits, defaults);
}

#[test]
fn a_default_knows_its_size() {
    let request = inlay_sys::llm_request::default();
    assert_eq!(request.struct_size as usize, std::mem::size_of::<inlay_sys::llm_request>());
    assert!(request.text.data.is_null());
}

#[test]
fn the_library_has_the_abi_of_the_header() {
    let version = unsafe { inlay_sys::llm_abi_version() };
    assert_eq!(version, inlay_sys::LLM_ABI_MAJOR << 16 | inlay_sys::LLM_ABI_MINOR);
}
