//! Names of models as people and providers write them, down to the one the catalogue knows.
//!
//! Only endings and beginnings of closed shapes are taken off: a variant, a date, a version of
//! Bedrock, a region, a path. A name is never matched by its beginning, so that a new model is
//! not taken for its predecessor.

/// Codex' suffix for its long context (specification 2.3).
const LONG_CONTEXT: &str = "-900k";
/// Variants of `OpenRouter`, and Ollama's default tag: the same model served otherwise.
const VARIANTS: [&str; 9] = [
    ":free",
    ":beta",
    ":extended",
    ":nitro",
    ":floor",
    ":online",
    ":exacto",
    ":thinking",
    ":latest",
];
/// Regions of Bedrock's inference profiles.
const REGIONS: [&str; 8] = [
    "us.", "eu.", "apac.", "global.", "us-gov.", "jp.", "au.", "ca.",
];
/// How many names of one model are tried.
const MOST_NAMES: usize = 16;

/// The names to look a model up by, the fullest first.
pub(crate) fn names(model: &str) -> Vec<String> {
    let model = model.trim().to_lowercase();
    let model = model.strip_suffix(LONG_CONTEXT).unwrap_or(&model);
    let mut names = vec![model.to_owned()];
    if let Some(rest) = without_path(model) {
        names.push(rest.to_owned());
    }
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        for shorter in shorter(&name).into_iter().flatten() {
            if names.len() < MOST_NAMES && !names.iter().any(|known| known == shorter) {
                names.push(shorter.to_owned());
            }
        }
    }
    names
}

/// Spelling in which `4.5` and `4-5` are the same.
pub(crate) fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let between = folded.ends_with(|c: char| c.is_ascii_digit())
            && chars.peek().is_some_and(char::is_ascii_digit);
        folded.push(if c == '.' && between { '-' } else { c });
    }
    folded
}

/// The last part of a resource path: `projects/…/models/x`, `models/x`, `arn:…/x`.
fn without_path(model: &str) -> Option<&str> {
    let is_path =
        model.starts_with("arn:") || model.starts_with("models/") || model.contains("/models/");
    let last = model.rsplit('/').next()?;
    (is_path && last != model && !last.is_empty()).then_some(last)
}

fn shorter(name: &str) -> [Option<&str>; 3] {
    let variant = VARIANTS.iter().find_map(|it| name.strip_suffix(it));
    let region = REGIONS.iter().find_map(|it| name.strip_prefix(it));
    [variant, without_date(name), region].map(|rest| rest.filter(|rest| !rest.is_empty()))
}

/// Without `-20250929`, `@20250929`, `-2025-08-07`, `-v1:0` or `-latest` at the end.
fn without_date(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_suffix("-latest") {
        return Some(rest);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((rest, version)) = name.rsplit_once("-v")
        && let Some((major, minor)) = version.split_once(':')
        && digits(major)
        && digits(minor)
    {
        return Some(rest);
    }
    let is_day = |text: &str| text.len() == 8 && text.starts_with("20") && digits(text);
    if let Some((rest, day)) = name.rsplit_once(['-', '@'])
        && is_day(day)
    {
        return Some(rest);
    }
    let mut parts = name.rsplitn(4, '-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let is_date = year.len() == 4
        && year.starts_with("20")
        && [month, day].iter().all(|part| part.len() == 2)
        && [year, month, day].iter().all(|part| digits(part));
    if is_date { parts.next() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reaches(model: &str, wanted: &str) {
        assert!(
            names(model).iter().any(|name| name == wanted),
            "{:?}",
            names(model)
        );
    }

    #[test]
    fn the_full_name_comes_first() {
        assert_eq!(
            names(" Claude-Sonnet-4-5-20250929 "),
            ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5"]
        );
        assert_eq!(names("gpt-4o"), ["gpt-4o"]);
    }

    #[test]
    fn endings_and_beginnings_of_closed_shapes_are_taken_off() {
        reaches("gpt-5.4-900k", "gpt-5.4");
        reaches("gpt-5-2025-08-07", "gpt-5");
        reaches("claude-sonnet-4-5@20250929", "claude-sonnet-4-5");
        reaches("deepseek/deepseek-v3.2:free", "deepseek/deepseek-v3.2");
        reaches("llava:latest", "llava");
        reaches(
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5",
        );
        reaches(
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5",
        );
        reaches(
            "projects/p/locations/l/publishers/google/models/gemini-3-pro",
            "gemini-3-pro",
        );
        reaches("models/gemini-3-pro", "gemini-3-pro");
        reaches("mistral-large-latest", "mistral-large");
    }

    #[test]
    fn nothing_else_is_taken_off() {
        for model in [
            "gpt-4o-mini",
            "gpt-4-1106-preview",
            "llama3:8b",
            "o3-mini",
            "qwen3-vl-32b",
            "model-20991",
            "my-2024-11",
            "v1:0",
            "-latest",
            "",
        ] {
            assert_eq!(names(model), [model], "{model}");
        }
    }

    #[test]
    fn hostile_names_end() {
        let long = ":free".repeat(10_000);
        assert!(names(&long).len() <= MOST_NAMES);
        assert!(names(&"us.".repeat(10_000)).len() <= MOST_NAMES);
    }

    #[test]
    fn dots_between_digits_are_dashes() {
        assert_eq!(fold("claude-sonnet-4.5"), "claude-sonnet-4-5");
        assert_eq!(fold("x.ai/grok-4.1"), "x.ai/grok-4-1");
        assert_eq!(fold(".5."), ".5.");
    }
}
