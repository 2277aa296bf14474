//! Which tools of a server are offered: raw names against shell wildcards (specification 4.9).

use talaria_config::ToolFilter;

use crate::directory::{ToolTarget, Utility};

/// Whether a tool or a utility is offered, as far as the filter has a say.
pub(crate) fn offers_target(filter: &ToolFilter, target: &ToolTarget) -> bool {
    match target {
        ToolTarget::Tool(raw_name) => offers(filter, raw_name),
        ToolTarget::Utility(Utility::ListResources | Utility::ReadResource) => {
            !filter.without_resources
        }
        ToolTarget::Utility(Utility::ListPrompts | Utility::GetPrompt) => !filter.without_prompts,
    }
}

/// Whether a tool is offered; `include`, where present, beats `exclude`.
pub(crate) fn offers(filter: &ToolFilter, raw_name: &str) -> bool {
    let listed = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, raw_name));
    filter
        .include
        .as_deref()
        .map_or_else(|| !listed(&filter.exclude), listed)
}

/// Shell wildcards as in Python's `fnmatch`, case-sensitive: `*`, `?`, `[set]`, `[!set]`.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where to go on after the last star, should what follows it not fit.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(p), name.get(n)) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            (Some(_), Some(character)) => one(pattern.get(p..).unwrap_or_default(), *character),
            (Some(_), None) | (None, Some(_)) => None,
        };
        match (step, retry) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((after_star, from))) if from < name.len() => {
                retry = Some((after_star, from + 1));
                p = after_star;
                n = from + 1;
            }
            (None, _) => return false,
        }
    }
}

/// The length of the pattern's first element when it fits the character.
fn one(pattern: &[char], character: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => match set_length(pattern) {
            Some(length) => {
                let set = pattern.get(1..length - 1).unwrap_or_default();
                set_contains(set, character).then_some(length)
            }
            None => (character == '[').then_some(1),
        },
        literal => (*literal == character).then_some(1),
    }
}

/// The length of a bracket expression; none when it is not closed.
fn set_length(pattern: &[char]) -> Option<usize> {
    let mut end = 1;
    if pattern.get(end) == Some(&'!') {
        end += 1;
    }
    // A bracket in the first place is a member.
    if pattern.get(end) == Some(&']') {
        end += 1;
    }
    while *pattern.get(end)? != ']' {
        end += 1;
    }
    Some(end + 1)
}

fn set_contains(set: &[char], character: char) -> bool {
    let (negated, mut rest) = match set {
        ['!', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => return found != negated,
            [low, '-', high, rest @ ..] => {
                found |= (*low..=*high).contains(&character);
                rest
            }
            [member, rest @ ..] => {
                found |= *member == character;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(include: Option<&[&str]>, exclude: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter {
            include: include.map(owned),
            exclude: owned(exclude),
            ..ToolFilter::default()
        }
    }

    #[test]
    fn n06_include_wins_over_exclude() {
        let filter = filter(Some(&["get_*"]), &["get_x"]);
        assert!(offers(&filter, "get_x"));
        assert!(!offers(&filter, "put_x"));
    }

    #[test]
    fn exclude_alone_leaves_the_rest() {
        let filter = filter(None, &["drop_*", "rm"]);
        assert!(offers(&filter, "list"));
        assert!(!offers(&filter, "drop_table"));
        assert!(!offers(&filter, "rm"));
        assert!(offers(&filter, "rmdir"));
    }

    #[test]
    fn an_empty_include_offers_nothing() {
        assert!(!offers(&filter(Some(&[]), &[]), "anything"));
    }

    #[test]
    fn wildcards_follow_the_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("a*b*c", "aXbYbZc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[ab]x", "bx", true),
            ("[!ab]x", "bx", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
            ("Get", "get", false),
            ("ü?", "üö", true),
            ("**a", "bba", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} against {name}");
        }
    }
}
