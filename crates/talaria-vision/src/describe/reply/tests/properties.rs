//! What holds of every answer, whatever it is.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{chat, fault, of, verdict, visible};
use crate::describe::verdict::{FaultKind, MAX_WORDS_BYTES, Verdict};

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "choices",
        "message",
        "content",
        "error",
        "code",
        "success",
        "base_resp",
        "status_code",
        "candidates",
        "parts",
        "text",
        "output",
        "type",
        "finish_reason",
        "reasoning_content",
        "refusal",
        "data",
        "response",
        "status",
        "errors",
        "details",
        "promptFeedback",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "", "a cat", "\u{200b}", "stop", "length", "false", "text", "failed", "0", "<think>"
        ])
        .prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What holds of every verdict.
fn check(status: u16, verdict: &Verdict) -> Result<(), TestCaseError> {
    match verdict {
        Verdict::Answer(text) | Verdict::Reasoned(text) => {
            prop_assert!((200..300).contains(&status));
            prop_assert!(!visible::is_blank(text));
        }
        Verdict::Failed(fault) => {
            prop_assert!(fault.words.len() <= MAX_WORDS_BYTES);
            prop_assert!(!fault.words.chars().any(char::is_control));
            prop_assert_eq!(fault.status, Some(status));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_come_to_something(status in 100u16..700, body in prop::collection::vec(any::<u8>(), 0..400)) {
        check(status, &verdict(status, &body))?;
    }

    #[test]
    fn any_json_comes_to_something(status in prop_oneof![Just(200u16), 100u16..700], body in any_json()) {
        check(status, &of(status, &body))?;
    }

    #[test]
    fn no_error_is_ever_an_answer(mut body in any_json(), error in "[a-z ]{1,9}[a-z]") {
        if let Some(map) = body.as_object_mut() {
            map.insert("error".to_owned(), json!({ "message": error }));
            prop_assert!(matches!(of(200, &body), Verdict::Failed(_)));
        }
    }

    #[test]
    fn every_cut_of_an_answer_is_a_failure(at in 1usize..80) {
        let whole = chat(&json!("a cat"), "stop").to_string();
        let at = at.min(whole.len() - 1);
        let cut = fault(verdict(200, whole.as_bytes().get(..at).unwrap()));
        prop_assert_eq!(cut.kind, FaultKind::NotJson);
    }
}
