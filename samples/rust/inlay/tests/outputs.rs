//! Several choices, log-probabilities of the prompt, embeddings.
mod common;

use inlay::{EmbedRequest, Event, Pooling, ScoreRequest};

#[test]
fn choices_come_apart_and_each_ends() {
    let engine = common::engine();
    let request = common::request("choose", 8).temperature(1.0).seed(7).choices(3);
    let answer = engine.submit(&request).unwrap().wait().unwrap();
    assert_eq!(answer.choices.iter().map(|choice| choice.ids.len()).collect::<Vec<_>>(), [8, 8, 8]);
    assert_eq!(answer.finished.stats.generated_tokens, 24);
    let mut ended = Vec::new();
    for event in engine.submit(&request).unwrap() {
        if let Event::ChoiceFinished(finished) = event.unwrap() {
            ended.push((finished.choice, finished.stats.generated_tokens));
        }
    }
    ended.sort_unstable();
    assert_eq!(ended, [(0, 8), (1, 8), (2, 8)]);
}

#[test]
fn the_prompt_is_told_as_it_scores() {
    let engine = common::engine();
    let ids = engine.model().tokenize("log of the prompt", true, false).unwrap();
    let scores = engine.score(&ScoreRequest::ids(ids.clone())).unwrap();
    let mut prompt = Vec::new();
    for event in engine.submit(&inlay::Request::ids(ids.clone()).max_new_tokens(1).num_prompt_logprobs(0)).unwrap() {
        if let Event::Prompt(tokens) = event.unwrap() {
            prompt.extend(tokens.ids.into_iter().zip(tokens.logprobs.into_iter().map(|row| row[0].logprob)));
        }
    }
    assert_eq!(prompt, ids[1..].iter().copied().zip(scores).collect::<Vec<_>>());
}

#[test]
fn an_embedding_has_length_one_and_the_width_of_the_model() {
    let engine = common::engine();
    let width = engine.model().info().unwrap().hidden_size as usize;
    let text = EmbedRequest::text("a text as a vector");
    let mean = engine.embed(&text).unwrap();
    let length: f32 = mean.iter().map(|value| value * value).sum();
    assert_eq!(mean.len(), width);
    assert!((length - 1.0).abs() <= width as f32 * f32::EPSILON, "{length}");
    assert_ne!(engine.embed(&text.clone().pooling(Pooling::Last)).unwrap(), mean);
    assert_ne!(engine.embed(&text.normalize(false)).unwrap(), mean);
}
