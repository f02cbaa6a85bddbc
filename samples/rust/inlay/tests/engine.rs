//! Scores, counters, traces, shutdown; and that the crate wraps every function of the header.
mod common;

use inlay::{Code, HistogramKind, Prefix, ScoreRequest};
use std::fs;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};

#[test]
fn rows_and_scores_agree() {
    let engine = common::engine();
    let ids = engine.model().tokenize("what is scored here", true, false).unwrap();
    let scores = engine.score(&ScoreRequest::ids(ids.clone())).unwrap();
    assert_eq!(scores.len(), ids.len() - 1);
    assert_eq!(engine.score(&ScoreRequest::text("what is scored here")).unwrap(), scores);
    let vocab_size = engine.model().info().unwrap().vocab_size as usize;
    let mut rows = Vec::new();
    let count = engine
        .score_rows(&ScoreRequest::ids(ids.clone()), |row| {
            assert_eq!((row.id, row.logits.len()), (ids[row.position as usize], vocab_size));
            rows.push(row.logprob);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((count, rows), (scores.len(), scores));
}

#[test]
fn a_row_can_end_the_score_and_a_panic_goes_on() {
    let engine = common::engine();
    let request = ScoreRequest::text("one two three");
    let ended = engine.score_rows(&request, |_| ControlFlow::Break(()));
    assert_eq!(ended.unwrap_err().code(), Code::Cancelled);
    let panicked = catch_unwind(AssertUnwindSafe(|| engine.score_rows(&request, |_| panic!("by a row"))));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"by a row"));
}

#[test]
fn counters_histograms_and_text_tell_of_the_same_requests() {
    let engine = common::manual_engine();
    for _ in 0..3 {
        engine.submit(&common::request("count me", 5)).unwrap().wait().unwrap();
    }
    let metrics = engine.metrics().unwrap();
    assert_eq!((metrics.finished_requests_total, metrics.generated_tokens_total, metrics.healthy), (3, 15, 1));
    let histogram = engine.histogram(HistogramKind::GeneratedTokens).unwrap();
    assert_eq!((histogram.count, histogram.sum), (3, 15));
    assert_eq!(histogram.edges.len() + 1, histogram.buckets.len());
    assert_eq!(engine.class_histogram(0, HistogramKind::Ttft).unwrap().count, 3);
    assert!(engine.class_histogram(0, HistogramKind::GeneratedTokens).is_err());
    assert!(engine.metrics_text().unwrap().contains("inlay:submitted_requests_total"));
}

#[test]
fn a_flush_empties_the_prefix_cache() {
    let engine = common::manual_engine();
    let text = "a prompt that is longer than a block of sixteen tokens, so that it is cached";
    let cached = || engine.submit(&common::request(text, 1)).unwrap().wait().unwrap().finished.stats.cached_tokens;
    assert_eq!(cached(), 0);
    assert!(cached() > 0);
    engine.flush_cache().unwrap();
    assert_eq!(cached(), 0);
}

#[test]
fn a_pinned_prefix_stays_cached_through_a_flush() {
    let engine = common::manual_engine();
    let text = "a prompt that is longer than a block of sixteen tokens, so that it is cached";
    let pin = engine.pin(&Prefix::text(text)).unwrap();
    engine.flush_cache().unwrap();
    let answer = engine.submit(&common::request(text, 1)).unwrap().wait().unwrap();
    assert!(answer.finished.stats.cached_tokens > 0);
    drop(pin);
    assert_eq!(engine.pin(&Prefix::ids([1, 2])).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_saved_prefix_is_cached_where_it_is_loaded() {
    let engine = common::manual_engine();
    let text = "a prompt that is longer than a block of sixteen tokens, so that it is cached";
    let path = std::env::temp_dir().join(format!("inlay-rust-{}.prefix", std::process::id()));
    engine.save_prefix(&Prefix::text(text), &path).unwrap();
    engine.flush_cache().unwrap();
    let loaded = engine.load_prefix(&path, "", true).unwrap();
    let answer = engine.submit(&common::request(text, 1)).unwrap().wait().unwrap();
    assert!(loaded.num_tokens >= 16 && loaded.pin.is_some());
    assert!(answer.finished.stats.cached_tokens > 0);
    fs::remove_file(&path).unwrap();
    assert_eq!(engine.load_prefix(&path, "", false).unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_trace_is_written_when_it_stops() {
    let engine = common::engine();
    let path = std::env::temp_dir().join(format!("inlay-rust-{}.json", std::process::id()));
    engine.trace_start(&path).unwrap();
    assert_eq!(engine.trace_start(&path).unwrap_err().code(), Code::FailedPrecondition);
    engine.submit(&common::request("trace", 3)).unwrap().wait().unwrap();
    engine.trace_stop().unwrap();
    let trace = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(trace.contains("traceEvents"));
}

#[test]
fn after_a_shutdown_nothing_is_taken_in() {
    let engine = common::manual_engine();
    let open = engine.submit(&common::request("open", 400)).unwrap();
    engine.shutdown(None).unwrap();
    assert_eq!(open.wait().unwrap_err().code(), Code::Cancelled);
    assert_eq!(engine.submit(&common::request("late", 1)).err().unwrap().code(), Code::FailedPrecondition);
}

/// Functions that this crate does not wrap, each with its reason.
const LEFT_OUT: [&str; 0] = [];

#[test]
fn every_function_of_the_header_is_wrapped() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let bindings = fs::read_to_string(format!("{folder}/../inlay-sys/src/bindings.rs")).unwrap();
    let sources = fs::read_dir(format!("{folder}/src")).unwrap();
    let code: String = sources.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let functions = bindings.split("pub fn ").skip(1).filter_map(|rest| rest.split('(').next());
    let missing: Vec<&str> =
        functions.filter(|name| !code.contains(&format!("{name}(")) && !LEFT_OUT.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
