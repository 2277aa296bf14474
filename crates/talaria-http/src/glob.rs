//! Shell wildcards for server names in tokens: `*` any run, `?` one character.

/// Whether the whole text matches the pattern. Case matters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to resume when the last star has to swallow one character more.
    let mut resume = None;
    while let Some(character) = text.get(at_text) {
        match pattern.get(at_pattern) {
            Some('*') => {
                resume = Some((at_pattern + 1, at_text));
                at_pattern += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == character => {
                at_pattern += 1;
                at_text += 1;
            }
            Some(_) | None => {
                let Some((after_star, swallowed)) = resume else {
                    return false;
                };
                resume = Some((after_star, swallowed + 1));
                at_pattern = after_star;
                at_text = swallowed + 1;
            }
        }
    }
    pattern.iter().skip(at_pattern).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn matches_whole_names_only() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("slack", "slack", true),
            ("slack", "slack2", false),
            ("Slack", "slack", false),
            ("slack-*", "slack-eu", true),
            ("slack-*", "slack", false),
            ("*-eu", "slack-us-eu", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("s?ack", "slack", true),
            ("s?ack", "sack", false),
            ("?", "é", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} on {text:?}");
        }
    }
}
