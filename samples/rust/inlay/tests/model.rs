//! Opening from every source, options, text.
mod common;

use inlay::{plan, save, save_gguf, Code, EngineOptions, Limits, Model, ModelOptions, Prune, Source, Weights};
use std::fs::{read, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

#[test]
fn every_source_gives_the_same_model() {
    let path = common::model_path();
    let file = File::open(&path).unwrap();
    let bytes = read(&path).unwrap();
    let info = common::model().info().unwrap();
    assert!(info.vocab_size > 0 && info.num_layers > 0 && info.weights_bytes > 0);
    assert_eq!(info.architecture, "llama");
    let size = bytes.len() as u64;
    let same = |model: &Model| {
        let other = model.info().unwrap();
        assert_eq!((&other.name, other.vocab_size), (&info.name, info.vocab_size));
        assert_eq!(model.tensors().unwrap(), common::model().tensors().unwrap());
        assert_eq!(model.metadata().unwrap(), common::model().metadata().unwrap());
    };
    for source in [
        Source::file(&file),
        Source::Memory(&bytes),
        Source::reader(size, |offset, buffer: &mut [u8]| file.read_at(buffer, offset)),
    ] {
        same(&Model::open(source, ModelOptions::new()).unwrap());
    }
}

#[test]
fn a_model_that_proposes_no_sampling_changes_no_request() {
    let sampling = common::model().sampling().unwrap();
    assert_eq!(sampling, inlay::Sampling::default());
    let _ = inlay::Request::text("a").temperature(0.5).sampling(&sampling);
}

#[test]
fn a_missing_file_is_not_found_and_named() {
    let error = Model::open("no/such.gguf", ModelOptions::new()).err().unwrap();
    assert_eq!(error.code(), Code::NotFound);
    assert!(error.message().contains("no/such.gguf"), "{error}");
    assert!(error.to_string().starts_with("NOT_FOUND: "), "{error}");
}

#[test]
fn limits_reach_the_loader() {
    let options = ModelOptions::new().limits(Limits { max_tensors: 1, ..Limits::default() });
    assert!(Model::open(&common::model_path(), options).is_err());
}

#[test]
fn progress_borrows_from_its_caller_and_ends_at_the_total() {
    let mut last = (0, 0);
    let options = ModelOptions::new().progress(|done, total| {
        last = (done, total);
        ControlFlow::Continue(())
    });
    Model::open(&common::model_path(), options).unwrap();
    assert!(last.1 > 0 && last.0 == last.1, "{last:?}");
}

#[test]
fn progress_can_end_the_open() {
    let options = ModelOptions::new().progress(|_, _| ControlFlow::Break(()));
    let error = Model::open(&common::model_path(), options).err().unwrap();
    assert_eq!(error.code(), Code::Cancelled);
}

#[test]
fn a_panic_of_a_closure_goes_on_from_the_call() {
    let progress = ModelOptions::new().progress(|_, _| panic!("by progress"));
    let opened = catch_unwind(AssertUnwindSafe(|| Model::open(&common::model_path(), progress)));
    assert_eq!(opened.err().unwrap().downcast_ref::<&str>(), Some(&"by progress"));

    let source = Source::reader(1 << 20, |_, _| panic!("by the reader"));
    let opened = catch_unwind(AssertUnwindSafe(|| Model::open(source, ModelOptions::new())));
    assert_eq!(opened.err().unwrap().downcast_ref::<&str>(), Some(&"by the reader"));
}

#[test]
fn a_reader_that_fails_or_lies_fails_the_open() {
    let failing = Source::reader(1 << 20, |_, _| Err(std::io::ErrorKind::Other.into()));
    assert!(Model::open(failing, ModelOptions::new()).is_err());
    let lying = Source::reader(1 << 20, |_, buffer: &mut [u8]| Ok(buffer.len() + 1));
    assert!(Model::open(lying, ModelOptions::new()).is_err());
}

#[test]
fn the_log_hears_of_the_open_and_its_panic_stays_there() {
    let heard = Arc::new(AtomicBool::new(false));
    let hears = heard.clone();
    let options = common::options().log(move |_, message| {
        hears.store(!message.is_empty(), Ordering::SeqCst);
        panic!("in a log");
    });
    let engine = inlay::Engine::open(&common::model(), options).unwrap();
    engine.submit(&common::request("a", 2)).unwrap().wait().unwrap();
    drop(engine);
    assert!(heard.load(Ordering::SeqCst));
    assert_eq!(Arc::strong_count(&heard), 1, "the closure went with the engine");
}

#[test]
fn text_becomes_ids_and_text_again() {
    let model = common::model();
    let ids = model.tokenize("hello world", false, false).unwrap();
    assert!(!ids.is_empty());
    let text = String::from_utf8(model.detokenize(&ids, false).unwrap()).unwrap();
    assert!(text.ends_with("hello world"), "{text:?}");
    assert!(model.tokenize("", false, false).unwrap().is_empty());
    assert_eq!(model.detokenize(&[i32::MAX], false).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_chat_needs_a_template() {
    let model = common::model();
    let rendered = model.chat_render(r#"[{"role":"user","content":"hi"}]"#);
    match model.info().unwrap().has_chat_template {
        true => assert!(rendered.unwrap().contains("hi")),
        false => assert_eq!(rendered.unwrap_err().code(), Code::FailedPrecondition),
    }
}

#[test]
fn the_plan_counts_the_weights_that_the_model_takes() {
    let model_options = ModelOptions::new();
    let engine_options = EngineOptions::new().kv_tokens(1024).max_sequences(4);
    let planned = plan(&common::model_path(), &model_options, &engine_options).unwrap();
    assert_eq!(planned.weights_bytes, common::model().info().unwrap().weights_bytes);
    assert_eq!((planned.kv_tokens, planned.max_sequences), (1024, 4));
}

#[test]
fn the_header_alone_tells_what_the_file_holds() {
    let header = Model::open(&common::model_path(), ModelOptions::new().header_only(true)).unwrap();
    let whole = common::model();
    let tensors = header.tensors().unwrap();
    assert_eq!(tensors, whole.tensors().unwrap());
    assert_eq!(tensors.len() as u64, whole.info().unwrap().num_tensors);
    assert!(tensors.iter().any(|tensor| tensor.name == "token_embd.weight" && tensor.shape.len() == 2));
    assert!(header.metadata().unwrap().contains(&("general.architecture".into(), "llama".into())));
    let refused = inlay::Engine::open(&header, EngineOptions::new());
    assert_eq!(refused.err().unwrap().code(), Code::FailedPrecondition);
}

#[test]
fn a_pack_opens_as_its_model_does() {
    let path = std::env::temp_dir().join(format!("inlay_rust_{}.llmpack", std::process::id()));
    let mut last = (0, 0);
    let options = ModelOptions::new().progress(|done, total| {
        last = (done, total);
        ControlFlow::Continue(())
    });
    save(&common::model_path(), options, &path).unwrap();
    assert_eq!(last.0, last.1);
    let whole = common::model().info().unwrap();
    for mapped in [false, true] {
        let pack = Model::open(&path, ModelOptions::new().map_pack(mapped).verify_pack(true)).unwrap();
        assert_eq!(pack.info().unwrap().weights_bytes, whole.weights_bytes);
    }
    let cancelled = ModelOptions::new().progress(|_, _| ControlFlow::Break(()));
    assert_eq!(save(&common::model_path(), cancelled, &path).unwrap_err().code(), Code::Cancelled);
    assert_eq!(save(&path, ModelOptions::new(), &path).unwrap_err().code(), Code::FailedPrecondition);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn quantised_weights_are_smaller_and_are_saved_so() {
    let path = std::env::temp_dir().join(format!("inlay_rust_{}.gguf", std::process::id()));
    let quantised =
        || ModelOptions::new().linear_weights(Weights::Int4G32).head_weights(Weights::Int8G32).prune(Prune::TwoOfFour);
    let whole = common::model().info().unwrap();
    let opened = Model::open(&common::model_path(), quantised()).unwrap().info().unwrap();
    assert!(opened.weights_bytes < whole.weights_bytes);
    save_gguf(&common::model_path(), quantised(), &path).unwrap();
    let saved = Model::open(&path, ModelOptions::new()).unwrap().info().unwrap();
    assert_eq!(saved.weights_bytes, opened.weights_bytes);
    let nonsense = ModelOptions::new().requantize(true);
    assert_eq!(Model::open(&path, nonsense).err().unwrap().code(), Code::InvalidArgument);
    let again = ModelOptions::new().requantize(true).linear_weights(Weights::Int8).prune(Prune::Magnitude(0.5));
    Model::open(&path, again.expert_weights(Weights::Stored).embedding_weights(Weights::Int4AsymG128)).unwrap();
    std::fs::remove_file(&path).unwrap();
}
