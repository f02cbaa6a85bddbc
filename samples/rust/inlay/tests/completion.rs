//! One request's events: as an iterator, a future, a callback; dropped, cancelled, refused.
mod common;

use inlay::{Code, Engine, Event, FinishReason, Queue, Request};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;

#[test]
fn the_iterator_ends_with_finished() {
    let engine = common::engine();
    let events: Vec<Event> =
        engine.submit(&common::request("hello", 9)).unwrap().collect::<inlay::Result<_>>().unwrap();
    let ids: usize = events.iter().map(|event| if let Event::Tokens(t) = event { t.ids.len() } else { 0 }).sum();
    assert_eq!(ids, 9);
    match events.last().unwrap() {
        Event::Finished(end) => {
            assert_eq!((end.reason, end.stats.generated_tokens), (FinishReason::Length, 9));
            assert!(end.stats.ttft_ns.unwrap() >= end.stats.queue_ns);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_way_of_reading_gives_the_same_answer() {
    let engine = common::engine();
    let request = common::request("the same", 12);
    let blocking = engine.submit(&request).unwrap().wait().unwrap();

    let manual = common::manual_engine().submit(&request).unwrap().wait().unwrap();
    assert_eq!(manual.choices, blocking.choices);

    let (sender, receiver) = mpsc::channel();
    engine.submit_with(&request, move |event| sender.send(event).unwrap()).unwrap();
    let ids: Vec<i32> =
        receiver.iter().flat_map(|event| if let Event::Tokens(t) = event { t.ids } else { vec![] }).collect();
    assert_eq!(ids, blocking.ids());

    let queue = Queue::new().unwrap();
    let completion = engine.submit_to(&queue, &request).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let driver = thread::spawn(move || {
        while !is_done.load(Ordering::SeqCst) {
            queue.wait(Some(std::time::Duration::from_millis(1))).unwrap();
        }
    });
    let answer = common::block_on(completion.answer()).unwrap();
    done.store(true, Ordering::SeqCst);
    driver.join().unwrap();
    assert_eq!(answer.choices, blocking.choices);
}

#[test]
fn threads_share_a_queue_and_get_each_their_own() {
    let engine = common::engine();
    let texts: Vec<String> = (0..12).map(|index| format!("number {index}")).collect();
    let alone: Vec<_> =
        texts.iter().map(|text| engine.submit(&common::request(text, 10)).unwrap().wait().unwrap().choices).collect();
    let completions = texts.iter().map(|text| engine.submit(&common::request(text, 10)).unwrap());
    let mut threads = Vec::new();
    for completion in completions {
        threads.push(thread::spawn(move || completion.wait().unwrap().choices));
    }
    let together: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(alone, together);
}

#[test]
fn engines_share_a_queue_though_their_ids_are_equal() {
    let (first, second) = (common::engine(), common::engine());
    let queue = Queue::new().unwrap();
    let of_first = first.submit_to(&queue, &common::request("one", 5)).unwrap();
    let of_second = second.submit_to(&queue, &common::request("two", 7)).unwrap();
    assert_eq!(of_first.id(), of_second.id());
    assert_eq!(of_second.wait().unwrap().ids().len(), 7);
    assert_eq!(of_first.wait().unwrap().ids().len(), 5);
}

#[test]
fn a_drop_cancels_and_late_events_go_nowhere() {
    let engine = common::manual_engine();
    let dropped = engine.submit(&common::request("dropped", 400)).unwrap();
    for _ in 0..4 {
        assert!(engine.step().unwrap());
    }
    drop(dropped);
    let kept = engine.submit(&common::request("kept", 6)).unwrap().wait().unwrap();
    assert_eq!(kept.ids().len(), 6);
    while engine.step().unwrap() {}
    let metrics = engine.metrics().unwrap();
    assert_eq!((metrics.cancelled_requests_total, metrics.running_current), (1, 0));
}

#[test]
fn a_cancelled_request_tells_so() {
    let engine = common::manual_engine();
    let completion = engine.submit(&common::request("long", 400)).unwrap();
    completion.cancel().unwrap();
    assert_eq!(completion.wait().unwrap_err().code(), Code::Cancelled);
}

#[test]
fn what_cannot_be_taken_in_is_an_error_of_submit() {
    let engine = common::engine();
    let error = engine.submit(&Request::text("")).err();
    assert!(error.is_none() || error.unwrap().code() == Code::InvalidArgument);
    assert_eq!(engine.submit(&Request::ids([i32::MAX])).err().unwrap().code(), Code::InvalidArgument);
    assert_eq!(engine.submit(&Request::text("a").temperature(-1.0)).err().unwrap().code(), Code::InvalidArgument);
    let held = Arc::new(());
    let holds = held.clone();
    let refused = engine.submit_with(&Request::ids([-7]), move |_| drop(holds.clone()));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn try_next_takes_only_what_was_handed_on() {
    let engine = common::manual_engine();
    let mut completion = engine.submit(&common::request("try", 2)).unwrap();
    assert_eq!(completion.try_next(), None);
    while engine.step().unwrap() {}
    assert_eq!(completion.try_next(), None, "it waits in the queue, whose descriptor tells");
    engine.queue().dispatch().unwrap();
    let mut ids = 0;
    while let Some(event) = completion.try_next() {
        ids += if let Event::Tokens(tokens) = event { tokens.ids.len() } else { 0 };
    }
    assert_eq!((ids, completion.is_finished()), (2, true));
    assert!(completion.next().is_none());
}

#[test]
fn a_panicking_callback_is_cancelled_and_called_no_more() {
    let engine = common::engine();
    let held = Arc::new(());
    let holds = held.clone();
    engine
        .submit_with(&common::request("panic", 400), move |_| {
            let _holds = &holds;
            panic!("in a callback");
        })
        .unwrap();
    drop(engine);
    assert_eq!(Arc::strong_count(&held), 1, "the closure went with the last event");
}

#[test]
fn a_callback_may_hold_the_last_handle_of_its_engine() {
    let engine = common::engine();
    let (sender, receiver) = mpsc::channel();
    let owner = engine.clone();
    engine
        .submit_with(&common::request("last", 3), move |event| {
            let _owner = &owner;
            sender.send(event).unwrap();
        })
        .unwrap();
    drop(engine);
    assert!(matches!(receiver.iter().last(), Some(Event::Finished(end)) if end.error.is_none()));
}

#[test]
fn logprobs_come_a_row_per_token() {
    let engine = common::engine();
    let completion = engine.submit(&common::request("log", 4).num_logprobs(3)).unwrap();
    let mut rows = 0;
    for event in completion {
        if let Event::Tokens(tokens) = event.unwrap() {
            for (id, row) in tokens.ids.iter().zip(&tokens.logprobs) {
                assert_eq!((row.len(), row[0].id), (4, *id));
                assert!(row[0].logprob == row[1].logprob && row[1].logprob >= row[2].logprob, "greedy: {row:?}");
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 4);
}

#[test]
fn handles_go_to_other_threads() {
    fn both<T: Send + Sync>() {}
    both::<inlay::Model>();
    both::<Engine>();
    both::<Queue>();
    both::<inlay::Completion>();
    both::<Request>();
    both::<inlay::EngineOptions>();
    both::<inlay::Error>();
}
