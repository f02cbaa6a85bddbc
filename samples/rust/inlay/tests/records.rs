//! Records of steps and requests.
mod common;

use inlay::Cursor;

#[test]
fn records_tell_of_every_step_and_request_once() {
    let engine = common::manual_engine();
    engine.submit(&common::request("records", 5)).unwrap().wait().unwrap();
    while engine.step().unwrap() {}
    let (mut steps, mut changes) = (Cursor::default(), Cursor::default());
    let read = engine.read_steps(&mut steps).unwrap();
    assert_eq!(read.iter().map(|step| step.generated_tokens).sum::<u32>(), 5);
    assert!(engine.read_steps(&mut steps).unwrap().is_empty());
    let generated: u32 = engine
        .read_records(&mut changes)
        .unwrap()
        .iter()
        .filter(|record| record.kind == inlay_sys::LLM_RECORD_TOKENS)
        .map(|record| record.tokens)
        .sum();
    assert_eq!(generated, 5);
}
