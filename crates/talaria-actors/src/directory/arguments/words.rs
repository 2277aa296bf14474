//! What is told of a misfit: where, and what is expected. Never a value that was given.

use serde_json::Value;

/// Names or values that are told.
const TOLD: usize = 20;
/// Characters of one of them.
const LONGEST: usize = 80;

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON pointer to it; `/` alone stands for the arguments as a whole.
    pub(super) pointer: String,
    /// What is expected.
    pub(super) expected: String,
}

/// A place within the arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// The arguments as a whole.
    pub(super) const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };

    /// A member of an object.
    pub(super) const fn key(&'a self, key: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// An item of a list.
    pub(super) const fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// The JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            match here.step {
                Step::Root => {}
                Step::Key(key) => steps.push(short(&key.replace('~', "~0").replace('/', "~1"))),
                Step::Index(index) => steps.push(index.to_string()),
            }
            at = here.parent;
        }
        steps.reverse();
        format!("/{}", steps.join("/"))
    }
}

/// The type of a value, as schemas name it.
pub(super) const fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A list of values or names, cut.
pub(super) fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(TOLD);
    let mut told: Vec<_> = items.take(TOLD).map(|item| short(&item)).collect();
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join(", ")
}

/// A text, cut.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(LONGEST).collect();
    cut.push('…');
    cut
}
